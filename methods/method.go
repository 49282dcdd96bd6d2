package methods

// Method names a way to carry out a collective: one of the constants, one of [Gallery], or one of a program's own, by
// [Register]. The text forms are GCL's option values, and the names of the other two. The number of a method that is no
// constant is good in one process only, its text in all.
type Method uint8

// The methods. Direct, RecursiveDoubling and Native are this library's own, the others are GCL's.
const (
	Auto                  Method = iota // choose by collective, group size and bytes
	SendToAll                           // everyone sends everything to everyone: GCL's broadcast
	ClockwiseRing                       // fragments go round the ring
	AnticlockwiseRing                   // the other way round
	BidirectionalRingPair               // half the data each way
	MeetInMiddleRing                    // every fragment half way round, from both sides
	QuadDirectionalRing                 // a quarter each way on each of two rings
	Direct                              // each piece straight to its owner and back
	RecursiveDoubling                   // partners at distance 1, 2, 4, ...: a logarithmic number of rounds
	Native                              // a collective of the transport's own engine: there is no schedule
	numMethods
)

// All lists the methods that make schedules: the constants but Auto and Native, then those of Gallery, and last those
// that programs have registered. A constant does every collective. One of the others need not: Build returns an error
// then that is errors.ErrUnsupported, and a call goes as by Auto, or is an error with gcl.Options.Strict.
func All() []Method {
	var out []Method
	for m, r := range current.Load().rows {
		if r.recipes != nil {
			out = append(out, Method(m))
		}
	}
	return out
}

// Values lists all methods by their numbers: the constants, Auto and Native among them, those of Gallery, and last
// those that Named or Register knows of in this process.
func Values() []Method {
	out := make([]Method, len(current.Load().rows))
	for m := range out {
		out[m] = Method(m)
	}
	return out
}

// Rings is how many ring orders the method follows: 0, 1 (Spec.Ring) or 2 (Spec.Second too). A reduction in rank order
// follows none.
func (m Method) Rings() int {
	if r := m.row(); r != nil {
		return r.rings
	}
	return 0
}

// Own reports whether the method is none of the constants: a Generator makes its schedules, of Gallery or a program's
// own.
func (m Method) Own() bool { return m >= numMethods }

// InGallery reports whether the method is one of Gallery, and no program's that has taken its name by Register.
func (m Method) InGallery() bool {
	r := m.row()
	return r != nil && r.gallery
}

// String returns the text form, as in "clockwise_ring".
func (m Method) String() string { return current.Load().names.String(m) }

// Parse is the inverse of String. The error lists what is valid.
func Parse(s string) (Method, error) { return current.Load().names.Parse(s) }

// MarshalText returns the text form, or an error if m is no method.
func (m Method) MarshalText() ([]byte, error) { return current.Load().names.MarshalText(m) }

// UnmarshalText parses the text form. After an error m is what it was.
func (m *Method) UnmarshalText(text []byte) error { return current.Load().names.UnmarshalText(m, text) }

// Prover is that of a method of Gallery, or of a registered one, else nil.
func (m Method) Prover() *Prover {
	if r := m.row(); r != nil {
		return r.own
	}
	return nil
}
