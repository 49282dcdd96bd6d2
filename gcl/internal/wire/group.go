package wire

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
)

// GroupID is what a transport.Call has for a group: equal on all members, and different for different members.
// partition is 0, or of a group given by lists the hash of all of them: then groups of the same members in different
// lists are different groups too, but for one in 2^14 of those of up to 48 replicas.
//
//	bits            63  62  61..48     47..0
//	size and stride  0  first (21)   stride (21)   size (21)     members are first, first+stride, ...
//	set              1   1  partition  one bit for each replica  any others, ascending, of replicas 0 to 47
//	hash             1   0  62 bits of members and partition     all others
//
// An error can name the members of the first two.
func GroupID(members []int, partition uint64) uint64 {
	if partition == 0 {
		if id, ok := strideID(members); ok {
			return id
		}
	}
	id := uint64(HashedGroup | setGroup)
	if partition != 0 {
		id |= (1 + partition%(1<<partitionBits-1)) << setBits
	}
	last := -1
	for _, m := range members {
		if m <= last || m >= setBits {
			return HashedGroup | FNV(partition^FNVOffset, members...)&^setGroup
		}
		id |= 1 << m
		last = m
	}
	return id
}

// strideID is the number of a group whose members are first, first+stride, ..., if there is room for it.
func strideID(members []int) (id uint64, ok bool) {
	first, stride, size := members[0], 1, len(members)
	if size > 1 {
		stride = members[1] - first
	}
	for i, m := range members {
		if m >= 1<<groupBits || stride < 1 || m != first+i*stride {
			return 0, false
		}
	}
	return uint64(first)<<(2*groupBits) | uint64(stride)<<groupBits | uint64(size), true
}

const (
	groupBits     = 21
	setBits       = 48
	partitionBits = 14
	HashedGroup   = 1 << 63 // marks the number of a group that does not hold a size and a stride
	setGroup      = 1 << 62 // beside HashedGroup: it holds a set
)

// OwnGroup is the number of a group that no peer is asked about, made of other numbers. It holds no members.
func OwnGroup(numbers ...int) uint64 { return HashedGroup | FNV(FNVOffset, numbers...)&^setGroup }

// PhaseGroup is the number of the group in which members make phases of the calls of a whole group. A group of the same
// members that calls for itself has another number, and so have the phases of another whole: each counts its own calls,
// and a transport takes the numbers of one group to ascend.
func PhaseGroup(members, whole uint64) uint64 {
	return HashedGroup | Mix(Mix(Seed, members), whole)&^setGroup
}

// ByLists reports whether a number may be of a group given by lists. Of groups of the same members in different lists a
// few have one number, and the digests of their calls differ.
func ByLists(id uint64) bool { return id&HashedGroup != 0 }

// GroupName is the members of a group for an error text: "{0, 2, 4}", "{0, 1, ..., 63}", "{0, 1} of lists 2a1f". Lists
// that differ have different numbers.
func GroupName(id uint64) string {
	const mask = 1<<groupBits - 1
	if id&HashedGroup != 0 {
		return hashedName(id)
	}
	first, stride, size := id>>(2*groupBits), id>>groupBits&mask, id&mask
	if stride == 0 || size == 0 {
		return fmt.Sprintf("%#x", id)
	}
	return membersName(int(size), func(i int) int { return int(first) + i*int(stride) })
}

// hashedName is GroupName of what holds no size and stride.
func hashedName(id uint64) string {
	set := id & (1<<setBits - 1)
	if id&setGroup == 0 || set == 0 {
		return fmt.Sprintf("%#x", id)
	}
	name := membersName(bits.OnesCount64(set), func(i int) int {
		rest := set
		for range i {
			rest &= rest - 1
		}
		return bits.TrailingZeros64(rest)
	})
	if partition := id >> setBits & (1<<partitionBits - 1); partition != 0 {
		name += fmt.Sprintf(" of lists %x", partition)
	}
	return name
}

// MembersName is how GroupName names members, whatever they are.
func MembersName(members []int) string {
	return membersName(len(members), func(i int) int { return members[i] })
}

// membersName names at most 8 members in full.
func membersName(size int, member func(i int) int) string {
	var b strings.Builder
	for i := 0; i < size; i++ {
		if size > 8 && i == 2 {
			b.WriteString(", ...")
			i = size - 1
		}
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(strconv.Itoa(member(i)))
	}
	return "{" + b.String() + "}"
}
