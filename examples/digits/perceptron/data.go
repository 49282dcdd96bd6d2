package perceptron

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
	Pixels  = 64 // an image is 8 by 8
	Classes = 10 // the digits 0 to 9
	ink     = 16 // the darkest pixel; the lightest is 0

	// holdOut says which images are kept for testing: every fifth, beginning with the first.
	holdOut = 5
)

// digitsCSV holds one image a line: 64 pixels, then the digit. ATTRIBUTION.md says where it is from.
//
//go:embed digits.csv.gz
var digitsCSV []byte

// Images is a list of images with what they show.
type Images struct {
	pixels []float32 // image i is pixels[i*64 : (i+1)*64], scaled to 0..1
	labels []uint8   // 0..9
}

// Len is the number of images.
func (im *Images) Len() int { return len(im.labels) }

// Add appends one image. It copies px.
func (im *Images) Add(px []float32, label uint8) {
	im.pixels = append(im.pixels, px...)
	im.labels = append(im.labels, label)
}

// Reset empties im and keeps its memory.
func (im *Images) Reset() {
	im.pixels, im.labels = im.pixels[:0], im.labels[:0]
}

// At is image i, without a copy.
func (im *Images) At(i int) ([]float32, uint8) {
	return im.pixels[i*Pixels : (i+1)*Pixels], im.labels[i]
}

// Slice is the images from lo to hi, without a copy.
func (im *Images) Slice(lo, hi int) Images {
	return Images{pixels: im.pixels[lo*Pixels : hi*Pixels], labels: im.labels[lo:hi]}
}

// matrix is the images as a matrix of one row each, without a copy.
func (im *Images) matrix() blas32.General {
	return matrix(im.pixels, im.Len(), Pixels)
}

// Load unpacks the embedded data. Every fifth line (1, 6, 11, ...) goes to test, the others to train.
func Load() (train, test Images, err error) {
	plain, err := gzip.NewReader(bytes.NewReader(digitsCSV))
	if err != nil {
		return Images{}, Images{}, fmt.Errorf("digits.csv.gz: %w", err)
	}
	all, err := parseImages(plain)
	if err != nil {
		return Images{}, Images{}, fmt.Errorf("digits.csv.gz: %w", err)
	}
	for i := range all.Len() {
		px, label := all.At(i)
		if i%holdOut == 0 {
			test.Add(px, label)
		} else {
			train.Add(px, label)
		}
	}
	return train, test, nil
}

// parseImages reads lines of 64 pixels (0..16) and a digit, separated by commas. An error names the line.
func parseImages(r io.Reader) (Images, error) {
	var im Images
	px := make([]float32, Pixels)
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		fields := strings.Split(lines.Text(), ",")
		if len(fields) != Pixels+1 {
			return Images{}, fmt.Errorf("line %d: %d fields, want %d", n, len(fields), Pixels+1)
		}
		for i := range px {
			v, err := strconv.ParseUint(fields[i], 10, 8)
			if err != nil || v > ink {
				return Images{}, fmt.Errorf("line %d: pixel %d is %q, want 0 to %d", n, i, fields[i], ink)
			}
			px[i] = float32(v) / ink
		}
		label, err := strconv.ParseUint(fields[Pixels], 10, 8)
		if err != nil || label >= Classes {
			return Images{}, fmt.Errorf("line %d: digit is %q, want 0 to %d", n, fields[Pixels], Classes-1)
		}
		im.Add(px, uint8(label))
	}
	return im, lines.Err()
}
