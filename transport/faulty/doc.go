// Package faulty wraps the endpoints of any transport and makes them fail, to a script.
//
//	eps, err := inproc.New(4)
//	...
//	eps, err = faulty.Wrap(eps, seed, faulty.Drop(2, 10), faulty.Delay(time.Millisecond))
//
// Replica 2 now answers no more after ten Exchanges, and everybody is late by up to a millisecond each time.
//
//	fault               strikes                              what its victims see
//	Delay(max)          every Exchange                       nothing but time
//	Slow(rank, by)      every Exchange of one replica        nothing but time
//	Drop(rank, after)   one replica, for good                silence: only a context or an abort ends the wait
//	FailSend(rank, k)   one send                             ErrInjected, on all replicas
//	Cut(a, b, after)    all messages between two, for good   silence, between the two
//	Corrupt(rank, k)    the Call of one Exchange             a *transport.MismatchError
//	Hide(rank, k)       the buffers of one Share             transport.ErrNotShared, on all members
//
// Exchanges and sends are counted per replica, over all its lanes, from 0. Nothing depends on anything but the script,
// the seed and those counts, so a run with one lane per replica fails in the same place every time.
//
// Endpoints from Wrap offer messages only, whatever those inside do. Those from [WrapMemory] offer peer memory and
// boards as well, those from [WrapNative] [transport.Native], and faults strike these calls like an Exchange; but none
// of them is a send. All offer [transport.Linked], and say what the endpoints inside say; nothing is known if those do
// not offer it. Wrapped with no fault endpoints otherwise behave like those inside.
package faulty
