package handshake

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"gogcl.dev/internal/leaktest"
)

// TestAgree: after a handshake the connection carries data at once, both ways, without a deadline.
func TestAgree(t *testing.T) {
	for _, kind := range kinds {
		for _, secret := range [][]byte{secret, nil} {
			t.Run(fmt.Sprintf("conn=%s/secret=%d", kind.name, len(secret)), func(t *testing.T) {
				leaktest.Check(t)
				a, b := kind.make(t)
				o := both(a, b,
					func(c net.Conn) error {
						if err := Dial(c, secret, hello); err != nil {
							return err
						}
						return exchange(c, "from the dialer", "from the acceptor")
					},
					func(c net.Conn) (Hello, error) {
						h, err := Accept(c, secret, "job", func(h Hello) error {
							if h != hello {
								return fmt.Errorf("check got %+v", h)
							}
							return nil
						})
						if err != nil {
							return h, err
						}
						return h, exchange(c, "from the acceptor", "from the dialer")
					})
				if o.dialed != nil || o.accepted != nil || o.hello != hello {
					t.Errorf("%+v", o)
				}
			})
		}
	}
}

func exchange(c net.Conn, say, want string) error {
	written := make(chan error, 1)
	go func() {
		_, err := io.WriteString(c, say)
		written <- err
	}()
	got := make([]byte, len(want))
	if _, err := io.ReadFull(c, got); err != nil || string(got) != want {
		return fmt.Errorf("%q, %v, want %q", got, err, want)
	}
	return <-written
}

// TestDeadlineCleared: a connection may be silent for long after its handshake.
func TestDeadlineCleared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := net.Pipe()
		o := both(a, b,
			func(c net.Conn) error {
				err := honestly(c)
				time.Sleep(10 * Limit)
				_, writing := c.Write([]byte{1})
				return errors.Join(err, writing)
			},
			func(c net.Conn) (Hello, error) {
				h, err := honestlyAccept(c)
				_, reading := c.Read(make([]byte, 1))
				return h, errors.Join(err, reading)
			})
		if o.dialed != nil || o.accepted != nil {
			t.Errorf("%+v", o)
		}
	})
}

// TestDisagree: what differs is an error at both sides, of a type of its own.
func TestDisagree(t *testing.T) {
	full := errors.New("replica 1 is connected already, from 10.0.0.7:4242")
	long := strings.Repeat("ä", reasonSize)
	tests := []struct {
		name           string
		secret         string
		job            string
		check          func(Hello) error
		dialed, accept error
		hello          Hello // that Accept returns
	}{
		{
			name: "secret", secret: "another", job: "job",
			dialed: &SecretError{}, accept: &SecretError{},
		},
		{
			name: "no secret at the acceptor", job: "job",
			dialed: &SecretError{}, accept: &SecretError{},
		},
		{
			name: "secret and job", secret: "another", job: "another",
			dialed: &SecretError{}, accept: &SecretError{OtherJob: true},
		},
		{
			name: "job", secret: string(secret), job: "another",
			dialed: &JobError{Job: "job"}, accept: &JobError{Job: "another"},
			hello: Hello{Rank: 1, Peer: 2, Role: Data, Lane: 7},
		},
		{
			name: "peer", secret: string(secret), job: "job",
			check:  func(h Hello) error { return &WrongPeerError{Wanted: h.Peer, Reached: 3} },
			dialed: &WrongPeerError{Wanted: 2, Reached: 3}, accept: &WrongPeerError{Wanted: 2, Reached: 3},
			hello: hello,
		},
		{
			name: "check", secret: string(secret), job: "job",
			check:  func(Hello) error { return full },
			dialed: &RefusedError{Reason: full.Error()}, accept: &RefusedError{Reason: full.Error(), Err: full},
			hello: hello,
		},
		{
			name: "check without a word", secret: string(secret), job: "job",
			check:  func(Hello) error { return errEmpty },
			dialed: &RefusedError{}, accept: &RefusedError{Err: errEmpty},
			hello: hello,
		},
		{
			name: "check with many words", secret: string(secret), job: "job",
			check:  func(Hello) error { return textError(long) },
			dialed: &RefusedError{Reason: strings.Repeat("ä", 98) + "..."},
			accept: &RefusedError{Reason: long, Err: textError(long)},
			hello:  hello,
		},
		{
			name: "check with bytes that are no text", secret: string(secret), job: "job",
			check:  func(Hello) error { return textError("a\xffb") },
			dialed: &RefusedError{Reason: "a�b"}, accept: &RefusedError{Reason: "a\xffb", Err: textError("a\xffb")},
			hello: hello,
		},
	}
	for _, kind := range kinds {
		for _, tt := range tests {
			t.Run("conn="+kind.name+"/"+tt.name, func(t *testing.T) {
				a, b := kind.make(t)
				o := both(a, b, honestly, func(c net.Conn) (Hello, error) {
					return Accept(c, []byte(tt.secret), tt.job, tt.check)
				})
				if !reflect.DeepEqual(o.dialed, tt.dialed) {
					t.Errorf("Dial: %#v, want %#v", o.dialed, tt.dialed)
				}
				if !reflect.DeepEqual(o.accepted, tt.accept) {
					t.Errorf("Accept: %#v, want %#v", o.accepted, tt.accept)
				}
				if o.hello != tt.hello {
					t.Errorf("Accept: %+v, want %+v", o.hello, tt.hello)
				}
			})
		}
	}
}

// errEmpty has no text.
var errEmpty = textError("")

type textError string

func (e textError) Error() string { return string(e) }

// TestCheckRunsAuthenticated: a stranger does not reach the check.
func TestCheckRunsAuthenticated(t *testing.T) {
	for _, tt := range []struct{ secret, job string }{{"another", "job"}, {string(secret), "another"}} {
		a, b := net.Pipe()
		both(a, b, honestly, func(c net.Conn) (Hello, error) {
			return Accept(c, []byte(tt.secret), tt.job, func(Hello) error {
				t.Errorf("%+v: check was called", tt)
				return nil
			})
		})
	}
}

// TestVersions: both sides learn both numbers, whichever is newer, and the acceptor says no more than its number.
func TestVersions(t *testing.T) {
	other := func(at int, b []byte) {
		if at == 0 {
			binary.BigEndian.PutUint16(b[magicSize:], 9)
		}
	}
	a, b := net.Pipe()
	o := both(a, b, func(c net.Conn) error {
		w := &wire{Conn: c, out: other}
		err := honestly(w)
		if w.arrived.Len() != prefixSize {
			t.Errorf("the acceptor has said %d bytes, want %d", w.arrived.Len(), prefixSize)
		}
		return err
	}, honestlyAccept)
	if want := (&VersionError{Mine: Version, Theirs: 9}); !reflect.DeepEqual(o.accepted, error(want)) {
		t.Errorf("Accept: %v, want %v", o.accepted, want)
	}

	a, b = net.Pipe()
	o = both(a, b, honestly, func(c net.Conn) (Hello, error) { return honestlyAccept(&wire{Conn: c, out: other}) })
	if want := (&VersionError{Mine: Version, Theirs: 9}); !reflect.DeepEqual(o.dialed, error(want)) {
		t.Errorf("Dial: %v, want %v", o.dialed, want)
	}
}

// TestOtherProtocols: the first wrong byte ends the handshake, without an answer but to TLS, which hears that there is
// none here.
func TestOtherProtocols(t *testing.T) {
	for said, begins := range map[string]string{
		"GET / HTTP/1.1\r\n\r\n": "GET / HT",
		"\x16\x03\x01":           "\x16\x03\x01",
		"gogcx":                  "gogcx",
	} {
		conn := scripted([]byte(said))
		_, err := honestlyAccept(conn)
		if want := (&ProtocolError{Begins: []byte(begins)}); !reflect.DeepEqual(err, error(want)) {
			t.Errorf("Accept after %q: %v, want %v", said, err, want)
		}
		answer := ""
		if said[0] == handshakeRecord {
			answer = string(binary.BigEndian.AppendUint16([]byte(acceptorMagic), Version))
		}
		if conn.written.String() != answer {
			t.Errorf("Accept after %q has answered %q", said, conn.written.Bytes())
		}
		if err := honestly(scripted([]byte(said))); !isA[*ProtocolError](err) {
			t.Errorf("Dial after %q: %v", said, err)
		}
	}
	a, b := net.Pipe()
	defer b.Close()
	go b.Write([]byte{'S'})
	if _, err := honestlyAccept(a); !isA[*ProtocolError](err) {
		t.Errorf("Accept after one byte and then silence: %v", err)
	}
}

func isA[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// TestHellosThatCannotBe: Dial does not send them; Accept refuses those that an authenticated dialer sends all the
// same.
func TestHellosThatCannotBe(t *testing.T) {
	for _, h := range []Hello{
		{Job: "job", Rank: -1, Role: Data}, {Job: "job", Peer: -1, Role: Data},
		{Job: "job"}, {Job: "job", Role: Newcomer + 1},
	} {
		conn := scripted(nil)
		if err := Dial(conn, secret, h); err == nil || conn.written.Len() != 0 {
			t.Errorf("%+v: %v, %d bytes sent", h, err, conn.written.Len())
		}
		a, b := net.Pipe()
		o := both(a, b, func(c net.Conn) error { return dial(c, secret, h) }, honestlyAccept)
		if !isA[*RefusedError](o.dialed) || !isA[*RefusedError](o.accepted) {
			t.Errorf("%+v: %v, %v", h, o.dialed, o.accepted)
		}
	}
}

// TestFlips: no byte may change on its way, in either direction.
func TestFlips(t *testing.T) {
	for _, bit := range []byte{1, 0x80} {
		for k := range helloSize + macSize {
			a, b := net.Pipe()
			o := both(&wire{Conn: a, out: flip(k, bit)}, b, honestly, honestlyAccept)
			if o.dialed == nil || o.accepted == nil || o.hello != (Hello{}) {
				t.Errorf("byte %d of the dialer, bit %#x: %+v", k, bit, o)
			}
		}
		for k := range answerSize + 2 + macSize {
			a, b := net.Pipe()
			o := both(&wire{Conn: a, in: flip(k, bit)}, b, honestly, honestlyAccept)
			if o.dialed == nil || k < answerSize && o.accepted == nil {
				t.Errorf("byte %d of the acceptor, bit %#x: %+v", k, bit, o)
			}
		}
	}
}

// TestEdits: the fields of a hello cannot be swapped for others that make sense.
func TestEdits(t *testing.T) {
	job := sha256.Sum256([]byte("another"))
	for name, edit := range map[string]func(b []byte){
		"rank and peer": func(b []byte) {
			binary.BigEndian.PutUint32(b[rankAt:], 2)
			binary.BigEndian.PutUint32(b[peerAt:], 1)
		},
		"role": func(b []byte) { b[roleAt] = byte(Control) },
		"lane": func(b []byte) { binary.BigEndian.PutUint64(b[laneAt:], 8) },
		"job":  func(b []byte) { copy(b[jobAt:], job[:]) },
	} {
		a, b := net.Pipe()
		o := both(a, b, func(c net.Conn) error {
			return honestly(&wire{Conn: c, out: func(at int, b []byte) {
				if at == 0 {
					edit(b)
				}
			}})
		}, honestlyAccept)
		if !isA[*SecretError](o.dialed) || !isA[*SecretError](o.accepted) {
			t.Errorf("%s: %+v", name, o)
		}
	}
}

// TestCuts: a connection that ends anywhere is an error at both sides. The last bytes of the verdict are for the dialer
// only.
func TestCuts(t *testing.T) {
	for _, kind := range kinds {
		for k := 1; k < helloSize+macSize; k++ {
			a, b := kind.make(t)
			o := both(&wire{Conn: a, cutOut: k}, b, honestly, honestlyAccept)
			if !isA[*ClosedError](o.dialed) || !isA[*ClosedError](o.accepted) {
				t.Errorf("conn=%s: after %d bytes of the dialer: %+v", kind.name, k, o)
			}
		}
		for k := 1; k < answerSize+2+macSize; k++ {
			a, b := kind.make(t)
			o := both(&wire{Conn: a, cutIn: k}, b, honestly, honestlyAccept)
			if !isA[*ClosedError](o.dialed) || k < answerSize && !isA[*ClosedError](o.accepted) {
				t.Errorf("conn=%s: after %d bytes of the acceptor: %+v", kind.name, k, o)
			}
		}
	}
}

// TestReplay: what was once right proves nothing a second time.
func TestReplay(t *testing.T) {
	a, b := net.Pipe()
	recorder := &wire{Conn: a}
	if o := both(recorder, b, honestly, honestlyAccept); o.dialed != nil || o.accepted != nil {
		t.Fatalf("%+v", o)
	}
	if _, err := honestlyAccept(scripted(recorder.sent.Bytes())); !isA[*SecretError](err) {
		t.Errorf("Accept of a recorded dialer: %v", err)
	}
	if err := honestly(scripted(recorder.arrived.Bytes())); !isA[*SecretError](err) {
		t.Errorf("Dial of a recorded acceptor: %v", err)
	}
}

// TestReflection: neither side takes its own bytes for those of the other.
func TestReflection(t *testing.T) {
	a, b := net.Pipe()
	go func() {
		defer b.Close()
		io.Copy(b, b)
	}()
	err := honestly(a)
	a.Close()
	if p, ok := errors.AsType[*ProtocolError](err); !ok || string(p.Begins) != dialerMagic {
		t.Errorf("Dial that reached itself: %v", err)
	}

	// The proof of the acceptor comes back as that of the dialer.
	a, b = net.Pipe()
	o := both(a, b, func(c net.Conn) error {
		var nonce [nonceSize]byte
		answer := make([]byte, answerSize)
		if _, err := c.Write(appendHello(nil, hello, nonce)); err != nil {
			return err
		}
		if _, err := io.ReadFull(c, answer); err != nil {
			return err
		}
		_, err := c.Write(answer[answerSize-macSize:])
		return err
	}, honestlyAccept)
	if !isA[*SecretError](o.accepted) {
		t.Errorf("Accept of its own proof: %v", o.accepted)
	}
}

// TestRelay: replica 1 wants replica 2; a relay without the secret leads it to another listener of the job, its own
// even. Both sides find that.
func TestRelay(t *testing.T) {
	a, relayA := net.Pipe()
	relayB, b := net.Pipe()
	copied := make(chan bool)
	go func() {
		io.Copy(relayA, relayB)
		relayA.Close()
		copied <- true
	}()
	go func() {
		io.Copy(relayB, relayA)
		relayB.Close()
		copied <- true
	}()
	o := both(a, b, honestly, func(c net.Conn) (Hello, error) {
		return Accept(c, secret, "job", func(h Hello) error {
			if h.Peer != 1 {
				return &WrongPeerError{Wanted: h.Peer, Reached: 1}
			}
			return nil
		})
	})
	<-copied
	<-copied
	if !isA[*WrongPeerError](o.dialed) || !isA[*WrongPeerError](o.accepted) {
		t.Errorf("%+v", o)
	}
}

// TestSlow: however slowly bytes come, a handshake ends after Limit.
func TestSlow(t *testing.T) {
	for _, pause := range []time.Duration{0, Limit / 100, Limit / 2, 3 * Limit} {
		t.Run(fmt.Sprintf("pause=%v", pause), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				drip := func(c net.Conn, b []byte) {
					for k := range b {
						time.Sleep(pause)
						if _, err := c.Write(b[k : k+1]); err != nil {
							return
						}
					}
					io.Copy(io.Discard, c)
				}
				var nonce [nonceSize]byte
				timeOut := func(side string, err error, since time.Time) {
					t.Helper()
					timeout, ok := errors.AsType[net.Error](err)
					if !isA[*TimeoutError](err) || !ok || !timeout.Timeout() || time.Since(since) != Limit {
						t.Errorf("%s after %v: %v", side, time.Since(since), err)
					}
				}
				var drips sync.WaitGroup
				a, b := net.Pipe()
				drips.Go(func() { drip(a, appendHello(nil, hello, nonce)[:helloSize-1]) })
				since := time.Now()
				_, err := honestlyAccept(b)
				timeOut("Accept", err, since)
				a.Close()
				b.Close()

				c, d := net.Pipe()
				drips.Go(func() {
					io.ReadFull(d, make([]byte, helloSize))
					drip(d, append([]byte(acceptorMagic), 0, Version, 1, 2, 3))
				})
				since = time.Now()
				err = honestly(c)
				timeOut("Dial", err, since)
				c.Close()
				d.Close()
				drips.Wait()

				// A side that reads nothing.
				e, f := net.Pipe()
				since = time.Now()
				timeOut("Dial", honestly(e), since)
				e.Close()
				f.Close()
			})
		})
	}
}

// TestClosed: a connection that the caller itself has closed.
func TestClosed(t *testing.T) {
	a, b := connect(t, "tcp", "127.0.0.1:0")
	a.Close()
	b.Close()
	if err := honestly(a); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Dial: %v", err)
	}
	if _, err := honestlyAccept(b); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Accept: %v", err)
	}
}
