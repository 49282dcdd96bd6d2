package faulty

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// ErrInjected is the error of a send that FailSend lets fail.
var ErrInjected = errors.New("injected fault")

// Fault is one line of the script.
type Fault struct {
	kind       kind
	rank, peer int
	at         int           // how many Exchanges, or sends, of the replica go well before
	by         time.Duration // Delay, Slow
}

type kind uint8

const (
	delay kind = iota + 1
	slow
	drop
	failSend
	cut
	corrupt
	hide
)

// Delay has every Exchange of every replica begin late, by random times below max.
func Delay(max time.Duration) Fault { return Fault{kind: delay, by: max} }

// Slow has every Exchange of one replica begin late, always by the same time.
func Slow(rank int, by time.Duration) Fault { return Fault{kind: slow, rank: rank, by: by} }

// Drop lets a replica carry out some Exchanges and then answer no more: it neither sends nor takes anything, and its
// Exchange returns only when its context is done, when it is closed, or when the others have aborted. It tells nobody.
func Drop(rank, after int) Fault { return Fault{kind: drop, rank: rank, at: after} }

// FailSend lets the k-th send of a replica fail with ErrInjected, and the Exchange that it belongs to.
func FailSend(rank, k int) Fault { return Fault{kind: failSend, rank: rank, at: k} }

// Cut stops all messages between two replicas, in both directions, once the one that sends or receives has carried out
// some Exchanges. Their other messages get through; but an Exchange that waits for a message that was cut does not end
// by itself.
func Cut(a, b, after int) Fault { return Fault{kind: cut, rank: a, peer: b, at: after} }

// Corrupt changes the Call of the k-th Exchange of a replica.
func Corrupt(rank, k int) Fault { return Fault{kind: corrupt, rank: rank, at: k} }

// Hide has the buffers of the k-th Share of a replica lie where they cannot be laid open to others: all its members get
// transport.ErrNotShared. It is for WrapMemory; the members then tell each other before each Share, by a Gather.
func Hide(rank, k int) Fault { return Fault{kind: hide, rank: rank, at: k} }

// Random picks a fault that breaks something: Drop, FailSend, Cut or Corrupt, on some of n >= 2 replicas, within the
// first exchanges Exchanges (or sends). Of fewer than 2 replicas there is none: it is the zero Fault, which Wrap
// refuses.
func Random(seed uint64, n, exchanges int) Fault {
	if n < 2 {
		return Fault{}
	}
	r := rand.New(rand.NewPCG(seed, 0xfa17))
	f := Fault{kind: drop + kind(r.IntN(4)), rank: r.IntN(n), at: r.IntN(max(exchanges, 1))}
	if f.kind == cut {
		f.peer = (f.rank + 1 + r.IntN(n-1)) % n
	}
	return f
}

// String returns the fault as it is written in Go.
func (f Fault) String() string {
	switch f.kind {
	case delay:
		return fmt.Sprintf("faulty.Delay(%v)", f.by)
	case slow:
		return fmt.Sprintf("faulty.Slow(%d, %v)", f.rank, f.by)
	case drop:
		return fmt.Sprintf("faulty.Drop(%d, %d)", f.rank, f.at)
	case failSend:
		return fmt.Sprintf("faulty.FailSend(%d, %d)", f.rank, f.at)
	case cut:
		return fmt.Sprintf("faulty.Cut(%d, %d, %d)", f.rank, f.peer, f.at)
	case corrupt:
		return fmt.Sprintf("faulty.Corrupt(%d, %d)", f.rank, f.at)
	case hide:
		return fmt.Sprintf("faulty.Hide(%d, %d)", f.rank, f.at)
	}
	return "faulty.Fault{}"
}

// check says what is wrong with a fault for n replicas.
func (f Fault) check(n int) error {
	switch {
	case f.kind == 0:
		return errors.New("faulty: a Fault that does nothing")
	case f.by < 0 || f.at < 0:
		return fmt.Errorf("faulty: %v: a negative time or count", f)
	case f.rank < 0 || f.rank >= n || f.peer < 0 || f.peer >= n:
		return fmt.Errorf("faulty: %v: no such replica among %d", f, n)
	case f.kind == cut && f.rank == f.peer:
		return fmt.Errorf("faulty: %v: a replica cannot be cut from itself", f)
	}
	return nil
}

// between reports whether the fault stops messages between two replicas.
func (f Fault) between(a, b int) bool {
	return f.kind == cut && (f.rank == a && f.peer == b || f.rank == b && f.peer == a)
}
