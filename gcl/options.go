package gcl

import (
	"cmp"

	"gogcl.dev/internal/kernel"
	"gogcl.dev/methods"
	"gogcl.dev/topology"
)

// Options say how collectives are carried out. The zero value is a good choice. Every replica of a group must use the
// same, but for CacheBytes, PrivateAlloc, CheckFinite and Trace. ParseOptions makes them of GCL's keys and values, Map
// and MarshalJSON the other way round.
type Options struct {
	// Method is how replicas talk. Auto chooses by collective, group size and bytes.
	//
	// Native hands a collective to one that the transport's own engine has, as MPI does; Auto never takes it. It needs
	// a transport with transport.Native, and goes with neither Reproducible nor the implementations Syncful and Hybrid.
	// The members agree on each call first, since an engine compares nothing. A reduction of 16-bit floats or by an
	// operator of NewOperator, parts that are not equal, and counts of an all-to-all are errors before anything is
	// sent. Of several tensors each is a call of the engine. A Barrier goes by messages. How floats are combined is up
	// to the engine, also what Min and Max make of a NaN: docs/design/mpi.md.
	//
	// A method may be the program's own: see methods.Register and WithMethod.
	Method methods.Method

	// Strict makes a call that Method does not do an error before anything is sent, an errors.ErrUnsupported that lists
	// the methods that do it; of the gallery only in groups of at most 256. Without it the call goes as by Auto, and
	// rank 0 logs the first of each collective by package slog. Some methods of generators do some collectives only;
	// the parts of an AllToAllV go straight from rank to rank, which is Direct; a call of one rank, or with Local,
	// needs no method. Within a replica Strict has no say.
	Strict bool

	// Implementation is how the steps of a method are carried out.
	Implementation Implementation

	// Reproducible makes every reduction the left fold of the inputs in rank order, with 16-bit floats kept in float32
	// until the end, but by operators of NewOperator: the result's bits then depend on nothing but the inputs and their
	// order. Rings and recursive_doubling pay for it with a chain of ranks; 16-bit data travels as float32, except by
	// direct on peer memory.
	Reproducible bool

	// IPUsPerRank is how many of a replica's IPUs make up one rank of the collectives within a replica, which are the
	// only ones that it concerns; 0 is 1. See ReduceScatterWithinReplica.
	IPUsPerRank int

	// Topology is the ring that ring methods send round, by GCL's name for it: a name must fit the topology given to
	// WithTopology. Collectives within a replica go round the ladder of its IPUs whatever it says.
	Topology topology.RingName

	// Link says which links the group may use; a group that it does not allow is refused when the Comm is made.
	Link Link

	// MaxBytesPerTile times the IO tiles of the topology (32 unless it says otherwise) bounds a segment. A longer
	// message goes in several, each of whole elements, at least one; but a part of an AllToAllV is never cut. It is 1
	// to MaxBytesPerTileLimit bytes; 0 is DefaultMaxBytesPerTile.
	MaxBytesPerTile int

	// StageFragments has every input copied into memory of the connection first, instead of sending and reducing it
	// from where it lies: for a schedule with its fragments in order, each at the beginning of a cache line; in one
	// pass over peer memory, and within a replica, as it is. What a small call publishes is a copy in any case. It is
	// GCL's syncful.useOptimisedLayout turned off, and costs memory: docs/design/gcl.md.
	StageFragments bool

	// MaxBroadcastSize is up to which group size x bytes an all-reduce with Method Auto takes broadcast, as long as the
	// group was not given with a stride above 1; 0 is where that was measured to be faster, NoBroadcast is never. Each
	// phase of Hybrid counts its own group and bytes.
	MaxBroadcastSize int

	// Tuning is the table of rules by which Method Auto chooses, and where a rule says so the implementation too, as
	// far as Implementation leaves it open. nil is the table of the machine and of what connects the replicas, if there
	// is one, as in methods.RulesOn. Where no rule fits Auto goes by links, as with an empty table, &methods.Rules{}.
	// MaxBroadcastSize goes before the table. gcltune measures and writes one; in the text form of options it is
	// the name of a file: docs/design/tuning.md.
	Tuning *methods.Rules

	// CacheBytes is the size of the last-level cache; 0 is what the machine says, 32 MiB where it says nothing. Where
	// one pass over peer memory carries out a call, and the inputs and outputs of all ranks have three quarters of it
	// or more together, results are stored past the caches, but for those that take the place of inputs. Where other
	// programs use the cache too, less than there is may be faster. It changes no result, and replicas need not have
	// the same.
	CacheBytes int

	// PrivateAlloc has Alloc return memory that no other process reaches, also over a transport that shares memory
	// between processes. Calls on it go by messages there, in which data is copied. It changes no result, and replicas
	// need not have the same.
	PrivateAlloc bool

	// CheckFinite has each replica look at what it gives to a collective that reduces, before it sends anything, and at
	// its result. A NaN or infinity of a floating type is a *NotFiniteError, which ends the communicator on all
	// replicas: the others do not wait, and have that error as the cause of theirs. Infinities that a program means, as
	// in a mask for Min, are found too. It concerns all forms, Execute and reductions within a replica, but not Local.
	// Data of other types, other collectives and messages are not looked at.
	//
	// It costs a reading of input and result, and changes no result. Replicas need not have the same. Between two
	// goroutines an all-reduce of 8 bytes takes about a tenth longer, one of 1 MiB three times as long
	// (BenchmarkAllReduce of package bench, with GCL_OPTIONS).
	CheckFinite bool

	// CheckEqual k has the members of a group compare results after every k-th of the calls whose result is the same on
	// all of them; 0 is never. These are AllReduce, AllGather and Broadcast in all forms, also by Execute. Where
	// results differ the call is an *UnequalError on all members, and the communicator stays usable. So a machine that
	// computes or moves data wrongly is found, but not one whose wrong share of a sum has reached all members alike.
	//
	// Each member makes a digest of 64 bits of its result, and they all-gather the digests. That is a call of its own,
	// by Auto, with the next number of the group. Errors and Dump name it; a Trace is told of one call. Every member
	// waits for all others then, also in a broadcast. Nothing is compared in a group of one, with Local, by Execute of
	// a CustomContract, or within a replica.
	//
	// Results may differ with no machine at fault: where an operator of NewOperator is not commutative to the bit
	// although it does not say so, where one of a program's own methods does not combine in one order on all ranks, and
	// where the engine of method Native does not.
	//
	// It costs a reading of the result and a call of 8 bytes: with k = 1 an all-reduce of 8 bytes between two
	// goroutines takes twice as long, one of 1 MiB four times as long (as for CheckFinite).
	CheckEqual int

	// Trace, if not nil, is told what collectives do. Replicas need not have the same, and it is no part of the text
	// form of options. When absent it costs nothing.
	Trace *Trace
}

// DefaultMaxBytesPerTile and MaxBytesPerTileLimit are GCL's default and maximum of the option maxBytesPerTile.
const (
	DefaultMaxBytesPerTile = 35000
	MaxBytesPerTileLimit   = 64000
)

// NoBroadcast is the MaxBroadcastSize with which Auto never takes broadcast, 0 in the text form.
const NoBroadcast = -1

// check returns an *OptionError for a value that is out of range.
func (o Options) check() error {
	for i := range optionRows {
		row := &optionRows[i]
		if value, want := row.value.check(&o); want != "" {
			return &OptionError{Option: row.field, Value: value, Reason: want}
		}
	}
	return nil
}

// lastLevelCache is CacheBytes with its default.
func (o Options) lastLevelCache() int { return cmp.Or(o.CacheBytes, kernel.LastLevelCache()) }
