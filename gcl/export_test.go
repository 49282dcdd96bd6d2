package gcl

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"gogcl.dev/gcl/internal/carry/phases"
	"gogcl.dev/gcl/internal/carry/rounds"
	"gogcl.dev/gcl/internal/memory"
	"gogcl.dev/gcl/internal/wire"
	"gogcl.dev/internal/cheapest"
	"gogcl.dev/methods"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
	"gogcl.dev/topology"
	"gogcl.dev/transport"
	"gogcl.dev/transport/inproc"
)

// What tests of peer memory must exceed, in bytes.
const PieceBytes = memory.MaxPieceBytes

// Opens reports whether Alloc opens memory to the other replicas, which reach no other memory.
func Opens(c *Comm) bool {
	_, ok := c.conn.root().Endpoint.(transport.Opener)
	return ok
}

// LookAgain has the next Run look whether its process is one of several.
func LookAgain() { aloneOnce = sync.Once{} }

// WithoutTables has Auto go by sizes where Options.Tuning has no table, until the function that it returns is called.
func WithoutTables() (back func()) {
	before := defaultRules
	defaultRules = func(string, string) *methods.Rules { return nil }
	return func() { defaultRules = before }
}

// WithTable has a table for a transport in place of that of the library, until the function that it returns is called.
func WithTable(transport string, r *methods.Rules) (back func()) {
	before := defaultRules
	defaultRules = func(_, name string) *methods.Rules {
		if name == transport {
			return r
		}
		return nil
	}
	return func() { defaultRules = before }
}

// Streamed reports whether c's latest collective in one pass over peer memory stored results past the caches.
func Streamed(c *Comm) bool { return c.conn.Inspect().Streamed }

// CacheBytes is what c takes the last-level cache to have.
func CacheBytes(c *Comm) int { return c.caller.Cache }

// CacheBytesWithin is the same for c's k IPUs, which are alike.
func CacheBytesWithin(c *Comm, k int) int { return c.conn.ipus[k].all[0].comm.caller.Cache }

// CacheBytesOfPhases is the same for the phases of Hybrid within and across link domains.
func CacheBytesOfPhases(c *Comm) (inside, across int) {
	return c.caller.Hybrid.Inside.Cache, c.caller.Hybrid.Across.Cache
}

// CrossBy returns a Comm by Hybrid like c, of which leaders cross between domains in all calls that they can, or all
// members.
func CrossBy(c *Comm, leaders bool) *Comm {
	if c.caller.Hybrid == nil {
		return c
	}
	out, err := c.With(c.options)
	if err != nil {
		panic(err)
	}
	way := phases.ByAll
	if leaders {
		way = phases.ByLeaders
	}
	out.caller.Hybrid.Choose = func(schedule.Collective, int64) phases.Way { return way }
	return out
}

// Staged is how many bytes of staging memory c's connection has.
func Staged(c *Comm) int { return c.conn.Inspect().Staged }

// StagedWithin is the same for each of c's k IPUs.
func StagedWithin(c *Comm, k int) (bytes []int) {
	for _, w := range c.conn.ipus[k].all {
		bytes = append(bytes, Staged(&w.comm))
	}
	return bytes
}

// IOTilesWithin is how many IO tiles c's IPUs have.
func IOTilesWithin(c *Comm, k int) int { return c.conn.ipus[k].all[0].comm.conn.topology.IOTiles() }

// Pieces is into how many pieces c's latest collective in one pass over peer memory was cut.
func Pieces(c *Comm) int { return c.conn.Inspect().Pieces }

// GroupID is what a transport.Call has for a group.
func GroupID(members ...int) uint64 { return wire.GroupID(members, 0) }

// PhaseSeq is what a transport.Call has for a phase of Hybrid.
func PhaseSeq(number, phase uint64) uint64 { return wire.PhaseSeq(number, phase) }

// GroupName is how an error names a group.
func GroupName(id uint64) string { return wire.GroupName(id) }

// BarrierCall is the number of a barrier among the collectives of a call.
const BarrierCall = wire.Barrier

// ManyTensors marks a collective on several tensors in the DType of a call.
const ManyTensors = wire.ManyTensors

// ByCounts marks a collective by counts in the DType of a call.
const ByCounts = wire.ByCounts

// ExecuteCall is the number of Execute among the collectives of a call.
const ExecuteCall = wire.Execute

// CollectiveError is the error of a collective on a replica, made of the transport's.
func CollectiveError(ctx context.Context, call transport.Call, replica int, err error) error {
	return newCallError(ctx, wire.Name(call), replica, err)
}

// AllReduceWithinAfter is an all-reduce of 10,000 bytes on each of k IPUs of the replica, before which each calls
// first, with its id, on its own goroutine.
func AllReduceWithinAfter(ctx context.Context, c *Comm, k int, first func(ipu int)) error {
	return c.within(ctx, &withinCall{collective: schedule.AllReduce, dtype: tensor.U8, ipus: k,
		check: func() error { return nil },
		body: func(w *ipu) error {
			first(w.id)
			b := make([]byte, 10000)
			return w.do(w.equal, call{ask: newAsk(schedule.AllReduce, 0, 0), dtype: tensor.U8, dst: b, src: b,
				dstLen: len(b), srcLen: len(b)})
		}})
}

// IPURings returns the groups that an IPU of k is in where ranks have m, each as the IPUs by rank and the ring of
// ranks: that of its offset, and all.
func IPURings(k, m, id int) (equal, equalRing, every, everyRing []int, err error) {
	ladder, err := topology.New(topology.Config{Replicas: []int{1}})
	if err != nil {
		return nil, nil, nil, nil, err
	}
	endpoints, err := inproc.New(1)
	if err != nil {
		return nil, nil, nil, nil, err
	}
	l := newConnection(endpoints[0], ladder, nil, nil)
	defer l.closeIPUs()
	s, err := l.ipusOf(k)
	if err != nil {
		return nil, nil, nil, nil, err
	}
	w := s.all[id]
	err = w.join(m, Options{})
	return w.equal.Members, w.equal.Rings.First, w.every.Members, w.every.Rings.First, err
}

// ForgetWarnings lets warnings about deprecated options be logged once more.
func ForgetWarnings() { warnedOptions.Clear() }

// OpenDups is how many Dups c's first connection knows of.
func OpenDups(c *Comm) int { return len(c.conn.root().others) }

// PlansOf counts what the replicas of a process share of plans: sets, and the plans in them.
func PlansOf(shared *sync.Map) (sets, plans int) { return rounds.Count(shared) }

// OptionsTable is the table in docs/design/options.md.
func OptionsTable() string {
	var b strings.Builder
	b.WriteString("| key | values | field of `gcl.Options` | what it does |\n|---|---|---|---|\n")
	for _, r := range optionRows {
		key, field := "`"+r.key+"`", "`"+r.field+"`"
		if r.ours {
			key += " (ours)"
		}
		if r.fieldNote != "" {
			field += " (" + r.fieldNote + ")"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", key, r.value.list(), field, r.does)
	}
	return b.String()
}

// OptionsComment is what the comment of ParseOptions says of the keys, in lines that end by column 120.
func OptionsComment() string {
	var b strings.Builder
	width := 0
	for _, key := range optionKeys() {
		width = max(width, len(key))
	}
	for _, r := range optionRows {
		line := fmt.Sprintf("//\t%-*s ", width+1, r.key)
		for word := range strings.FieldsSeq(strings.ReplaceAll(r.value.list(), "`", "")) {
			if len(line)+len(word) > 115 {
				b.WriteString(line + "\n")
				line = fmt.Sprintf("//\t%-*s ", width+1, "")
			}
			line += " " + word
		}
		b.WriteString(line + "\n")
	}
	return b.String()
}

// OptionFields lists the fields of Options that have a key that is written.
func OptionFields() []string {
	var fields []string
	for _, r := range optionRows {
		if r.instead == "" {
			fields = append(fields, r.field)
		}
	}
	return fields
}

// AgreedFields lists the options that the text of a mismatch names.
func AgreedFields() []string { return agreedFields() }

// DigestOf is the digest in the fingerprint of c's calls.
func DigestOf(c *Comm) uint64 { return c.digest }

// LinkOf is the class of the link between two replicas, and whether they share a host, as c's transport says.
func LinkOf(c *Comm, a, b int) (class string, isHost bool) {
	linked, ok := c.conn.Endpoint.(transport.Linked)
	if !ok {
		return "", false
	}
	return linked.Link(a, b).Class.String(), linked.Host(a) == linked.Host(b)
}

// PricesOf are those that a Comm chooses by.
func PricesOf(c *Comm) *cheapest.Prices { return c.conn.prices }
