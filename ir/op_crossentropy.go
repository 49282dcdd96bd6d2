package ir

import (
	"errors"
	"fmt"

	"gogcl.dev/internal/kernel"
	"gogcl.dev/tensor"
)

// CrossEntropy is the mean of CrossEntropyEach, a scalar. That of no rows is an error.
func CrossEntropy(logits, labels *Tensor) *Tensor {
	return Apply1(&crossEntropyOp{mean: true}, nil, logits, labels)
}

// CrossEntropyEach is -log softmax(logits)[label] of each row of the last dimension of logits, which has a place for
// each class. logits is of floats, labels of int32 or uint32 in the shape of logits without the last dimension, as is
// the result. Only logits has a gradient. Errors: other types or shapes, no classes; when it runs, a label that is no
// class, with row and label.
func CrossEntropyEach(logits, labels *Tensor) *Tensor {
	return Apply1(&crossEntropyOp{}, nil, logits, labels)
}

type crossEntropyOp struct{ mean bool }

func (o *crossEntropyOp) Name() string { return "cross entropy" }

func (o *crossEntropyOp) Infer(in []Spec) ([]Spec, error) {
	if err := takes(floatTypes, in[0].DType); err != nil {
		return nil, err
	}
	if err := checkIndices("labels", in[1]); err != nil {
		return nil, err
	}
	rows, classes, err := lastDimension(in[0].Shape)
	if err != nil {
		return nil, err
	}
	shape := in[0].Shape[:len(in[0].Shape)-1]
	switch {
	case !in[1].Shape.Equal(shape):
		return nil, fmt.Errorf("labels of shape %v, want %v: one for each row of logits", in[1].Shape, shape)
	case classes == 0:
		return nil, errors.New("rows of no classes, want one or more")
	case !o.mean:
		return []Spec{{Shape: shape, DType: in[0].DType}}, nil
	case rows == 0:
		return nil, errors.New("the mean of no rows, want one or more")
	}
	return []Spec{{DType: in[0].DType}}, nil
}

// ScratchBytes has a row of exponentials too.
func (o *crossEntropyOp) ScratchBytes(in []Spec) int {
	_, classes, err := lastDimension(in[0].Shape)
	if err != nil {
		return 0
	}
	return wideBytes(o, in) + 8*classes
}

func (o *crossEntropyOp) Bind(m *Memory) (func() error, error) {
	return bindWide(m,
		func(m *Memory) (func() error, error) { return bindCrossEntropy[float32](o.mean, m) },
		func(m *Memory) (func() error, error) { return bindCrossEntropy[float64](o.mean, m) })
}

func bindCrossEntropy[T float](mean bool, m *Memory) (func() error, error) {
	x, y, labels := elementsOf[T](m.In[0]), elementsOf[T](m.Out[0]), labelsOf(m)
	t := tensor.DTypeOf[T]()
	exponentials, scratch := kernel.Exponentials(kernel.Type(t)), m.Scratch[:labels.classes*t.Size()]
	return func() error {
		total := 0.0
		for r := range labels.len() {
			label, err := labels.class(r)
			if err != nil {
				return err
			}
			row := x[r*labels.classes:][:labels.classes]
			highest, sum := exponentials(scratch, tensor.Bytes(row))
			loss := kernel.Log(sum) - float64(row[label]-T(highest))
			if mean {
				total += loss
			} else {
				y[r] = canonical(T(loss))
			}
		}
		if mean {
			y[0] = canonical(T(total / float64(labels.len())))
		}
		return nil
	}, nil
}

// labels are classes, one for each row of logits.
type labels struct {
	indices
	classes int
}

func labelsOf(m *Memory) *labels { return &labels{indicesOf(m.In[1]), width(m.In[0])} }

// class is the label of a row.
func (l *labels) class(row int) (int, error) {
	label := l.at(row)
	if label < 0 || label >= int64(l.classes) {
		return 0, fmt.Errorf("row %d has label %d, and there are %d classes", row, label, l.classes)
	}
	return int(label), nil
}

// Gradient implements Differentiable.
func (o *crossEntropyOp) Gradient(b *Backward) []*Tensor {
	return []*Tensor{Apply1(&crossEntropyGradientOp{o.mean}, nil, b.In(0), b.In(1), b.Grad(0)), nil}
}

// crossEntropyGradientOp is the gradient of crossEntropyOp, given logits, labels, and the gradient g of the result: of
// each row, g (softmax(logits) - 1 at the label), over the number of rows for a mean.
type crossEntropyGradientOp struct{ mean bool }

func (o *crossEntropyGradientOp) Name() string { return "cross entropy gradient" }

func (o *crossEntropyGradientOp) Infer(in []Spec) ([]Spec, error) { return in[:1], nil }

func (o *crossEntropyGradientOp) ScratchBytes(in []Spec) int { return wideBytes(o, in) }

func (o *crossEntropyGradientOp) Bind(m *Memory) (func() error, error) {
	return bindWide(m,
		func(m *Memory) (func() error, error) { return bindCrossEntropyGradient[float32](o.mean, m) },
		func(m *Memory) (func() error, error) { return bindCrossEntropyGradient[float64](o.mean, m) })
}

func bindCrossEntropyGradient[T float](mean bool, m *Memory) (func() error, error) {
	x, g, dx, labels := elementsOf[T](m.In[0]), elementsOf[T](m.In[2]), elementsOf[T](m.Out[0]), labelsOf(m)
	t := kernel.Type(tensor.DTypeOf[T]())
	exponentials, scale := kernel.Exponentials(t), kernel.Scale(t)
	return func() error {
		for r := range labels.len() {
			label, err := labels.class(r)
			if err != nil {
				return err
			}
			weight := 0.0
			if mean {
				weight = float64(g[0]) / float64(labels.len())
			} else {
				weight = float64(g[r])
			}
			row, out := x[r*labels.classes:][:labels.classes], dx[r*labels.classes:][:labels.classes]
			_, sum := exponentials(tensor.Bytes(out), tensor.Bytes(row))
			share, own := weight/sum, float64(out[label])
			scale(tensor.Bytes(out), tensor.Bytes(out), share)
			out[label] = canonical(T(float64(own*share) - weight))
		}
		return nil
	}, nil
}
