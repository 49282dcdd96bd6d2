package carry

import (
	"slices"
	"testing"

	"gogcl.dev/gcl/internal/carry/job"
	"gogcl.dev/internal/kernel"
	"gogcl.dev/tensor"
)

// TestSort: a tensor has messages of its own when each has as many bytes as the tuning says, and shares them below.
func TestSort(t *testing.T) {
	t.Parallel()
	works := func(dtype tensor.DType) kernel.Type { return kernel.Type(dtype) }
	for _, c := range []struct {
		cut, separate int
		want          []int
	}{
		{1, 4 << 10, []int{1, 2}},
		{2, 4 << 10, []int{2}},
		{2, 4<<10 + 1, nil},
		{1, 16 << 10, nil},
		{1, 1, []int{0, 1, 2}},
	} {
		j := &job.Job{DTypes: []tensor.DType{tensor.F32, tensor.F32, tensor.F64}, Elements: []int{1023, 1024, 1024}}
		s := shipment{Job: j, packer: &packer{}}
		s.sort(c.cut, 0, c.separate, works)
		if got := s.packer.separate; !slices.Equal(got, c.want) {
			t.Errorf("in %d chunks, from %d bytes on: %v have messages of their own, want %v", c.cut, c.separate, got,
				c.want)
		}
	}
}
