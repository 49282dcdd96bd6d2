package transporttest

import (
	"context"
	"fmt"
	"iter"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gogcl.dev/internal/leaktest"
	"gogcl.dev/transport"
)

// Option is what a call of the suite may be told of a transport: a Feature, a Clock.
type Option interface{ apply(s *suite) }

// Feature is a promise that not every transport makes.
type Feature uint

func (f Feature) apply(s *suite) { s.features |= f }

// Clock is the time of a transport that has one of its own. Without one, or without one of its functions, it is the
// system's. Whether anything gets done the suite sees by the system's in any case.
type Clock struct {
	// Sleep returns when a time has passed for the replica of an endpoint, or for the test beside it.
	Sleep func(e transport.Endpoint, d time.Duration)
	// WithTimeout is context.WithTimeout.
	WithTimeout func(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc)
}

func (c Clock) apply(s *suite) {
	if c.Sleep != nil {
		s.clock.Sleep = c.Sleep
	}
	if c.WithTimeout != nil {
		s.clock.WithTimeout = c.WithTimeout
	}
}

const (
	// NoAlloc: in steady state an Exchange allocates nothing, on no goroutine.
	NoAlloc Feature = 1 << iota
	// NamesDeadlocks: replicas that wait for each other in a circle, all in the same call, get a *DeadlockError. (That
	// replicas in different calls get a *MismatchError, whether they meet or not, is asked of every transport.)
	NamesDeadlocks
	// KeepsCauses: the cause of an abort arrives at the other replicas as the same value, for errors.Is and errors.As.
	// Without it they must find an error with its text. Errors of package transport arrive as their types, with all
	// fields, in either case.
	KeepsCauses
	// Buffers: a send may be taken into the transport's own memory, and end before its receiver has come, as package
	// transport says under "Buffered sends". It is no promise: tests then wait for errors that may come later.
	Buffers
	// Brief asks for a quarter of the repetitions of whatever is tried again and again, for an eighth of the bytes of
	// the largest messages, for large groups of 32 replicas in place of 64, to count allocations with one size of
	// messages for each number of replicas, to send each number of replicas a third of the other sizes, and for one
	// odd member in each broadcast in which one is: for a second run of the suite, over the same transport set up in
	// another way, or over another transport. It is no promise, and leaves no other case out.
	Brief
)

// patience is how long a test may get nothing done before it is said to hang: nothing at all, unless it counts in alive
// what it does again and again.
const patience = 2 * time.Minute

// alive counts steps of tests that have many. How long all of them take together hangs on the machine.
var alive atomic.Uint64

// Run tests the transport whose endpoints open returns: n of them, freshly connected to each other, in the order of
// their ranks. The suite closes them.
func Run(t *testing.T, open func(t testing.TB, n int) []transport.Endpoint, options ...Option) {
	s := newSuite(options)
	s.open = open
	s.run(t, groups)
}

// RunNative is Run for the collectives of endpoints alone, which all offer transport.Native. Run tests them too where
// they are offered.
func RunNative(t *testing.T, open func(t testing.TB, n int) []transport.Endpoint, options ...Option) {
	s := newSuite(options)
	s.open, s.only = open, true
	s.native(t)
}

// test is a group of tests. Its body is the same program on every replica, which may be a goroutine or a process: it
// takes the endpoints that connect returns for those of this process, and they know each other by the board.
type test struct {
	name string
	run  func(*suite, *testing.T)
}

// groups are those of Run.
var groups = []test{
	{"Ring", (*suite).ring},
	{"AllToAll", (*suite).allToAll},
	{"Fold", (*suite).fold},
	{"Chain", (*suite).chain},
	{"Tags", (*suite).tags},
	{"RunAhead", (*suite).runAhead},
	{"SameRound", (*suite).sameRound},
	{"Late", (*suite).late},
	{"SharedMembers", (*suite).sharedMembers},
	{"Random", (*suite).random},
	{"Dup", (*suite).dup},
	{"Linked", (*suite).linked},
	{"BadBatch", (*suite).badBatch},
	{"Cancel", over((*suite).cancel, ring(1000))},
	{"Abort", over((*suite).abort, ring(70000))},
	{"Break", func(s *suite, t *testing.T) {
		over((*suite).breakOff, messy(100, 100), messy(s.brief(200_000), 40))(s, t)
	}},
	{"Close", (*suite).close},
	{"CallMismatch", (*suite).callMismatch},
	{"LengthMismatch", (*suite).lengthMismatch},
	{"Unpaired", (*suite).unpaired},
	{"Settles", (*suite).settles},
	{"NoMeeting", (*suite).noMeeting},
	{"Deadlock", (*suite).deadlock},
	{"Done", (*suite).done},
	{"DupAlone", (*suite).dupAlone},
	{"ErrorsTravel", (*suite).errorsTravel},
	{"Unread", (*suite).unread},
	{"NoLeak", (*suite).noLeak},
	{"NoAlloc", (*suite).noAlloc},
	{"Native", (*suite).native},
	{"PeerMemory", (*suite).peerMemory},
	{"Rejoin", (*suite).rejoin},
}

func (s *suite) run(t *testing.T, tests []test) {
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) { test.run(s, t) })
	}
}

// suite is what the tests of one Run share, or of one process of RunProcesses.
type suite struct {
	features Feature
	rooms    rooms // of the case
	clock    Clock
	open     func(t testing.TB, n int) []transport.Endpoint // nil in a process that is one replica
	world    *world                                         // nil in Run
	board    *board                                         // of the case
	only     bool                                           // one part of the suite: what it is about must be there
}

func newSuite(options []Option) *suite {
	s := &suite{
		clock: Clock{
			Sleep:       func(_ transport.Endpoint, d time.Duration) { time.Sleep(d) },
			WithTimeout: context.WithTimeout,
		},
	}
	for _, o := range options {
		o.apply(s)
	}
	return s
}

func (s *suite) has(f Feature) bool { return s.features&f != 0 }

// thin reports whether what is multiplied without need is left out: in a second run of the suite, and under the race
// detector, which does not care for lengths.
func (s *suite) thin() bool { return underRace || s.has(Brief) }

// brief is the length of large messages.
func (s *suite) brief(size int) int {
	if s.thin() {
		return size / 8
	}
	return size
}

// few thins the repetitions of a test, from times on an ordinary run to no less than 5, so that groups of 2 to 5 each
// have their turn.
func (s *suite) few(times int) int {
	least := min(times, 5)
	if underRace {
		times /= 10
	}
	switch {
	case s.world != nil:
		times /= 20
	case s.has(Brief):
		times /= 4
	}
	return max(times, least)
}

// many is the number of replicas of a large group. Under the race detector 64 that all connect with all have so many
// goroutines that the detector alone takes most of two processors: a minute has passed without a handshake done.
func (s *suite) many() []int {
	switch {
	case underRace:
		return []int{16}
	case s.has(Brief):
		return []int{32}
	}
	return []int{64}
}

// sizes calls test for each number of replicas and bytes. With Brief, which all processes have, and under the race
// detector, each number of replicas has a third of the sizes, if they are many: another third for the next number.
func (s *suite) sizes(t *testing.T, replicas, sizes []int, test func(t *testing.T, n, size int)) {
	step := 1
	if s.thin() && len(sizes) > 3 {
		step = 3
	}
	s.everyNth(t, step, replicas, sizes, test)
}

// everyNth calls test for each number of replicas with one in step of the sizes, each with others.
func (s *suite) everyNth(t *testing.T, step int, replicas, sizes []int, test func(t *testing.T, n, size int)) {
	for i, n := range s.here(replicas) {
		if s.world != nil {
			i = (n + 1) / 2 // 1, 2 and 3 for 2, 3 and 5
		}
		for j, size := range sizes {
			if size == large && !underRace { // which has an eighth already
				size = s.brief(size)
			}
			if (i+j)%step == 0 {
				t.Run(fmt.Sprintf("n=%d/size=%d", n, size), func(t *testing.T) { test(t, n, size) })
			}
		}
	}
}

// replicas calls test for each number of replicas.
func (s *suite) replicas(t *testing.T, replicas []int, test func(t *testing.T, n int)) {
	for _, n := range s.here(replicas) {
		t.Run(fmt.Sprintf("n=%d", n), func(t *testing.T) { test(t, n) })
	}
}

// here returns the numbers of replicas to test out of those that a test is for. Between processes it is theirs, if no
// less than the least.
func (s *suite) here(replicas []int) []int {
	switch {
	case s.world == nil:
		return replicas
	case s.world.size >= replicas[0]:
		return []int{s.world.size}
	}
	return nil
}

// connect begins a case of n replicas. It opens their endpoints, returns those of the replicas in this process, in the
// order of their ranks, and has them closed at the end of the test, which must leave no goroutine behind.
func (s *suite) connect(t *testing.T, n int) []transport.Endpoint {
	t.Helper()
	s.needs(t, n)
	leaktest.Check(t)
	if s.world != nil {
		s.board = s.world.begin(t)
	} else {
		s.board = newBoard()
	}
	eps := s.opened(t, n)
	t.Cleanup(func() { shut(t, eps) })
	t.Cleanup(s.rooms.shut)
	for _, e := range eps {
		if err := e.Err(); err != nil && s.world == nil { // else a replica may have aborted by now
			t.Fatalf("endpoint %d of %d begins with %v", e.Rank(), n, err)
		}
	}
	return eps
}

// needs skips a test for n replicas in processes that are of another number.
func (s *suite) needs(t testing.TB, n int) {
	t.Helper()
	if s.world != nil && s.world.size != n {
		t.Skipf("is for %d replicas", n)
	}
}

// opened opens the endpoints of n replicas and checks what those of this process say of themselves.
func (s *suite) opened(t testing.TB, n int) (eps []transport.Endpoint) {
	t.Helper()
	first := 0
	if s.world != nil {
		eps, first = []transport.Endpoint{s.world.open(t)}, s.world.rank
	} else if eps = s.open(t, n); len(eps) != n {
		t.Fatalf("open(%d) returned %d endpoints", n, len(eps))
	}
	for i, e := range eps {
		if i += first; e.Rank() != i || e.Size() != n {
			t.Fatalf("endpoint %d of %d says it is %d of %d", i, n, e.Rank(), e.Size())
		}
	}
	return eps
}

// at returns the endpoint of a replica, or nil if the replica is in another process.
func at(eps []transport.Endpoint, rank int) transport.Endpoint {
	for _, e := range eps {
		if e.Rank() == rank {
			return e
		}
	}
	return nil
}

// byRank names the replicas of what each returns.
func byRank(eps []transport.Endpoint, errs []error) iter.Seq2[int, error] {
	return func(yield func(int, error) bool) {
		for i, err := range errs {
			if !yield(eps[i].Rank(), err) {
				return
			}
		}
	}
}

// shut closes all endpoints, at once, since a transport may want to hear from the others.
func shut(t testing.TB, eps []transport.Endpoint) {
	t.Helper()
	for rank, err := range byRank(eps, each(t, eps, func(e transport.Endpoint) error { return e.Close() })) {
		if err != nil {
			t.Errorf("replica %d: Close: %v", rank, err)
		}
	}
}

// each calls body for every endpoint, on goroutines of their own, and returns what they return, in the order of the
// endpoints. Meanwhile it calls the functions given.
func each(t testing.TB, eps []transport.Endpoint, body func(e transport.Endpoint) error, meanwhile ...func()) []error {
	t.Helper()
	errs := make([]error, len(eps))
	var wg sync.WaitGroup
	for i, e := range eps {
		wg.Go(func() { errs[i] = body(e) })
	}
	for _, f := range meanwhile {
		f()
	}
	await(t, wg.Wait)
	return errs
}

// await calls wait and fails the test, with all stacks, when that does not return.
func await(t testing.TB, wait func()) {
	t.Helper()
	done := make(chan bool)
	go func() {
		wait()
		close(done)
	}()
	watchdog := time.NewTimer(patience)
	defer watchdog.Stop()
	for before := alive.Load(); ; watchdog.Reset(patience) {
		select {
		case <-done:
			return
		case <-watchdog.C:
		}
		now := alive.Load()
		if now == before {
			break
		}
		before = now
	}
	buf := make([]byte, 1<<20)
	t.Fatalf("hangs: nothing done for %v\n\n%s", patience, buf[:runtime.Stack(buf, true)])
}

// all runs body on every endpoint and wants no error. One that there is ends the others as well.
func all(t testing.TB, eps []transport.Endpoint, body func(e transport.Endpoint) error, meanwhile ...func()) {
	t.Helper()
	failed := false
	for rank, err := range byRank(eps, each(t, eps, func(e transport.Endpoint) error {
		err := body(e)
		if err != nil {
			e.Abort(err)
		}
		return err
	}, meanwhile...)) {
		if err != nil {
			t.Errorf("replica %d: %v", rank, err)
			failed = true
		}
	}
	if failed {
		t.FailNow()
	}
}

// call is the fingerprint of the seq-th call of a test. No field is zero, so that none can be forgotten.
func call(seq, round int) transport.Call {
	return transport.Call{
		Group: 0x1122334455667788, Seq: uint64(seq) + 1, Count: 1<<40 + 3, Digest: 0x99aabbccddeeff01, Root: 70000,
		Round:      uint32(round) + 1,
		Collective: 2, Operator: 3, DType: 4, Method: 5,
	}
}

// background is the context of tests that cancel nothing.
var background = context.Background()
