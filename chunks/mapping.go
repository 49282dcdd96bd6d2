package chunks

import (
	"errors"
	"fmt"
	"math"
)

// Mapping says on which IPUs of a replica the elements of an array are: the first Mapping[0] of them on IPU 0, the
// next Mapping[1] on IPU 1, and so on. An IPU may have none. What an IPU holds is its segment; a scatter splits and
// pads each segment on its own.
//
//	x y z w, mapping 3 1     │x y z│w│     over four ranks, c = 1 and 1:  x w │ y 0 │ z 0 │ 0 0
type Mapping []int

// Elements is how many elements there are on all IPUs together. A negative entry is an error, and so is a sum that no
// int can hold.
func (m Mapping) Elements() (int, error) {
	total := 0
	for ipu, n := range m {
		switch {
		case n < 0:
			return 0, fmt.Errorf("chunks: the mapping has %d elements on IPU %d, want 0 or more", n, ipu)
		case n > math.MaxInt-total:
			return 0, errors.New("chunks: the mapping has more elements than an int can hold")
		}
		total += n
	}
	return total, nil
}

// PerRank is how many elements each of the given number of ranks holds when every segment is scattered over them: the
// sum of the segments' own PerRank. A mapping that Elements refuses, and less than one rank, are errors.
func (m Mapping) PerRank(ranks int) (int, error) {
	if ranks < 1 {
		return 0, fmt.Errorf("chunks: a mapping over %d ranks, want 1 or more", ranks)
	}
	if _, err := m.Elements(); err != nil {
		return 0, err
	}
	total := 0
	for _, n := range m {
		total += PerRank(n, ranks) // at most n
	}
	return total, nil
}

// Check returns an error unless the mapping is one of n elements. It names both numbers.
func (m Mapping) Check(n int) error {
	total, err := m.Elements()
	if err == nil && total != n {
		err = fmt.Errorf("chunks: the mapping has %d elements on %d IPUs, the data %d", total, len(m), n)
	}
	return err
}
