package transport

import (
	"context"
	"fmt"
	"slices"
)

// NativeKind is one of the collectives that an engine may have of its own.
type NativeKind uint8

// The kinds. n is the number of members, and one is a length in bytes.
//
//	kind                  src               dst
//	NativeAllReduce       one               one
//	NativeReduceScatter   n*one             one
//	NativeAllGather       one               n*one
//	NativeAllToAll        n*one             n*one
//	NativeBroadcast       none              one: at the root it is only read
//	NativeReduce          one               one at the root, else none
//	NativeGather          one               n*one at the root, else none
//	NativeScatter         n*one at the      one
//	                      root, else none
const (
	NativeAllReduce NativeKind = iota
	NativeReduceScatter
	NativeAllGather
	NativeAllToAll
	NativeBroadcast
	NativeReduce
	NativeGather
	NativeScatter
	numNativeKinds
)

// nativeRow is the table's row of a kind.
type nativeRow struct {
	name             string
	reduces          bool
	srcEach, dstEach bool // the buffer has a part for each member
	src, dst         holding
}

// holding says which members have a buffer.
type holding uint8

const (
	atAll holding = iota
	atRoot
	atNone
)

var nativeRows = [numNativeKinds]nativeRow{
	NativeAllReduce:     {name: "all-reduce", reduces: true},
	NativeReduceScatter: {name: "reduce-scatter", reduces: true, srcEach: true},
	NativeAllGather:     {name: "all-gather", dstEach: true},
	NativeAllToAll:      {name: "all-to-all", srcEach: true, dstEach: true},
	NativeBroadcast:     {name: "broadcast", src: atNone},
	NativeReduce:        {name: "reduce", reduces: true, dst: atRoot},
	NativeGather:        {name: "gather", dstEach: true, dst: atRoot},
	NativeScatter:       {name: "scatter", srcEach: true, src: atRoot},
}

// Valid reports whether k is one of the kinds.
func (k NativeKind) Valid() bool { return k < numNativeKinds }

// String returns the name with hyphens, as in "all-reduce".
func (k NativeKind) String() string {
	if k.Valid() {
		return nativeRows[k].name
	}
	return fmt.Sprintf("NativeKind(%d)", uint8(k))
}

// Reduces reports whether the kind combines the members' data by an operator.
func (k NativeKind) Reduces() bool { return k.Valid() && nativeRows[k].reduces }

// Rooted reports whether one member, the root, has another part than the others.
func (k NativeKind) Rooted() bool {
	return k == NativeBroadcast || k.Valid() && (nativeRows[k].src == atRoot || nativeRows[k].dst == atRoot)
}

// NativeOperator is how elements are combined.
type NativeOperator uint8

// The operators.
const (
	NativeNone    NativeOperator = iota // of a kind that does not reduce
	NativeSum                           // of numbers; integers wrap around
	NativeProduct                       // of numbers; integers wrap around
	NativeMin                           // of numbers
	NativeMax                           // of numbers
	NativeAnd                           // of bools
	NativeOr                            // of bools
	numNativeOperators
)

var nativeOperatorNames = [numNativeOperators]string{"none", "sum", "product", "min", "max", "and", "or"}

// String returns the name, as in "sum".
func (o NativeOperator) String() string {
	if o < numNativeOperators {
		return nativeOperatorNames[o]
	}
	return fmt.Sprintf("NativeOperator(%d)", uint8(o))
}

// NativeElement is the type of the elements.
type NativeElement uint8

// The elements. Their bytes lie as Go has them in memory.
const (
	NativeBytes NativeElement = iota // of a kind that does not reduce: bytes that are moved
	NativeBool                       // one byte, 0 or 1
	NativeInt8
	NativeInt16
	NativeInt32
	NativeInt64
	NativeUint8
	NativeUint16
	NativeUint32
	NativeUint64
	NativeFloat32
	NativeFloat64
	numNativeElements
)

var nativeElements = [numNativeElements]struct {
	name string
	size int
}{
	NativeBytes: {"bytes", 1}, NativeBool: {"bool", 1},
	NativeInt8: {"int8", 1}, NativeInt16: {"int16", 2}, NativeInt32: {"int32", 4}, NativeInt64: {"int64", 8},
	NativeUint8: {"uint8", 1}, NativeUint16: {"uint16", 2}, NativeUint32: {"uint32", 4}, NativeUint64: {"uint64", 8},
	NativeFloat32: {"float32", 4}, NativeFloat64: {"float64", 8},
}

// String returns the name, as in "float32".
func (e NativeElement) String() string {
	if e < numNativeElements {
		return nativeElements[e].name
	}
	return fmt.Sprintf("NativeElement(%d)", uint8(e))
}

// Size is the number of bytes of one element, 0 if e is none.
func (e NativeElement) Size() int {
	if e < numNativeElements {
		return nativeElements[e].size
	}
	return 0
}

// NativeCollective is one collective of an engine. All members of a call give the same one.
type NativeCollective struct {
	Kind     NativeKind
	Operator NativeOperator // NativeNone if the kind does not reduce
	Element  NativeElement  // NativeBytes if the kind does not reduce
	Root     int            // index of the root among the members; 0 if the kind has none
	Size     int            // members
	Bytes    int            // length of the longer of the two buffers, at a member that has both if any has
}

// String describes the collective, as in "all-reduce sum of float32".
func (c NativeCollective) String() string {
	if c.Kind.Reduces() {
		return fmt.Sprintf("%v %v of %v", c.Kind, c.Operator, c.Element)
	}
	return c.Kind.String()
}

// Lengths are those that the buffers of the member with index rank have; 0 and 0 if the kind is none.
func (c NativeCollective) Lengths(rank int) (dst, src int) {
	if !c.Kind.Valid() {
		return 0, 0
	}
	row := &nativeRows[c.Kind]
	one := c.Bytes
	if (row.srcEach || row.dstEach) && c.Size > 0 {
		one /= c.Size
	}
	length := func(each bool, at holding) int {
		switch {
		case at == atNone || at == atRoot && rank != c.Root:
			return 0
		case each:
			return one * c.Size
		}
		return one
	}
	return length(row.dstEach, row.dst), length(row.srcEach, row.src)
}

// Parts says which buffers have a part for each member. c.Kind is valid.
func (c NativeCollective) Parts() (dst, src bool) {
	row := &nativeRows[c.Kind]
	return row.dstEach, row.srcEach
}

// Check returns an *ArgumentError if the arguments of a call of Collective, by a replica, break a rule that can be seen
// without a peer. It allocates nothing when all is well. It leaves the addresses of the buffers to the caller.
func (c NativeCollective) Check(replica int, members []int, dst, src []byte) error {
	rank := slices.Index(members, replica)
	reason := ""
	switch {
	case !c.Kind.Valid():
		reason = fmt.Sprintf("%v is no collective", c.Kind)
	case rank < 0:
		reason = fmt.Sprintf("replica %d is not among the members %v", replica, members)
	case c.Size != len(members):
		reason = fmt.Sprintf("%v of size %d among %d members", c.Kind, c.Size, len(members))
	case c.Root < 0 || c.Root >= c.Size || c.Root != 0 && !c.Kind.Rooted():
		reason = fmt.Sprintf("root %d of %v among %d members", c.Root, c.Kind, c.Size)
	case c.Kind.Reduces() != (c.Operator != NativeNone) || c.Operator >= numNativeOperators:
		reason = fmt.Sprintf("operator %v of %v", c.Operator, c.Kind)
	case c.Kind.Reduces() != (c.Element != NativeBytes) || c.Element >= numNativeElements:
		reason = fmt.Sprintf("elements %v of %v", c.Element, c.Kind)
	case c.Kind.Reduces() && (c.Element == NativeBool) != (c.Operator == NativeAnd || c.Operator == NativeOr):
		reason = fmt.Sprintf("%v of %v", c.Operator, c.Element)
	default:
		reason = c.checkLengths(rank, dst, src)
	}
	if reason == "" {
		return nil
	}
	return &ArgumentError{Reason: reason}
}

func (c NativeCollective) checkLengths(rank int, dst, src []byte) string {
	row, each := &nativeRows[c.Kind], c.Element.Size()
	if row.srcEach || row.dstEach {
		each *= c.Size
	}
	wantDst, wantSrc := c.Lengths(rank)
	switch {
	case c.Bytes < 0 || c.Bytes%each != 0:
		return fmt.Sprintf("%d bytes of %v, want a multiple of %d", c.Bytes, c, each)
	case len(dst) != wantDst || len(src) != wantSrc:
		return fmt.Sprintf("%d bytes from %d in %v of %d, want %d from %d", len(dst), len(src), c, c.Bytes,
			wantDst, wantSrc)
	}
	return ""
}

// Native is what an Endpoint may offer beside Exchange when its engine has collectives of its own, as MPI does. Nowhere
// else does a transport know element types and operators.
//
//	member 0         member 1
//	Collective ──┬── Collective     everyone's call is compared, nothing has been touched
//	             │                  the engine's own messages
//	return       │   return         each when its own part is done
//
// The engine compares nothing. So the members agree on the call first, in a few small messages: see Agreement.
type Native interface {
	Endpoint

	// Takes returns nil if the engine can carry out a collective, or an error that says why not. The error is
	// errors.ErrUnsupported. It depends on the argument and on the kind of engine alone: all replicas get the same one,
	// at all times. Takes does not wait, and may be called at any time by any goroutine.
	Takes(c NativeCollective) error

	// Collective carries out a collective among members, replica ids in the order of their ranks, the caller among
	// them. A group, by its number in the call, has the same members each time, and the slice is not changed. All
	// members give the same call and the same NativeCollective. Where their calls differ, each gets a *MismatchError
	// before a byte of any dst is written. Where the collectives alone differ they get one too: its calls then differ
	// in their Digests, or it tells of lengths. Where groups or members differ it may be a *DeadlockError. Calls one
	// after the other may have the same Call but for its Round.
	//
	// The lengths of dst and src are those that c.Lengths gives, and c.Check is nil. The two buffers lie apart, but for
	// two cases. They may be the same memory where both are equally long. In kinds that do not reduce, the shorter may
	// be the member's own place in the longer. Both belong to the transport until Collective returns, and not a moment
	// longer. After an error the contents of dst are unspecified; src is only read.
	//
	// One call at a time is on the endpoint, Exchange included. Contexts, aborts and closing are as in Exchange: a
	// context that is done aborts the endpoint everywhere, and so does an error (but see ArgumentError and ErrBusy). A
	// collective that Takes refuses is refused with the same error, and nothing is sent. In steady state nothing is
	// allocated.
	Collective(ctx context.Context, call Call, members []int, c NativeCollective, dst, src []byte) error

	// Agreement is how many messages, one after the other, it takes n members to agree on a call. It serves to put a
	// price on a call.
	Agreement(n int) (rounds int)
}
