package main

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"gogcl.dev/gcl"
)

// victim is what has the event of a plan happen in the victim's process.
type victim struct {
	p      *plan
	own    error
	comm   *gcl.Comm
	cancel func()

	struck  atomic.Bool // the event of an operator has happened
	calls   atomic.Int64
	stop    chan struct{} // closed when garbage is to be written no more
	writing sync.WaitGroup
}

func newVictim(p *plan, own error) *victim {
	return &victim{p: p, own: own, stop: make(chan struct{})}
}

// begin is told of each step before it begins. The error is what the function of RunProcess is to return.
func (v *victim) begin(k int) error {
	fmt.Println(atLine, k)
	p := v.p
	switch {
	case p.moment == joining:
		return nil
	case p.moment == closing:
		return nil
	case p.moment == inPiece && k == p.at:
		f := func() {
			if v.calls.Add(1) > int64(p.calls) && !v.struck.Swap(true) {
				v.strikeNow()
			}
		}
		inOperator.Store(&f)
		return nil
	case p.moment == inPiece:
		// Others may have done all of the step that there was to combine.
		if k > p.at && !v.struck.Swap(true) {
			v.strikeNow()
		}
		return nil
	case k != p.at:
		return nil
	}
	switch p.event {
	case nothing:
	case delay:
		time.Sleep(p.length)
	case failed:
		return v.own
	case panics:
		panic(v.own)
	case garbage:
		v.writing.Go(func() {
			time.Sleep(p.after)
			v.scribble()
		})
	default:
		go v.strike()
	}
	return nil
}

// strike has the event happen a while after its moment has begun.
func (v *victim) strike() {
	time.Sleep(v.p.after)
	v.strikeNow()
}

func (v *victim) strikeNow() {
	switch v.p.event {
	case abort:
		v.comm.Abort(v.own)
	case cancel:
		v.cancel()
	case crash:
		panic(v.own)
	case exit:
		os.Exit(0)
	case pause, silence:
		fmt.Println(stopLine)
		raiseStop()
	case kill:
		raiseKill()
	case reset:
		resetOne(v.p.seed)
	}
}

// rest is called when the function of RunProcess ends: what is of the process is there no longer after it.
func (v *victim) rest() {
	close(v.stop)
	v.writing.Wait()
}

// The layout of a segment of shared memory, as far as garbage is written there with an aim: package segment.
const (
	directoryAt, directoryEnd = 4 << 10, 4<<10 + 512<<10
	blocksAt                  = 1 << 20
)

// scribble writes garbage over the shared memory of all replicas, for the length of the event: headers, directories,
// and the beginnings of blocks, which are lanes, rings and seats. It leaves out what Alloc has given.
func (v *victim) scribble() {
	memory, err := openMemory()
	if err != nil {
		return
	}
	defer memory.Close()
	r := rand.New(rand.NewPCG(v.p.seed, 16))
	all := segments()
	if len(all) == 0 {
		return
	}
	word := func(at int64) uint64 {
		var b [8]byte
		memory.ReadAt(b[:], at)
		return binary.NativeEndian.Uint64(b[:])
	}
	aim, most := r.IntN(5), 1+r.IntN(1<<r.IntN(12))
	end := time.Now().Add(v.p.length)
	for range most {
		select {
		case <-v.stop:
			return
		default:
		}
		if time.Now().After(end) {
			return
		}
		segment := all[r.IntN(len(all))]
		var blocks []int64
		for i := int64(directoryAt); i < directoryEnd && aim >= 2; i += 4096 {
			var page [4096]byte
			memory.ReadAt(page[:], segment+i)
			for k := 0; k < len(page); k += 16 {
				offset := int64(binary.NativeEndian.Uint64(page[k+8:]))
				if binary.NativeEndian.Uint64(page[k:]) != 0 && offset >= blocksAt && offset < 1<<30 {
					blocks = append(blocks, offset)
				}
			}
		}
		for range 16 {
			at := 8 * r.Int64N(160)
			switch {
			case aim == 0: // header
			case aim == 1 || len(blocks) == 0:
				at = directoryAt + 8*r.Int64N((directoryEnd-directoryAt)/8)
			default:
				at = blocks[r.IntN(len(blocks))]
				// Offset lists and words of rings are at the beginning; a Place follows after a page.
				at += []int64{8 * r.Int64N(16), 8 * r.Int64N(512), 4096 + 8*r.Int64N(512),
					8 * r.Int64N(32<<10)}[r.IntN(4)]
			}
			at += segment
			var b [64]byte
			n := 8
			switch x := word(at); r.IntN(6) {
			case 0:
				binary.NativeEndian.PutUint64(b[:], x+1)
			case 1:
				binary.NativeEndian.PutUint64(b[:], x-1)
			case 2:
				binary.NativeEndian.PutUint64(b[:], x^1<<r.IntN(64))
			case 3:
				binary.NativeEndian.PutUint64(b[:], 0)
			case 4:
				binary.NativeEndian.PutUint64(b[:], r.Uint64()>>r.IntN(64))
			case 5:
				for n = range b {
					b[n] = byte(r.Uint32())
				}
			}
			memory.WriteAt(b[:n], at)
		}
	}
}
