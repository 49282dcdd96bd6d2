//go:build mpi

package mpi

// #cgo noescape native_poll
// #cgo nocallback native_poll
// #include <stdlib.h>
// #include "native.h"
import "C"

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"runtime"
	"slices"
	"sync/atomic"
	"time"
	"unsafe"

	"gogcl.dev/methods/schedule"
	"gogcl.dev/transport"
)

// stagedBytes is up to which length of the longer buffer a collective goes from and into memory of C. It is then posted
// together with the agreement, which costs less than two copies: if the members do not agree, that memory is lost, and
// nothing else has been touched. A longer one is posted when the members have agreed.
const stagedBytes = 2 << 10

// Accepts implements transport.Native. MPI counts elements in ints of C.
func (e *endpoint) Accepts(c transport.NativeCollective) error {
	if size := c.DType.Size(); size > 0 && c.Bytes/size > math.MaxInt32 {
		return fmt.Errorf("mpi: %v of %d elements, and MPI counts up to %d: %w", c, c.Bytes/size, math.MaxInt32,
			errors.ErrUnsupported)
	}
	return nil
}

// Agreement implements transport.Native: each round reaches twice as far.
func (e *endpoint) Agreement(n int) int { return bits.Len(uint(max(n-1, 0))) }

// groupKey is a group on a lane.
type groupKey struct{ lane, group uint64 }

// group is the collectives of MPI for one group on one lane.
type group struct {
	c       *C.native
	staging unsafe.Pointer // for two buffers
	who     uint64         // the members, mixed
	entered uint64         // long calls that this replica has begun. Guarded by the world's mu
}

// poll goes on with the call.
func (g *group) poll(limit time.Duration, yields bool) int {
	return int(C.native_poll(C.uintptr_t(uintptr(unsafe.Pointer(g.c))), C.int64_t(limit), flag(yields)))
}

// nativeCall is the call of a lane that MPI carries out: a stream.Work.
type nativeCall struct {
	calling  atomic.Bool // what follows is in use
	world    *world
	key      groupKey // of group, which was the last
	group    *group
	rank     int // in it
	call     transport.Call
	members  []int
	c        transport.NativeCollective
	dst, src []byte
	pins     [2]runtime.Pinner
	began    time.Time
}

// Collective implements transport.Native.
func (e *endpoint) Collective(ctx context.Context, call transport.Call, members []int, c transport.NativeCollective,
	dst, src []byte) error {
	if err := c.Check(e.Rank(), members, dst, src); err != nil {
		return err
	}
	if err := e.Accepts(c); err != nil {
		return err
	}
	n := &e.native
	if !n.calling.CompareAndSwap(false, true) {
		return &transport.RoundError{Replica: e.Rank(), Round: call.Round, Peer: -1, Err: transport.ErrBusy}
	}
	defer n.calling.Store(false)
	n.call, n.members, n.c, n.dst, n.src = call, members, c, dst, src
	begun := false // others wait for this replica
	if key := (groupKey{e.Number(), call.Group}); n.group == nil || n.key != key {
		n.world, n.key, n.rank = e.world, key, slices.Index(members, e.Rank())
		e.world.mu.Lock()
		n.group = e.world.groups[key]
		e.world.mu.Unlock()
		if n.group == nil {
			if err := e.makeGroup(ctx, n); err != nil {
				return err
			}
			begun = true
		}
	}
	err := e.Engage(ctx, call, members, n)
	for begun && errors.Is(err, transport.ErrBusy) {
		runtime.Gosched()
		err = e.Engage(ctx, call, members, n)
	}
	n.members, n.dst, n.src = nil, nil, nil
	return err
}

// makeGroup makes the communicator of a group. MPI_Comm_create_group waits for all members, and nothing ends it. So the
// members first see, by messages, that all of them are in the call. What a member has told may be seen after it has
// failed. So one that fails meanwhile finds out whether another has seen all: then it takes part, and the call fails
// afterwards.
func (e *endpoint) makeGroup(ctx context.Context, n *nativeCall) error {
	w := e.world
	w.threads.Add(1)
	defer w.threads.Add(-1)
	failed := e.meet(ctx, n)
	if failed == nil {
		if failed = w.enterGroup(n.key); failed != nil {
			failed = e.Fail(n.call, -1, failed)
		}
	}
	if failed != nil && (w.node.Err() == nil || !w.mustMake(n)) { // without an abort nothing has been told
		return failed
	}
	g, err := w.newGroup(n)
	if failed != nil {
		return failed
	}
	if err != nil {
		return e.Fail(n.call, -1, err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.groups[n.key], n.group = g, g
	return nil
}

// enterGroup notes that this replica makes the communicator of a group. It does not after an abort, or when it has
// left: then others have been told so.
func (w *world) enterGroup(key groupKey) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.node.Err(); err != nil {
		return err
	}
	if w.left.Load() {
		return &transport.ClosedError{Replica: w.rank}
	}
	w.making[key] = true
	return nil
}

// meet returns nil when all members have called it, with the same members in the same order. Like the agreement on a
// call it tells AND and OR of numbers, which are equal if all are. An error from which on others may have
// heard of this replica is an abort. Another call may have the endpoint in front of the first message, and is waited
// for in front of the others.
func (e *endpoint) meet(ctx context.Context, n *nativeCall) error {
	size := len(n.members)
	who := mixed(n.members)
	all, any := who, who
	var out, in [16]byte
	for reach := 1; reach < size; reach *= 2 {
		peer := n.members[(n.rank+size-reach)%size]
		binary.LittleEndian.PutUint64(out[:], all)
		binary.LittleEndian.PutUint64(out[8:], any)
		transfers := []transport.Transfer{
			{Peer: n.members[(n.rank+reach)%size], Kind: transport.Send, Buf: out[:]},
			{Peer: peer, Kind: transport.Recv, Buf: in[:]},
		}
		err := e.Exchange(ctx, n.call, transfers)
		for reach > 1 && errors.Is(err, transport.ErrBusy) {
			runtime.Gosched()
			err = e.Exchange(ctx, n.call, transfers)
		}
		if err != nil && reach > 1 && e.world.node.Err() == nil { // the endpoint has been closed between two messages
			err = e.Fail(n.call, -1, err)
		}
		if err != nil {
			return err
		}
		all &= binary.LittleEndian.Uint64(in[:])
		any |= binary.LittleEndian.Uint64(in[8:])
		if all != any {
			mine, theirs := n.call, n.call
			mine.Digest, theirs.Digest = who, binary.LittleEndian.Uint64(in[:])
			return e.Fail(n.call, peer,
				&transport.MismatchError{Replica: e.Rank(), Peer: peer, Mine: mine, Theirs: theirs})
		}
	}
	return nil
}

// mixed is a number that stands for members in their order.
func mixed(members []int) (who uint64) {
	for _, r := range members {
		who = mix(who ^ uint64(r))
	}
	return who
}

// mustMake reports, after an abort, whether another member makes the communicator. Then this one does too.
func (w *world) mustMake(n *nativeCall) bool {
	q := w.ask(n, 0)
	for began := time.Now(); ; rest(began) {
		w.hear()
		begun, never := q.answers()
		if begun > 0 {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.making[n.key] = true
			return true
		}
		if never == len(n.members)-1 {
			return false
		}
	}
}

// newGroup makes the communicator. All members call it.
func (w *world) newGroup(n *nativeCall) (*group, error) {
	g := &group{who: mixed(n.members)}
	ids := make([]C.int, len(n.members))
	for i, r := range n.members {
		ids[i] = C.int(r)
	}
	// Open MPI makes it by messages with this tag. Those of data may be received to be dropped, after an abort, and
	// control has the lower half of the tags for jobs.
	half := uint64(w.tags)
	tag := C.int(half + 1 + mix(n.key.lane^mix(n.key.group))%half)
	if err := check(C.native_new(w.c.control, &ids[0], C.int(len(ids)), tag, &g.c)); err != nil {
		return nil, err
	}
	if g.staging = C.aligned_alloc(64, 2*stagedBytes); g.staging == nil {
		return nil, errNoMemory
	}
	return g, nil
}

// Begin implements stream.Work.
func (n *nativeCall) Begin() error {
	g, c := n.group.c, &n.c
	n.began = time.Time{}
	dst, src, inPlace := n.dst, n.src, sameMemory(n.dst, n.src)
	staged := c.Bytes <= stagedBytes
	if staged {
		dst, src, inPlace = n.staged(0, len(n.dst)), n.staged(stagedBytes, len(n.src)), false
		copy(src, n.src)
	} else {
		if err := n.enter(); err != nil {
			return err
		}
		if len(dst) > 0 {
			n.pins[0].Pin(unsafe.SliceData(dst))
		}
		if len(src) > 0 {
			n.pins[1].Pin(unsafe.SliceData(src))
		}
	}
	part := c.Bytes
	if c.Collective.Contract().PerRank() {
		part /= c.Size
	}
	g.kind, g.operation, g.element, g.root = C.int(c.Collective), C.int(c.Operator), C.int(c.DType), C.int(c.Root)
	g.count = C.int64_t(part / c.DType.Size())
	g.dst, g.src, g.in_place, g.staged = address(dst), address(src), flag(inPlace), flag(staged)
	n.sign()
	g.fresh = 1
	return nil
}

// enter counts a call that Halt may have to see through, unless there is an abort. What others ask after an abort is
// answered by the count, so the two exclude each other.
func (n *nativeCall) enter() error {
	n.world.mu.Lock()
	defer n.world.mu.Unlock()
	if err := n.world.node.Err(); err != nil {
		return err
	}
	n.group.entered++
	return nil
}

// staged is memory of C for a buffer.
func (n *nativeCall) staged(at, length int) []byte {
	return unsafe.Slice((*byte)(unsafe.Add(n.group.staging, at)), length)
}

// sameMemory reports whether one of two buffers lies in the other.
func sameMemory(a, b []byte) bool {
	if len(a) == 0 || len(b) == 0 {
		return false
	}
	p, q := address(a), address(b)
	return p <= q && q < p+C.uintptr_t(len(a)) || q <= p && p < q+C.uintptr_t(len(b))
}

func flag(b bool) C.int {
	if b {
		return 1
	}
	return 0
}

// record is what the members must agree on, of one that has told another.
func record(a *C.agreement) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(&a.record)), C.RECORD_BYTES)
}

// sign writes down what the members must agree on, and its fingerprint.
func (n *nativeCall) sign() {
	c, mine := &n.c, &n.group.c.mine[0]
	b := transport.AppendCall(record(mine)[:0], n.call)
	b = append(b, byte(c.Collective), byte(c.Operator), byte(c.DType))
	b = binary.LittleEndian.AppendUint32(b, uint32(c.Root))
	b = binary.LittleEndian.AppendUint32(b, uint32(c.Size))
	b = binary.LittleEndian.AppendUint64(b, uint64(c.Bytes))
	binary.LittleEndian.AppendUint64(b, n.group.who)
	h := C.uint64_t(fingerprint(record(mine)))
	mine.all, mine.any = h, h
}

// fingerprint mixes a record into 64 bits, as wyhash does, by products of 128 bits.
func fingerprint(record []byte) (h uint64) {
	for ; len(record) >= 16; record = record[16:] {
		high, low := bits.Mul64(binary.LittleEndian.Uint64(record)^0xa0761d6478bd642f^h,
			binary.LittleEndian.Uint64(record[8:])^0xe7037ed1a0b428db)
		h = high ^ low
	}
	return mix(h)
}

// mix is the mixture of SplitMix64.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// Poll implements stream.Work.
func (n *nativeCall) Poll(limit time.Duration) (bool, error) {
	g := n.group.c
	switch n.group.poll(limit, n.world.crowded) {
	case 1:
		switch {
		case n.c.Collective == schedule.Broadcast && n.rank == n.c.Root: // MPI has no dst there
			copy(n.dst, n.src)
		case g.staged != 0:
			copy(n.dst, n.staged(0, len(n.dst)))
		}
		n.unpin()
		return true, nil
	case 2:
		if err := n.difference(); err != nil {
			return false, err
		}
		rest(n.began) // until one that sees the difference aborts
	case -1:
		return false, mpiError(g.over)
	}
	n.world.hear()
	// A collective that all have begun moves, and does so only where it is asked.
	after := restAfter
	if n.Agreed() {
		after = restMoving
	}
	if n.began.IsZero() {
		n.began = time.Now()
	} else if time.Since(n.began) > after {
		rest(n.began)
	}
	return false, nil
}

// unpin lets go of the buffers, if the call is not staged.
func (n *nativeCall) unpin() {
	if n.group.c.staged != 0 {
		return
	}
	n.pins[0].Unpin()
	n.pins[1].Unpin()
}

// difference is the mismatch with a member that has told this one of another call, or nil.
func (n *nativeCall) difference() error {
	g, size := n.group.c, len(n.members)
	for k := range int(g.rounds) {
		theirs := record(&g.theirs[k])
		if bytes.Equal(theirs, record(&g.mine[0])) {
			continue
		}
		peer := n.members[(n.rank+size-1<<k)%size]
		call, own := transport.ParseCall(theirs), n.call
		if call == own { // the collectives differ
			own.Digest ^= fingerprint(record(&g.mine[0]))
			call.Digest ^= fingerprint(theirs)
		}
		return &transport.MismatchError{Replica: n.world.rank, Peer: peer, Mine: own, Theirs: call}
	}
	return nil
}

// Agreed implements stream.Work.
func (n *nativeCall) Agreed() bool { return n.group.c.agreed != 0 }

// Halt implements stream.Work. MPI cannot take back a collective. So a replica that fails before the members have
// agreed finds out whether they still can: if all have begun the call, each will post the collective, and this one has
// to as well. It asks them all; one that has not begun the call never will, since the abort has come to it before.
func (n *nativeCall) Halt() {
	g := n.group.c
	defer n.unpin()
	if g.staged != 0 { // the memory is lost
		return
	}
	var q *question
	if g.agreed == 0 {
		q = n.world.ask(n, n.group.entered)
	}
	for began := time.Now(); ; rest(began) {
		if n.group.poll(parkLook, true) != 0 {
			return
		}
		if q != nil && g.agreed == 0 {
			if _, never := q.answers(); never > 0 {
				return
			}
		}
		n.world.hear()
	}
}

// freeGroups frees the communicators of all groups, in the same order on all replicas.
func (w *world) freeGroups() {
	keys := make([]groupKey, 0, len(w.groups))
	for k := range w.groups {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b groupKey) int {
		return cmp.Or(cmp.Compare(a.lane, b.lane), cmp.Compare(a.group, b.group))
	})
	for _, k := range keys {
		C.free(w.groups[k].staging)
		C.native_free(w.groups[k].c)
	}
}
