package ops

import (
	"errors"
	"fmt"

	"gogcl.dev/internal/kernel"
	"gogcl.dev/ir"
	"gogcl.dev/tensor"
)

// CrossEntropy is the mean of CrossEntropyEach, a scalar. That of no rows is an error.
func CrossEntropy(logits, labels *ir.Tensor) *ir.Tensor { return crossEntropy(true, logits, labels) }

// CrossEntropyEach is -log softmax(logits)[label] of each row of the last dimension of logits, which has a place for
// each class. logits is of floats, labels of int32 or uint32 in the shape of logits without the last dimension, as is
// the result. Only logits has a gradient. Errors: other types or shapes, no classes; when it runs, a label that is no
// class, with row and label.
func CrossEntropyEach(logits, labels *ir.Tensor) *ir.Tensor {
	return crossEntropy(false, logits, labels)
}

func crossEntropy(mean bool, logits, labels *ir.Tensor) *ir.Tensor {
	return (&row{
		name:  "cross entropy",
		infer: func(in []ir.Spec) ([]ir.Spec, error) { return inferCrossEntropy(mean, in) },
		scratch: func(in []ir.Spec) int { // a row of exponentials
			_, classes, err := lastDimension(in[0].Shape)
			if err != nil {
				return 0
			}
			return 8 * classes
		},
		f32: func(m *ir.Memory) (func() error, error) { return bindCrossEntropy[float32](mean, m) },
		f64: func(m *ir.Memory) (func() error, error) { return bindCrossEntropy[float64](mean, m) },
		back: func(b *ir.Backward) []*ir.Tensor {
			return []*ir.Tensor{crossEntropyGradient(mean, b.In(0), b.In(1), b.Grad(0)), nil}
		},
	}).of(logits, labels)
}

func inferCrossEntropy(mean bool, in []ir.Spec) ([]ir.Spec, error) {
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
	case !mean:
		return []ir.Spec{{Shape: shape, DType: in[0].DType}}, nil
	case rows == 0:
		return nil, errors.New("the mean of no rows, want one or more")
	}
	return []ir.Spec{{DType: in[0].DType}}, nil
}

func bindCrossEntropy[T float](mean bool, m *ir.Memory) (func() error, error) {
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

func labelsOf(m *ir.Memory) *labels { return &labels{indicesOf(m.In[1]), width(m.In[0])} }

// class is the label of a row.
func (l *labels) class(row int) (int, error) {
	label := l.at(row)
	if label < 0 || label >= int64(l.classes) {
		return 0, fmt.Errorf("row %d has label %d, and there are %d classes", row, label, l.classes)
	}
	return int(label), nil
}

// crossEntropyGradient is the gradient, given logits, labels, and the gradient g of the result: of each row,
// g (softmax(logits) - 1 at the label), over the number of rows for a mean.
func crossEntropyGradient(mean bool, logits, labels, g *ir.Tensor) *ir.Tensor {
	return (&row{
		name: "cross entropy gradient", infer: like,
		f32: func(m *ir.Memory) (func() error, error) { return bindCrossEntropyGradient[float32](mean, m) },
		f64: func(m *ir.Memory) (func() error, error) { return bindCrossEntropyGradient[float64](mean, m) },
		back: func(b *ir.Backward) []*ir.Tensor { // u being that of the result, which is g times something
			logits, labels, g, u := b.In(0), b.In(1), b.In(2), b.Grad(0)
			s := b.InSpec(2)
			one := Expand(scalar(b.Graph(), s.DType, 1), s.Shape...)
			ofG := Mul(u, crossEntropyGradient(mean, logits, labels, one))
			ofLogits := softmaxGradient(false, Softmax(logits), u)
			if mean {
				rows, _, err := lastDimension(b.InSpec(0).Shape)
				if err != nil { // infer has found none
					return nil
				}
				return []*ir.Tensor{Mul(ofLogits, divide(g, rows)), nil, ReduceSum(ofG)}
			}
			weight := Reshape(g, append(s.Shape.Clone(), 1)...)
			return []*ir.Tensor{Mul(ofLogits, weight), nil, ReduceSum(ofG, -1)}
		},
	}).of(logits, labels, g)
}

func bindCrossEntropyGradient[T float](mean bool, m *ir.Memory) (func() error, error) {
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
