package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"

	"gogcl.dev/examples/digits/perceptron"
	"gogcl.dev/gcl"
)

// verify gathers the weights of all replicas on all of them and compares bits. It returns a checksum of the weights.
func (t *trainer) verify(ctx context.Context) (checksum uint32, err error) {
	all, err := gcl.AllGather(ctx, t.comm, t.net.Params)
	if err != nil {
		return 0, err
	}
	if err := compareCopies(all, perceptron.NumParams); err != nil {
		return 0, err
	}
	return checksumOf(t.net.Params), nil
}

// compareCopies returns an error if two of the copies that lie one after another in all, each of size numbers, differ
// in a bit. The error names the first place.
func compareCopies(all []float32, size int) error {
	for i, v := range all {
		first := all[i%size]
		if math.Float32bits(v) != math.Float32bits(first) {
			return fmt.Errorf("the replicas have come apart: weight %d is %v on replica 0, %v on replica %d",
				i%size, first, v, i/size)
		}
	}
	return nil
}

// checksumOf is the CRC-32 of the bits of v, little end first.
func checksumOf(v []float32) uint32 {
	bits := make([]byte, 0, 4*len(v))
	for _, x := range v {
		bits = binary.LittleEndian.AppendUint32(bits, math.Float32bits(x))
	}
	return crc32.ChecksumIEEE(bits)
}
