package tcp

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gogcl.dev/internal/certificates"
	"gogcl.dev/internal/leaktest"
	"gogcl.dev/transport"
)

// sharing returns a function that makes one Share over a group of all, number by number, and checks the results. room
// is memory that is open, of at least 3,000 bytes.
func sharing(e *nearby, group uint64, room []byte) func(ctx context.Context) error {
	const size = 1000
	mine := transport.Memory{In: room[:size], Out: room[size : 2*size], Scratch: room[2*size : 3*size]}
	members := make([]int, e.Size())
	for r := range members {
		members[r] = r
	}
	seq := uint64(0)
	want := make([]byte, size)
	return func(ctx context.Context) error {
		seq++
		for i := range size {
			mine.In[i] = byte(int(seq) + i + e.Rank())
			want[i] = byte(e.Size()*(int(seq)+i) + e.Size()*(e.Size()-1)/2)
		}
		clear(mine.Out)
		err := e.Share(ctx, transport.Call{Group: group, Seq: seq}, members, mine, []int{4}, &adding{e, size, 4, 1})
		if err == nil && !bytes.Equal(mine.Out, want) {
			err = fmt.Errorf("Share %d: %d, want %d", seq, mine.Out[:5], want[:5])
		}
		return err
	}
}

// entries counts the keys in the directory of a replica's segment.
func entries(m *mesh) (n int) {
	directory := m.shm.own.Memory()[4096 : 4096+512<<10]
	for ; len(directory) > 0; directory = directory[16:] {
		if binary.NativeEndian.Uint64(directory) != 0 {
			n++
		}
	}
	return n
}

// given waits until the seats and the rings of lanes that both replicas have closed are given back: the word that the
// other one has left comes when its control connection is read.
func given(ctx context.Context, m *mesh) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	for entries(m) > 3 {
		if ctx.Err() != nil {
			return fmt.Errorf("the directory has %d entries: %w", entries(m), ctx.Err())
		}
		runtime.Gosched()
	}
	return nil
}

// TestManySeats has lanes made, met on and closed, in turn: the seats of a lane that is closed are given back, so the
// memory of none grows, nor its directory.
func TestManySeats(t *testing.T) {
	leaktest.Check(t)
	times := 2000
	if testing.Short() {
		times = 300
	}
	eps, all := meshes(t, 2, Config{})
	rooms := [2][]byte{openedBytes(t, eps[0], 3000), openedBytes(t, eps[1], 3000)}
	round := func(n int) {
		together(t, eps, func(e *nearby) error {
			for k := range n {
				d, err := e.Dup(t.Context())
				if err != nil {
					return fmt.Errorf("lane %d: %w", k, err)
				}
				group := uint64(k%3 + 1)
				call := transport.Call{Group: group, Seq: 1}
				_, _, err = d.(*nearby).Gather(t.Context(), call, []int{0, 1}, []byte{1}, 1, nil)
				if err == nil {
					err = sharing(d.(*nearby), group+10, rooms[e.Rank()])(t.Context())
				}
				if err = errors.Join(err, d.Close()); err != nil {
					return fmt.Errorf("lane %d: %w", k, err)
				}
				if k%50 == 49 || k == n-1 {
					if err := given(t.Context(), e.generation.mesh); err != nil {
						return err
					}
				}
			}
			return nil
		})
	}
	type uses struct{ files, entries, blocks int }
	use := func(m *mesh) uses {
		var stat unix.Stat_t
		if err := unix.Fstat(m.shm.own.FD(), &stat); err != nil {
			t.Fatal(err)
		}
		return uses{openFiles(t), entries(m), int(stat.Blocks)}
	}
	round(times / 20)
	before := []uses{use(all[0]), use(all[1])}
	round(times)
	for i, m := range all {
		// A page of the directory is used once a key falls into it: 128 of them.
		after := use(m)
		if after.files > before[i].files || after.entries > before[i].entries+2 ||
			after.blocks > before[i].blocks+512<<10/512+64 {
			t.Errorf("replica %d uses %+v, before %+v", i, after, before[i])
		}
	}
	closeTogether(t, eps)
}

// TestOpenWhileSharing has pages opened and shut, on one lane, while calls share memory on another.
func TestOpenWhileSharing(t *testing.T) {
	leaktest.Check(t)
	const times = 200
	eps, _ := meshes(t, 3, Config{})
	var rooms [3][]byte
	for i, e := range eps {
		rooms[i] = openedBytes(t, e, 3000)
	}
	together(t, eps, func(e *nearby) error {
		d, err := e.Dup(t.Context())
		if err != nil {
			return err
		}
		var sharingEnds sync.WaitGroup
		var failed error
		sharingEnds.Go(func() {
			share := sharing(d.(*nearby), 1, rooms[e.Rank()])
			for k := 0; k < times && failed == nil; k++ {
				failed = share(t.Context())
			}
		})
		for k := range times {
			var pages []byte
			if pages, err = openBytesOf(e, (1+k%3)*os.Getpagesize()); err != nil {
				break
			}
			pages[0] = 1
			e.ShutPages(pages)
		}
		sharingEnds.Wait()
		return errors.Join(err, failed, d.Close())
	})
	closeTogether(t, eps)
}

// TestPagesFull: where a replica has no room for pages left its memory stays ordinary, Share says so to all, and the
// call goes by rings.
func TestPagesFull(t *testing.T) {
	leaktest.Check(t)
	eps, _ := meshes(t, 3, Config{})
	members := []int{0, 1, 2}
	var rooms [3][]byte
	for i, e := range eps {
		rooms[i] = openedBytes(t, e, 3000)
	}
	for n := 1 << 20; n >= os.Getpagesize(); n /= 2 {
		for err := error(nil); err == nil; {
			var pages []byte
			if pages, err = openBytesOf(eps[1], n); err == nil {
				t.Cleanup(func() { eps[1].(transport.Opener).ShutPages(pages) })
			}
		}
	}
	together(t, eps, func(e *nearby) error {
		mine := rooms[e.Rank()]
		if e.Rank() == 1 {
			b, err := openBytesOf(e, 3000)
			if err == nil || !strings.Contains(err.Error(), "has no room for") {
				return fmt.Errorf("more pages than there are: %v", err)
			}
			mine = b
		}
		const size = 1000
		call := transport.Call{Group: 1, Seq: 1}
		memory := transport.Memory{In: mine[:size], Out: mine[size : 2*size], Scratch: mine[2*size : 3*size]}
		err := e.Share(t.Context(), call, members, memory, []int{4}, &adding{e, size, 4, 1})
		if err != transport.ErrNotShared {
			return fmt.Errorf("%w, want ErrNotShared", err)
		}
		if err := ringRoundOf(t.Context(), e, call); err != nil {
			return err
		}
		return sharing(e, 2, rooms[e.Rank()])(t.Context())
	})
	closeTogether(t, eps)
}

// TestLostNumber: a member whose seat has been overwritten finds that where it waits for something else.
func TestLostNumber(t *testing.T) {
	for name, wait := range map[string]func(ctx context.Context, e *nearby) error{
		"message": func(ctx context.Context, e *nearby) error {
			return e.Exchange(ctx, transport.Call{Group: 2, Seq: 1},
				[]transport.Transfer{{Kind: transport.Recv, Peer: 1, Buf: make([]byte, 8)}})
		},
		"meeting": func(ctx context.Context, e *nearby) error {
			_, _, err := e.Gather(ctx, transport.Call{Group: 2, Seq: 1}, []int{0, 1}, nil, 8, nil)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			leaktest.Check(t)
			eps, _ := meshes(t, 2, Config{})
			together(t, eps, func(e *nearby) error {
				_, _, err := e.Gather(t.Context(), transport.Call{Group: 1, Seq: 1}, []int{0, 1}, nil, 8, nil)
				return err
			})
			e := eps[0].(*nearby)
			clear(e.visits[1].seats[0][openBytes : openBytes+placeBoards])
			err := wait(t.Context(), e)
			if err == nil || !strings.Contains(err.Error(), "a process has overwritten it") {
				t.Errorf("%v, want that it is overwritten", err)
			}
			closeTogether(t, eps)
		})
	}
}

// TestShmTLS: a replica that is to share memory and has TLS is refused before it meets others.
func TestShmTLS(t *testing.T) {
	leaktest.Check(t)
	config := certificates.New(t).Config()
	for kind, where := range places(t) {
		_, errs := joinAll(t, 2, where, func(c *Config, m *Meeting) { c.Network, c.TLS = Shm, config })
		for r, err := range errs {
			if err == nil || !strings.Contains(err.Error(), `network "shm" with TLS: memory is not encrypted`) {
				t.Errorf("%s: replica %d: %v", kind, r, err)
			}
		}
	}
	c := Config{Size: 2, Network: Auto, TLS: &tls.Config{}}
	if err := c.check(); err == nil || strings.Contains(err.Error(), "memory") {
		t.Error(err)
	}
}
