package checkpoint

import "gogcl.dev/tensor"

type Tensor struct {
	Name   string
	DType  tensor.DType
	Shape  tensor.Shape
	Shards int
	Read   func(k int) (*tensor.Tensor, error)
	Write  func(k int, shard *tensor.Tensor) error
}
