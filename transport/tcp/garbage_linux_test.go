package tcp

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"gogcl.dev/transport"
)

var garbageSeeds = flag.Int("garbage", 0, "how many seeds TestGarbage tries of each value in each place; 0: one of some")

// openBytesOf returns at least n bytes that e can lay open.
func openBytesOf(e transport.Endpoint, n int) ([]byte, error) {
	page := os.Getpagesize()
	n = (n + page - 1) / page * page
	all := make([]byte, n+page)
	first := -int(uintptr(unsafe.Pointer(unsafe.SliceData(all)))) & (page - 1)
	b := all[first : first+n : first+n]
	return b, e.(transport.Opener).OpenPages(b)
}

// openedBytes are those of openBytesOf until the end of the test, which is skipped where the system has none.
func openedBytes(t testing.TB, e transport.Endpoint, n int) []byte {
	t.Helper()
	b, err := openBytesOf(e, n)
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.(transport.Opener).ShutPages(b) })
	return b
}

// Offsets in a Place: see package meeting.
const (
	placeSynced   = 128
	placeInside   = 136
	placeBoards   = 192
	placeQueue    = placeBoards + 2*4096
	placeHall     = placeQueue + 64*64
	placeCombined = placeHall + 4*64 + 64
	placeSpool    = placeCombined + 2*4096
)

// garbageTarget is where TestGarbage writes: words of 8 bytes.
type garbageTarget struct {
	name string
	seat bool // at is from the Place of the member, else from the segment
	data bool // results may be wrong: what is overwritten is what the members send
	news bool // each round is in a group of its own, and lanes come and go
	run  int  // how many words are written one after the other, at most; 0: 1
	at   func(r *rand.Rand) int
}

// words are n words from an offset.
func words(from, n int) func(r *rand.Rand) int {
	return func(r *rand.Rand) int { return from + 8*r.IntN(n) }
}

var garbageTargets = []garbageTarget{
	{name: "directory", news: true, run: 8 << 10, at: words(4096, 512<<10/8-8<<10)},
	{name: "header", at: words(0, 6)},
	{name: "aborted", at: words(1024, 1)},
	{name: "lists", seat: true, at: words(-openBytes, 2+2*3)},
	{name: "notices", seat: true, at: func(r *rand.Rand) int { return 64*r.IntN(2) + 8*r.IntN(7) }},
	{name: "synced", seat: true, at: words(placeSynced, 1)},
	{name: "inside", seat: true, at: words(placeInside, 1)},
	{name: "queue", seat: true, at: func(r *rand.Rand) int { return placeQueue + 64*r.IntN(64) + 8*r.IntN(7) }},
	{name: "count", seat: true, at: words(placeHall, 1)},
	{name: "done", seat: true, at: words(placeHall+64, 1)},
	{name: "next", seat: true, at: words(placeHall+128, 1)},
	{name: "left", seat: true, at: words(placeHall+192, 1)},
	{name: "decisions", seat: true, at: words(placeHall+256, 1)},
	{name: "messages", seat: true, data: true, at: func(r *rand.Rand) int {
		return []int{
			placeBoards + 8*r.IntN(2*4096/8), 56 + 64*r.IntN(2), placeQueue + 56 + 64*r.IntN(64),
			placeSpool + 8*r.IntN(64*4096/8), placeCombined + 8*r.IntN(2*4096/8),
		}[r.IntN(5)]
	}},
	{name: "all of a seat", seat: true, data: true, at: words(-openBytes, seatBytes/8)},
}

// garbage are the kinds of values that TestGarbage writes.
var garbage = []struct {
	name string
	word func(r *rand.Rand) uint64
}{
	{"zeros", func(*rand.Rand) uint64 { return 0 }},
	{"ones", func(*rand.Rand) uint64 { return 1<<64 - 1 }},
	{"random", func(r *rand.Rand) uint64 { return r.Uint64() | 1<<62 }},
}

// gathered checks what TestGarbage gathers, and combines it.
type gathered struct{}

func (gathered) Combine(dst []byte, all [][]byte) {
	for i := range dst {
		dst[i] = 0
		for _, b := range all {
			dst[i] += b[i]
		}
	}
}

// adding is the Worker of the Shares of TestGarbage. In one round piece i adds the i-th part of all Ins to that of each
// Out. In two rounds a member first adds its part into its Scratch, and then copies all parts.
type adding struct {
	e      transport.Endpoint
	size   int
	pieces int
	rounds int
}

func (a *adding) Piece(all []transport.Memory, round, i int) {
	for k := range all {
		if m := &all[k]; len(m.In) != a.size || len(m.Out) != a.size || len(m.Scratch) != a.size {
			a.e.Abort(fmt.Errorf("member %d lays open %d, %d and %d bytes, want %d", k, len(m.In), len(m.Out),
				len(m.Scratch), a.size))
			return
		}
	}
	from, to := a.size*i/a.pieces, a.size*(i+1)/a.pieces
	switch {
	case a.rounds == 1:
		for k := range all {
			for x := from; x < to; x++ {
				for j := range all {
					all[k].Out[x] += all[j].In[x]
				}
			}
		}
	case round == 0:
		for x := from; x < to; x++ {
			for j := range all {
				all[i].Scratch[x] += all[j].In[x]
			}
		}
	default:
		for k := range all {
			from, to := a.size*k/len(all), a.size*(k+1)/len(all)
			copy(all[i].Out[from:to], all[k].Scratch[from:to])
		}
	}
}

// garbageRounds is how many rounds a replica of TestGarbage makes, and writingFrom in which the writing begins.
const (
	garbageRounds = 40
	writingFrom   = 8
)

// garbageSize is the length of each buffer of a Share.
const garbageSize = 3000

// errWrong is that a result is not what it should be.
var errWrong = errors.New("a wrong result")

// garbageRound makes one call of each kind. The results are to be right unless loose.
func garbageRound(ctx context.Context, e *nearby, k int, group uint64, seq func() uint64, room []byte,
	loose bool) error {
	me, n := e.Rank(), e.Size()
	members := []int{0, 1, 2}
	call := func() transport.Call { return transport.Call{Group: group, Seq: seq()} }
	small := func(r int, b []byte) []byte {
		for i := range b {
			b[i] = byte(k + 10*r + i)
		}
		return b
	}
	sum := func(b []byte) []byte {
		for i := range b {
			b[i] = byte(3*(k+i) + 30)
		}
		return b
	}
	equal := func(what string, got, want []byte) error {
		if !loose && !bytes.Equal(got, want) {
			at := 0
			for at < len(got) && got[at] == want[at] {
				at++
			}
			return fmt.Errorf("%w: %s: byte %d is %d, want %d", errWrong, what, at, got[at], want[at])
		}
		return nil
	}
	for _, size := range []int{8, 100} {
		all, combined, err := e.Gather(ctx, call(), members, small(me, make([]byte, size)), size, gathered{})
		if err != nil {
			return err
		}
		if combined != nil {
			err = equal("combined", combined, sum(make([]byte, size)))
		}
		for r := range all {
			if err == nil {
				err = equal("Gather", all[r], small(r, make([]byte, size)))
			}
		}
		if err != nil {
			return err
		}
		root := (k + size) % n
		b := small(me, make([]byte, size))
		if err := e.Broadcast(ctx, call(), members, root, b); err != nil {
			return err
		}
		if err := equal("Broadcast", b, small(root, make([]byte, size))); err != nil {
			return err
		}
	}
	for _, rounds := range [][]int{{5}, {n, n}} {
		mine := transport.Memory{In: room[:garbageSize], Out: room[garbageSize : 2*garbageSize],
			Scratch: room[2*garbageSize : 3*garbageSize]}
		small(me, mine.In)
		clear(mine.Out)
		clear(mine.Scratch)
		w := &adding{e, garbageSize, rounds[0], len(rounds)}
		if err := e.Share(ctx, call(), members, mine, rounds, w); err != nil {
			return err
		}
		if err := equal(fmt.Sprintf("Share of %v", rounds), mine.Out, sum(make([]byte, garbageSize))); err != nil {
			return err
		}
	}
	return ringRoundOf(ctx, e, call())
}

// ringRoundOf passes some bytes on, in a call.
func ringRoundOf(ctx context.Context, e transport.Endpoint, c transport.Call) error {
	me, n := e.Rank(), e.Size()
	mine, theirs := make([]byte, 200), make([]byte, 200)
	for i := range mine {
		mine[i] = byte(me + i)
	}
	from := (me + n - 1) % n
	err := e.Exchange(ctx, c, []transport.Transfer{
		{Kind: transport.Send, Peer: (me + 1) % n, Buf: mine}, {Kind: transport.Recv, Peer: from, Buf: theirs},
	})
	for i := range theirs {
		if err == nil && theirs[i] != byte(from+i) {
			err = fmt.Errorf("%w: Exchange", errWrong)
		}
	}
	return err
}

// TestGarbage has a process overwrite what members of a group share, while three of them meet: once, or again and
// again. All calls return, with an error or with what is right. None waits for its context. What is overwritten by what
// a member may have written is not looked for.
//
//	go test ./transport/tcp -run TestGarbage -garbage 5    // 225 of them, three minutes
func TestGarbage(t *testing.T) {
	for i, target := range garbageTargets {
		for k, kind := range garbage {
			if *garbageSeeds == 0 && k > 0 && i%3 != k {
				continue
			}
			for seed := range max(*garbageSeeds, 1) {
				t.Run(fmt.Sprintf("%s/%s/seed=%d", target.name, kind.name, seed), func(t *testing.T) {
					t.Parallel()
					testGarbage(t, target, kind.word, uint64(seed))
				})
			}
		}
	}
}

func testGarbage(t *testing.T, target garbageTarget, value func(*rand.Rand) uint64, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 7))
	eps, all := meshes(t, 3, Config{Crowded: r.IntN(2) == 0})
	victim := r.IntN(2) * r.IntN(3) // the first one has the hall
	again := r.IntN(2) == 0
	// Another process has the memory at other addresses.
	own := all[victim].shm.own
	memory, err := unix.Mmap(own.FD(), 0, len(own.Memory()), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(memory)
	var rooms [3][]byte
	for i, e := range eps {
		rooms[i] = openedBytes(t, e, 3*garbageSize)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var working, writing sync.WaitGroup
	var over atomic.Bool
	first := writingFrom + r.IntN(10)
	for i, e := range eps {
		working.Go(func() {
			var err error
			seqs := map[uint64]uint64{}
			for k := 0; k < garbageRounds && err == nil; k++ {
				group := uint64(1)
				on := e
				if target.news && k > first {
					group = uint64(k)
					if k%4 == 0 {
						on, err = e.Dup(ctx)
					}
				}
				if err == nil {
					near := on.(*nearby)
					next := func() uint64 { seqs[group]++; return seqs[group] }
					err = garbageRound(ctx, near, k, group, next, rooms[i], target.data)
				}
				if k == first && i == victim && err == nil {
					from := 0
					if target.seat {
						seats := e.(*nearby).visits[1].seats
						block := uintptr(unsafe.Pointer(&seats[victim][0]))
						from = openBytes + int(block-uintptr(unsafe.Pointer(&own.Memory()[0])))
					}
					writing.Go(func() {
						for more := true; more && !over.Load(); more = again {
							at := from + target.at(r)
							for k := range 1 + r.IntN(max(target.run, 1)) {
								word := (*atomic.Uint64)(unsafe.Pointer(&memory[at+8*k]))
								word.Store(value(r))
							}
							time.Sleep(100 * time.Microsecond) // the replicas want the processors
						}
					})
				}
				if err == nil && on != e {
					err = on.Close()
				}
			}
			switch {
			case errors.Is(err, errWrong), errors.Is(err, context.DeadlineExceeded):
				t.Errorf("replica %d, victim %d, again %v: %v", i, victim, again, err)
			case err != nil:
				t.Logf("replica %d: %.300v", i, err)
			}
			if err != nil {
				e.Abort(err)
			}
		})
	}
	working.Wait()
	over.Store(true)
	writing.Wait()
	for _, e := range eps {
		working.Go(func() { e.Close() })
	}
	working.Wait()
}
