package gcl

import (
	"context"
	"fmt"
	"reflect"
	"runtime/pprof"
	"runtime/trace"
	"strconv"
	"sync/atomic"

	"gogcl.dev/gcl/internal/wire"
	"gogcl.dev/transport"
)

// The labels of goroutines in profiles.
const (
	labelReplica    = "replica"    // its number
	labelCollective = "collective" // as in "all-reduce"
	labelName       = "name"       // of Comm.Named; a call without a name has none
)

// labelsCalls is whether LabelCalls is on.
var labelsCalls atomic.Bool

// LabelCalls has calls label their goroutine for profiles from now on, or no more: a CPU profile then says for which
// calls the processor worked, and a profile of goroutines who is in which. Nothing tells a library that a profile is
// being taken, so the program says it:
//
//	gcl.LabelCalls(true)
//	defer gcl.LabelCalls(false)
//	err := pprof.StartCPUProfile(f)
//
// The labels are "replica", its number, "collective", as in "all-reduce", and "name", that of Comm.Named. They are
// there from when a call has its turn until it returns, beside the labels of the call's context. After that the
// goroutine has the labels of the context, as after pprof.Do; a context without labels stands for that of the body of
// Run or RunProcess. Other goroutines that work for a call, as those of a transport, have what they were started with.
//
// The bodies of Run and RunProcess have the label "replica" always, also in their contexts.
//
// Off, which is the default, a call reads two words. On, labels take 0.05 µs of a call like one of the connection's
// last calls, by context, collective and name; others allocate. The connection holds on to the contexts of those calls.
//
// While runtime/trace runs, each call is a region of its goroutine with the name of the collective, and logs which call
// of its group it is, whether LabelCalls is on or not.
func LabelCalls(on bool) { labelsCalls.Store(on) }

// isFollowed reports whether a call is to have labels, or a region of runtime/trace.
func isFollowed() bool { return labelsCalls.Load() || trace.IsEnabled() }

// following is what a connection does for profiles and execution traces. It is used by whoever has the connection's
// turn.
type following struct {
	region *trace.Region   // of the call in progress; nil: it has none
	after  context.Context // has the labels of the goroutine after the call in progress; nil: it sets none
	kept   map[labelsKey]labels
}

// labelsKey is what calls have in common that have the same labels in one context.
type labelsKey struct {
	name       string
	collective uint8
}

// labels are those of calls in a context.
type labels struct {
	ctx           context.Context
	during, after context.Context // have them
}

// maxLabels bounds the labels that are kept.
const maxLabels = 64

// follow begins the labels and the region of a call that has its turn.
func (c *Comm) follow(ctx context.Context, f *transport.Call) {
	if ctx == nil { // the call is refused
		return
	}
	p := &c.conn.following
	if labelsCalls.Load() {
		own := c.labelsOf(ctx, labelsKey{c.label.Name, f.Collective})
		p.after = own.after
		pprof.SetGoroutineLabels(own.during)
	}
	if trace.IsEnabled() {
		p.region = trace.StartRegion(ctx, wire.KindName(f.Collective))
		trace.Log(ctx, "gcl", fmt.Sprintf("%s%s on replica %d", wire.Name(*f), wire.Quote(c.label.Name), c.Replica()))
	}
}

// unfollow ends what follow began.
func (p *following) unfollow() {
	if p.region != nil {
		p.region.End()
		p.region = nil
	}
	if p.after != nil {
		pprof.SetGoroutineLabels(p.after)
		p.after = nil
	}
}

// labelsOf are the labels of a call.
func (c *Comm) labelsOf(ctx context.Context, key labelsKey) labels {
	p := &c.conn.following
	if own, ok := p.kept[key]; ok && own.ctx == ctx {
		return own
	}
	own := labels{ctx: ctx, after: ctx}
	labelled := false
	pprof.ForLabels(ctx, func(_, _ string) bool { labelled = true; return false })
	if body := c.conn.root().body; !labelled && body != nil {
		own.after = body
	}
	texts := []string{labelReplica, strconv.Itoa(c.Replica()), labelCollective, wire.KindName(key.collective)}
	if key.name != "" {
		texts = append(texts, labelName, key.name)
	}
	own.during = pprof.WithLabels(own.after, pprof.Labels(texts...))
	if reflect.ValueOf(ctx).Comparable() { // else the next call must not compare it
		if p.kept == nil || len(p.kept) >= maxLabels {
			p.kept = map[labelsKey]labels{}
		}
		p.kept[key] = own
	}
	return own
}

// labelBody gives the goroutine of a body the label of its replica, and returns a context with it.
func (c *Comm) labelBody(ctx context.Context) context.Context {
	ctx = pprof.WithLabels(ctx, pprof.Labels(labelReplica, strconv.Itoa(c.Replica())))
	c.conn.body = ctx
	pprof.SetGoroutineLabels(ctx)
	return ctx
}
