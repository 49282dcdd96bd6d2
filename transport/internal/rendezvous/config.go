package rendezvous

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"gogcl.dev/transport/internal/handshake"
)

// Bounds of a job.
const (
	MaxBlob = 64 << 10 // bytes of a blob
	MaxSize = 1 << 14  // replicas; a table is 1 GiB at most
)

// patience is how long a replica goes on after a stranger has answered at the host's address, or has that address: a
// job that has just ended may need that long to go. It is also how long the host stays after the job has failed, while
// there are ranks that have not come, to tell them.
const patience = 5 * time.Second

// linger is how long Meet goes on after it has failed or the context has ended, to tell the others.
const linger = 500 * time.Millisecond

// Config says who meets, and where.
type Config struct {
	Rank, Size int
	Job        string // of any length
	Secret     []byte // empty: see AnyUser
	Where      string // "host:port" of replica 0, "unix:@NAME", or "dir:PATH"

	// Channel makes connections ones of TLS. Nil: no TLS. Files in a directory do not change by it.
	Channel *handshake.Channel

	// AnyUser lets a job that has neither Secret nor Channel take replicas from anywhere. Otherwise such a job takes
	// processes of its own user only, on its own host or in a directory: package user tells how that is known.
	AnyUser bool

	// Blob returns what this replica tells the others, at most [MaxBlob] bytes. It is called once. local is the address
	// of this host by which the replica has reached replica 0. For replica 0 it is the address on which it listens. It
	// is the zero Addr where there is none: in a directory, on a unix socket, in a job of one replica.
	Blob func(local netip.Addr) []byte

	// Listener is what replica 0 listens on, in place of a listener of its own at Where. Meet closes it. Others have
	// none.
	Listener net.Listener

	// Tell is told how the meeting goes while it lasts, on the goroutine of Meet: after 5 s and then every 15 for whom
	// this process waits, and at once what stands in the way. It may be nil.
	Tell func(text string)

	words    time.Duration  // for tests: how often Tell is told for whom the process waits; 0: the constants
	speaker  *speaker       // of Tell
	patience time.Duration  // for tests; 0: the constant
	linger   time.Duration  // for tests, of a replica that is not 0; 0: half the constant
	came     func(rank int) // for tests: the host has taken a replica in, or a stranger was refused: -1

	host  int   // the rank that decides, at whose place all meet
	nonce nonce // of this process
}

// Met is the outcome of a meeting.
type Met struct {
	Blobs [][]byte   // by rank; the same at all replicas
	Local netip.Addr // that Blob was called with
}

// Meet returns when all replicas have come and replica 0 knows that each has got the blobs of all. Every replica of the
// job calls it.
//
// When the job cannot be, an *[Error] says why, and all who had come get that error. Replica 0 then stays until the
// other ranks have come and been told too, for 5 s at most.
//
// The context bounds the wait and should have a deadline, since a replica that never comes is waited for until then.
// Meet may take 500 ms more to tell the others that it leaves. It leaves no goroutine, socket or file behind.
func Meet(ctx context.Context, c Config) (Met, error) {
	at, err := c.validate()
	if err != nil {
		if c.Listener != nil {
			c.Listener.Close()
		}
		return Met{}, err
	}
	if c.patience == 0 {
		c.patience = patience
	}
	if c.linger == 0 {
		c.linger = linger / 2
	}
	c.nonce, c.speaker = nonce(rand.Text()), newSpeaker(&c)
	if c.Size == 1 {
		if c.Listener != nil {
			c.Listener.Close()
		}
		blob, unable := c.blob(netip.Addr{})
		if unable != nil {
			return Met{}, unable
		}
		return Met{Blobs: [][]byte{blob}}, nil
	}
	s, err := openStore(ctx, c, at)
	if err != nil {
		return Met{}, err
	}
	if c.Rank == c.host {
		return host(ctx, c, s)
	}
	return visit(ctx, c, s)
}

// validate checks what a caller can get wrong.
func (c *Config) validate() (place, error) {
	switch {
	case c.Size < 1 || c.Size > MaxSize:
		return place{}, fmt.Errorf("a job of %d replicas: the size is from 1 to %d", c.Size, MaxSize)
	case c.Rank < 0 || c.Rank >= c.Size:
		return place{}, fmt.Errorf("replica %d of %d: the rank is from 0 to %d", c.Rank, c.Size, c.Size-1)
	case c.Listener != nil && c.Rank != c.host:
		return place{}, fmt.Errorf("replica %d has a Listener: only replica %d listens", c.Rank, c.host)
	}
	at, err := parsePlace(c.Where)
	if err == nil && c.Listener != nil && at.kind == directory {
		err = fmt.Errorf("replica %d has a Listener, but the replicas meet in a directory, %q", c.Rank, c.Where)
	}
	return at, err
}

// here is what this process says of itself.
func (c *Config) here(ctx context.Context, blob []byte) here {
	return here{Size: c.Size, Left: timeLeft(ctx), Nonce: c.nonce, Self: self(), Blob: blob}
}

// blob calls Blob.
func (c *Config) blob(local netip.Addr) ([]byte, *Error) {
	if c.Blob == nil {
		return nil, nil
	}
	blob := c.Blob(local)
	if len(blob) > MaxBlob {
		return nil, &Error{Kind: GaveUp, Replicas: []int{c.Rank},
			Reason: fmt.Sprintf("replica %d has a blob of %d bytes: at most %d", c.Rank, len(blob), MaxBlob)}
	}
	return blob, nil
}

// kind is a kind of place.
type kind int

const (
	tcpSocket kind = iota
	unixSocket
	directory
)

// maxUnixName is the length of the longest name of an abstract socket, with its @.
const maxUnixName = 107

// place is Where, taken apart.
type place struct {
	kind kind
	text string // as it was given
	host string // of a TCP socket
	port uint16 // of a TCP socket
	path string // of a directory, or "@NAME"
}

func parsePlace(text string) (place, error) {
	at := place{text: text}
	if path, ok := strings.CutPrefix(text, "dir:"); ok {
		at.kind, at.path = directory, path
		if path == "" {
			return at, fmt.Errorf("rendezvous %q: want dir:PATH", text)
		}
		return at, nil
	}
	if name, ok := strings.CutPrefix(text, "unix:"); ok {
		at.kind, at.path = unixSocket, name
		if len(name) < 2 || name[0] != '@' {
			return at, fmt.Errorf("rendezvous %q: want unix:@NAME, an abstract socket", text)
		}
		if len(name) > maxUnixName {
			return at, fmt.Errorf("rendezvous %q: a name of %d bytes, want at most %d", text, len(name), maxUnixName)
		}
		if runtime.GOOS != "linux" {
			return at, fmt.Errorf("rendezvous %q: abstract unix sockets are Linux's, this is %s: use host:port or dir:PATH",
				text, runtime.GOOS)
		}
		return at, nil
	}
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		return at, fmt.Errorf("rendezvous %q: want host:port, unix:@NAME or dir:PATH", text)
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil || number == 0 {
		return at, fmt.Errorf("rendezvous %q: want a port from 1 to 65535", text)
	}
	if addr, err := netip.ParseAddr(host); host == "" || err == nil && addr.IsUnspecified() {
		return at, fmt.Errorf("rendezvous %q: want the name or an address of replica 0's host", text)
	}
	at.host, at.port = host, uint16(number)
	return at, nil
}

// self says where this process is, for the errors of others.
func self() string {
	name, err := os.Hostname()
	if err != nil {
		name = "a host without a name"
	}
	return handshake.Bounded(fmt.Sprintf("process %d on %s", os.Getpid(), name), maxSelf)
}

// timeLeft is the time until the deadline of a context, maxLeft at most, or 0 without one.
func timeLeft(ctx context.Context) time.Duration {
	deadline, ok := ctx.Deadline()
	if !ok {
		return 0
	}
	return min(max(time.Until(deadline), time.Millisecond), maxLeft)
}

// early is how long a replica with so much time left is waited for, so that it hears of the end.
func early(left time.Duration) time.Duration { return left - min(left/8, 250*time.Millisecond) }
