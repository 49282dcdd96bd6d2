package meeting

import (
	"fmt"

	"gogcl.dev/transport"
)

// CheckGather says what is wrong with the arguments of Gather.
func CheckGather(mine []byte, size int) error {
	switch {
	case size < 0 || size > SmallLimit:
		return &transport.ArgumentError{Reason: fmt.Sprintf("Gather of %d bytes, at most %d", size, SmallLimit)}
	case len(mine) != 0 && len(mine) != size:
		return &transport.ArgumentError{Reason: fmt.Sprintf("Gather of %d bytes is given %d", size, len(mine))}
	}
	return nil
}

// Gather is that of transport.Boards, after Begin.
func (v *Visit) Gather(mine []byte, size int, c transport.Combiner) (all [][]byte, combined []byte, err error) {
	if err := v.assemble(); err != nil {
		return nil, nil, err
	}
	v.operations++
	v.pieces = 0
	turn := v.operations % 2
	if size <= inlineLimit {
		copy(v.own.notices[turn].inline[:], mine)
	} else {
		copy(v.own.boards[turn][:], mine)
	}
	for i, s := range v.seats {
		if size <= inlineLimit {
			v.all[i] = s.notices[turn].inline[:size]
		} else {
			v.all[i] = s.boards[turn][:size]
		}
	}
	if err := v.announce(c, true); err != nil {
		return nil, nil, err
	}
	if c != nil && !v.spread && v.combines {
		return nil, v.hall.combined[turn][:size], nil
	}
	return v.all, nil, nil
}
