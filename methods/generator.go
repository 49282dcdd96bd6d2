package methods

import (
	"encoding/binary"
	"errors"
	"fmt"

	"gogcl.dev/methods/schedule"
)

// Generator makes schedules: it is all that there is to a method of a program's own. See Register, gcl.WithMethod, and
// package methodtest, which tests one.
type Generator interface {
	// Schedule returns a schedule for a request, which nobody changes from then on. It is a pure function: equal
	// requests get equal schedules, in every process of a job. It may be called from several goroutines at once. A
	// request that the method cannot do is an error that wraps errors.ErrUnsupported.
	Schedule(Request) (*schedule.Schedule, error)
}

// TrafficGenerator is a Generator that describes the messages of its schedules without making them, so that those of
// many ranks have a price: see [Spec.Traffic].
type TrafficGenerator interface {
	Generator

	// Traffic returns the messages of the schedule that Schedule returns for the same request: in each round, as many
	// chunks from one rank to another, in one message or in several. Requests may be of more ranks than Schedule takes.
	// A request that the method cannot do is an error that wraps errors.ErrUnsupported.
	Traffic(Request) (*schedule.Traffic, error)
}

// listed is a Generator that tells a Builder of messages.
type listed struct {
	tell   func(Request) (*schedule.Builder, error)
	bounds func(Request) error
}

// Schedule implements Generator.
func (l listed) Schedule(r Request) (*schedule.Schedule, error) {
	b, err := l.tell(r)
	if err != nil {
		return nil, err
	}
	return b.Build()
}

// Traffic implements TrafficGenerator.
func (l listed) Traffic(r Request) (*schedule.Traffic, error) {
	b, err := l.tell(r)
	if err != nil {
		return nil, err
	}
	return b.Traffic()
}

// limits implements bounded.
func (l listed) limits(r Request) error { return l.bounds(r) }

// GeneratorFunc is a Generator that is a function.
type GeneratorFunc func(Request) (*schedule.Schedule, error)

// Schedule calls f.
func (f GeneratorFunc) Schedule(r Request) (*schedule.Schedule, error) {
	if f == nil {
		return nil, errors.New("methods: a nil GeneratorFunc")
	}
	return f(r)
}

// described is a Generator of functions.
type described struct {
	GeneratorFunc
	traffic func(Request) (*schedule.Traffic, error)
	bounds  func(Request) error
}

// limits implements bounded.
func (d described) limits(r Request) error { return d.bounds(r) }

// Traffic implements TrafficGenerator.
func (d described) Traffic(r Request) (*schedule.Traffic, error) { return d.traffic(r) }

// Request says which schedule a Generator is to make. Size is at least 2: a group of one sends nothing. With RankOrder,
// which Options.Reproducible is, the schedule must fold in the order of the ranks. Collective is none that has no data:
// it is never Barrier. Pieces is 0, and from gcl InPlace is false: where a schedule is Apart, gcl copies what it must.
//
// A Generator is given all three lists, of its own. Ring and Second are rings of the ranks that the topology of the
// replicas suggests, for methods that go by rings. A list that was nil, as that of a Spec without a Ring, has become 0
// to Size-1.
type Request struct {
	Spec

	Members []int // the replicas by rank
}

// key is all that a Request says, as text.
func (r *Request) key() string {
	flags := 0
	if r.InPlace {
		flags |= 1
	}
	if r.RankOrder {
		flags |= 2
	}
	var b []byte
	for _, list := range [][]int{
		{int(r.Collective), r.Size, r.Root, r.Pieces, flags}, r.Ring, r.Second, r.Members,
	} {
		b = binary.AppendVarint(b, int64(len(list)))
		for _, n := range list {
			b = binary.AppendVarint(b, int64(n))
		}
	}
	return string(b)
}

// Fixed is the Generator of one schedule, which a file or a solver may have made: its method does one collective, for
// one size of group and one root. Of a schedule.CustomContract, for which there are no requests, all it returns is an
// error: gcl.Execute and gcl.Comm.Execute run such a schedule.
func Fixed(s *schedule.Schedule) Generator {
	if s == nil {
		return GeneratorFunc(func(Request) (*schedule.Schedule, error) {
			return nil, errors.New("methods: Fixed of no schedule")
		})
	}
	if s.Custom != nil || s.Collective == schedule.Custom {
		return GeneratorFunc(func(Request) (*schedule.Schedule, error) {
			return nil, errors.New("methods: Fixed of a schedule of a collective of a program's own, which no request asks " +
				"for: gcl's Comm.Execute runs it")
		})
	}
	return fixed{copyOf(s)}
}

type fixed struct{ s *schedule.Schedule }

// Schedule implements Generator.
func (f fixed) Schedule(r Request) (*schedule.Schedule, error) {
	if f.s.Collective != r.Collective || f.s.Size != r.Size || f.s.Root != r.Root {
		return nil, fmt.Errorf("it is one schedule, of %s: %w", wanted(f.s.Collective, f.s.Size, f.s.Root),
			errors.ErrUnsupported)
	}
	if f.s.Apart && r.InPlace {
		return nil, fmt.Errorf("it is one schedule, with Output apart from Input: %w", errors.ErrUnsupported)
	}
	if r.inOrder() {
		if report, err := schedule.Examine(f.s); err == nil && !report.RankOrder {
			return nil, fmt.Errorf("it is one schedule, which does not fold in the order of the ranks: %w",
				errors.ErrUnsupported)
		}
	}
	return f.s, nil
}

// wanted spells out a collective, as in "broadcast over 4 ranks with root 2".
func wanted(c schedule.Collective, size, root int) string {
	text := fmt.Sprintf("%v over %d ranks", c, size)
	if c.Contract().Rooted() {
		text += fmt.Sprintf(" with root %d", root)
	}
	return text
}
