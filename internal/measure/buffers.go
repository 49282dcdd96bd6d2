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
	largest := 0 // bytes
	for _, coll := range s.Collectives {
		for _, size := range s.Sizes {
			for _, d := range s.dtypes {
				largest = max(largest, coll.Larger(coll.Count(size, d.Size(), s.N), s.N)*d.Size())
			}
		}
	}
	b := &Buffers{comm: c}
	var err error
	if b.first, err = gcl.Alloc[byte](c, largest); err != nil {
		return nil, err
	}
	if b.second, err = gcl.Alloc[byte](c, largest); err != nil {
		b.Free()
		return nil, err
	}
	return b, nil
}

// Clear makes all bytes zeros, which are values of every element type.
func (b *Buffers) Clear() {
	clear(b.first)
	clear(b.second)
}

// Free gives the buffers back.
func (b *Buffers) Free() {
	for _, memory := range [][]byte{b.first, b.second} {
		if memory != nil {
			_ = gcl.Free(b.comm, memory) // of what Alloc gave, once
		}
	}
}
