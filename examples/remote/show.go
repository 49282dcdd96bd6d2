package main

import (
	"context"
	"errors"
	"fmt"

	"gogcl.dev/ir"
	"gogcl.dev/remote"
	"gogcl.dev/tensor"
)

// show runs the program once and compares what comes out. In new buffers the variable is 1 and becomes 3, and entries
// that were never stored are 0. Where the storage has kept what n runs before have stored, the variable goes on from
// 1 + 2n, and the entries have what was stored last.
func show(ctx context.Context, storage remote.Storage, page *page) (err error) {
	p := build(storage)
	s, err := ir.NewSession(p.Program)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()

	n, err := number(p.runs.Read(s))
	if err != nil {
		return err
	}
	page.title(fmt.Sprintf("a remote variable, after %d earlier runs", n))
	x, err := p.x.Read(s)
	if err != nil {
		return err
	}
	page.compare("before the run", x, tensor.Scalar(1+2*n))

	out, err := s.Run(ctx, nil)
	if err != nil {
		return err
	}
	page.compare("loaded, and 2 added in place", out[p.output], tensor.Scalar(3+2*n))
	stored, err := p.x.Read(s)
	if err != nil {
		return err
	}
	page.compare("stored", stored, tensor.Scalar(3+2*n))

	page.title("\ntwo entries of a buffer")
	for i, stream := range p.entries {
		value := int32(i + 1)
		before := value
		if n == 0 {
			before = 0
		}
		page.compare(fmt.Sprintf("entry %d before the run", i), out[p.before[i]], tensor.Scalar(before))
		page.compare(fmt.Sprintf("entry %d, loaded back", i), out[stream], tensor.Scalar(value))
	}
	page.title("")
	return nil
}

// number is what a variable of one int32 holds.
func number(value *tensor.Tensor, err error) (int32, error) {
	if err != nil {
		return 0, err
	}
	data, err := tensor.Of[int32](value)
	if err != nil {
		return 0, err
	}
	return data[0], nil
}
