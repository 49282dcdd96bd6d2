package handshake

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"
)

// ProtocolError says that the other side does not speak this protocol.
type ProtocolError struct {
	Begins []byte // the first bytes that came, up to the first wrong one
}

func (e *ProtocolError) Error() string {
	if string(e.Begins) == dialerMagic {
		return "the connection leads back to the side that dialed it: nobody listens at this address yet"
	}
	if len(e.Begins) > 0 && (e.Begins[0] == alertRecord || e.Begins[0] == handshakeRecord) {
		return "the other side has TLS and this side none: give all replicas a TLS configuration, or none"
	}
	return fmt.Sprintf("the other side does not speak gogcl's protocol: it begins with %q; "+
		"another program has this port", e.Begins)
}

// VersionError says that the two sides have different versions of the protocol.
type VersionError struct {
	Mine, Theirs uint16
}

func (e *VersionError) Error() string {
	return fmt.Sprintf("protocol version %d here, %d on the other side: build all replicas with the same gogcl.dev",
		e.Mine, e.Theirs)
}

// SecretError says that the other side has proved another secret than the one here.
type SecretError struct {
	OtherJob bool // at the acceptor: the dialer also names another job
}

func (e *SecretError) Error() string {
	if e.OtherJob {
		return "the other side has another secret and is of another job: give each job an address of its own"
	}
	return "the other side has another secret: give all replicas of a job the same one, " +
		"and each job an address of its own"
}

// JobError says that the other side has the secret but is of another job.
type JobError struct {
	Job string // the job of this side
}

func (e *JobError) Error() string {
	return fmt.Sprintf("this side is of job %q, the other of another: start all replicas with the same job name, "+
		"and give each job an address of its own", e.Job)
}

// WrongPeerError says that a dialer has reached another replica than the one it wants. A check returns it, and so does
// the dialer's Dial.
type WrongPeerError struct {
	Wanted, Reached int // replicas
}

func (e *WrongPeerError) Error() string {
	return fmt.Sprintf("wanted replica %d and reached replica %d: an address is out of date or given to both",
		e.Wanted, e.Reached)
}

// RefusedError says that the acceptor's check refused an authenticated dialer.
type RefusedError struct {
	Reason string // the text of the check's error. The dialer gets its first 200 bytes.
	Err    error  // the check's error; nil at the dialer
}

func (e *RefusedError) Error() string { return "refused: " + e.Reason }

func (e *RefusedError) Unwrap() error { return e.Err }

// ShortError says that a process has no file descriptor for a connection.
type ShortError struct {
	Reason string // names the process and its limit
	Err    error  // of the system; nil where the other side is short
}

func (e *ShortError) Error() string { return e.Reason }

func (e *ShortError) Unwrap() error { return e.Err }

// Shortage is the *ShortError of this process that an error of the system stands for, or nil.
func Shortage(err error) *ShortError {
	switch {
	case errors.Is(err, syscall.EMFILE):
		return &ShortError{Err: err, Reason: fmt.Sprintf("no file descriptor is left in process %d (%sRLIMIT_NOFILE): "+
			"raise its limit by ulimit -n, or have it open fewer files", os.Getpid(), descriptorLimit())}
	case errors.Is(err, syscall.ENFILE):
		return &ShortError{Err: err, Reason: fmt.Sprintf("no file is left on the host of process %d (fs.file-max): "+
			"raise its limit, or have its processes open fewer files", os.Getpid())}
	}
	return nil
}

// ErrTampered says that the acceptor has proved the secret, yet its verdict is not authentic.
var ErrTampered = errors.New("the verdict is not authentic: the bytes were changed on their way")

// TimeoutError says that the handshake had not ended after [Limit].
type TimeoutError struct {
	Stage string // what had not come or not gone
	Err   error
}

func (e *TimeoutError) Error() string {
	return fmt.Sprintf("handshake not done after %v: %s is missing: "+
		"the other side is stopped, overloaded or no replica", Limit, e.Stage)
}

func (e *TimeoutError) Unwrap() error { return e.Err }

// Timeout returns true, as that of a [net.Error].
func (e *TimeoutError) Timeout() bool { return true }

// ClosedError says that the connection ended within the handshake.
type ClosedError struct {
	Stage string // what had not come or not gone
	Err   error  // of the connection
}

func (e *ClosedError) Error() string {
	return fmt.Sprintf("connection closed within the handshake: %s is missing: %v", e.Stage, e.Err)
}

func (e *ClosedError) Unwrap() error { return e.Err }

// failure is the error for a Read or Write that failed.
func failure(stage string, err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return &TimeoutError{Stage: stage, Err: err}
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return &ClosedError{Stage: stage, Err: err}
}

// Bounded shortens a text to at most limit bytes of whole characters.
func Bounded(text string, limit int) string {
	text = strings.ToValidUTF8(text, "�")
	if len(text) <= limit {
		return text
	}
	const dots = "..."
	end := limit - len(dots)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + dots
}

// Limit is how long a handshake takes at most, whatever the other side does.
const Limit = 2 * time.Second
