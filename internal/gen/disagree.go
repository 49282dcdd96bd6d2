package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"gogcl.dev/commgroup"
	"gogcl.dev/gcl"
	"gogcl.dev/methods"
	"gogcl.dev/transport/faulty"
	"gogcl.dev/transport/inproc"
)

// hangs is how long a scenario of a disagreement may take. The slowest take milliseconds.
const hangs = 10 * time.Second

// bothCalls finds, in the text of a mismatch, what differs and the two calls, or those of a circle, or two lengths.
var bothCalls = regexp.MustCompile(`: ([^:;]+) differ[^;]*; (\S+ #\d+.*?\)) and (\S+ #\d+.*?\))(?:;|$)|` +
	`replica (\d+) in (.+?\)) waits for replica (\d+), replica (\d+) in (.+?\)) waits|` +
	`sends (\d+) (?:element|byte)s?, replica \d+ expects (\d+)`)

// scenario is a group of which some members call something else.
type scenario struct {
	seed    uint64 // the flag -seed that gives it, with -progs 1
	mixed   uint64
	n       int
	what    string
	group   commgroup.Group
	members []int
	odd     []bool // by rank
	base    *call
	dev     *call // of the odd ranks
	opt     gcl.Options
	devOpt  gcl.Options

	before, after int  // good calls around the odd one
	late          int  // 1: the odd ranks come later; 2: the others
	messages      bool // there is no peer memory

	callErr, nextErr, closeErr []error // by replica: of the call, of the one after it, of Close
	took                       time.Duration
}

// disagree runs scenarios in this process. Every member must get ErrMismatch, from the call, from the next or from
// Close, and the text names both calls.
func disagree(ctx context.Context, w io.Writer, s *settings) (bad int, err error) {
	began, done, slowest := time.Now(), 0, time.Duration(0)
	counts, texts := map[string]int{}, map[string]string{}
	anomalies, samples := map[string]int{}, map[string]string{}
	for i := 0; i < s.programs && time.Since(began) < s.limit && ctx.Err() == nil; i++ {
		x, ok := newScenario(s.seed+uint64(i), s.replicas, s.only)
		if !ok {
			continue
		}
		if err := x.run(ctx); err != nil {
			return bad, err
		}
		done++
		counts[x.what]++
		slowest = max(slowest, x.took)
		if s.verbose {
			fmt.Fprintln(w, x)
		}
		found := x.judge(texts)
		if x.took >= hangs-time.Second {
			found = "hangs"
		}
		if found == "" {
			continue
		}
		bad++
		key := fmt.Sprintf("%s (wrapped %v): %s", x.what, x.messages, found)
		if anomalies[key]++; samples[key] == "" {
			samples[key] = x.String()
		}
	}
	fmt.Fprintf(w, "disagree seed %d: %d scenarios in %v, slowest %v\n  %v\n", s.seed, done,
		time.Since(began).Round(time.Millisecond), slowest, counts)
	for _, k := range slices.Sorted(maps.Keys(anomalies)) {
		fmt.Fprintf(w, "ANOMALY %d %s\n    %s\n", anomalies[k], k, samples[k])
	}
	if s.detail {
		for _, k := range disagreements {
			fmt.Fprintf(w, "TEXT %s: %.700s\n", k, texts[k])
		}
	}
	return bad, context.Cause(ctx)
}

// newScenario draws the scenario of a seed, for maxN replicas at most. There is none if the group has one member, or if
// no call goes with the kind of disagreement. only is the kind, unless it is empty.
func newScenario(seed uint64, maxN int, only string) (x *scenario, ok bool) {
	s := mix(seed)
	r := source(s, 9)
	x = &scenario{seed: seed, mixed: s, n: 2 + r.IntN(max(1, min(maxN, 9)-1))}
	x.what = disagreements[r.IntN(len(disagreements))]
	if only != "" {
		x.what = only
	}
	g, groups := randomGroup(r, x.n)
	x.group, x.members = g, groups[r.IntN(len(groups))]
	k := len(x.members)
	if k < 2 {
		return nil, false
	}
	opt, rules := randomOptions(r, nil)
	opt.Topology, opt.Reproducible = 0, false
	if rules != "" {
		opt.Tuning, _ = methods.ParseRules([]byte(rules))
	}
	x.opt, x.devOpt = opt, opt
	if !x.draw(k, 60, x.what == "extra" || x.what == "group") {
		return nil, false
	}
	x.odd = make([]bool, k) // some are odd, not all
	x.odd[r.IntN(k)] = true
	if r.IntN(3) == 0 {
		for q := range x.odd {
			x.odd[q] = r.IntN(2) == 0
		}
	}
	if !slices.Contains(x.odd, true) || !slices.Contains(x.odd, false) || x.what == "unequalparts" {
		clear(x.odd)
		x.odd[r.IntN(k)] = true
	}
	if x.what == "unequalparts" {
		q, to := slices.Index(x.odd, true), 0
		for to == q {
			to++
		}
		x.dev.opds[0].sent[q][to] += 1 + r.IntN(2)
	}
	x.before, x.after, x.late = r.IntN(3), r.IntN(3), r.IntN(3)
	x.messages = r.IntN(3) == 0
	return x, true
}

// draw draws the call of a group of k and the odd one, in so many tries. With alike the odd ranks make the same call.
func (x *scenario) draw(k, tries int, alike bool) (ok bool) {
	for try := range tries {
		x.base = newCall(mix(x.mixed, uint64(try)), k, false)
		x.base.runs = 1
		if x.base.k.combines() && x.base.op == gcl.Local {
			continue
		}
		if alike {
			return true
		}
		x.devOpt = x.opt
		if x.dev, ok = odd(x.what, mix(x.mixed, 5), x.base, &x.devOpt); ok {
			return true
		}
	}
	return false
}

// run runs the scenario, each replica a goroutine. The error is one of the set-up.
func (x *scenario) run(ctx context.Context) error {
	eps, err := inproc.New(x.n)
	if err == nil && x.messages {
		eps, err = faulty.Wrap(eps, 1)
	}
	if err != nil {
		return err
	}
	oddGroup, err := commgroup.Lists(partitionOdd(x.n, x.members))
	if err != nil {
		return err
	}
	x.callErr, x.nextErr, x.closeErr = make([]error, x.n), make([]error, x.n), make([]error, x.n)
	ctx, cancel := context.WithTimeout(ctx, hangs)
	defer cancel()
	began := time.Now()
	var wg sync.WaitGroup
	for replica, ep := range eps {
		c, err := gcl.New(ep)
		if err != nil {
			return err
		}
		wg.Go(func() {
			x.callErr[replica], x.nextErr[replica] = x.body(ctx, c, oddGroup)
			x.closeErr[replica] = c.Close()
		})
	}
	wg.Wait()
	x.took = time.Since(began)
	return nil
}

// body is one replica's part. Replicas that are no members of the group do nothing.
func (x *scenario) body(ctx context.Context, c *gcl.Comm, oddGroup commgroup.Group) (call, next error) {
	rank, k := slices.Index(x.members, c.Replica()), len(x.members)
	if rank < 0 {
		return nil, nil
	}
	isOdd := x.odd[rank]
	group, opt := x.group, x.opt
	if isOdd {
		opt = x.devOpt
		if x.what == "group" {
			group = oddGroup
		}
	}
	mine, err := c.Group(group)
	if err == nil {
		mine, err = mine.With(opt)
	}
	if err != nil {
		return fmt.Errorf("set up: %w", err), nil
	}
	same, err := c.Group(x.group)
	if err == nil {
		same, err = same.With(x.opt)
	}
	if err != nil {
		return fmt.Errorf("set up: %w", err), nil
	}
	for b := range x.before {
		if x.what == "group" {
			break // the number of calls is that of a group
		}
		if err := newCall(mix(x.mixed, 33, uint64(b)), k, false).do(ctx, same, rank); err != nil {
			return fmt.Errorf("before: %w", err), nil
		}
	}
	if x.late == 1 && isOdd || x.late == 2 && !isOdd {
		time.Sleep(time.Duration(mix(x.mixed, uint64(c.Replica()))%3) * time.Millisecond)
	}
	its := x.base
	switch {
	case isOdd && x.what == "extra":
		if err := mine.Barrier(ctx); err != nil {
			return err, nil
		}
	case isOdd && x.what == "group":
		if mine.Size() != k {
			its = newCall(x.base.id, mine.Size(), false)
			its.runs = 1
		}
		rank = mine.Rank()
	case isOdd:
		its = x.dev
	}
	var bits *wrong // its replica goes on: the library knows of no error yet
	if call = its.do(ctx, mine, rank); call != nil && !errors.As(call, &bits) {
		return call, nil
	}
	for a := range x.after {
		if x.what == "group" && mine.Size() != k {
			break
		}
		if err := newCall(mix(x.mixed, 34, uint64(a)), k, false).do(ctx, same, rank); err != nil {
			return call, err
		}
	}
	return call, nil
}

// judge says what is not as gcl/doc.go promises, or nothing. texts gets the text of the first error of each kind.
func (x *scenario) judge(texts map[string]string) string {
	if x.what == "group" { // whether replicas meet is another matter: that it does not hang is all
		return ""
	}
	if x.noEffect() {
		return ""
	}
	for _, replica := range x.members {
		call, next, closing := x.callErr[replica], x.nextErr[replica], x.closeErr[replica]
		first := call
		if first == nil {
			first = next
		}
		if first == nil {
			first = closing
		}
		if what := verdict(errors.Join(call, next, closing)); what != "" && !x.excused(first) {
			return fmt.Sprintf("%s, base %v", what, x.base.k)
		}
		if x.excused(first) {
			continue
		}
		// The text is that of the mismatch: a result that was wrong before it was known has none.
		for _, err := range []error{call, next, closing} {
			if errors.Is(err, gcl.ErrMismatch) {
				first = err
				break
			}
		}
		m := bothCalls.FindStringSubmatch(first.Error())
		switch {
		case m == nil:
			return "the text does not name both calls"
		case m[1] == "calls":
			return "the text does not say what differs"
		}
		if texts[x.what] == "" {
			texts[x.what] = first.Error()
		}
	}
	return ""
}

// maybeNoEffect reports whether options that differ may lead to the same call.
func maybeNoEffect(what string) bool { return what == "method" || what == "rules" }

// noEffect reports whether the odd options changed nothing, and so nobody had an error. A method that does not do the
// collective is passed over (docs/design/tuning.md), and two tables of rules may have a call go the same way.
func (x *scenario) noEffect() bool {
	if !maybeNoEffect(x.what) {
		return false
	}
	for _, replica := range x.members {
		if errors.Join(x.callErr[replica], x.nextErr[replica], x.closeErr[replica]) != nil {
			return false
		}
	}
	return true
}

// excused reports whether a member's error is right although it is no mismatch, or there is none: gcl.Comm.Close says
// that peers of a replica that has left get a *PeerError, "or ErrMismatch if they are in another call than its last in
// the group". The last was the same barrier, or was refused for its arguments.
func (x *scenario) excused(err error) bool {
	if x.what == "extra" && x.base.k == barrier {
		return err == nil || errors.As(err, new(*gcl.PeerError))
	}
	refused := false
	for _, replica := range x.members {
		refused = refused || errors.Is(x.callErr[replica], errors.ErrUnsupported)
	}
	return refused && (errors.Is(err, errors.ErrUnsupported) || errors.As(err, new(*gcl.PeerError)))
}

// verdict says what is not as gcl/doc.go promises of the errors of one member, or nothing.
func verdict(err error) string {
	var bits *wrong
	var panicked *gcl.PanicError
	mismatch := errors.Is(err, gcl.ErrMismatch)
	switch {
	case errors.As(err, &panicked):
		return "panic"
	case err == nil:
		return "a member has no error"
	case errors.As(err, &bits) && !mismatch:
		return "a wrong result without an error"
	case !mismatch:
		return "a member's error is not ErrMismatch"
	}
	return ""
}

// String describes the scenario and what became of it.
func (x *scenario) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d (-mode disagree -seed %d -progs 1 -only %s): n=%d members %v odd %v before %d after %d late %d"+
		" opt %+v\n      base %.300v\n      odd  %.300v; options %+v",
		x.seed, x.seed, x.what, x.n, x.members, x.odd, x.before, x.after, x.late, x.opt, x.base, x.dev, x.devOpt)
	for _, replica := range x.members {
		fmt.Fprintf(&b, "\n        r%d call=%.420v next=%.300v close=%.300v", replica, x.callErr[replica],
			x.nextErr[replica], x.closeErr[replica])
	}
	return b.String()
}
