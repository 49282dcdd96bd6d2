package main

import (
	"fmt"

	"gogcl.dev/chunks"
	"gogcl.dev/examples/digits/perceptron"
	"gogcl.dev/ir"
	"gogcl.dev/tensor"
)

// shares is the images of a step, cut into a micro-batch for each of n replicas: the micro-batches one after the other,
// each of so many rows, the first of which are the replica's images and the others nothing.
//
// b images, of a last batch perhaps fewer than usual, are cut as chunks.Split cuts them, so that the shares may
// differ by one, and some may be empty. The mean of the replicas' own means would favour the images in small shares.
// So an image weighs n/b in whatever share it is, the loss of a replica is the sum of its weighted images, and the
// mean over the replicas is the mean of all b images. Rows without an image weigh 0.
type shares struct {
	replicas, rows          int
	images, labels, weights *tensor.Tensor // as ir.Session.HostSpec wants them

	pixels  []float32 // of images
	digits  []int32   // of labels
	weigher []float32 // of weights
}

// The specs of a micro-batch on a replica.
func imagesSpec(rows int) ir.Spec {
	return ir.Spec{DType: tensor.F32, Shape: tensor.Shape{rows, perceptron.Pixels}}
}
func labelsSpec(rows int) ir.Spec { return ir.Spec{DType: tensor.I32, Shape: tensor.Shape{rows}} }
func weightsSpec(rows int) ir.Spec {
	return ir.Spec{DType: tensor.F32, Shape: tensor.Shape{rows}}
}

// newShares makes room for batches of up to so many images.
func newShares(replicas, batch int) (*shares, error) {
	s := &shares{replicas: replicas, rows: chunks.PerRank(batch, replicas)}
	var err error
	make := func(spec ir.Spec) *tensor.Tensor {
		shape := spec.Shape
		if replicas > 1 {
			shape = append(tensor.Shape{replicas}, shape...)
		}
		t, newErr := tensor.New(spec.DType, shape...)
		if newErr != nil && err == nil {
			err = newErr
		}
		return t
	}
	s.images, s.labels, s.weights = make(imagesSpec(s.rows)), make(labelsSpec(s.rows)), make(weightsSpec(s.rows))
	if err != nil {
		return nil, fmt.Errorf("micro-batches of %d images: %w", s.rows, err)
	}
	if s.pixels, err = tensor.Of[float32](s.images); err != nil {
		return nil, err
	}
	if s.digits, err = tensor.Of[int32](s.labels); err != nil {
		return nil, err
	}
	s.weigher, err = tensor.Of[float32](s.weights)
	return s, err
}

// fill takes the images that batch lists.
func (s *shares) fill(from perceptron.Images, batch []int) {
	clear(s.pixels)
	clear(s.digits)
	clear(s.weigher)
	weight := float32(s.replicas) / float32(len(batch))
	for r := range s.replicas {
		lo, hi := chunks.Split(len(batch), s.replicas, r)
		for k, i := range batch[lo:hi] {
			row := r*s.rows + k
			px, digit := from.At(i)
			copy(s.pixels[row*perceptron.Pixels:], px)
			s.digits[row], s.weigher[row] = int32(digit), weight
		}
	}
}
