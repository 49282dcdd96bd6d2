package transport

import (
	"context"
	"fmt"
	"slices"

	"gogcl.dev/internal/kernel"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
)

// NativeOperator is how an engine combines elements. The zero NativeOperator combines nothing.
//
// Within this module, kernel.Op(o) is the same operator for the element-wise loops: the numbers are equal.
type NativeOperator uint8

// The operators. They combine integers of all widths, float32 and float64.
const (
	NativeAdd = NativeOperator(kernel.Add) // integers wrap around
	NativeMul = NativeOperator(kernel.Mul) // integers wrap around
	NativeMin = NativeOperator(kernel.Min)
	NativeMax = NativeOperator(kernel.Max)
	NativeAnd = NativeOperator(kernel.And) // of bools, and of nothing else
	NativeOr  = NativeOperator(kernel.Or)  // of bools, and of nothing else
)

// String returns the name, as in "add".
func (o NativeOperator) String() string { return kernel.Op(o).String() }

// Accepts reports whether the operator combines elements of a type. None combines 16-bit floats: engines move them.
func (o NativeOperator) Accepts(t tensor.DType) bool {
	switch {
	case !kernel.Op(o).Valid():
		return false
	case o == NativeAnd || o == NativeOr:
		return t == tensor.Bool
	}
	return t.IsInteger() || t == tensor.F32 || t == tensor.F64
}

// NativeCollective is one collective of an engine. All members of a call give the same one.
type NativeCollective struct {
	Collective schedule.Collective // one of schedule.Collectives; its Contract says what the buffers hold
	Operator   NativeOperator      // 0 if the collective does not combine
	DType      tensor.DType        // of the elements; U8, for bytes, if the collective does not combine
	Root       int                 // index of the root among the members; 0 if the collective has none
	Size       int                 // members
	Bytes      int                 // length of the larger buffer, at the root if the collective has one
}

// String describes the collective, as in "all-reduce add of float32".
func (c NativeCollective) String() string {
	if c.Collective.Contract().Combines {
		return fmt.Sprintf("%v %v of %v", c.Collective, c.Operator, c.DType)
	}
	return c.Collective.String()
}

// Lengths are those that the buffers of the member with index rank have.
func (c NativeCollective) Lengths(rank int) (dst, src int) {
	contract := c.Collective.Contract()
	return c.length(contract.Output, rank), c.length(contract.Input, rank)
}

func (c NativeCollective) length(h schedule.Holding, rank int) int {
	if h == schedule.AtRoot && rank != c.Root {
		return 0
	}
	return h.Elements(c.Bytes, c.Size)
}

// Check returns an *ArgumentError if the arguments of a call of Collective, by a replica, break a rule that can be seen
// without a peer. It allocates nothing when all is well. It leaves the addresses of the buffers to the caller.
func (c NativeCollective) Check(replica int, members []int, dst, src []byte) error {
	rank, contract := slices.Index(members, replica), c.Collective.Contract()
	reason := ""
	switch {
	case c.Collective >= schedule.Barrier:
		reason = fmt.Sprintf("%v is no collective of an engine", c.Collective)
	case rank < 0:
		reason = fmt.Sprintf("replica %d is not among the members %v", replica, members)
	case c.Size != len(members):
		reason = fmt.Sprintf("%v of size %d among %d members", c.Collective, c.Size, len(members))
	case c.Root < 0 || c.Root >= c.Size || c.Root != 0 && !contract.Rooted():
		reason = fmt.Sprintf("root %d of %v among %d members", c.Root, c.Collective, c.Size)
	case contract.Combines && !c.Operator.Accepts(c.DType):
		reason = fmt.Sprintf("%v by %v of %v", c.Collective, c.Operator, c.DType)
	case !contract.Combines && (c.Operator != 0 || c.DType != tensor.U8):
		reason = fmt.Sprintf("%v by %v of %v, want no operator, and %v", c.Collective, c.Operator, c.DType, tensor.U8)
	default:
		reason = c.checkLengths(rank, contract, dst, src)
	}
	if reason == "" {
		return nil
	}
	return &ArgumentError{Reason: reason}
}

func (c NativeCollective) checkLengths(rank int, contract schedule.Contract, dst, src []byte) string {
	each := c.DType.Size()
	if contract.PerRank() {
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

	// Accepts returns nil if the engine can carry out a collective, or an error that says why not. The error is
	// errors.ErrUnsupported. It depends on the argument and on the kind of engine alone: all replicas get the same one,
	// at all times. Accepts does not wait, and may be called at any time by any goroutine.
	Accepts(c NativeCollective) error

	// Collective carries out a collective among members, replica ids in the order of their ranks, the caller among
	// them. A group, by its number in the call, has the same members each time, and the slice is not changed. All
	// members give the same call and the same NativeCollective. Where their calls differ, each gets a *MismatchError
	// before a byte of any dst is written. Where the collectives alone differ they get one too: its calls then differ
	// in their Digests, or it tells of lengths. Where groups or members differ it may be a *DeadlockError. Calls one
	// after the other may have the same Call but for its Round.
	//
	// dst is the Output of the collective's schedule.Contract, and src the Input. Their lengths are those of c.Lengths,
	// and c.Check is nil. The two buffers lie apart, but for two cases. They may be the same memory where both are
	// equally long. In a collective that does not combine, the shorter may be the member's own place in the longer.
	// Both belong to the transport until Collective returns, and not a moment longer. After an error the contents of
	// dst are unspecified; src is only read.
	//
	// One call at a time is on the endpoint, Exchange included. Contexts, aborts and closing are as in Exchange: a
	// context that is done aborts the endpoint everywhere, and so does an error (but see ArgumentError and ErrBusy). A
	// collective that Accepts refuses is refused with the same error, and nothing is sent. In steady state nothing is
	// allocated.
	Collective(ctx context.Context, call Call, members []int, c NativeCollective, dst, src []byte) error

	// Agreement is how many messages, one after the other, it takes n members to agree on a call. It serves to put a
	// price on a call.
	Agreement(n int) (rounds int)
}
