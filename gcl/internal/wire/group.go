package wire

import (
	"fmt"
	"strings"
)

// GroupID is what a transport.Call has for a group: equal on all members, and different for different members. Members
// are first, first+stride, ..., so a number can hold them, 21 bits for each of first, stride and size, and an error can
// name them. For any others it is a hash, with the top bit set.
func GroupID(members []int) uint64 {
	first, stride, size := members[0], 1, len(members)
	if size > 1 {
		stride = members[1] - first
	}
	for i, m := range members {
		if m >= 1<<groupBits || stride < 1 || m != first+i*stride {
			return HashedGroup | FNV(FNVOffset, members...)
		}
	}
	return uint64(first)<<(2*groupBits) | uint64(stride)<<groupBits | uint64(size)
}

const (
	groupBits   = 21
	HashedGroup = 1 << 63 // marks the number of a group that does not hold its members
)

// GroupName is the members of a group for an error text: "{0, 2, 4}", "{0, 1, ..., 63}".
func GroupName(id uint64) string {
	const mask = 1<<groupBits - 1
	first, stride, size := id>>(2*groupBits), id>>groupBits&mask, id&mask
	if first > mask || stride == 0 || size == 0 {
		return fmt.Sprintf("%#x", id)
	}
	var b strings.Builder
	for i := uint64(0); i < size; i++ {
		if size > 8 && i == 2 {
			b.WriteString(", ...")
			i = size - 1
		}
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprint(&b, first+i*stride)
	}
	return "{" + b.String() + "}"
}
