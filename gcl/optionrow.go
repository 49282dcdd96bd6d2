package gcl

import (
	"math"
	"slices"
	"strconv"

	"gogcl.dev/methods"
	"gogcl.dev/topology"
)

// optionRow is one option by one of its keys. ParseOptions, Options.Map, the checks and their errors, the fingerprint
// of calls and the table in docs/design/options.md are made of the rows.
type optionRow struct {
	key     string // of ParseOptions
	field   string // of Options
	value   optionValue
	ours    bool   // GCL does not have the option
	local   bool   // processes of a job may differ in it
	instead string // the key that replaces this one, which is deprecated: it is read, and never written

	// agreed is the part of the option in the fingerprint of a call, tile being the bytes of a segment. nil: members
	// may differ in it, or a difference shows elsewhere in a transport.Call.
	agreed func(o *Options, tile int) uint64

	// compared is the option as the processes of a job compare it; nil: by its text.
	compared func(o *Options) string

	fieldNote string // follows the field in docs/design/options.md
	does      string // the last column of docs/design/options.md
}

// optionRows lists the options: GCL's in the order of its documentation, then ours. A new option is a field of Options
// and a row.
var optionRows = []optionRow{
	{
		key: "collectiveImplementation", field: "Implementation",
		value: choice[Implementation]{
			at: func(o *Options) *Implementation { return &o.Implementation },
			names: func() []name[Implementation] {
				return append(named(AutoImplementation, Syncless, Syncful, Hybrid),
					name[Implementation]{"auto", AutoImplementation, "old spelling"},
					name[Implementation]{"hybrid", Hybrid, "old spelling"})
			},
		},
		agreed: func(o *Options, _ int) uint64 { return uint64(o.Implementation) },
		does: "Replicas send messages, each going on as soon as it has its data (`Syncless`); or meet at barriers " +
			"and use each other's " +
			"memory (`Syncful`, [peer-memory.md](peer-memory.md)); or the second inside a link domain and the first " +
			"between " +
			"([hybrid.md](hybrid.md)). `Auto`: `Syncful` where memory is shared and the method is `auto` or " +
			"`direct`, else `Syncless`; by `auto` as a rule says where one fits",
	},
	{
		key: "useSynclessCollectives", field: "Implementation", instead: "collectiveImplementation",
		value: choice[Implementation]{
			at: func(o *Options) *Implementation { return &o.Implementation },
			names: func() []name[Implementation] {
				return append([]name[Implementation]{
					{"true", Syncless, "`Syncless`"}, {"false", Syncful, "`Syncful`"}, {"hybrid", Hybrid, ""}, {"auto", AutoImplementation, ""},
				}, named(Syncless, Syncful, Hybrid)...)
			},
		},
		does: "The same by its old key. Whoever uses it is warned once in a process, by `log/slog`. With the other " +
			"key beside it, both " +
			"must say the same",
	},
	{
		key: "maxBytesPerTile", field: "MaxBytesPerTile",
		value: number{
			at: func(o *Options) *int { return &o.MaxBytesPerTile }, low: 1, high: MaxBytesPerTileLimit,
			usual: strconv.Itoa(DefaultMaxBytesPerTile),
		},
		agreed: func(_ *Options, tile int) uint64 { return uint64(tile) },
		does: "Times the number of IO tiles (32, unless `topology.Config` has another) it is how many bytes a " +
			"segment may have. A longer " +
			"message goes in several, of whole elements, up to 64 of them in one round of the transport. On peer " +
			"memory it bounds what " +
			"is taken from a peer at a time, and what is published",
	},
	{
		key: "topology", field: "Topology",
		value: choice[topology.RingName]{
			at: func(o *Options) *topology.RingName { return &o.Topology },
			names: func() []name[topology.RingName] {
				return named(topology.Auto, topology.RungRing2, topology.RungRing4, topology.RungRing8,
					topology.RingOnLine, topology.PeripheralRing)
			},
		},
		does: "The order in which ring methods go round the replicas ([rings.md](rings.md)). `auto` is the one that " +
			"suits the machine " +
			"given to `gcl.WithTopology`; one that does not fit it is an error",
	},
	{
		key: "link", field: "Link",
		value: choice[Link]{
			at:    func(o *Options) *Link { return &o.Link },
			names: func() []name[Link] { return named(AutoLink, IPULink, GWLink) },
		},
		does: "Which groups are allowed: all of them; those inside one link domain; those with no two members in one " +
			"domain. Any other " +
			"group is an error that names the replicas",
	},
	{
		key: "method", field: "Method",
		value: choice[methods.Method]{
			at:    func(o *Options) *methods.Method { return &o.Method },
			names: func() []name[methods.Method] { return namedMethods(false) },
			more:  func() []name[methods.Method] { return namedMethods(true) },
		},
		does: "How replicas communicate ([schedules.md](schedules.md)); a program's own methods have names too, and those " +
			"behind `native` are the gallery's " +
			"([methods.md](methods.md)). `auto` chooses by collective, size of the " +
			"group and bytes. " +
			"`native` hands the call to collectives of the transport's own, as MPI has them " +
			"([mpi.md](mpi.md)); `auto` never takes it. `direct`, `recursive_doubling` and `native` are ours",
	},
	{
		key: "strict", field: "Strict", ours: true,
		value: choice[bool]{
			at:    func(o *Options) *bool { return &o.Strict },
			names: func() []name[bool] { return []name[bool]{{"false", false, ""}, {"true", true, ""}} },
		},
		agreed: func(o *Options, _ int) uint64 { return bit(o.Strict) },
		does: "A call that the `method` does not do is an error, which lists the methods that do it; with `false` it goes " +
			"as by `auto`, and the first one of each collective is logged by `log/slog` ([methods.md](methods.md))",
	},
	{
		key: "syncful.useOptimisedLayout", field: "StageFragments", fieldNote: "the opposite",
		value: choice[bool]{
			at:    func(o *Options) *bool { return &o.StageFragments },
			names: func() []name[bool] { return []name[bool]{{"true", false, ""}, {"false", true, ""}} },
		},
		agreed: func(o *Options, _ int) uint64 { return bit(o.StageFragments) },
		does: "With `false` every input is first copied to memory of the connection, for a schedule with its " +
			"fragments in order, which " +
			"takes memory and time; with `true` it is sent and reduced from where it lies. It concerns messages too, " +
			"in spite of its name",
	},
	{
		key: "syncful.maxBroadcastSize", field: "MaxBroadcastSize", fieldNote: "a 0 is `NoBroadcast`",
		value: number{
			at: func(o *Options) *int { return &o.MaxBroadcastSize }, low: 0, high: math.MaxInt,
			usual: "what was measured", zero: "NoBroadcast",
		},
		does: "An all-reduce by `auto` takes `broadcast` up to this number of bytes, counted as size of the group x " +
			"bytes of the data, " +
			"and never in a group that was given with a stride above 1. Each phase of `Hybrid` counts its own group " +
			"and bytes. GCL's " +
			"default of 2048 is of its own hardware",
	},
	{
		key: "reproducible", field: "Reproducible", ours: true,
		value: choice[bool]{
			at:    func(o *Options) *bool { return &o.Reproducible },
			names: func() []name[bool] { return []name[bool]{{"true", true, ""}, {"false", false, ""}} },
		},
		agreed: func(o *Options, _ int) uint64 { return bit(o.Reproducible) },
		does: "Reductions are folded in rank order, so that their bits depend on nothing else " +
			"([determinism.md](determinism.md))",
	},
	{
		key: "tuning", field: "Tuning", ours: true,
		value:    table{},
		agreed:   func(o *Options, _ int) uint64 { return o.Tuning.Fingerprint() },
		compared: comparedTuning,
		does: "The rules by which `auto` chooses a method and an implementation, measured by `gcltune`; without it those " +
			"of the machine and the transport ([tuning.md](tuning.md)). `syncful.maxBroadcastSize` goes before them",
	},
	{
		key: "ipusPerRank", field: "IPUsPerRank", ours: true,
		value: number{at: func(o *Options) *int { return &o.IPUsPerRank }, low: 1, high: math.MaxInt, usual: "1"},
		does: "How many IPUs of a replica are one rank of collectives within it " +
			"([within-replica.md](within-replica.md))",
	},
	{
		key: "cacheBytes", field: "CacheBytes", ours: true, local: true,
		value: number{at: func(o *Options) *int {
			return &o.CacheBytes
		}, low: 1, high: math.MaxInt, usual: "what the machine has"},
		does: "The last-level cache; where the machine does not say what it has, that is 32 MiB. In one pass over " +
			"peer memory, results " +
			"are stored past the caches where the inputs and outputs of all replicas have three quarters of it or more " +
			"([peer-memory.md](peer-memory.md)). It changes no result, and replicas need not have the same",
	},
	{
		key: "sharedAlloc", field: "PrivateAlloc", fieldNote: "the opposite", ours: true, local: true,
		value: choice[bool]{
			at:    func(o *Options) *bool { return &o.PrivateAlloc },
			names: func() []name[bool] { return []name[bool]{{"true", false, ""}, {"false", true, ""}} },
		},
		does: "With `false` no other process reaches what `Alloc` returns ([alloc.md](alloc.md)). It changes no result, and " +
			"replicas need not have the same",
	},
	{
		key: "checkFinite", field: "CheckFinite", ours: true, local: true,
		value: choice[bool]{
			at:    func(o *Options) *bool { return &o.CheckFinite },
			names: func() []name[bool] { return []name[bool]{{"false", false, ""}, {"true", true, ""}} },
		},
		does: "A reduction whose input or result has a NaN or an infinity is an error, which names the replica, the " +
			"tensor, the element and its value, and ends the communicator ([../failures.md](../failures.md)). It changes no " +
			"result, and replicas need not have the same",
	},
	{
		key: "checkEqual", field: "CheckEqual", ours: true,
		value:  number{at: func(o *Options) *int { return &o.CheckEqual }, low: 0, high: math.MaxInt, usual: "never"},
		agreed: func(o *Options, _ int) uint64 { return uint64(o.CheckEqual) },
		does: "Of the calls of a group whose result is the same on all members, every k-th, k being the value, has them " +
			"compare digests of it. Where they differ the call is an error on all members, which names the replicas that " +
			"differ from most ([../failures.md](../failures.md))",
	},
}

// optionBy returns the row of a key, or nil.
func optionBy(key string) *optionRow {
	if i := slices.IndexFunc(optionRows, func(r optionRow) bool { return r.key == key }); i >= 0 {
		return &optionRows[i]
	}
	return nil
}

// optionKeys lists the keys.
func optionKeys() []string {
	keys := make([]string, len(optionRows))
	for i, r := range optionRows {
		keys[i] = r.key
	}
	return keys
}

// agreedFields lists the fields of Options that the fingerprint of a call has parts for.
func agreedFields() []string {
	var fields []string
	for _, r := range optionRows {
		if r.agreed != nil {
			fields = append(fields, r.field)
		}
	}
	return fields
}

// bit is 1 for true and 0 for false.
func bit(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}
