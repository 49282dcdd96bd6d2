package transporttest

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"gogcl.dev/transport"
)

// world is what a process that is one replica knows of the others.
type world struct {
	rank, size int
	dir        string
	join       func(t testing.TB, rank, size int, dir string) transport.Endpoint
	meetings   int // of all replicas, by join or on a board
	cases      int // begun by this process

	conn *net.UnixConn // with the calling process
	done chan struct{} // closed when nothing more is heard

	mu      sync.Mutex // guards what follows
	boards  map[int]*board
	lost    string // why nobody waits any more
	leaving bool
}

// runReplica runs the suite as one replica of several.
func runReplica(t *testing.T, by Launcher, join func(t testing.TB, rank, size int, dir string) transport.Endpoint,
	options []Option) {
	w := &world{join: join, dir: os.Getenv(envDir), boards: map[int]*board{}, done: make(chan struct{})}
	var err error
	if w.size, err = strconv.Atoi(os.Getenv(envSize)); err != nil {
		t.Fatalf("%s: %v", envSize, err)
	}
	w.rank = by.Rank()
	w.conn, err = net.DialUnix("unix", nil, &net.UnixAddr{Net: "unix", Name: socketPath(w.dir)})
	if err != nil {
		t.Fatalf("replica %d: %v", w.rank, err)
	}
	w.say(message(0, came, fmt.Sprint(w.rank, " ", os.Getenv(envFiles))))
	go w.listen()
	s := newSuite(options)
	s.world = w
	defer w.leave(t, by.Leave)
	s.run(t, groups)
}

// say tells the calling process a message. An error is seen by listen.
func (w *world) say(message string) { w.conn.Write([]byte(message)) }

// leave calls finish, tells the calling process that this one is through, and ends listening.
func (w *world) leave(t *testing.T, finish func()) {
	w.mu.Lock()
	why := w.lost
	w.mu.Unlock()
	if finish != nil && why == "" {
		finish()
	}
	w.mu.Lock()
	w.leaving = true
	w.mu.Unlock()
	w.say(message(0, leaving, ""))
	await(t, func() { <-w.done })
}

// listen notes what others post, until this process leaves. A calling process that is gone ends this one.
func (w *world) listen() {
	defer close(w.done)
	defer w.conn.Close()
	lines := bufio.NewReader(w.conn)
	for {
		line, err := lines.ReadString('\n')
		if err == nil {
			err = w.heard(line)
		}
		if err == nil {
			continue
		}
		w.mu.Lock()
		leaving := w.leaving
		w.mu.Unlock()
		if leaving && err == io.EOF {
			return
		}
		fmt.Fprintf(os.Stderr, "replica %d: hearing from the process that has started this one: %v\n", w.rank, err)
		os.Exit(3)
	}
}

func (w *world) heard(line string) error {
	number, key, value, err := parseMessage(line)
	switch {
	case err != nil:
		return err
	case number == 0 && key == lost:
		w.mu.Lock()
		defer w.mu.Unlock()
		w.lost = value
		for _, b := range w.boards {
			b.fail(value)
		}
	case key == failed:
		w.board(number).fail(value)
	default:
		w.board(number).note(key, value)
	}
	return nil
}

// board returns the board of a case, which others may have begun before this replica.
func (w *world) board(number int) *board {
	w.mu.Lock()
	defer w.mu.Unlock()
	b := w.boards[number]
	if b == nil {
		b = newBoard()
		b.tell = func(key, value string) { w.say(message(number, key, value)) }
		if w.boards[number] = b; w.lost != "" {
			b.fail(w.lost)
		}
	}
	return b
}

// begin is the name under which replicas post that they have begun a case.
const begin = "begin"

// begin begins a case together with all others. At its end all learn of those who have failed it, so that they go on
// with the same case.
func (w *world) begin(t *testing.T) *board {
	t.Helper()
	w.cases++
	number := w.cases
	b := w.board(number)
	t.Cleanup(func() {
		verdict := ""
		if t.Failed() {
			verdict = "fails"
		}
		verdicts, err := b.gather("end", w.rank, w.size, verdict)
		if err != nil && verdict == "" {
			t.Error(err)
		}
		for rank, v := range verdicts {
			if v != "" && verdict == "" {
				t.Errorf("replica %d %s this case", rank, v)
			}
		}
	})
	t.Cleanup(func() {
		if t.Failed() {
			w.say(message(number, failed, fmt.Sprintf("replica %d has failed", w.rank)))
		}
	})
	names, err := b.gather(begin, w.rank, w.size, t.Name())
	if err != nil {
		t.Fatal(err)
	}
	for rank, name := range names {
		if name != t.Name() {
			t.Fatalf("this is case %d, %s, where replica %d has %s", number, t.Name(), rank, name)
		}
	}
	return b
}

// open joins the replicas.
func (w *world) open(t testing.TB) transport.Endpoint {
	t.Helper()
	w.meetings++
	dir := filepath.Join(w.dir, strconv.Itoa(w.meetings))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return w.join(t, w.rank, w.size, dir)
}
