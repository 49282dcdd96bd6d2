package remote_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"

	"gogcl.dev/ir"
	"gogcl.dev/remote"
	"gogcl.dev/tensor"
)

// TestComputedOffsetsOf64Bits: the number of an entry is not cut to the 32 bits that an int may have.
func TestComputedOffsetsOf64Bits(t *testing.T) {
	for _, offset := range []int64{1 << 32, 1<<32 + 1, math.MaxInt64, math.MinInt64, -1 << 32} {
		p := ir.New(1)
		b := remote.NewBuffer(p, i32(2), 2)
		in := p.HostToDevice("at", ir.Spec{DType: tensor.I64})
		at := p.Main().HostLoad(in)
		remote.StoreAt(p.Main().Constant(ints(t, []int32{1, 2}, 2)), b, at)
		s := session(t, p)
		_, err := s.Run(context.Background(), map[*ir.Stream]*tensor.Tensor{in: tensor.Scalar(offset)})
		if err == nil || !strings.HasSuffix(err.Error(),
			fmt.Sprintf("buffer 1 has entries 0 to 1, and the offset is %d", offset)) {
			t.Errorf("entry %d of 2: %v", offset, err)
		}
	}
}
