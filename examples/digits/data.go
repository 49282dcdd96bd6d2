package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	_ "embed"
	"fmt"
	"io"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/blas/blas32"
)

const (
	pixels  = 64 // an image is 8 by 8
	classes = 10 // the digits 0 to 9
	ink     = 16 // the darkest pixel; the lightest is 0

	// holdOut says which images are kept for testing: every fifth, beginning with the first.
	holdOut = 5
)

// digitsCSV holds one image a line: 64 pixels, then the digit. ATTRIBUTION.md says where it is from.
//
//go:embed digits.csv.gz
var digitsCSV []byte

// images is a list of images with what they show.
type images struct {
	pixels []float32 // image i is pixels[i*64 : (i+1)*64], scaled to 0..1
	labels []uint8   // 0..9
}

// len is the number of images.
func (im *images) len() int { return len(im.labels) }

// add appends one image. It copies px.
func (im *images) add(px []float32, label uint8) {
	im.pixels = append(im.pixels, px...)
	im.labels = append(im.labels, label)
}

// reset empties im and keeps its memory.
func (im *images) reset() {
	im.pixels, im.labels = im.pixels[:0], im.labels[:0]
}

// at is image i, without a copy.
func (im *images) at(i int) ([]float32, uint8) {
	return im.pixels[i*pixels : (i+1)*pixels], im.labels[i]
}

// slice is the images from lo to hi, without a copy.
func (im *images) slice(lo, hi int) images {
	return images{pixels: im.pixels[lo*pixels : hi*pixels], labels: im.labels[lo:hi]}
}

// matrix is the images as a matrix of one row each, without a copy.
func (im *images) matrix() blas32.General {
	return matrix(im.pixels, im.len(), pixels)
}

// loadDigits unpacks the embedded data. Every fifth line (1, 6, 11, ...) goes to test, the others to train.
func loadDigits() (train, test images, err error) {
	plain, err := gzip.NewReader(bytes.NewReader(digitsCSV))
	if err != nil {
		return images{}, images{}, fmt.Errorf("digits.csv.gz: %w", err)
	}
	all, err := parseImages(plain)
	if err != nil {
		return images{}, images{}, fmt.Errorf("digits.csv.gz: %w", err)
	}
	for i := range all.len() {
		px, label := all.at(i)
		if i%holdOut == 0 {
			test.add(px, label)
		} else {
			train.add(px, label)
		}
	}
	return train, test, nil
}

// parseImages reads lines of 64 pixels (0..16) and a digit, separated by commas. An error names the line.
func parseImages(r io.Reader) (images, error) {
	var im images
	px := make([]float32, pixels)
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		fields := strings.Split(lines.Text(), ",")
		if len(fields) != pixels+1 {
			return images{}, fmt.Errorf("line %d: %d fields, want %d", n, len(fields), pixels+1)
		}
		for i := range px {
			v, err := strconv.ParseUint(fields[i], 10, 8)
			if err != nil || v > ink {
				return images{}, fmt.Errorf("line %d: pixel %d is %q, want 0 to %d", n, i, fields[i], ink)
			}
			px[i] = float32(v) / ink
		}
		label, err := strconv.ParseUint(fields[pixels], 10, 8)
		if err != nil || label >= classes {
			return images{}, fmt.Errorf("line %d: digit is %q, want 0 to %d", n, fields[pixels], classes-1)
		}
		im.add(px, uint8(label))
	}
	return im, lines.Err()
}
