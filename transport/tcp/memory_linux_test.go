package tcp

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"gogcl.dev/internal/leaktest"
	"gogcl.dev/transport"
	"gogcl.dev/transport/internal/handshake"
	"gogcl.dev/transport/internal/meeting"
	"gogcl.dev/transport/internal/segment"
)

// unixPair makes a connection of unix sockets.
func unixPair(t testing.TB) (a, b *net.UnixConn) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	var conns [2]*net.UnixConn
	for i, fd := range fds {
		file := os.NewFile(uintptr(fd), "")
		conn, err := net.FileConn(file)
		file.Close()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		conns[i] = conn.(*net.UnixConn)
	}
	return conns[0], conns[1]
}

// sharedOf makes what a replica shares.
func sharedOf(t testing.TB, rank int) *shared {
	t.Helper()
	s, err := newShared(rank, smallForm)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.close(nil) })
	return s
}

// openFiles counts the descriptors of this process, but for those of os.DevNull: a listener opens one to spare when it
// comes to accept, which may be late.
func openFiles(t testing.TB) (n int) {
	t.Helper()
	const dir = "/proc/self/fd/"
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if name, err := os.Readlink(dir + file.Name()); err == nil && name != os.DevNull {
			n++
		}
	}
	return n
}

// TestSwap: a replica that sends something else than its memory and its bell is an error that names it, and keeps no
// descriptor. The replica hears why.
func TestSwap(t *testing.T) {
	mine, theirs := sharedOf(t, 0), sharedOf(t, 1)
	another, err := segment.Make(1, segment.Form{Bytes: smallForm.Bytes, Ring: 2 * smallForm.Ring})
	if err != nil {
		t.Fatal(err)
	}
	defer another.Close()
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	for _, test := range []struct {
		name string
		data string
		fds  []int
		want string // "" for what is taken
	}{
		{"good", "\x02", []int{theirs.own.FD(), theirs.bell}, ""},
		{"none", "\x02", nil, "it has sent 0 descriptors, want 2"},
		{"one", "\x02", []int{theirs.own.FD()}, "it has sent 1 descriptors, want 2"},
		{"three", "\x02", []int{theirs.own.FD(), theirs.bell, theirs.bell}, "it has sent 3 descriptors, want 2"},
		{"too many", "\x02", slices.Repeat([]int{theirs.bell}, 30), "not all of its descriptors have come"},
		{"wrong byte", "\x01", []int{theirs.own.FD(), theirs.bell}, "byte 1, want 2"},
		{"two of memory", "\x02", []int{theirs.own.FD(), theirs.own.FD()}, "memfd"},
		{"two bells", "\x02", []int{theirs.bell, theirs.bell}, "no memory that can be sealed"},
		{"a file", "\x02", []int{int(null.Fd()), theirs.bell}, "no memory that can be sealed"},
		{"another form", "\x02", []int{another.FD(), theirs.bell}, "ring length 32768, want 16384"},
		{"another rank", "\x02", []int{mine.own.FD(), theirs.bell}, "rank 0, want 1"},
		{"a control message", "\x00\x09\xff\xf6", nil, "it has sent 0 descriptors"},
	} {
		t.Run(test.name, func(t *testing.T) {
			here, there := unixPair(t)
			before := openFiles(t)
			heard := make(chan error, 1)
			if test.want == "" {
				go func() {
					near, err := theirs.swap(there, 0, smallForm)
					near.close()
					heard <- err
				}()
			} else {
				if _, _, err := there.WriteMsgUnix([]byte(test.data), unix.UnixRights(test.fds...), nil); err != nil {
					t.Fatal(err)
				}
				go func() {
					near, err := take(there, 0, smallForm)
					near.close()
					if err == nil {
						text := make([]byte, 1+verdictLimit)
						n, _ := there.Read(text)
						err = errors.New(string(text[:n]))
					}
					there.CloseWrite()
					heard <- err
				}()
			}
			near, err := mine.swap(here, 1, smallForm)
			near.close()
			said := <-heard
			if test.want == "" {
				if err != nil || said != nil {
					t.Error(err, said)
				}
			} else {
				for _, want := range []string{"the shared memory of replica 1: ", test.want} {
					if err == nil || !strings.Contains(err.Error(), want) {
						t.Errorf("%v, want %q", err, want)
					}
				}
				if !strings.Contains(said.Error(), test.want) {
					t.Errorf("the replica hears %q, want %q", said, test.want)
				}
			}
			if after := openFiles(t); after != before {
				t.Errorf("%d descriptors, before %d", after, before)
			}
		})
	}
	t.Run("refused", func(t *testing.T) {
		here, there := unixPair(t)
		if err := theirs.give(there); err != nil {
			t.Fatal(err)
		}
		there.Write([]byte("\x0anot for me"))
		near, err := mine.swap(here, 1, smallForm)
		near.close()
		want := "replica 1: it refuses that of this replica: not for me"
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	})
	t.Run("ended", func(t *testing.T) {
		here, there := unixPair(t)
		if err := theirs.give(there); err != nil {
			t.Fatal(err)
		}
		there.CloseWrite()
		if _, err := mine.swap(here, 1, smallForm); err == nil || !strings.Contains(err.Error(), "EOF") {
			t.Errorf("%v, want EOF", err)
		}
	})
}

// TestShmConfig: what shared memory cannot do is an error before anything is sent.
func TestShmConfig(t *testing.T) {
	c := Config{Size: 2, Network: Shm, TLS: &tls.Config{}}
	if _, err := Listen(c); err == nil || !strings.Contains(err.Error(), `network "shm" with TLS`) {
		t.Error(err)
	}
	cards := []card{{Network: Shm, Key: make([]byte, keySize)}, {Network: Auto}}
	err := checkCards(cards, true, nil)
	if want := `replica 1 goes by transport "auto", and replica 0 by "shm": give all the same`; err == nil ||
		err.Error() != want {
		t.Errorf("%v, want %q", err, want)
	}
	cards[1].Network, cards[1].Address.Host = Shm, "elsewhere"
	err = checkCards(cards, true, nil)
	if want := `replica 1 is on another host than replica 0`; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %q", err, want)
	}
	if c := (Config{Network: Shm, Secret: make([]byte, 32)}); !c.ownUser() {
		t.Error("replicas of other users are taken")
	}
}

// TestNetworksDiffer: where some replicas share memory and others do not, nobody hangs, and the error says what to do.
func TestNetworksDiffer(t *testing.T) {
	t.Parallel()
	for _, networks := range [][]Network{{Shm, Unix}, {Unix, Shm}} {
		var listeners []*Listener
		var addresses []Address
		for rank, network := range networks {
			l, err := Listen(Config{Rank: rank, Size: 2, Network: network, Secret: make([]byte, 32), form: smallForm,
				Silence: 2 * time.Second})
			if err != nil {
				t.Fatal(err)
			}
			listeners, addresses = append(listeners, l), append(addresses, l.Address())
		}
		errs := make([]error, 2)
		var all sync.WaitGroup
		for i, l := range listeners {
			all.Go(func() {
				var e transport.Endpoint
				if e, errs[i] = l.Connect(t.Context(), addresses); errs[i] == nil {
					errs[i] = ringRound(t.Context(), e, 0, 10)
					e.Close()
				}
			})
		}
		all.Wait()
		for rank, err := range errs {
			said := err != nil && strings.Contains(err.Error(), `give all replicas transport "shm"`)
			if err == nil || networks[rank] == Shm && !said {
				t.Errorf("%v: replica %d: %v", networks, rank, err)
			}
		}
	}
}

// meshes has endpoints made, and their meshes.
func meshes(t testing.TB, n int, c Config) ([]transport.Endpoint, []*mesh) {
	t.Helper()
	all := make([]*mesh, n)
	c.Network, c.meets = Shm, func(m *mesh) { all[m.config.Rank] = m }
	return open(t, n, c), all
}

// TestManyDups makes lanes, uses and closes them, in turn: the memory and the directory of none run full, and no
// descriptor is left.
func TestManyDups(t *testing.T) {
	leaktest.Check(t)
	times := 3000 // whose rings have 20 times as many bytes as the memory
	switch {
	case *full:
		times = 10_000
	case testing.Short():
		times = 1000
	}
	eps, all := meshes(t, 2, Config{form: segment.Form{Bytes: 4 << 20, Ring: 16 << 10}})
	before := openFiles(t)
	together(t, eps, func(e transport.Endpoint) error {
		for k := range times {
			d, err := e.Dup(t.Context())
			if err == nil {
				err = ringRound(t.Context(), d, 0, 100)
			}
			if err == nil {
				err = d.Close()
			}
			if err != nil {
				return fmt.Errorf("lane %d: %w", k, err)
			}
		}
		return nil
	})
	if after := openFiles(t); after > before {
		t.Errorf("%d descriptors, before %d", after, before)
	}
	for _, m := range all {
		var stat unix.Stat_t
		if err := unix.Fstat(m.shm.own.FD(), &stat); err != nil || stat.Blocks > 2<<20/512 {
			t.Errorf("replica %d: %d KiB are in use, %v", m.config.Rank, stat.Blocks/2, err)
		}
	}
	closeTogether(t, eps)
}

// TestFalseRing: a replica that says that it has made a ring, and has not, is lost.
func TestFalseRing(t *testing.T) {
	for from, want := range []string{"its shared memory has none", "for which nobody has asked"} {
		leaktest.Check(t)
		eps, all := meshes(t, 2, Config{})
		all[from].at(1 - from).tell(appendRingMade(nil, 4711))
		<-eps[1-from].Done()
		if err := eps[1-from].Err(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
		for _, e := range eps {
			e.Close()
		}
	}
}

// TestNoRoom: a segment that has no room for a ring is an error on all, and so is one that has none for a lane.
func TestNoRoom(t *testing.T) {
	leaktest.Check(t)
	eps, _ := meshes(t, 2, Config{form: segment.Form{Bytes: segment.MinBytes, Ring: 512 << 10}})
	var all sync.WaitGroup
	for _, e := range eps {
		all.Go(func() {
			var err error
			for k := 0; err == nil; k++ {
				var d transport.Endpoint
				if d, err = e.Dup(t.Context()); err == nil {
					err = ringRound(t.Context(), d, 0, 10)
				}
			}
			if want := "the shared memory of this process is full"; !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %q", err, want)
			}
		})
	}
	all.Wait()
	closeTogether(t, eps)
}

// TestScribbled has a process overwrite a segment with anything while all replicas exchange messages: each gets an
// error, at the latest when its context ends. Nothing faults or panics, and Close ends.
func TestScribbled(t *testing.T) {
	words := []int{0, 8, 16, 64, 72} // of a ring
	for _, target := range []struct {
		name string
		dups bool // each round is on a lane of its own
		at   func(r *rand.Rand) int
	}{
		{"directory", true, func(r *rand.Rand) int { return 4096 + 8*r.IntN(512<<10/8) }},
		{"rings", false, func(r *rand.Rand) int { return 1<<20 + 8*r.IntN(128<<10/8) }},
		{"words of rings", false, func(r *rand.Rand) int { return 1<<20 + 4096*r.IntN(32) + words[r.IntN(len(words))] }},
		{"all", true, func(r *rand.Rand) int { return 8 * r.IntN((1<<20+128<<10)/8) }},
	} {
		for seed := range uint64(3) {
			t.Run(fmt.Sprintf("%s/seed=%d", target.name, seed), func(t *testing.T) {
				t.Parallel()
				eps, all := meshes(t, 3, Config{Silence: time.Second})
				memory := all[1].shm.own.Memory()
				var stop atomic.Bool
				var working, scribbling sync.WaitGroup
				for _, e := range eps {
					working.Go(func() {
						ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
						defer cancel()
						var err error
						for k := 0; err == nil; k++ {
							on := e
							if k > 10 && target.dups {
								on, err = e.Dup(ctx)
							}
							if err == nil {
								err = ringRound(ctx, on, k, 50_000)
							}
							if err == nil && k == 10 && e.Rank() == 1 {
								scribbling.Go(func() {
									r := rand.New(rand.NewPCG(seed, 1))
									for !stop.Load() {
										word := (*atomic.Uint64)(unsafe.Pointer(&memory[target.at(r)]))
										word.Store(r.Uint64() >> r.IntN(64))
									}
								})
							}
						}
						t.Logf("replica %d: %.200v", e.Rank(), err)
						e.Abort(err)
					})
				}
				working.Wait()
				eps[0].Close()
				eps[2].Close()
				stop.Store(true)
				scribbling.Wait()
				eps[1].Close()
			})
		}
	}
}

// TestUnderCollection has garbage collected, and memory returned to the system, while messages are on their way.
func TestUnderCollection(t *testing.T) {
	leaktest.Check(t)
	eps, _ := meshes(t, 3, Config{})
	var stop atomic.Bool
	var collecting sync.WaitGroup
	collecting.Go(func() {
		for !stop.Load() {
			runtime.GC()
			debug.FreeOSMemory()
		}
	})
	together(t, eps, func(e transport.Endpoint) error {
		for k := range 200 {
			if err := ringRound(t.Context(), e, k, 30_000+k); err != nil {
				return err
			}
		}
		return nil
	})
	stop.Store(true)
	collecting.Wait()
	closeTogether(t, eps)
}

// lanePair makes a link between two replicas on a lane that neither has open, and tells nobody.
func lanePair(t *testing.T, all []*mesh, lane uint64) (a, b *rings) {
	t.Helper()
	a, err := all[0].shm.newRings(all[0].at(1), lane)
	if err != nil {
		t.Fatal(err)
	}
	if b, err = all[1].shm.newRings(all[1].at(0), lane); err != nil {
		t.Fatal(err)
	}
	if !all[1].shm.answers(b) {
		t.Fatal("the ring is not found")
	}
	return a, b
}

// TestRingsClose: the rings of a link are given back when both ends have closed it, whichever closes first, and where
// one has closed it before the other could answer.
func TestRingsClose(t *testing.T) {
	leaktest.Check(t)
	eps, all := meshes(t, 2, Config{})
	given := func(rank int, lane uint64) bool {
		r, err := all[rank].shm.newRings(all[rank].at(1-rank), lane)
		if err != nil {
			return false // there is one still
		}
		r.lonely = true
		r.Close()
		return true
	}
	for lane, first := range []int{0, 1} {
		a, b := lanePair(t, all, uint64(lane))
		links := []*rings{a, b}
		links[first].Close()
		if given(first, uint64(lane)) {
			t.Errorf("replica %d gives its ring back, and replica %d may look at it", first, 1-first)
		}
		links[1-first].Close()
		for rank := range links {
			if !given(rank, uint64(lane)) {
				t.Errorf("closed first by replica %d: the ring of replica %d is not given back", first, rank)
			}
		}
	}
	a, err := all[0].shm.newRings(all[0].at(1), 7)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := a.Send([]byte("last words"), nil, nil); n != 10 || err != nil {
		t.Fatal(n, err)
	}
	a.Close()
	b, err := all[1].shm.newRings(all[1].at(0), 7)
	if err != nil {
		t.Fatal(err)
	}
	if !all[1].shm.answers(b) {
		t.Fatal("the ring is not found")
	}
	got := make([]byte, 20)
	if n, err := b.ReadInto(got); string(got[:n]) != "last words" || err != nil {
		t.Errorf("%q, %v", got[:n], err)
	}
	if b.Close(); !given(1, 7) || !given(0, 7) {
		t.Error("the ring that answers one that has ended, or that one, is not given back")
	}
	for _, e := range eps {
		e.Close()
	}
	if err := a.Close(); err != nil { // the memory is gone
		t.Error(err)
	}
}

// sleeperOf is the sleeper of a lane that watches a link.
func sleeperOf(t *testing.T, of *shared, link *rings) *sleeper {
	t.Helper()
	s, err := of.newSleeper(link.lane)
	if err == nil {
		err = s.Watch(link)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s.(*sleeper)
}

// TestSleeper: a lane that parks looks once more before it sleeps, and is woken by what its peer does afterwards.
func TestSleeper(t *testing.T) {
	eps, all := meshes(t, 2, Config{})
	a, b := lanePair(t, all, 7)
	s := sleeperOf(t, all[1].shm, b)
	send := func(n int) {
		if n, err := a.Send(make([]byte, n), nil, nil); n == 0 || err != nil {
			t.Error(n, err)
		}
	}
	send(10)
	s.Park(-1) // without a look it does not end
	send(10)
	s.Park(-1)
	if n, err := b.ReadInto(make([]byte, 20)); n != 20 || err != nil {
		t.Fatal(n, err)
	}
	if n, err := b.Send(make([]byte, 2*smallForm.Ring), nil, nil); n != smallForm.Ring || err != nil {
		t.Fatal(n, err)
	}
	for _, wakes := range []func(){
		func() { send(64) },
		func() { // room
			if n, err := a.ReadInto(make([]byte, smallForm.Ring)); n != smallForm.Ring || err != nil {
				t.Error(n, err)
			}
		},
		func() { a.Close() },
		func() { s.Wake() },
	} {
		var waking sync.WaitGroup
		var begun atomic.Bool
		waking.Go(func() {
			for s.asleep.Load() == 0 {
				runtime.Gosched()
			}
			begun.Store(true)
			wakes()
		})
		for !begun.Load() { // a wake-up of the step before may end a Park
			s.Park(-1)
		}
		waking.Wait()
	}
	b.Close()
	s.Close()
	for _, e := range eps {
		e.Close()
	}
}

// countedGoal is a stream.Awaited that is met at a look.
type countedGoal struct{ looks, met int }

func (g *countedGoal) Met() bool       { g.looks++; return g.looks == g.met }
func (g *countedGoal) Awaits(int) bool { return false }

// TestSleeperLooks: how long a lane looks before it parks, and that a long look, at a goal or at links, is told to the
// watch of crowds.
func TestSleeperLooks(t *testing.T) {
	eps, all := meshes(t, 2, Config{})
	a, b := lanePair(t, all, 7)
	s := sleeperOf(t, all[1].shm, b)
	never := func() bool { return false }
	for range 5 {
		if s.Look(false, false, never); !s.watch {
			t.Errorf("after %d spins a look at a link is none for the watch of crowds", s.spins)
		}
	}
	if s.spins != meeting.MinSpins {
		t.Errorf("after looks in vain %d spins", s.spins)
	}
	s.spins *= 2
	for _, crowded := range []bool{false, true} {
		stops := 0
		if s.Look(crowded, false, func() bool { stops++; return true }) || stops != 1 || s.watch {
			t.Errorf("crowded %t: a look that is stopped goes on, or watches: %d stops, %t", crowded, stops, s.watch)
		}
	}
	if s.spins /= 2; s.spins != meeting.MinSpins {
		t.Errorf("%d spins: a look that is stopped was not in vain", s.spins)
	}
	if n, err := a.Send(make([]byte, 10), nil, nil); n != 10 || err != nil {
		t.Fatal(n, err)
	}
	if !s.Look(false, false, never) || s.spins != 2*meeting.MinSpins {
		t.Errorf("what has come is not found, or worth %d spins", s.spins)
	}
	for _, who := range [][2]bool{{true, false}, {false, true}} {
		goal := &countedGoal{}
		s.Attend(goal)
		if s.Look(who[0], who[1], never) || goal.looks != yields || s.watch {
			t.Errorf("crowded, goroutines %v: %d looks, watch %t", who, goal.looks, s.watch)
		}
	}
	all[1].shm.crowd.Force(true)
	goal := &countedGoal{met: 3}
	s.Attend(goal)
	if !s.Look(false, false, never) || goal.looks != 3 || s.spins != 2*meeting.MinSpins {
		t.Errorf("%d looks, want that the third ends them", goal.looks)
	}
	goal = &countedGoal{}
	s.Attend(goal)
	if s.Look(false, false, never) || goal.looks != yields {
		t.Errorf("%d looks while the processors count as crowded", goal.looks)
	}
	s.Attend(nil)
	b.Close()
	s.Close()
	for _, e := range eps {
		e.Close()
	}
}

// TestNoDataConnection: a replica that shares memory takes no connection for data.
func TestNoDataConnection(t *testing.T) {
	m := quietMesh(1, 2)
	conn, other := net.Pipe()
	if err := m.admit(conn, handshake.Hello{Rank: 0, Peer: 1, Role: handshake.Control}); err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	m.config.Network = Shm
	err := m.admit(conn, handshake.Hello{Rank: 0, Peer: 1, Role: handshake.Data})
	if err == nil || !strings.Contains(err.Error(), `give all replicas transport "shm"`) {
		t.Error(err)
	}
}
