//go:build mpi

package mpi

// #include <stdlib.h>
// #include "native.h"
import "C"

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"gogcl.dev/transport"
	"gogcl.dev/transport/internal/hosts"
	"gogcl.dev/transport/internal/stream"
)

// spin is how long a lane asks MPI for progress before it parks: as package tcp's.
const spin = 500 * time.Microsecond

// abortedLimit is how long Close waits for the others to leave before it finalizes MPI, after an abort.
const abortedLimit = 10 * time.Second

// The links, as gclperf shows them on the machine of docs/design/performance.md. A network is taken for one of 100
// Gbit/s.
var (
	localLink   = transport.Link{Class: transport.EngineLink, Transport: "mpi", Latency: 1000, BytesPerSecond: 5e9}
	networkLink = transport.Link{Class: transport.NetworkLink, Transport: "mpi", Latency: 3000, BytesPerSecond: 11e9}
)

// library is MPI in this process.
var library struct {
	mu       sync.Mutex
	main     chan func() // runs what is sent on the thread that has initialized MPI
	text     string
	err      error
	worlds   sync.WaitGroup
	finished bool
	up       atomic.Bool // initialized, and not finished
}

// Library says which MPI library the program runs with, once Join has been called.
func Library() string {
	library.mu.Lock()
	defer library.mu.Unlock()
	return library.text
}

// initialize initializes MPI, once. The thread that does it stays, since MPI is to be finalized on it.
func initialize() error {
	library.mu.Lock()
	defer library.mu.Unlock()
	if library.finished {
		return errors.New("mpi: MPI has been finalized in this process, and can be initialized only once")
	}
	if library.main != nil {
		return library.err
	}
	library.main = make(chan func())
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		done <- start()
		for f := range library.main {
			f()
		}
	}()
	library.err = <-done
	library.up.Store(library.err == nil)
	return library.err
}

// start initializes MPI on this thread.
func start() error {
	var provided C.int
	text := (*C.char)(C.calloc(1, C.MPI_MAX_LIBRARY_VERSION_STRING))
	defer C.free(unsafe.Pointer(text))
	e := C.engine_init(&provided, text, C.MPI_MAX_LIBRARY_VERSION_STRING)
	library.text, _, _ = strings.Cut(strings.ReplaceAll(C.GoString(text), "\t", " "), "\n")
	switch {
	case e == -1:
		return errors.New("mpi: MPI has been finalized in this process, and can be initialized only once")
	case e == -2:
		return fmt.Errorf("mpi: the program is built with the headers of %s and linked with %q: build it again with "+
			"CGO_CFLAGS and CGO_LDFLAGS of one library", headers(), library.text)
	case e != C.MPI_SUCCESS:
		return fmt.Errorf("mpi: MPI_Init_thread: %w", check(e))
	}
	if err := threads(int(provided), library.text); err != nil {
		return err
	}
	return check(C.native_init())
}

// headers names the library whose headers the program is built with.
func headers() string { return C.GoString(C.engine_header()) }

// threads looks at what the library grants.
func threads(provided int, library string) error {
	if provided == C.MPI_THREAD_MULTIPLE {
		return nil
	}
	names := map[int]string{C.MPI_THREAD_SINGLE: "MPI_THREAD_SINGLE", C.MPI_THREAD_FUNNELED: "MPI_THREAD_FUNNELED",
		C.MPI_THREAD_SERIALIZED: "MPI_THREAD_SERIALIZED"}
	return fmt.Errorf("mpi: %s grants %s, want MPI_THREAD_MULTIPLE: use a library that is built for several threads",
		library, names[provided])
}

// Finalize ends MPI in this process. It waits until all replicas of all jobs have closed their endpoints, and
// finalize too, for as long as ctx allows. No Join is possible afterwards. A process of an MPI job that exits without
// Finalize has failed: mpirun ends the others.
func Finalize(ctx context.Context) error {
	library.mu.Lock()
	defer library.mu.Unlock()
	if library.main == nil || library.finished {
		return nil
	}
	left := make(chan struct{})
	go func() {
		library.worlds.Wait()
		close(left)
	}()
	select {
	case <-left:
	case <-ctx.Done():
		return fmt.Errorf("mpi: MPI is not finalized, since not all replicas have left: %w", context.Cause(ctx))
	}
	library.finished = true
	library.up.Store(false)
	done := make(chan error)
	library.main <- func() { done <- check(C.engine_finalize()) }
	err := <-done
	close(library.main)
	return err
}

// World initializes MPI, unless that has been done, and returns this process's rank in MPI_COMM_WORLD and its size. ctx
// bounds the wait: MPI's own initialization cannot be ended, and goes on behind an error.
func World(ctx context.Context) (rank, size int, err error) {
	if !library.up.Load() {
		ready := make(chan error, 1)
		go func() { ready <- initialize() }()
		select {
		case err = <-ready:
		case <-ctx.Done():
			err = fmt.Errorf("mpi: MPI has not come up: %w", context.Cause(ctx))
		}
	}
	if err != nil {
		return 0, 0, err
	}
	var r, n, tags C.int
	if err := check(C.world_place(&r, &n, &tags)); err != nil {
		return 0, 0, fmt.Errorf("mpi: %w", err)
	}
	return int(r), int(n), nil
}

// card is what a replica tells the others.
type card struct {
	Host string
	CPUs []int `json:",omitempty"`
	Blob []byte
}

// maxCard bounds the text of a card: a blob in base 64, and the numbers of processors.
const maxCard = 4 * MaxBlob

// Join connects the processes of an MPI job, all of MPI_COMM_WORLD. All call it, as often as each other, with the same
// Config but for Blob. It initializes MPI as World does. ctx bounds how long the others are waited for.
//
// An endpoint that is closed still receives what others send to it, and drops it, until all have closed theirs.
func Join(ctx context.Context, c Config) (transport.Endpoint, error) {
	if len(c.Blob) > MaxBlob {
		return nil, fmt.Errorf("mpi: a blob of %d bytes, want at most %d", len(c.Blob), MaxBlob)
	}
	if _, _, err := World(ctx); err != nil {
		return nil, err
	}
	w, err := open(ctx, max(cmp.Or(c.Silence, DefaultSilence), 0))
	if err != nil {
		return nil, fmt.Errorf("mpi: %w", err)
	}
	node, lane, err := stream.NewNode(stream.Config{Rank: w.rank, Size: w.size, Host: w, Spin: spin})
	if err != nil {
		common.jobs.Unlock()
		return nil, fmt.Errorf("mpi: %w", err)
	}
	w.node = node
	library.worlds.Go(func() {
		defer common.jobs.Unlock()
		w.run()
	})
	cards, err := tellAll(ctx, lane, card{hosts.Name(), hosts.Processors(), c.Blob})
	if err == nil && c.Agree != nil {
		blobs := make([][]byte, len(cards))
		for r := range cards {
			blobs[r] = cards[r].Blob
		}
		err = c.Agree(blobs)
	}
	if err != nil {
		lane.Close()
		if c.Last {
			w.finalize()
		}
		return nil, fmt.Errorf("mpi: replica %d of %d: %w", w.rank, w.size, err)
	}
	names, places := make([]string, w.size), make([]hosts.Place, w.size)
	for r, k := range cards {
		names[r], places[r] = k.Host, hosts.Place{Host: k.Host, CPUs: k.CPUs}
	}
	w.setCrowded(hosts.Crowded(places, w.rank))
	within := func(string) transport.Link { return localLink }
	return &endpoint{Lane: lane, Table: hosts.NewTable(names, within, networkLink), world: w, last: c.Last}, nil
}

// open begins a job. Only when the one before has ended do all replicas begin the next.
func open(ctx context.Context, silence time.Duration) (w *world, err error) {
	for began := time.Now(); !common.jobs.TryLock(); rest(began) {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("the endpoint of an earlier Join has not been closed on all replicas: %w",
				context.Cause(ctx))
		}
	}
	defer func() {
		if err != nil {
			common.failed = err
			common.jobs.Unlock()
		}
	}()
	if common.failed != nil {
		return nil, fmt.Errorf("an earlier Join has failed, and the replicas cannot know who has got how far: %w",
			common.failed)
	}
	common.job++
	var rank, size, tags C.int
	if err := check(C.world_place(&rank, &size, &tags)); err != nil {
		return nil, err
	}
	for len(common.made) < communicators {
		comm, err := communicator(ctx)
		if err != nil {
			return nil, err
		}
		common.made = append(common.made, comm)
	}
	if common.next == nil {
		common.next = make([]int, size)
	}
	w = &world{c: (*C.world)(C.calloc(1, C.sizeof_world)), incoming: C.malloc(maxControl),
		parkers: map[uint64]*parker{},
		groups:  map[groupKey]*group{}, making: map[groupKey]bool{}, asking: map[groupKey]*question{},
		rank: int(rank), size: int(size), tags: (int(tags) - 1) / 2, silence: silence, heard: make([]atomic.Bool, size)}
	if w.c == nil || w.incoming == nil {
		return nil, errNoMemory
	}
	turn := common.job % (communicators / 2) * 2
	w.c.data, w.c.control, w.c.job = common.made[turn], common.made[turn+1], C.int(common.job%w.tags)
	return w, nil
}

// communicator makes one of all processes. MPI writes to memory of C: after an error it may still do so.
func communicator(ctx context.Context) (comm C.MPI_Comm, err error) {
	made := (*C.making)(C.calloc(1, C.sizeof_making))
	if made == nil {
		return comm, errNoMemory
	}
	if err := check(C.world_open(made)); err != nil {
		return comm, err
	}
	for began := time.Now(); ; rest(began) {
		var done C.int
		if err := check(C.world_try(made, &done)); err != nil {
			return comm, err
		}
		if done != 0 {
			comm = made.comm
			C.free(unsafe.Pointer(made))
			return comm, check(C.world_ready(comm))
		}
		if ctx.Err() != nil {
			return comm, fmt.Errorf("not all replicas have come: %w", context.Cause(ctx))
		}
	}
}

// rest lets others have the processor in a loop that waits, the longer it has waited.
func rest(began time.Time) {
	if waited := time.Since(began); waited > restAfter {
		time.Sleep(min(waited/16, maxRest))
	} else {
		runtime.Gosched()
	}
}

// setCrowded has lanes give the processor away after each look.
func (w *world) setCrowded(crowded bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.crowded = crowded
	for _, p := range w.parkers {
		p.setCrowded(crowded)
	}
}

// tellAll gathers what each replica has to tell.
func tellAll(ctx context.Context, e transport.Endpoint, mine card) ([]card, error) {
	own, err := json.Marshal(mine)
	if err != nil {
		return nil, err
	}
	n, me := e.Size(), e.Rank()
	texts := make([][]byte, n)
	lengths := make([][8]byte, n)
	for round := range 3 {
		var batch []transport.Transfer
		for r := range n {
			if r == me {
				continue
			}
			send, recv := own, texts[r]
			switch round {
			case 0:
				send, recv = binary.LittleEndian.AppendUint64(nil, uint64(len(own))), lengths[r][:]
			case 2: // "I have read all": before that nobody begins anything that could fail
				send, recv = nil, nil
			}
			batch = append(batch, transport.Transfer{Peer: r, Kind: transport.Send, Buf: send},
				transport.Transfer{Peer: r, Kind: transport.Recv, Buf: recv})
		}
		err := e.Exchange(ctx, transport.Call{Round: uint32(round)}, batch)
		if err != nil && (round < 2 || ctx.Err() != nil) { // else all have joined, and one has failed since
			return nil, err
		}
		for r := range n {
			if length := binary.LittleEndian.Uint64(lengths[r][:]); round == 0 && r != me {
				if length > maxCard {
					return nil, fmt.Errorf("replica %d tells %d bytes, want at most %d", r, length, maxCard)
				}
				texts[r] = make([]byte, length)
			}
		}
	}
	texts[me] = own
	cards := make([]card, n)
	for r, text := range texts {
		if err := json.Unmarshal(text, &cards[r]); err != nil {
			return nil, fmt.Errorf("replica %d tells something else than a card: %w", r, err)
		}
	}
	return cards, nil
}
