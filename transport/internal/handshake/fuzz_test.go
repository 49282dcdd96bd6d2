package handshake

import (
	"bytes"
	"errors"
	"io"
	"net"
	"testing"
)

// recorded returns what the two sides of an honest handshake have said.
func recorded(f *testing.F) (dialer, acceptor []byte) {
	a, b := net.Pipe()
	w := &wire{Conn: a}
	if o := both(w, b, honestly, honestlyAccept); o.dialed != nil || o.accepted != nil {
		f.Fatalf("%+v", o)
	}
	return w.sent.Bytes(), w.arrived.Bytes()
}

// FuzzAccept: without the secret nobody is accepted, whatever they say, and nobody reaches the check.
func FuzzAccept(f *testing.F) {
	dialer, _ := recorded(f)
	f.Add(dialer)
	f.Add(dialer[:helloSize])
	f.Add([]byte("GET / HTTP/1.1\r\n"))
	f.Fuzz(func(t *testing.T, said []byte) {
		conn := scripted(said)
		h, err := Accept(conn, secret, "job", func(Hello) error {
			t.Error("check was called")
			return nil
		})
		if err == nil || h != (Hello{}) {
			t.Errorf("accepted %+v", h)
		}
		if conn.written.Len() > answerSize {
			t.Errorf("said %d bytes", conn.written.Len())
		}
	})
}

// FuzzDial: without the secret nobody passes for an acceptor, and nobody gets a proof.
func FuzzDial(f *testing.F) {
	_, acceptor := recorded(f)
	f.Add(acceptor)
	f.Add(acceptor[:answerSize])
	f.Add([]byte("HTTP/1.1 400 Bad Request\r\n"))
	f.Fuzz(func(t *testing.T, said []byte) {
		conn := scripted(said)
		if err := honestly(conn); err == nil {
			t.Error("dialed")
		}
		proof := conn.written.Bytes()[helloSize:]
		if len(proof) > 0 && !bytes.Equal(proof, make([]byte, macSize)) {
			t.Errorf("the proof is %x", proof)
		}
	})
}

// FuzzHello: a dialer that has the secret says a hello of any bytes.
func FuzzHello(f *testing.F) {
	var nonce [nonceSize]byte
	f.Add(appendHello(nil, hello, nonce)[prefixSize:])
	f.Add([]byte{0, 1, 255, 255, 255, 255, 255, 255, 255, 255})
	f.Fuzz(func(t *testing.T, rest []byte) {
		var first [helloSize]byte
		copy(first[:], appendHello(nil, hello, nonce)[:prefixSize])
		copy(first[prefixSize:], rest)
		a, b := net.Pipe()
		o := both(a, b, func(c net.Conn) error {
			said := transcript{first[:]}
			if _, err := c.Write(first[:]); err != nil {
				return err
			}
			answer := make([]byte, answerSize)
			if _, err := io.ReadFull(c, answer); err != nil {
				return err
			}
			said.bytes = append(said.bytes, answer...)
			proof := said.prove(secret, dialerLabel)
			said.bytes = append(said.bytes, proof...)
			if _, err := c.Write(proof); err != nil {
				return err
			}
			return readVerdict(c, secret, hello, said)
		}, honestlyAccept)
		if h := o.hello; o.accepted == nil && (h.Job != "job" || h.validate() != nil) {
			t.Errorf("accepted %+v", h)
		}
		if (o.dialed == nil) != (o.accepted == nil) {
			t.Errorf("%+v", o)
		}
	})
}

// FuzzVerdict: an acceptor that has the secret says a verdict of any bytes.
func FuzzVerdict(f *testing.F) {
	for _, refusal := range []error{nil, &JobError{}, &WrongPeerError{Reached: 3}, &RefusedError{Reason: "why"}} {
		f.Add(appendVerdict(nil, refusal))
	}
	f.Add([]byte{refused, 255})
	f.Fuzz(func(t *testing.T, verdict []byte) {
		var said transcript
		mac := (&transcript{verdict}).prove(secret, verdictLabel)
		err := readVerdict(scripted(append(bytes.Clone(verdict), mac...)), secret, hello, said)
		if err == nil && !bytes.Equal(verdict[:2], []byte{accepted, 0}) {
			t.Errorf("%x is taken for a yes", verdict)
		}
		if r, ok := errors.AsType[*RefusedError](err); ok && len(r.Reason) > 3*reasonSize {
			t.Errorf("a reason of %d bytes", len(r.Reason))
		}
	})
}
