package rendezvous

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gogcl.dev/internal/leaktest"
	"gogcl.dev/transport/internal/handshake"
)

// errorOf returns the Error that Meet has returned.
func errorOf(t *testing.T, err error) *Error {
	t.Helper()
	e, ok := errors.AsType[*Error](err)
	if !ok {
		t.Errorf("%v is a %T", err, err)
		return &Error{}
	}
	return e
}

// disagreements are jobs that cannot be. All replicas get one error.
func disagreements(where string) []struct {
	name     string
	configs  []Config
	kind     Kind
	replicas []int
	text     string
} {
	size8 := everyone(4, where)
	size8[2].Size = 8
	size8[2], size8[3] = size8[3], size8[2]
	outside := everyone(4, where)
	outside[3].Rank, outside[3].Size = 6, 8
	return []struct {
		name     string
		configs  []Config
		kind     Kind
		replicas []int
		text     string
	}{
		{
			"missing", append(slices.Delete(everyone(8, where), 3, 6), config(4, 8, where)),
			Missing, []int{3, 5}, "replicas 3 and 5 of 8 have not come to ",
		},
		{
			"one missing", everyone(3, where)[:2],
			Missing, []int{2}, "replica 2 of 3 has not come to ",
		},
		{
			"duplicate", append(everyone(5, where)[:3], config(1, 5, where)),
			Duplicate, []int{1}, "two processes are replica 1: process ",
		},
		{
			"size", size8,
			WrongSize, []int{0, 2}, "replica 2 believes in 8 replicas, replica 0 in 4",
		},
		{
			"rank out of range", outside,
			WrongSize, []int{0, 6}, "replica 6 believes in 8 replicas, replica 0 in 4",
		},
	}
}

func TestDisagreements(t *testing.T) {
	for _, site := range sites {
		for i := range disagreements("") {
			where, left := site.make(t)
			tt := disagreements(where)[i]
			t.Run("where="+site.name+"/"+tt.name, func(t *testing.T) {
				t.Parallel()
				// Those who come to a job that has failed wait for another replica 0. So all are there first.
				results := meetTogether(t, tt.configs)
				reason := errorOf(t, results[0].err).Reason
				for i, r := range results {
					e := errorOf(t, r.err)
					if e.Kind != tt.kind || !reflect.DeepEqual(e.Replicas, tt.replicas) {
						t.Errorf("replica %d: %v %v: %v", tt.configs[i].Rank, e.Kind, e.Replicas, e)
					}
					if !strings.HasPrefix(e.Reason, tt.text) || e.Reason != reason {
						t.Errorf("replica %d: %q, want %q; replica 0 has %q",
							tt.configs[i].Rank, e.Reason, tt.text, reason)
					}
					if (tt.kind == Missing) != errors.Is(r.err, context.DeadlineExceeded) {
						t.Errorf("replica %d: %v", tt.configs[i].Rank, r.err)
					}
				}
				if err := left(); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// meetTogether starts the last replica, which may bring the disagreement, when replica 0 has taken in all others. Where
// it brings none, the time of replica 0 is over when replica 0 has taken in the last one too.
func meetTogether(t *testing.T, configs []Config) []result {
	results := make([]result, len(configs))
	last, host, others := len(configs)-1, newDeadline(), make(chan bool)
	come := 0
	configs[0].came = func(rank int) {
		if rank < 0 {
			return
		}
		switch come++; come {
		case last - 1:
			close(others)
		case last:
			close(host.over)
		}
	}
	if last == 1 {
		close(others)
	}
	var all sync.WaitGroup
	for i, c := range configs {
		ctx := within(t, long)
		if i == 0 {
			ctx = host
		}
		all.Go(func() {
			if i == last {
				<-others
			}
			results[i].Met, results[i].err = Meet(ctx, c)
		})
	}
	all.Wait()
	return results
}

// TestTellsTheNext: replica 0 stays after a failure, until all have come and been told.
func TestTellsTheNext(t *testing.T) {
	for _, site := range sites {
		t.Run("where="+site.name, func(t *testing.T) {
			t.Parallel()
			where, left := site.make(t)
			configs := everyone(8, where)
			configs[2].Size = 9
			for i := range configs {
				configs[i].patience = long
				blob := configs[i].Blob
				configs[i].Blob = func(local netip.Addr) []byte {
					time.Sleep(time.Duration(i) * 20 * time.Millisecond) // they come one after the other
					return blob(local)
				}
			}
			for rank, r := range meet(within(t, long), configs...) {
				if e := errorOf(t, r.err); e.Kind != WrongSize || !reflect.DeepEqual(e.Replicas, []int{0, 2}) {
					t.Errorf("replica %d: %v", rank, e)
				}
			}
			if err := left(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestTwoHosts: two processes are replica 0.
func TestTwoHosts(t *testing.T) {
	where, left := sites[2].make(t)
	results := meet(within(t, long), append(everyone(3, where)[:2], config(0, 3, where))...)
	for i, r := range results {
		if e := errorOf(t, r.err); e.Kind != Duplicate || !reflect.DeepEqual(e.Replicas, []int{0}) {
			t.Errorf("process %d: %v", i, e)
		}
	}
	if err := left(); err != nil {
		t.Error(err)
	}
}

// TestCancel: a replica that gives up ends the job for all.
func TestCancel(t *testing.T) {
	for _, site := range sites {
		for _, rank := range []int{0, 1} {
			t.Run(fmt.Sprintf("where=%s/rank=%d", site.name, rank), func(t *testing.T) {
				t.Parallel()
				where, left := site.make(t)
				ctx, cancel := context.WithCancelCause(within(t, long))
				configs, came := everyone(4, where)[:3], make(chan bool)
				configs[0].whenCome(2, func() { close(came) })
				configs[1].linger = long // until replica 0 has read it
				var all sync.WaitGroup
				results := make([]result, 3)
				for i, c := range configs {
					mine := within(t, long)
					if i == rank {
						mine = ctx
					}
					all.Go(func() { results[i].Met, results[i].err = Meet(mine, c) })
				}
				<-came
				enough := errors.New("enough")
				cancel(enough)
				all.Wait()
				for i, r := range results {
					e := errorOf(t, r.err)
					if e.Kind != GaveUp || !reflect.DeepEqual(e.Replicas, []int{rank}) ||
						errors.Is(e, enough) != (i == rank) {
						t.Errorf("replica %d: %v", i, e)
					}
				}
				if err := left(); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// TestStrangers: replica 0 goes on after foreigners, each of whom is told what it can be told.
func TestStrangers(t *testing.T) {
	for _, site := range sites {
		t.Run("where="+site.name, func(t *testing.T) {
			where, _ := site.make(t)
			otherSecret, otherJob := config(1, 2, where), config(1, 2, where)
			otherSecret.Secret = []byte("another")
			otherJob.Job = "another"

			ctx := within(t, long)
			var host result
			var hosting sync.WaitGroup
			hosting.Go(func() { host.Met, host.err = Meet(ctx, config(0, 2, where)) })
			if site.name == "dir" { // files are of now or of an earlier run; only time tells
				hasPosted(where)
				_, err := Meet(within(t, 200*time.Millisecond), otherSecret)
				if e := errorOf(t, err); e.Kind != Missing || !strings.Contains(e.Reason, "another secret") {
					t.Errorf("another secret: %v", err)
				}
			} else {
				_, err := Meet(ctx, otherSecret)
				if e := errorOf(t, err); e.Kind != Stranger || !is[*handshake.SecretError](err) {
					t.Errorf("another secret: %v", err)
				}
				_, err = Meet(ctx, otherJob)
				if e := errorOf(t, err); e.Kind != Stranger || !is[*handshake.JobError](err) {
					t.Errorf("another job: %v", err)
				}
			}
			var other result
			other.Met, other.err = Meet(ctx, config(1, 2, where))
			hosting.Wait()
			check(t, []result{host, other})
		})
	}
}

// TestTimeOverElsewhere: where the time of another replica is over first, that is not taken for its end, and all hear
// who is missing.
func TestTimeOverElsewhere(t *testing.T) {
	for _, site := range sites {
		t.Run("where="+site.name, func(t *testing.T) {
			t.Parallel()
			where, left := site.make(t)
			configs, other := everyone(4, where)[:3], newDeadline()
			configs[1].linger = long
			configs[0].whenCome(2, func() { close(other.over) })
			results, all := make([]result, 3), sync.WaitGroup{}
			for i, c := range configs {
				ctx := within(t, long)
				if i == 1 {
					ctx = other
				}
				all.Go(func() { results[i].Met, results[i].err = Meet(ctx, c) })
			}
			all.Wait()
			for i, r := range results {
				if e := errorOf(t, r.err); e.Kind != Missing || !reflect.DeepEqual(e.Replicas, []int{3}) {
					t.Errorf("replica %d: %v", i, e)
				}
			}
			if err := left(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestTimeOverBeforeHere: a replica whose time is over before it could say anything, or at that moment, is not taken
// for one that speaks for all: replica 0 has not failed to come.
func TestTimeOverBeforeHere(t *testing.T) {
	for _, site := range sites {
		t.Run("where="+site.name, func(t *testing.T) {
			t.Parallel()
			where, left := site.make(t)
			configs, host, other := everyone(3, where)[:2], newDeadline(), newDeadline()
			configs[1].Blob = func(netip.Addr) []byte {
				close(other.over)
				time.Sleep(20 * time.Millisecond) // the end is noticed before here is said; the test holds without
				return nil
			}
			results, all := make([]result, 2), sync.WaitGroup{}
			all.Go(func() { results[0].Met, results[0].err = Meet(host, configs[0]) })
			results[1].Met, results[1].err = Meet(other, configs[1])
			close(host.over)
			all.Wait()
			if e := errorOf(t, results[1].err); e.Kind != Missing {
				t.Errorf("replica 1: %v", e)
			}
			if e := errorOf(t, results[0].err); slices.Contains(e.Replicas, 0) {
				t.Errorf("replica 0: %v", e)
			}
			if err := left(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestStrangersAreNamed: at the end of the time, what was refused is told.
func TestStrangersAreNamed(t *testing.T) {
	for _, site := range sites {
		t.Run("where="+site.name, func(t *testing.T) {
			t.Parallel()
			where, _ := site.make(t)
			configs := everyone(3, where)
			configs[2].Secret = []byte("another")
			configs[2].patience = long
			// Replica 0's time is over when it has replica 1, and replica 2 knows that it is refused: over sockets when
			// it was refused twice, in a directory when it has refused the file of replica 0 itself. Then the time of
			// replica 2 is over.
			host, other, begun := newDeadline(), newDeadline(), make(chan bool)
			var mu sync.Mutex // guards what follows
			come, refused := false, 0
			count := func(rank int) {
				mu.Lock()
				defer mu.Unlock()
				if rank == 1 {
					come = true
				} else {
					refused++
				}
				if come && refused >= 2 && host.Err() == nil {
					close(host.over)
				}
			}
			configs[0].Blob = func(netip.Addr) []byte { close(begun); return nil }
			configs[0].came, configs[2].came = count, count
			results := make([]result, len(configs))
			var all sync.WaitGroup
			all.Go(func() {
				defer close(other.over)
				results[0].Met, results[0].err = Meet(host, configs[0])
			})
			all.Go(func() { results[1].Met, results[1].err = Meet(within(t, long), configs[1]) })
			all.Go(func() {
				<-begun
				if site.name == "dir" {
					hasPosted(where)
				}
				results[2].Met, results[2].err = Meet(other, configs[2])
			})
			all.Wait()
			for rank, r := range results[:2] {
				e := errorOf(t, r.err)
				if e.Kind != Missing || !reflect.DeepEqual(e.Replicas, []int{2}) ||
					!strings.Contains(e.Reason, "were refused: ") || !strings.Contains(e.Reason, "another secret") {
					t.Errorf("replica %d: %v", rank, e)
				}
			}
			if e := errorOf(t, results[2].err); e.Kind != Missing || !strings.Contains(e.Reason, "another secret") {
				t.Errorf("replica 2: %v", e)
			}
		})
	}
}

// hasPosted waits for the file of replica 0 in a directory. A replica that comes then sees it, however short its time.
func hasPosted(where string) {
	path := filepath.Join(strings.TrimPrefix(where, "dir:"), jobName("job"))
	for {
		if names, _ := filepath.Glob(filepath.Join(path, "0.*[0-9]")); len(names) > 0 {
			return
		}
		runtime.Gosched()
	}
}

// TestNobody: replicas that find no replica 0 say so.
func TestNobody(t *testing.T) {
	for _, site := range sites {
		where, left := site.make(t)
		_, err := Meet(within(t, 100*time.Millisecond), config(1, 2, where))
		e := errorOf(t, err)
		if e.Kind != Missing || !reflect.DeepEqual(e.Replicas, []int{0}) ||
			!strings.Contains(e.Reason, "start replica 0") {
			t.Errorf("%s: %v", site.name, err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_, err = Meet(ctx, config(1, 2, where))
		if e := errorOf(t, err); e.Kind != GaveUp || !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", site.name, err)
		}
		if err := left(); err != nil {
			t.Error(err)
		}
	}
}

// puppet is a replica that says what the test wants.
type puppet struct {
	t *testing.T
	store
	nonce nonce
}

func newPuppet(t *testing.T, rank, size int, where string) puppet {
	at, err := parsePlace(where)
	if err != nil {
		t.Fatal(err)
	}
	c := config(rank, size, where)
	c.nonce = nonces(1)[0]
	s, err := openStore(within(t, long), c, at)
	if err != nil {
		t.Fatal(err)
	}
	return puppet{t, s, c.nonce}
}

func (p puppet) say(s sheet) {
	if err := p.put(s); err != nil {
		p.t.Error(err)
	}
}

func (p puppet) here(size int) {
	p.say(sheet{Step: stepHere, Here: here{Size: size, Nonce: p.nonce, Self: "a puppet"}})
}

// hears waits for a sheet of the host.
func (p puppet) hears(want step) sheet {
	p.t.Helper()
	for {
		fresh, err := p.list()
		if err != nil {
			p.t.Fatal(err)
		}
		for _, e := range fresh {
			switch said, ended := p.get(e); {
			case said.Step == want:
				return said
			case ended != nil && said.Step != stepHere: // not that of another host
				p.t.Fatal(ended)
			}
		}
		p.wait(context.Background(), time.Second)
	}
}

func (p puppet) leaves() { p.leave(context.Background()) }

// TestLate: a process that comes when all have come is told, and the job goes on.
func TestLate(t *testing.T) {
	for _, site := range sites {
		t.Run("where="+site.name, func(t *testing.T) {
			where, left := site.make(t)
			var host result
			var hosting sync.WaitGroup
			hosting.Go(func() { host.Met, host.err = Meet(within(t, long), config(0, 2, where)) })
			p := newPuppet(t, 1, 2, where)
			p.here(2)
			p.hears(stepTable)
			for _, rank := range []int{1, 0} {
				if rank == 0 && site.name != "dir" {
					continue // another host cannot listen
				}
				_, err := Meet(within(t, long), config(rank, 2, where))
				e := errorOf(t, err)
				if e.Kind != Late || !strings.Contains(e.Reason, "the job has begun without you") {
					t.Errorf("%v", err)
				}
			}
			p.say(sheet{Step: stepGot})
			p.hears(stepBegin)
			p.leaves()
			hosting.Wait()
			if host.err != nil {
				t.Error(host.err)
			}
			if err := left(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestTableIsForThoseInIt: a process that is late is not sent what those in the job tell each other.
func TestTableIsForThoseInIt(t *testing.T) {
	where, _ := sites[0].make(t)
	var hosting sync.WaitGroup
	hosting.Go(func() { _, _ = Meet(within(t, long), config(0, 2, where)) })
	in, late := newPuppet(t, 1, 2, where), newPuppet(t, 1, 2, where)
	in.here(2)
	if n := len(in.hears(stepTable).Table.Blobs); n != 2 {
		t.Errorf("%d blobs for who is in it, want 2", n)
	}
	late.here(2)
	if n := len(late.hears(stepTable).Table.Blobs); n != 0 {
		t.Errorf("%d blobs for who is late, want none", n)
	}
	in.say(sheet{Step: stepGot})
	in.hears(stepBegin)
	in.leaves()
	late.leaves()
	hosting.Wait()
}

// TestTableIsNotForStrangers: who has left before it said a word is a stranger. What is written to it may still be
// under way then: it gets a table as any other does that is not in it.
func TestTableIsNotForStrangers(t *testing.T) {
	s := &sockets{news: make(chan struct{}, 1), changed: make(chan struct{}), listener: new(net.TCPListener)}
	left := &entry{rank: 1}
	s.hear(left, sheet{}, io.EOF)
	if err := s.put(tableOf([]byte{1}, []byte{2})); err != nil {
		t.Fatal(err)
	}
	host, stranger := net.Pipe()
	defer stranger.Close()
	ended := make(chan struct{})
	var telling sync.WaitGroup
	telling.Go(func() { s.tell(host, left, ended) })
	if said, err := readMessage(stranger, true, 2); err != nil || len(said.Table.Blobs) != 0 {
		t.Errorf("a stranger is told %d blobs, %v, want none", len(said.Table.Blobs), err)
	}
	close(ended)
	telling.Wait()
}

// TestLateInDirectory: a process whose file replica 0 has removed.
func TestLateInDirectory(t *testing.T) {
	where, left := sites[2].make(t)
	var waiting sync.WaitGroup
	var err error
	waiting.Go(func() { _, err = Meet(within(t, long), config(1, 2, where)) })
	path := filepath.Join(strings.TrimPrefix(where, "dir:"), jobName("job"))
	for removed := 0; removed == 0; {
		names, _ := filepath.Glob(filepath.Join(path, "1.*[0-9]"))
		for _, name := range names {
			if os.Remove(name) == nil {
				removed++
			}
		}
	}
	waiting.Wait()
	if e := errorOf(t, err); e.Kind != Late {
		t.Errorf("%v", e)
	}
	if err := left(); err != nil {
		t.Error(err)
	}
}

// TestGone: a replica whose entry ends, or that says nonsense, after it has come ends the job for all. One that has not
// said here yet does not.
func TestGone(t *testing.T) {
	for _, site := range sites {
		for name, end := range map[string]func(p puppet){
			"left":        func(puppet) {},
			"out of turn": func(p puppet) { p.say(sheet{Step: stepGot}); p.hears(stepFailed) },
		} {
			t.Run("where="+site.name+"/"+name, func(t *testing.T) {
				leaktest.Check(t)
				where, _ := site.make(t)
				testGone(t, where, func(came <-chan bool) {
					newPuppet(t, 2, 4, where).leaves()
					p := newPuppet(t, 2, 4, where)
					p.here(4)
					for taken := false; !taken; p.wait(context.Background(), time.Millisecond) {
						_, _ = p.list() // and so echoes replica 0
						select {
						case <-came:
							taken = true
						default:
						}
					}
					end(p)
					p.leaves()
				})
			})
		}
	}
}

// testGone has replicas 0 and 1 meet two that do not come, and a puppet that is replica 2 and ends.
func testGone(t *testing.T, where string, puppet func(came <-chan bool)) {
	var gathered sync.WaitGroup
	results := make([]result, 2)
	came := make(chan bool)
	for rank := range results {
		c := config(rank, 4, where)
		if rank == 0 {
			c.whenCome(2, func() { close(came) })
		}
		gathered.Go(func() { results[rank].Met, results[rank].err = Meet(within(t, long), c) })
	}
	puppet(came)
	gathered.Wait()
	for rank, r := range results {
		e := errorOf(t, r.err)
		if e.Kind != Gone || !reflect.DeepEqual(e.Replicas, []int{2}) || !strings.Contains(e.Reason, "a puppet") {
			t.Errorf("replica %d: %v", rank, e)
		}
	}
}

// TestNonsense: a connection that brings what is no sheet ends. That of a replica that has come ends the job.
func TestNonsense(t *testing.T) {
	for name, nonsense := range map[string][]byte{
		"an unknown step": appendMessage(nil, sheet{Step: 77}),
		"a begin":         appendMessage(nil, sheet{Step: stepBegin}),
		"huge":            {255, 255, 255, 255},
		"no error":        appendMessage(nil, sheet{Step: stepFailed}),
		"no JSON":         {0, 0, 0, 1, '{'},
	} {
		t.Run(name, func(t *testing.T) {
			leaktest.Check(t)
			where, _ := sites[0].make(t)
			at, err := parsePlace(where)
			if err != nil {
				t.Fatal(err)
			}
			dial := func() net.Conn {
				conn, err := connect(within(t, long), config(2, 4, where), at)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { conn.Close() })
				return conn
			}
			testGone(t, where, func(came <-chan bool) {
				before := dial()
				before.Write(nonsense)
				io.Copy(io.Discard, before) // until replica 0 ends the connection
				p := dial()
				said := sheet{Step: stepHere, Here: here{Size: 4, Nonce: nonces(1)[0], Self: "a puppet"}}
				p.Write(appendMessage(nil, said))
				<-came
				p.Write(nonsense)
			})
		})
	}
}

// TestHostGone: replica 0 ends in the middle, or says nonsense, or has begun without the replica.
func TestHostGone(t *testing.T) {
	with := func(n nonce) []byte {
		t := tableOf(nil, nil)
		t.Table.Roster[1] = n
		return appendMessage(nil, t)
	}
	always := func(b []byte) func(nonce) []byte { return func(nonce) []byte { return b } }
	for _, test := range []struct {
		name string
		says func(nonce) []byte
		kind Kind
	}{
		{"closed", always(nil), Gone},
		{"closed with table", with, Gone},
		{"half a table", func(n nonce) []byte { return with(n)[:len(with(n))-1] }, Gone},
		{"table twice", func(n nonce) []byte { return slices.Concat(with(n), with(n)) }, Gone},
		{"table of 3", always(appendMessage(nil, tableOf(nil, nil, nil))), Gone},
		{"huge", always([]byte{255, 255, 255, 255}), Gone},
		{"got", always(appendMessage(nil, sheet{Step: stepGot})), Gone},
		{"no error", always(appendMessage(nil, sheet{Step: stepFailed})), Gone},
		{"table of others", always(appendMessage(nil, tableOf(nil, nil))), Late},
		{"begin only", always(appendMessage(nil, sheet{Step: stepBegin})), Late},
	} {
		t.Run(test.name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			var hosting sync.WaitGroup
			hosting.Go(func() {
				defer l.Close()
				conn, err := l.Accept()
				if err != nil {
					t.Error(err)
					return
				}
				defer conn.Close()
				if _, err := handshake.Accept(conn, secret, "job", nil); err != nil {
					t.Error(err)
				}
				said, err := readMessage(conn, false, 2)
				if err != nil {
					t.Error(err)
				}
				conn.Write(test.says(said.Here.Nonce))
				conn.(*net.TCPConn).CloseWrite()
				io.Copy(io.Discard, conn)
			})
			_, err = Meet(within(t, long), config(1, 2, l.Addr().String()))
			replica := map[Kind]int{Gone: 0, Late: 1}[test.kind]
			if e := errorOf(t, err); e.Kind != test.kind || !reflect.DeepEqual(e.Replicas, []int{replica}) {
				t.Errorf("%v", err)
			}
			hosting.Wait()
		})
	}
}

// TestSilentHost: replica 0 takes a replica in and says nothing more.
func TestSilentHost(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var hosting sync.WaitGroup
	hosting.Go(func() {
		conn, err := l.Accept()
		if err != nil {
			t.Error(err)
			return
		}
		handshake.Accept(conn, secret, "job", nil)
		io.Copy(io.Discard, conn)
		conn.Close()
	})
	_, err = Meet(within(t, 200*time.Millisecond), config(1, 2, l.Addr().String()))
	if e := errorOf(t, err); e.Kind != Missing || !strings.Contains(e.Reason, "says nothing") {
		t.Errorf("%v", err)
	}
	hosting.Wait()
}

// TestAttackers: the job forms though others connect all the time.
func TestAttackers(t *testing.T) {
	for _, site := range sites[:2] {
		for name, attack := range map[string]func(conn net.Conn){
			"silence": func(conn net.Conn) { io.Copy(io.Discard, conn) },
			"random": func(conn net.Conn) {
				b := make([]byte, 4096)
				rand.Read(b)
				conn.Write(b)
			},
			"hello": func(conn net.Conn) {
				handshake.Dial(conn, []byte("guess"), handshake.Hello{Job: "job", Rank: 1, Role: handshake.Rendezvous})
			},
			"nothing": func(net.Conn) {},
		} {
			t.Run("where="+site.name+"/"+name, func(t *testing.T) {
				leaktest.Check(t)
				where, _ := site.make(t)
				at, err := parsePlace(where)
				if err != nil {
					t.Fatal(err)
				}
				ctx, stop := context.WithCancel(within(t, long))
				var attackers sync.WaitGroup
				slots := make(chan bool, 200)
				var count int
				attackers.Go(func() {
					for ctx.Err() == nil {
						conn, err := dialOnce(ctx, at)
						if err != nil {
							time.Sleep(time.Millisecond)
							continue
						}
						count++
						slots <- true
						closing := context.AfterFunc(ctx, func() { conn.Close() })
						attackers.Go(func() {
							attack(conn)
							closing()
							conn.Close()
							<-slots
						})
					}
				})
				configs := everyone(8, where)
				results := make([]result, len(configs))
				var all sync.WaitGroup
				for i, c := range configs {
					all.Go(func() {
						if i == len(configs)-1 {
							time.Sleep(300 * time.Millisecond) // the attack goes on
						}
						results[i].Met, results[i].err = Meet(ctx, c)
					})
				}
				all.Wait()
				stop()
				attackers.Wait()
				check(t, results)
				t.Logf("%d attacks", count)
			})
		}
	}
}

// TestRubbishInDirectory: files that are none, or are not authentic, or have the names of others, disturb nobody.
func TestRubbishInDirectory(t *testing.T) {
	where, left := sites[2].make(t)
	dir := filepath.Join(strings.TrimPrefix(where, "dir:"), jobName("job"))
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	c := config(1, 3, where)
	c.Secret = []byte("another")
	b := newBoard(t, c)
	if err := b.put(hereOf(7, nil)); err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(filepath.Join(dir, b.file))
	if err != nil {
		t.Fatal(err)
	}
	zeros := strings.Repeat("0", nonceSize)
	for name, content := range map[string][]byte{
		"0." + zeros + ".0":                      nil,
		"1." + zeros + ".0":                      file,
		"2." + zeros + ".7":                      make([]byte, 1000),
		"2." + zeros + ".8":                      []byte(boardMagic + "\x00\x09" + strings.Repeat("x", 100)),
		"2." + zeros + ".08":                     nil,
		"99999999999." + zeros + ".0":            nil,
		"README":                                 []byte("rubbish"),
		"1." + zeros + ".18446744073709551616":   nil,
		"1.abc.0":                                nil,
		"0." + strings.Repeat("zz", 16) + ".0":   nil,
		"0." + zeros + ".9":                      make([]byte, 1<<20),
		"2." + strings.Repeat("AA", 16) + ".0":   nil,
		"2." + strings.Repeat("aa", 16) + ".tmp": nil,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	check(t, meet(within(t, long), everyone(3, where)...))
	if err := left(); err != nil {
		t.Error(err)
	}
}

func TestReplicas(t *testing.T) {
	for _, tt := range []struct {
		ranks []int
		want  string
	}{
		{[]int{3}, "replica 3 of 64"},
		{[]int{5, 3}, "replicas 3 and 5 of 64"},
		{[]int{3, 4}, "replicas 3 and 4 of 64"},
		{[]int{3, 4, 5}, "replicas 3 to 5 of 64"},
		{[]int{3, 5, 6, 7, 12, 13}, "replicas 3, 5 to 7, 12 and 13 of 64"},
	} {
		if have := replicas(tt.ranks, 64); have != tt.want {
			t.Errorf("%v: %q, want %q", tt.ranks, have, tt.want)
		}
	}
}

func TestKindString(t *testing.T) {
	seen := map[string]bool{}
	for k := Kind(0); k <= lastKind+1; k++ {
		if seen[k.String()] {
			t.Errorf("%q twice", k)
		}
		seen[k.String()] = true
	}
}
