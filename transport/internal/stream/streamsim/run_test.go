package streamsim

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing/synctest"
	"time"

	"gogcl.dev/transport"
	"gogcl.dev/transport/internal/stream"
)

// fault is what goes wrong in a seed, besides delays.
type fault uint8

const (
	none    fault = iota
	slow          // nothing, but delays are long
	dies          // a replica ends without a word
	differs       // a replica does something else
	cancels       // a replica's context is done
	aborts        // a replica aborts
	parts         // two replicas lose each other
	closes        // a replica closes a lane, or all, whatever goes on there
	files         // a replica has no descriptors left, for some lanes or links
	silent        // a link brings nothing any more, or is reset, and all else goes on
	lies          // a replica sends what no replica sends
	faults
)

var faultNames = [...]string{"none", "slow", "dies", "differs", "cancels", "aborts", "parts", "closes", "files",
	"silent", "lies"}

var errBoom = errors.New("boom")

// laneOf is what has come of one lane of one replica.
type laneOf struct {
	node    *node
	index   int
	prog    *program
	lane    transport.Endpoint
	op      int   // the last that was begun
	through bool  // it has ended well
	err     error // of its Exchange
	busy    bool  // it is in an Exchange or a Settle
	asked   error // of Settle
	shut    error // of Close
	shutBy  error // of the Close of closes
	ended   bool  // its calls are over
	done    bool  // it is closed
}

// trouble is a fault, and whom it is about.
type trouble struct {
	fault
	victim, other int
}

// has returns the trouble of a fault, or nil.
func (j *job) has(f fault) *trouble {
	for i := range j.faults {
		if j.faults[i].fault == f {
			return &j.faults[i]
		}
	}
	return nil
}

// victimOf reports whether a replica is the victim of a fault.
func (j *job) victimOf(f fault, r int) bool {
	of := j.has(f)
	return of != nil && of.victim == r
}

// job is a run of a seed.
type job struct {
	*world
	faults []trouble
	shape  shape
	n      int
	progs  []*program  // by lane
	lanes  [][]*laneOf // by replica
	began  time.Time

	closed    bool // closes: the victim's Close has begun
	closedOf  int  // the lane
	reset     bool // silent: the link is reset
	silentOf  int  // silent: the replica at the other end of the victim's link
	late      bool // the others open their lanes last
	sleeper   int  // pauses for so long before it opens its lanes: others may have left
	sleeps    time.Duration
	settled   bool // replicas settle their last call before they close
	dialShort bool // files: it is a link that there is no descriptor for
}

// newJob makes up what a seed is about.
func newJob(seed uint64, log func(string, ...any)) *job {
	rng := rand.New(rand.NewPCG(seed, 0))
	w := &world{rng: rng, back: make(chan struct{}), log: log}
	j := &job{world: w, shape: shape(rng.IntN(int(shapes)))}
	first := fault(rng.IntN(int(faults)))
	if only := slices.Index(faultNames[:], *onlyFault); only >= 0 {
		first = fault(only)
	}
	j.faults = []trouble{{fault: first}}
	if first > differs && rng.IntN(5) == 0 {
		if second := dies + fault(rng.IntN(int(faults-dies))); second != first && second != differs {
			j.faults = append(j.faults, trouble{fault: second})
		}
	}
	w.idler = j.idler
	scales := []time.Duration{0, time.Microsecond, 50 * time.Microsecond, time.Millisecond, 20 * time.Millisecond}
	if first == slow {
		scales = []time.Duration{0, time.Millisecond, 30 * time.Millisecond, 150 * time.Millisecond}
	}
	some := func() time.Duration { return scales[rng.IntN(len(scales))] }
	w.dataDelay, w.tellDelay, w.dialDelay = some(), some(), some()
	w.caps = [][]int{{64, 128, 192}, {128, 1024, 4096}, {16 << 10}, {256}}[rng.IntN(4)]
	if w.dataDelay > 100*time.Microsecond { // or it takes too long
		w.caps = []int{16 << 10}
	}
	if j.shape == crossing { // which counts on room
		w.caps = []int{16 << 10}
	}
	w.yield = []int{0, 2, 8}[rng.IntN(3)]
	j.n = 2 + rng.IntN(4)
	if rng.IntN(20) == 0 {
		j.n = 6 + rng.IntN(6)
	}
	lanes := 1 + rng.IntN(3)*rng.IntN(2)
	if j.has(closes) != nil && rng.IntN(2) == 0 {
		lanes = 2 + rng.IntN(2)
	}
	for k := range lanes {
		s := j.shape
		if k > 0 && j.shape != crossing {
			s = []shape{anything, flood, chains, sparse, brief}[rng.IntN(5)]
		}
		p := newProgram(rng, j.n, s)
		if first == differs && (k == 0 || rng.IntN(2) == 0) {
			p.differ()
		}
		j.progs = append(j.progs, p)
	}
	for i := range j.faults {
		of := &j.faults[i]
		of.victim = rng.IntN(j.n)
		of.other = (of.victim + 1 + rng.IntN(j.n-1)) % j.n
	}
	j.closedOf = rng.IntN(lanes)
	j.late = rng.IntN(2) == 0
	if j.sleeper = rng.IntN(j.n); lanes > 1 && rng.IntN(4) == 0 {
		j.sleeps = time.Second + time.Duration(rng.Int64N(int64(2*time.Second)))
	}
	return j
}

// silence is Config.Silence, where it is set: longer than what a slow link takes.
const silence = 5 * time.Second

// open makes the nodes.
func (j *job) open() error {
	rng := j.rng
	for r := range j.n {
		j.nodes = append(j.nodes, &node{w: j.world, rank: r, last: make([]time.Time, j.n), dials: map[int]bool{}})
	}
	if of := j.has(lies); of != nil {
		j.nodes[of.victim].liar = newLiar(rand.New(rand.NewPCG(rng.Uint64(), 2)))
	}
	if of := j.has(files); of != nil {
		if j.dialShort = rng.IntN(2) == 0; j.dialShort {
			from, to := min(of.victim, of.other), max(of.victim, of.other)
			j.nodes[from].dials[to] = rng.IntN(2) == 0
		} else {
			j.nodes[of.victim].parkers = 1 + rng.IntN(2)
		}
	}
	c := stream.Config{Size: j.n}
	if rng.IntN(3) == 0 {
		c.Checksum = func(int) bool { return true }
	}
	if j.has(silent) != nil || rng.IntN(3) == 0 {
		c.Silence = silence
	}
	j.settled = rng.IntN(4) == 0
	for r, n := range j.nodes {
		c.Rank, c.Host = r, n
		var err error
		if n.n, n.root, err = stream.NewNode(c); err != nil {
			return err
		}
	}
	return nil
}

// start has the replicas begin. A replica's first lane opens the others: at its first calls, or anywhere between them.
func (j *job) start(ctx context.Context, victims context.Context) {
	rng := j.rng
	lazy, slowest := rng.IntN(2) == 0, rng.IntN(j.n)
	at := make([]bool, len(j.progs)) // by lane: it is a Dup of the one before it, not of the first
	for k := range at {
		at[k] = k > 1 && rng.IntN(2) == 0
	}
	for r, n := range j.nodes {
		var lanes []*laneOf
		var when []int
		for k, p := range j.progs {
			lanes = append(lanes, &laneOf{node: n, index: k, prog: p, op: -1})
			when = append(when, rng.IntN(2)*rng.IntN(len(p.ops[r])+1))
			if j.has(differs) != nil { // or lanes wait for each other, which no transport can know
				when[k] = 0
			}
			if j.has(closes) != nil && j.late {
				when[k] = len(j.progs[0].ops[r])
				if j.victimOf(closes, r) {
					when[k] = 0
				}
			}
		}
		lanes[0].lane = n.root
		j.lanes = append(j.lanes, lanes)
		mine := ctx
		if j.victimOf(cancels, r) {
			mine = victims
		}
		opened := 1
		open := func() { // the next lane
			if opened == 1 && r == j.sleeper && j.sleeps > 0 {
				j.pause(j.sleeps)
			}
			k := opened
			parent := lanes[0].lane
			if at[k] {
				parent = lanes[k-1].lane
			}
			for {
				e, err := parent.Dup(mine)
				if err == nil {
					lanes[k].lane = e
					break
				}
				j.note("replica %d lane %d: Dup: %v", r, k, err)
				if parent.Err() != nil || !errors.Is(err, syscall.EMFILE) {
					lanes[k].err = err
					parent.Abort(err) // the others count on this lane
					break
				}
				j.pause(time.Millisecond)
			}
			if opened++; lanes[k].lane != nil {
				j.spawn(n, fmt.Sprintf("replica %d lane %d", r, k), func() {
					j.carryOut(mine, lanes[k], lazy && r == slowest, nil)
					j.await(func() bool { return opened == len(lanes) }) // a Dup of this one may be to come
					j.close(lanes[k])
				})
			} else {
				lanes[k].ended, lanes[k].done = true, true
			}
		}
		together := rng.IntN(2) == 0
		j.spawn(n, fmt.Sprintf("replica %d lane 0", r), func() {
			j.carryOut(mine, lanes[0], lazy && r == slowest, func(i int) {
				for opened < len(lanes) && when[opened] <= i && lanes[opened-1].lane != nil {
					open()
				}
			})
			for opened < len(lanes) && lanes[0].err == nil && lanes[opened-1].lane != nil {
				open()
			}
			for ; opened < len(lanes); opened++ {
				lanes[opened].ended, lanes[opened].done = true, true
			}
			j.await(func() bool { // closed at the same time as others, or last
				for _, l := range lanes[1:] {
					if !l.ended || !together && !l.done {
						return false
					}
				}
				return true
			})
			j.close(lanes[0])
		})
	}
}

// carryOut makes the calls of a lane. before is called before each.
func (j *job) carryOut(ctx context.Context, l *laneOf, lazy bool, before func(op int)) {
	defer func() { l.ended = true }()
	ops := l.prog.ops[l.node.rank]
	if j.settled {
		l.lane.(transport.Settler).AnswerBy(l.made)
		defer j.settle(l)
	}
	for i, o := range ops {
		if before != nil {
			before(i)
		}
		if lazy || j.rng.IntN(30) == 0 {
			j.pause(j.delay(3*j.dataDelay + time.Microsecond))
		}
		l.op, l.through = i, false
		for r, batch := range o.rounds {
			call := o.call
			call.Round = uint32(r)
			l.busy = true
			l.err = l.lane.Exchange(ctx, call, batch)
			l.busy = false
			if l.err != nil {
				j.note("replica %d lane %d call %d: %v", l.node.rank, l.index, i, l.err)
				return
			}
			for x, t := range batch {
				if want := o.want[r][x]; want != nil && !bytes.Equal(want, t.Buf) {
					j.fail("replica %d lane %d call %d round %d: wrong data from replica %d", l.node.rank, l.index, i, r,
						t.Peer)
					return
				}
			}
		}
		l.through = true
	}
}

// made is the call that this replica has made under the number of another, once it is through with it.
func (l *laneOf) made(theirs transport.Call) (mine transport.Call, ok bool) {
	for i, o := range l.prog.ops[l.node.rank] {
		if o.call.Group == theirs.Group && o.call.Seq == theirs.Seq && (i < l.op || i == l.op && l.through) {
			mine = o.call
			mine.Round = uint32(len(o.rounds) - 1)
			return mine, true
		}
	}
	return mine, false
}

// settle asks the others of the last call what they have made of it.
func (j *job) settle(l *laneOf) {
	if l.op < 0 || l.err != nil {
		return
	}
	o := l.prog.ops[l.node.rank][l.op]
	call := o.call
	call.Round = uint32(len(o.rounds) - 1)
	others := slices.DeleteFunc(slices.Clone(o.members), func(r int) bool { return r == l.node.rank })
	l.busy = true
	l.asked = l.lane.(transport.Settler).Settle(call, others, time.Second)
	l.busy = false
}

// close closes a lane.
func (j *job) close(l *laneOf) {
	l.shut = l.lane.Close()
	l.done = true
	j.note("replica %d lane %d is closed: %v", l.node.rank, l.index, l.shut)
}

// plan has a fault come, within the time that the first calls may take or so.
func (j *job) plan(of *trouble, cancel context.CancelCauseFunc) {
	rng := j.rng
	span := time.Duration(1 + rng.Int64N(int64(8*(j.dataDelay+j.tellDelay+j.dialDelay)+1000)))
	victim, other := j.nodes[of.victim], j.nodes[of.other]
	switch of.fault {
	case dies:
		j.after(span, "it dies", victim.die)
	case cancels:
		j.after(span, "its context is done", func() {
			j.canceled = true
			cancel(errBoom)
			synctest.Wait()
		})
	case aborts:
		j.after(span, "it aborts", func() {
			if !victim.left && !victim.dead {
				victim.n.Abort(errBoom)
			}
		})
	case parts:
		lost := func(n, of *node) func() {
			return func() {
				if !n.left && !n.dead {
					n.n.Lost(of.rank, errors.New("silent"))
				}
			}
		}
		j.after(span, "one loses the other", lost(victim, other))
		if rng.IntN(2) == 0 {
			j.after(span+j.delay(time.Second), "and that one the first", lost(other, victim))
		}
	case closes:
		j.after(span, "it closes", func() {
			l := j.lanes[of.victim][j.closedOf]
			if l.lane == nil || victim.dead {
				return
			}
			j.closed = true
			j.spawn(victim, fmt.Sprintf("replica %d closes lane %d", of.victim, j.closedOf), func() {
				l.shutBy = l.lane.Close()
				j.note("it is closed: %v", l.shutBy)
			})
		})
	case silent:
		j.after(span, "a link falls silent, or is reset", func() {
			n := len(victim.ends)
			if n == 0 {
				return
			}
			e := victim.ends[rng.IntN(n)]
			j.silentOf = e.in.from.node.rank
			if j.reset = rng.IntN(2) == 0; !j.reset {
				e.in.mute = true
				return
			}
			e.in.reset(syscall.ECONNRESET)
			e.out.reset(syscall.ECONNRESET)
		})
	}
}

// carry runs the job, and says what is wrong.
func (j *job) carry() string {
	defer j.end()
	if err := j.open(); err != nil {
		return err.Error()
	}
	ctx, stop := context.WithCancelCause(context.Background())
	defer stop(nil)
	victims, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	j.began = time.Now()
	j.start(ctx, victims)
	for i := range j.faults {
		j.plan(&j.faults[i], cancel)
	}
	err := j.run(time.Hour)
	if j.wrong == "" && err != nil {
		j.wrong = fmt.Sprintf("%v: after %v and %d steps there wait %s", err, time.Since(j.began), j.steps, j.waiting())
	}
	if j.wrong == "" {
		j.wrong = j.judge()
	}
	if j.wrong == "" {
		return ""
	}
	return j.String() + ": " + j.wrong
}

// String describes the job.
func (j *job) String() string {
	var s strings.Builder
	fmt.Fprintf(&s, "%d replicas, %d lanes", j.n, len(j.progs))
	for _, of := range j.faults {
		s.WriteString(", " + faultNames[of.fault])
		switch of.fault {
		case none, slow:
		case differs:
			for k, p := range j.progs {
				fmt.Fprintf(&s, ", lane %d: replica %d has %q", k, p.odd, p.differs)
			}
		default:
			fmt.Fprintf(&s, " (replica %d, other %d)", of.victim, of.other)
		}
	}
	return s.String()
}
