package measure

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"gogcl.dev/gcl"
	"gogcl.dev/internal/command"
	"gogcl.dev/methods"
	"gogcl.dev/methods/cost"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
)

// Settings are Flags, parsed and checked.
type Settings struct {
	Collectives     []Collective
	N               int
	Beside          bool   // this process is on the host of replica 0
	Transport       string // the first of Transports
	Transports      []string
	Processes       bool                 // each replica is a process of its own
	Network         cost.Model           // of the transport sim; else without a network
	On              string               // the name of the network
	Clock           func() time.Duration // the time on the network; nil: it is the system's
	Methods         []methods.Method
	Implementations []gcl.Implementation
	DType           tensor.DType // the first that was asked for, or that of Of
	Op              gcl.Operator // likewise
	Root            int
	Sizes           []int // bytes, as asked for

	dtypes           []tensor.DType
	ops              []gcl.Operator
	allTypes, allOps bool   // -dtype all, -op all
	kinds            []Kind // those of dtypes and ops that go together, once probe has asked gcl
}

// Kind is an element type, and the operator that combines it.
type Kind struct {
	DType tensor.DType
	Op    gcl.Operator
}

// Kinds are those in which a collective is to be measured. One that does not reduce is measured once for each type.
func (s *Settings) Kinds(c Collective) []Kind {
	if c.Reduces() {
		return s.kinds
	}
	var out []Kind
	for _, d := range s.dtypes {
		out = append(out, Kind{d, s.ops[0]})
	}
	return out
}

// Of is the settings of one collective and one kind.
func (s *Settings) Of(c Collective, k Kind) *Settings {
	one := *s
	one.Collectives, one.DType, one.Op, one.dtypes = []Collective{c}, k.DType, k.Op, []tensor.DType{k.DType}
	return &one
}

// elementBytes is the size of the largest element type.
func (s *Settings) elementBytes() int {
	size := s.DType.Size()
	for _, d := range s.dtypes {
		size = max(size, d.Size())
	}
	return size
}

// MaxReplicas bounds -n, since what replicas of one process need for messages between all of them grows with the
// square of their number: 250 MB at 1,000, 4 GB at 4,096.
const MaxReplicas = 1024

// Flags are those that say what is measured, as given.
type Flags struct {
	collective, transport, method, implementation string
	dtype, op, min, max, step, sizes              string
	network                                       string // of the transport sim
	overhead                                      time.Duration
	simulates                                     bool
	root, factor                                  int
	program                                       string
	several                                       bool
}

// Usual are the values of flags that are not given, where programs differ.
type Usual struct {
	Collective, Method, Max string
	Factor                  int
	Simulates               bool // -transport may be sim, and there is a -network
	Several                 bool // -dtype, -op and -transport may list several, the first two say all
}

// Declare declares the flags. Those of nccl-tests with one letter are among them.
func (r *Flags) Declare(f *flag.FlagSet, usual Usual) {
	r.program, r.several, r.simulates = f.Name(), usual.Several, usual.Simulates
	list, over := "", ""
	if r.several {
		over = "; several with commas are compared"
		list = "; some of them with commas; or all that go together"
	}
	f.StringVar(&r.collective, "collective", usual.Collective,
		"what to measure: some of "+strings.Join(CollectiveNames(), ", ")+", with commas; or all")
	if r.simulates {
		over += "; sim, goroutines of one process on a -network, in its time"
		f.StringVar(&r.network, "network", "", "of -transport sim, a "+command.NetworkUsage)
		f.DurationVar(&r.overhead, "overhead", 0, "of -transport sim, the `time` that a message takes of its sender's "+
			"processor, and once more of its receiver's, such as 500ns")
	}
	f.StringVar(&r.transport, "transport", inproc, "what the replicas talk over: inproc, goroutines of one process; "+
		"tcp, unix or shm, a process for each, which "+r.program+" starts; mpi, the same by mpirun, if built with -tags mpi; "+
		"under gclrun or mpirun it is theirs unless given"+over)
	f.StringVar(&r.method, "method", usual.Method, "methods, with commas: some of "+methodNames()+
		"; or all, which are those that make schedules")
	f.StringVar(&r.implementation, "implementation", "Auto", "implementations, with commas: Auto, Syncless "+
		"(messages), Syncful (barriers and each other's memory), Hybrid (Syncful inside a host, messages between "+
		"hosts)")
	f.StringVar(&r.dtype, "dtype", "float32", "element type: "+strings.Join(dtypeNames(), ", ")+list+"; "+
		"nccl-tests' words too: half, float, double")
	f.StringVar(&r.op, "op", "ADD", "operator of a reduction: "+strings.Join(operatorNames(), ", ")+
		"; in lower case too"+list+"; nccl-tests' words too: sum, prod, avg")
	f.IntVar(&r.root, "root", 0, "`rank` that alone has the data or the result of a collective with a root")
	f.StringVar(&r.min, "min", "8", "first `size` in bytes of the larger buffer of a replica: 8, 1K, 1KiB, 64MiB; K "+
		"is 1024")
	f.StringVar(&r.max, "max", usual.Max, "last `size`")
	f.IntVar(&r.factor, "factor", usual.Factor, "each size is that many times the one before")
	f.StringVar(&r.step, "step", "", "each `size` is so much more than the one before, in place of -factor")
	f.StringVar(&r.sizes, "sizes", "", "exactly these sizes, with commas, smaller ones first, in place of -min, "+
		"-max, -factor and -step")
}

// Settings checks the flags, of which some were given. n is the number of replicas that was asked for, and job that of
// the job of this process, 0 without one.
func (r *Flags) Settings(given Given, n, job int) (*Settings, error) {
	s := &Settings{Root: r.root}
	var err error
	if s.Collectives, err = ParseCollectives(r.collective); err != nil {
		return nil, err
	}
	if err := r.connect(s, given, n, job); err != nil {
		return nil, err
	}
	if err := r.ways(s); err != nil {
		return nil, err
	}
	if err := r.kinds(s, given); err != nil {
		return nil, err
	}
	if s.Sizes, err = r.sizeList(given); err != nil {
		return nil, err
	}
	switch {
	case s.Network.Network == nil && (s.N < 1 || s.N > MaxReplicas): // else sim.New says so
		return nil, fmt.Errorf("-n %d, want 1 to %d", s.N, MaxReplicas)
	case r.root < 0 || r.root >= s.N:
		return nil, fmt.Errorf("%s %d is not a rank, 0 to %d", given.As("root"), r.root, s.N-1)
	}
	return s, nil
}

// kinds parses element types and operators.
func (r *Flags) kinds(s *Settings, given Given) (err error) {
	s.allTypes, s.allOps = r.several && r.dtype == all, r.several && r.op == all
	if s.dtypes, err = parseWords(r.several, given.As("dtype"), r.dtype, dtypeNames(), tensor.ParseDType); err != nil {
		return err
	}
	op := func(word string) (gcl.Operator, error) { return gcl.ParseOperator(strings.ToUpper(word)) }
	if s.ops, err = parseWords(r.several, given.As("op"), r.op, operatorNames(), op); err != nil {
		return err
	}
	s.DType, s.Op = s.dtypes[0], s.ops[0]
	return nil
}

// all is the word of a flag for all its values.
const all = "all"

// parseWords reads the value of a flag, or where there may be several those with commas between them, or all that are
// known.
func parseWords[T comparable](several bool, flag, text string, known []string,
	parse func(string) (T, error)) ([]T, error) {
	words, listed := []string{text}, known
	if several {
		words, listed = strings.Split(text, ","), append(slices.Clone(known), all)
		if text == all {
			words = known
		}
	}
	var out []T
	for _, word := range words {
		v, err := parse(wordOf(word))
		if several && word == all {
			return nil, fmt.Errorf("%s %s: all stands by itself", flag, text)
		}
		if err != nil {
			return nil, Unknown(flag, word, listed)
		}
		out = append(out, v)
	}
	return out, Once(flag, out)
}

// ways parses methods and implementations.
func (r *Flags) ways(s *Settings) error {
	if r.method == all {
		s.Methods = methods.All()
	} else {
		for name := range strings.SplitSeq(r.method, ",") {
			m, err := methods.Parse(name)
			if err != nil {
				return fmt.Errorf("-method: %w", err)
			}
			s.Methods = append(s.Methods, m)
		}
	}
	for name := range strings.SplitSeq(r.implementation, ",") {
		i, err := parseImplementation(name)
		if err != nil {
			return fmt.Errorf("-implementation: %w", err)
		}
		s.Implementations = append(s.Implementations, i)
	}
	return errors.Join(Once("-collective", s.Collectives), Once("-method", s.Methods),
		Once("-implementation", s.Implementations))
}

// Once refuses a list in which something is named twice: the tables and lines of the two could not be told apart.
func Once[T comparable](flag string, list []T) error {
	for i, v := range list {
		if slices.Contains(list[:i], v) {
			return fmt.Errorf("%s: %v is given twice", flag, v)
		}
	}
	return nil
}

// sizeList is the sizes asked for, in bytes.
func (r *Flags) sizeList(given Given) ([]int, error) {
	if given.Has("sizes") {
		if given.Has("min") || given.Has("max") || given.Has("factor") || given.Has("step") {
			return nil, errors.New("-sizes excludes -min, -max, -factor and -step")
		}
		var out []int
		for text := range strings.SplitSeq(r.sizes, ",") {
			size, err := ParseSize(text)
			if err != nil {
				return nil, fmt.Errorf("-sizes: %w", err)
			}
			if len(out) > 0 && size <= out[len(out)-1] {
				return nil, fmt.Errorf("-sizes: %s comes after %s, want smaller ones first and each once",
					text, FormatSize(out[len(out)-1]))
			}
			out = append(out, size)
		}
		return out, nil
	}
	first, err := ParseSize(r.min)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", given.As("min"), err)
	}
	last, err := ParseSize(r.max)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", given.As("max"), err)
	}
	if first > last {
		return nil, fmt.Errorf("%s %s is more than %s %s", given.As("min"), r.min, given.As("max"), r.max)
	}
	if given.Has("step") {
		return r.steps(given, first, last)
	}
	if r.factor < 2 {
		return nil, fmt.Errorf("%s %d, want 2 or more", given.As("factor"), r.factor)
	}
	return series(first, last, r.factor), nil
}

// maxSteps is how many sizes -step may make.
const maxSteps = 10_000

// steps is the sizes of -step.
func (r *Flags) steps(given Given, first, last int) ([]int, error) {
	step, err := ParseSize(r.step)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", given.As("step"), err)
	case given.Has("factor"):
		return nil, fmt.Errorf("%s and %s exclude each other", given.As("step"), given.As("factor"))
	case (last-first)/step >= maxSteps:
		return nil, fmt.Errorf("%s %s makes %d sizes, want %d at most", given.As("step"), r.step, (last-first)/step+1,
			maxSteps)
	}
	var out []int
	for n := first; ; n += step {
		if out = append(out, n); n > last-step {
			return out, nil
		}
	}
}

// parseImplementation is gcl's, in lower case too.
func parseImplementation(text string) (gcl.Implementation, error) {
	for _, i := range []gcl.Implementation{gcl.AutoImplementation, gcl.Syncless, gcl.Syncful, gcl.Hybrid} {
		if strings.EqualFold(text, i.String()) {
			return i, nil
		}
	}
	return gcl.ParseImplementation(text) // for its error
}

// check looks for what the flags alone do not show. local is how many replicas share this host's memory.
func (s *Settings) check(ctx context.Context, local int) error {
	if err := s.probe(ctx); err != nil {
		return err
	}
	return s.checkMemory(local)
}

// probe finds out from gcl which operators take which element types. With -dtype all or -op all those that go together
// are measured, and it is an error if there are none; else all must go together.
func (s *Settings) probe(ctx context.Context) error {
	if !slices.ContainsFunc(s.Collectives, Collective.Reduces) {
		return nil
	}
	s.kinds = nil
	var first error
	for _, d := range s.dtypes {
		for _, op := range s.ops {
			refused, err := refusal(ctx, Kind{d, op})
			switch {
			case err != nil:
				return err
			case refused == nil:
				s.kinds = append(s.kinds, Kind{d, op})
			case first == nil:
				first = fmt.Errorf("-op %v -dtype %v: %w", op, d, innermost(refused))
			}
		}
	}
	if len(s.kinds) > 0 && (s.allTypes || s.allOps) {
		return nil
	}
	return first
}

// refusal is why an operator does not take an element type, by the smallest all-reduce; nil if it does.
func refusal(ctx context.Context, k Kind) (refused, err error) {
	one, err := tensor.New(k.DType, 1)
	if err != nil {
		return nil, err
	}
	err = gcl.Run(ctx, 1, func(ctx context.Context, c *gcl.Comm) error {
		refused = c.Do(ctx, schedule.AllReduce, one, one.Clone(), k.Op, 0)
		return nil
	})
	if ctx.Err() != nil {
		return nil, err
	}
	return refused, err
}

// innermost is the error at the bottom of a chain: why, without where.
func innermost(err error) error {
	for {
		inner := errors.Unwrap(err)
		if list, ok := err.(interface{ Unwrap() []error }); ok && len(list.Unwrap()) > 0 {
			inner = list.Unwrap()[len(list.Unwrap())-1]
		}
		if inner == nil {
			return err
		}
		err = inner
	}
}

// Spec is the request for the schedule of a method, in the order of the ranks.
func (s *Settings) Spec(m methods.Method, c Collective, n int) methods.Spec {
	ring := make([]int, n)
	for i := range ring {
		ring[i] = i
	}
	spec := methods.Spec{Method: m, Collective: schedule.Collective(c), Size: n, Ring: ring, Second: ring}
	if c.Rooted() {
		spec.Root = s.Root
	}
	return spec
}

func methodNames() string {
	var names []string
	for _, m := range methods.Values() {
		names = append(names, m.String())
	}
	return strings.Join(names, ", ")
}

func dtypeNames() (names []string) {
	for _, d := range tensor.DTypes() {
		names = append(names, d.String())
	}
	return names
}

func operatorNames() (names []string) {
	for op := range gcl.Operator(math.MaxUint8) {
		if name, err := op.MarshalText(); err == nil {
			names = append(names, string(name))
		}
	}
	return names
}
