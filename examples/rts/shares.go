package main

import (
	"fmt"

	"gogcl.dev/chunks"
	"gogcl.dev/examples/digits/perceptron"
	"gogcl.dev/ir"
	"gogcl.dev/tensor"
)

// shares is the images of a step, cut into n micro-batches, one or with -accumulate several for each replica, whose
// follow each other: some of the micro-batches, one after the other, each of so many rows, the first of which are its
// images and the others nothing.
//
// b images, of a last batch perhaps fewer than usual, are cut as chunks.Split cuts them, so that the shares may
// differ by one, and some may be empty. The mean of the shares' own means would favour the images in small ones.
// So an image weighs n/b in whatever share it is, the loss of a micro-batch is the sum of its weighted images, and the
// mean over the micro-batches and the replicas is the mean of all b images. Rows without an image weigh 0.
type shares struct {
	n, rows                 int
	own                     []int          // the micro-batches that these are
	images, labels, weights *tensor.Tensor // of all of own

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

// shareStreams bring micro-batches into a program.
type shareStreams struct{ images, labels, weights *ir.Stream }

// newShareStreams makes streams of so many micro-batches at a time, which have a dimension of their own unless it is 1.
func newShareStreams(p *ir.Program, micro, rows int) shareStreams {
	stream := func(name string, spec ir.Spec) *ir.Stream {
		if micro > 1 {
			spec.Shape = append(tensor.Shape{micro}, spec.Shape...)
		}
		return p.HostToDevice(name, spec)
	}
	return shareStreams{
		images:  stream("images", imagesSpec(rows)),
		labels:  stream("labels", labelsSpec(rows)),
		weights: stream("weights", weightsSpec(rows)),
	}
}

// feed is the host's side of the streams, in memory of the shares.
func (s shareStreams) feed(session *ir.Session, from *shares) (map[*ir.Stream]*tensor.Tensor, error) {
	in := map[*ir.Stream]*tensor.Tensor{s.images: from.images, s.labels: from.labels, s.weights: from.weights}
	for stream, t := range in {
		t, err := t.Reshape(session.HostSpec(stream).Shape...)
		if err != nil {
			return nil, err
		}
		in[stream] = t
	}
	return in, nil
}

// micros are the micro-batches of some replicas.
func (cfg config) micros(replicas []int) []int {
	var out []int
	for _, r := range replicas {
		for i := range cfg.micro {
			out = append(out, r*cfg.micro+i)
		}
	}
	return out
}

// newShares makes room for some of n micro-batches, in batches of up to so many images.
func newShares(n int, own []int, batch int) (*shares, error) {
	s := &shares{n: n, own: own, rows: chunks.PerRank(batch, n)}
	var err error
	make := func(spec ir.Spec) *tensor.Tensor {
		t, newErr := tensor.New(spec.DType, append(tensor.Shape{len(own)}, spec.Shape...)...)
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
	weight := float32(s.n) / float32(len(batch))
	for i, m := range s.own {
		lo, hi := chunks.Split(len(batch), s.n, m)
		for k, image := range batch[lo:hi] {
			row := i*s.rows + k
			px, digit := from.At(image)
			copy(s.pixels[row*perceptron.Pixels:], px)
			s.digits[row], s.weigher[row] = int32(digit), weight
		}
	}
}
