package inproc

import (
	"context"
	"fmt"

	"gogcl.dev/transport"
)

// Gather implements transport.Boards.
func (e *endpoint) Gather(ctx context.Context, call transport.Call, members []int, mine []byte, size int,
	c transport.Combiner) ([][]byte, []byte, error) {
	switch {
	case size < 0 || size > smallLimit:
		return nil, nil, &transport.ArgumentError{Reason: fmt.Sprintf("Gather of %d bytes, at most %d",
			size, smallLimit)}
	case len(mine) != 0 && len(mine) != size:
		return nil, nil, &transport.ArgumentError{Reason: fmt.Sprintf("Gather of %d bytes is given %d",
			size, len(mine))}
	}
	v, err := e.visiting(ctx, &call, members)
	if err != nil {
		return nil, nil, err
	}
	settled := false
	defer func() {
		if !settled { // a Combiner panicked or ended its goroutine
			e.fail(nil, errCrash)
		}
		e.dismiss()
	}()
	v.operations++
	v.yields = gatherYields
	turn := v.operations % 2
	if own := v.seats[v.place]; size <= inlineLimit {
		copy(own.notices[turn].inline[:], mine)
	} else {
		copy(own.boards[turn], mine)
	}
	for i, s := range v.seats {
		if v.all[i] = s.boards[turn][:size]; size <= inlineLimit {
			v.all[i] = s.notices[turn].inline[:size]
		}
	}
	err = e.announce(v, c, 0)
	settled = true
	if err != nil {
		return nil, nil, err
	}
	if c != nil && !v.spread && v.combines[turn] {
		return nil, v.combined[turn][:size], nil
	}
	return v.all, nil, nil
}
