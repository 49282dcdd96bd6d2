package flight

import (
	"fmt"

	"gogcl.dev/gcl/internal/route"
	"gogcl.dev/gcl/internal/wire"
	"gogcl.dev/transport"
)

// record is one collective. It is written as a whole when it begins, and from state on when it is over.
type record struct {
	label      *Label
	seq        uint64
	also       uint64 // of label.Also: the number of what a call sends that receives too
	count      uint64 // elements of the input
	began      int64  // by ticks.Now
	root       uint32
	collective uint8 // as in a transport.Call
	operator   uint8
	dtype      uint8

	state   state
	refused bool // for its arguments: failed, and nothing was sent
	method  uint8
	path    route.Path
	phase   uint8  // of Hybrid, the last one begun, from 1 on, or maxPhase for all that follow it; 0: none
	round   uint32 // the last one entered, from 1 on; 0: none
	end     int64  // by ticks.Now; 0: none yet, or a quick call that went well: see End
}

// state is how far a collective has come.
type state uint8

// The states.
const (
	running state = iota
	done
	failed
	awaiting // its turn
)

// Label is what Comms of one name and group have in common.
type Label struct {
	Name    string
	Members []int // of the group, by rank
	Rank    int
	Group   uint64
	Lists   string // the text form of the lists that the group was given by, or ""

	// Also is the messages that a call sends where the label is of those that it receives; else nil.
	Also *Label
}

// in is the number of a call among those of a group, or of the messages between two replicas, and whether it is one of
// them.
func (r *record) in(group uint64) (seq uint64, is bool) {
	switch {
	case r.label.Group == group:
		return r.seq, true
	case r.label.Also != nil && r.label.Also.Group == group:
		return r.also, true
	}
	return 0, false
}

// GroupName is how errors name the group: its members, and its lists.
func (l *Label) GroupName() string {
	if l.Lists == "" {
		return wire.GroupName(l.Group)
	}
	return wire.MembersName(l.Members) + " of " + shortLists(l.Lists)
}

// shortLists is the text of lists, of which an error has maxLists bytes.
func shortLists(text string) string {
	if len(text) <= maxLists {
		return text
	}
	return fmt.Sprintf("%s... (%d bytes more)", text[:maxLists], len(text)-maxLists)
}

const maxLists = 200

// begin makes r the record of a call. It is written field by field: to put bytes together elsewhere and copy them in
// words stalls.
func (r *record) begin(l *Label, call *transport.Call, began int64) {
	r.label, r.seq, r.count, r.root, r.began = l, call.Seq, call.Count, call.Root, began
	if l.Also != nil {
		r.also = call.Digest
	}
	r.collective, r.operator, r.dtype = call.Collective, call.Operator, call.DType
	r.state, r.refused, r.method, r.path, r.phase, r.round, r.end = running, false, 0, 0, 0, 0, 0
}

// unpackWhere sets what where says of record n, if it does.
func (r *record) unpackWhere(n, where uint64) {
	if where == 0 || where>>whereBits != n<<whereBits>>whereBits {
		return
	}
	r.round = uint32(where & (1<<roundBits - 1))
	r.method = uint8(where >> roundBits)
	r.path = route.Path(where >> (roundBits + methodBits) & (1<<pathBits - 1))
	r.phase = uint8(where >> (roundBits + methodBits + pathBits))
}
