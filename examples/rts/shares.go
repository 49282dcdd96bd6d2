package main

import (
	"fmt"

	"gogcl.dev/chunks"
	"gogcl.dev/examples/digits/perceptron"
	"gogcl.dev/ir"
	"gogcl.dev/tensor"
)

// shares is the images of a step, cut into a micro-batch for each of n replicas: those of some of the replicas, one
// after the other, each of so many rows, the first of which are the replica's images and the others nothing.
//
// b images, of a last batch perhaps fewer than usual, are cut as chunks.Split cuts them, so that the shares may
// differ by one, and some may be empty. The mean of the replicas' own means would favour the images in small shares.
// So an image weighs n/b in whatever share it is, the loss of a replica is the sum of its weighted images, and the
// mean over the replicas is the mean of all b images. Rows without an image weigh 0.
type shares struct {
	replicas, rows          int
	own                     []int          // the replicas whose micro-batches these are
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

// shareStreams bring a micro-batch into a program.
type shareStreams struct{ images, labels, weights *ir.Stream }

func newShareStreams(p *ir.Program, rows int) shareStreams {
	return shareStreams{
		images:  p.HostToDevice("images", imagesSpec(rows)),
		labels:  p.HostToDevice("labels", labelsSpec(rows)),
		weights: p.HostToDevice("weights", weightsSpec(rows)),
	}
}

// feed is the host's side of the streams.
func (s shareStreams) feed(from *shares) map[*ir.Stream]*tensor.Tensor {
	return map[*ir.Stream]*tensor.Tensor{s.images: from.images, s.labels: from.labels, s.weights: from.weights}
}

// newShares makes room for the micro-batches of some of so many replicas, in batches of up to so many images.
func newShares(replicas int, own []int, batch int) (*shares, error) {
	s := &shares{replicas: replicas, own: own, rows: chunks.PerRank(batch, replicas)}
	var err error
	make := func(spec ir.Spec) *tensor.Tensor {
		shape := spec.Shape
		if len(own) > 1 {
			shape = append(tensor.Shape{len(own)}, shape...)
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
	for i, r := range s.own {
		lo, hi := chunks.Split(len(batch), s.replicas, r)
		for k, image := range batch[lo:hi] {
			row := i*s.rows + k
			px, digit := from.At(image)
			copy(s.pixels[row*perceptron.Pixels:], px)
			s.digits[row], s.weigher[row] = int32(digit), weight
		}
	}
}
