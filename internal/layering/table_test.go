package layering

// A row says what the packages of one pattern may import, apart from the standard library. What is not listed is
// forbidden. Tests are exempt.
type row struct {
	// pkg is a package's path in the module, or "dir/*" for all packages below dir that have no row of their own.
	pkg string
	// imports lists packages of this module, as patterns like pkg; anyAbove stands for all that is no program itself.
	imports []string
	// modules lists other modules, and "C" for cgo.
	modules []string
	// pure packages have no clock, no randomness, no I/O and no goroutines.
	pure bool
}

// anyAbove in row.imports stands for every package whose own row does not say so: all but programs and benchmarks.
const anyAbove = "*"

// The modules in use. go-cmp is not among them: it is for tests.
const (
	gonum = "gonum.org/v1/gonum"
	xsync = "golang.org/x/sync"
	xsys  = "golang.org/x/sys"
)

// module is the path of the module, the prefix of its packages.
const module = "gogcl.dev"

// table is who may import whom. It is the design, so a change here wants a reason: methods never see bytes, a
// transport never sees a dtype, a method or a group (but for transport.Native, the seam to an engine of collectives),
// kernels never see a replica, and only gcl/internal/carry/rounds holds a schedule and a buffer at once.
func table() []row {
	return []row{
		{pkg: ".", pure: true}, // documentation only
		{pkg: "commgroup", imports: []string{"internal/enum"}, pure: true},
		{pkg: "chunks", pure: true},
		{pkg: "topology", imports: []string{"internal/enum"}, pure: true},
		{pkg: "methods/schedule", imports: []string{"chunks", "internal/ink"}, pure: true},
		{pkg: "methods/schedule/msccl", imports: []string{"methods/schedule"}, pure: true},
		{pkg: "transport", imports: []string{"methods/schedule", "tensor", "internal/kernel"}}, // for Native alone
		{pkg: "internal/kernel", modules: []string{xsys}},
		{pkg: "internal/layering"}, // only tests, as is the next
		{pkg: "internal/readme"},
		{pkg: "internal/anyinput"},
		{pkg: "internal/leaktest"},
		{pkg: "internal/thinned", imports: []string{"methods"}}, // for tests
		{pkg: "internal/certificates"},                          // for tests
		{pkg: "internal/jobtest"},
		{pkg: "internal/netstack"},
		{pkg: "internal/fabric"}, // for tests
		{pkg: "internal/commandtest", imports: []string{"internal/command"}},
		{pkg: "internal/hosttest", modules: []string{xsys}},
		{pkg: "internal/fulldisk"},
		{pkg: "internal/golden", imports: []string{"ir", "ir/show"}}, // for tests
		{pkg: "internal/irtest", imports: []string{"ir", "tensor"}},  // for tests
		{pkg: "internal/closest", pure: true},
		{pkg: "internal/recent", pure: true},
		{pkg: "internal/goroutine"},
		{pkg: "internal/enum", imports: []string{"internal/closest"}, pure: true},
		{pkg: "internal/dumbengine", imports: []string{"internal/kernel", "methods/schedule", "transport"}}, // of tests
		{pkg: "internal/ink", pure: true},
		{pkg: "internal/plot", imports: []string{"internal/ink"}},
		{pkg: "internal/mutants", imports: []string{"internal/command"}}, // a command, as is the next
		{pkg: "internal/flaky", imports: []string{"internal/command"}, modules: []string{xsync}},
		{ // a command: of internal packages it knows none that says what a collective gives
			pkg: "internal/gen",
			imports: []string{"internal/command", "chunks", "commgroup", "gcl", "methods", "methods/schedule", "tensor",
				"topology", "transport/faulty", "transport/inproc"},
		},
		{pkg: "internal/progress", imports: []string{"internal/command"}},
		{pkg: "internal/command", imports: []string{"methods/cost"}, modules: []string{xsys}},
		{pkg: "internal/freeport"},
		{pkg: "internal/machine"},
		{pkg: "internal/meddler"},
		{pkg: "internal/spawn", imports: []string{"internal/freeport"}},
		{pkg: "internal/member", imports: []string{"internal/command", "internal/progress", "gcl", "ir", "ir/collective", "rts", "rts/checkpoint"}}, // of examples
		{pkg: "internal/ticks"},
		{pkg: "internal/watch"},
		{pkg: "internal/osfile", modules: []string{xsys}},
		{pkg: "internal/strictjson"},
		{pkg: "internal/oracle", imports: []string{"tensor", "chunks", "methods/schedule"}, pure: true},
		{pkg: "internal/safetensors", imports: []string{"tensor", "internal/strictjson"}},

		{pkg: "tensor", imports: []string{"internal/kernel", "internal/enum"}},
		{pkg: "methods", imports: []string{"topology", "methods/schedule", "chunks", "internal/enum",
			"internal/closest", "internal/goroutine", "internal/recent"}, pure: true},
		{pkg: "methods/internal/spoil", imports: []string{"methods/schedule"}, pure: true},
		{ // a library for tests, which runs what it proves
			pkg: "methods/methodtest",
			imports: []string{"methods", "methods/schedule", "methods/internal/spoil", "gcl", "internal/oracle",
				"transport/inproc"},
		},
		{pkg: "methods/cost", imports: []string{"topology", "methods/schedule"}, pure: true},
		{pkg: "internal/cheapest", imports: []string{"methods", "methods/cost", "methods/schedule"}, pure: true},
		{pkg: "transport/*", imports: []string{"transport"}, modules: []string{xsync, xsys}},
		{
			pkg: "transport/inproc",
			imports: []string{"transport", "transport/internal/calls", "transport/internal/crowd",
				"transport/internal/meeting", "internal/machine"},
		},
		{ // a network that is not there: it takes a price's numbers for time
			pkg: "transport/sim",
			imports: []string{"transport", "transport/internal/calls", "methods/cost", "methods/schedule",
				"internal/ticks"},
		},
		{pkg: "transport/internal/agree"},
		{pkg: "transport/internal/calls", imports: []string{"transport"}},
		{pkg: "transport/internal/crowd", modules: []string{xsys}},
		{pkg: "transport/internal/meeting", imports: []string{"transport"}},
		{
			pkg: "transport/internal/stream", imports: []string{"transport", "transport/internal/calls"},
			modules: []string{xsys},
		},
		{pkg: "transport/internal/stream/streamsim"}, // tests
		{
			pkg:     "transport/transporttest",
			imports: []string{"transport", "methods/schedule", "tensor", "internal/leaktest"},
			modules: []string{"github.com/google/go-cmp"},
		},
		{pkg: "transport/internal/handshake", imports: []string{"internal/netstack"}},
		{pkg: "transport/internal/hosts", imports: []string{"transport"}, modules: []string{xsys}},
		{pkg: "transport/internal/segment", modules: []string{xsys}},
		{pkg: "transport/internal/user"},
		{
			pkg:     "transport/internal/rendezvous",
			imports: []string{"internal/netstack", "transport/internal/handshake", "transport/internal/user"},
		},
		{
			pkg: "transport/tcp",
			imports: []string{"transport", "transport/internal/agree", "transport/internal/crowd",
				"transport/internal/handshake", "transport/internal/hosts", "transport/internal/meeting", "transport/internal/rendezvous",
				"transport/internal/segment", "transport/internal/stream", "transport/internal/user", "internal/netstack",
				"internal/machine"},
			modules: []string{xsync, xsys},
		},
		{
			pkg:     "transport/mpi",
			imports: []string{"transport", "methods/schedule", "transport/internal/hosts", "transport/internal/stream"},
			modules: []string{"C"},
		},
		{pkg: "gcl/internal/lane"},
		{pkg: "gcl/internal/launch", pure: true}, // the environment comes in as a function
		{pkg: "gcl/internal/memory", pure: true},
		{pkg: "gcl/internal/wire", imports: []string{"methods/schedule", "transport"}},
		{pkg: "gcl/internal/pack", imports: []string{"chunks", "internal/kernel", "internal/recent", "gcl/internal/memory",
			"gcl/internal/wire"}},
		{
			pkg: "gcl/internal/route",
			imports: []string{"methods", "methods/schedule", "tensor", "internal/cheapest", "internal/kernel",
				"internal/enum"},
			pure: true,
		},
		{
			pkg: "gcl/internal/flight",
			imports: []string{"gcl/internal/route", "gcl/internal/wire", "methods", "methods/schedule", "tensor",
				"transport", "internal/goroutine", "internal/ticks", "internal/watch"},
		},
		// the rooms of carry: none imports one that comes after it
		{pkg: "gcl/internal/carry/opened", imports: []string{"methods/schedule", "transport"}},
		{
			pkg: "gcl/internal/carry/rounds",
			imports: []string{"gcl/internal/carry/opened",
				"gcl/internal/flight", "gcl/internal/pack", "gcl/internal/memory", "gcl/internal/wire",
				"methods", "methods/schedule", "chunks", "transport", "internal/kernel"},
		},
		{
			pkg: "gcl/internal/carry/job",
			imports: []string{"gcl/internal/carry/rounds", "gcl/internal/route", "gcl/internal/pack",
				"gcl/internal/memory", "gcl/internal/wire", "methods/schedule", "tensor", "internal/kernel"},
		},
		{
			pkg: "gcl/internal/carry/onepass",
			imports: []string{"gcl/internal/carry/job", "gcl/internal/carry/opened", "gcl/internal/pack",
				"gcl/internal/memory", "methods", "methods/schedule", "chunks", "transport", "internal/kernel"},
		},
		{
			pkg: "gcl/internal/carry/phases",
			imports: []string{"gcl/internal/carry/job", "gcl/internal/flight", "gcl/internal/route",
				"gcl/internal/pack", "gcl/internal/memory", "gcl/internal/wire", "methods/schedule", "chunks", "tensor",
				"transport", "internal/kernel"},
		},
		{
			pkg: "gcl/internal/carry",
			imports: []string{"gcl/internal/carry/rounds", "gcl/internal/carry/job", "gcl/internal/carry/onepass",
				"gcl/internal/carry/phases", "gcl/internal/route", "gcl/internal/flight", "gcl/internal/pack",
				"gcl/internal/memory", "gcl/internal/wire", "methods", "methods/schedule", "topology", "chunks", "tensor",
				"transport", "internal/cheapest", "internal/kernel", "internal/recent"},
		},
		{
			pkg: "gcl/internal/price",
			imports: []string{"gcl/internal/carry", "gcl/internal/carry/job", "gcl/internal/carry/phases",
				"gcl/internal/route", "gcl/internal/wire", "internal/cheapest", "methods", "methods/schedule", "methods/cost",
				"topology", "tensor"},
		},
		{
			pkg: "gcl",
			imports: []string{"gcl/internal/carry", "gcl/internal/carry/job", "gcl/internal/carry/phases",
				"gcl/internal/carry/rounds", "gcl/internal/flight", "gcl/internal/lane", "gcl/internal/launch",
				"gcl/internal/memory", "gcl/internal/pack", "gcl/internal/price", "gcl/internal/route", "gcl/internal/wire", "commgroup",
				"topology", "methods", "methods/cost", "methods/schedule", "chunks", "tensor", "transport",
				"transport/inproc", "transport/tcp", "transport/mpi", "internal/cheapest", "internal/kernel",
				"internal/closest", "internal/enum", "internal/recent", "internal/strictjson", "internal/ticks",
				"internal/watch"},
			modules: []string{xsync, xsys},
		},
		{pkg: "gcl/perfetto", imports: []string{"gcl", "transport"}},
		{pkg: "gcl/metrics", imports: []string{"gcl", "gcl/internal/flight", "internal/watch", "methods", "methods/schedule"}},
		{pkg: "gcl/values", imports: []string{"gcl"}},
		{pkg: "gcl/ddp", imports: []string{"gcl", "gcl/values", "methods/schedule", "tensor"}},
		{pkg: "popops", imports: []string{"tensor", "internal/kernel"}},
		{pkg: "ir", imports: []string{"tensor", "internal/kernel", "commgroup"}},
		{pkg: "ir/ops", imports: []string{"ir", "tensor", "internal/kernel"}, modules: []string{gonum}},
		{pkg: "ir/collective", imports: []string{"ir", "gcl", "chunks", "methods/schedule", "commgroup", "tensor", "transport", "transport/inproc", "internal/kernel"}, modules: []string{xsync}},
		{pkg: "ir/show", imports: []string{"ir"}},
		{pkg: "ir/slice", imports: []string{"ir", "ir/ops", "popops", "tensor", "internal/kernel"}},
		{pkg: "remote", imports: []string{"ir", "chunks", "commgroup", "tensor", "internal/osfile"}, modules: []string{xsys}},
		{pkg: "rts", imports: []string{"rts/checkpoint", "remote", "ir", "ir/ops", "ir/collective", "ir/slice", "gcl", "commgroup", "chunks", "tensor"}},
		{pkg: "rts/checkpoint", imports: []string{"ir", "commgroup", "tensor", "chunks", "internal/osfile", "internal/safetensors", "internal/strictjson"}},

		{pkg: "bench", imports: []string{anyAbove}, modules: []string{gonum, xsync, xsys}},
		{pkg: "bench/*", imports: []string{anyAbove, "internal/command"}, modules: []string{gonum, xsync, xsys}},
		{pkg: "cmd/*", imports: []string{anyAbove, "internal/command", "internal/plot", "internal/progress"}, modules: []string{gonum, xsync, xsys}},
		{ // of the next two
			pkg: "internal/measure", imports: []string{"internal/machine", "internal/closest", "internal/command",
				"internal/oracle", "internal/spawn", "gcl", "methods", "methods/cost", "methods/schedule", "tensor",
				"transport/mpi", "transport/sim"}, modules: []string{xsys},
		},
		{pkg: "cmd/gclperf", imports: []string{"internal/command", "internal/measure", "internal/plot", "gcl", "gcl/metrics", "methods/schedule", "methods", "tensor"}},
		{pkg: "cmd/gcltune", imports: []string{"internal/command", "internal/machine", "internal/measure", "gcl", "methods/schedule", "methods"}},
		{pkg: "internal/trouble", imports: []string{anyAbove, "internal/command"}, modules: []string{xsys}},
		{pkg: "internal/torture", imports: []string{anyAbove, "internal/command"}, modules: []string{gonum, xsync, xsys}},
		{pkg: "cmd/gclrun", imports: []string{"internal/command", "internal/spawn", "internal/watch"}, modules: []string{xsys}},
		{pkg: "examples/digits", imports: []string{anyAbove, "examples/digits/perceptron", "internal/command", "internal/member", "internal/progress"}},
		{pkg: "examples/rts", imports: []string{anyAbove, "examples/digits/perceptron", "internal/plot", "internal/command", "internal/member", "internal/progress"}},
		{pkg: "examples/larger", imports: []string{anyAbove, "internal/command"}},
		{pkg: "examples/charlm", imports: []string{anyAbove, "examples/charlm/opticks", "internal/command", "internal/measure", "internal/member", "internal/plot", "internal/progress"}, modules: []string{gonum}},
		{pkg: "examples/embedding", imports: []string{anyAbove, "examples/charlm/opticks", "internal/command", "internal/progress"}},
		{pkg: "examples/digits/perceptron", modules: []string{gonum}},
		{pkg: "examples/charlm/opticks"},
		{pkg: "examples/*", imports: []string{anyAbove, "internal/command"}, modules: []string{gonum, xsync, xsys}},
	}
}
