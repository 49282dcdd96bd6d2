package measure

import "gogcl.dev/gcl"

// Buffers are the two of a replica, with room for its largest call. They are in huge pages from 2 MiB up where the
// system allows.
type Buffers struct {
	first, second []byte
	comm          *gcl.Comm
}

// NewBuffers makes the buffers of a replica. Free gives them back.
func (s *Settings) NewBuffers(c *gcl.Comm) (*Buffers, error) {
	largest := 0
	for _, coll := range s.Collectives {
		for _, size := range s.Sizes {
			largest = max(largest, coll.Larger(coll.Count(size, s.DType.Size(), s.N), s.N))
		}
	}
	b := &Buffers{comm: c}
	var err error
	if b.first, err = gcl.Alloc[byte](c, largest*s.DType.Size()); err != nil {
		return nil, err
	}
	if b.second, err = gcl.Alloc[byte](c, largest*s.DType.Size()); err != nil {
		b.Free()
		return nil, err
	}
	return b, nil
}

// Free gives the buffers back.
func (b *Buffers) Free() {
	for _, memory := range [][]byte{b.first, b.second} {
		if memory != nil {
			_ = gcl.Free(b.comm, memory) // of what Alloc gave, once
		}
	}
}
