package main

import (
	"math"
	"slices"
	"testing"
)

func TestCompareCopies(t *testing.T) {
	nan := float32(math.NaN())
	one := []float32{1, 0, nan}
	same := slices.Concat(one, one, one)
	if err := compareCopies(same, 3); err != nil {
		t.Error(err)
	}
	for _, tt := range []struct {
		name  string
		place int
		value float32
		want  string
	}{
		{"last bit", 3, math.Nextafter32(1, 2), "the replicas have come apart: weight 0 is 1 on replica 0, 1.0000001 on replica 1"},
		{"sign of zero", 7, float32(math.Copysign(0, -1)), "the replicas have come apart: weight 1 is 0 on replica 0, -0 on replica 2"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			copies := slices.Clone(same)
			copies[tt.place] = tt.value
			if err := compareCopies(copies, 3); err == nil || err.Error() != tt.want {
				t.Errorf("error %v, want %s", err, tt.want)
			}
		})
	}
}

func TestChecksum(t *testing.T) {
	// CRC-32 of the bytes 00 00 80 3f, as zlib computes it.
	if got, want := checksumOf([]float32{1}), uint32(0xaca16a6a); got != want {
		t.Errorf("checksum %08x, want %08x", got, want)
	}
}
