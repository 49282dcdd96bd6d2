package gcl

import (
	"fmt"
	"strings"

	"gogcl.dev/commgroup"
)

// groupID is what a transport.Call has for a group: equal on all members, and different for different members. Members are first,
// first+stride, ..., so a number can hold them, 21 bits for each of first, stride and size, and an error can name them. With more
// replicas than that it is a hash, with the top bit set.
func groupID(l commgroup.Layout, replica int) uint64 {
	first := l.Member(l.GroupOf(replica), 0)
	if l.Replicas() >= 1<<groupBits {
		return 1<<63 | fnv(fnvOffset, first, l.Stride(), l.Size())>>1
	}
	return uint64(first)<<(2*groupBits) | uint64(l.Stride())<<groupBits | uint64(l.Size())
}

const groupBits = 21

// groupName is the members of a group for an error text: "{0, 2, 4}", "{0, 1, ..., 63}".
func groupName(id uint64) string {
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
