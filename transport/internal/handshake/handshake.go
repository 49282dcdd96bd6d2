package handshake

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"net"
	"strings"
	"time"
)

// Dial begins a connection on the side that has dialed it. It returns nil when the acceptor has proved the secret and
// accepts hello. It takes [Limit] at most, and replaces and clears the deadlines of conn.
//
// The error is a *[ProtocolError], *[VersionError], *[SecretError], *[JobError], *[WrongPeerError], *[RefusedError],
// *[ShortError], *[TimeoutError], *[ClosedError] or [ErrTampered], or says that hello cannot be sent.
func Dial(conn net.Conn, secret []byte, hello Hello) error {
	if err := hello.validate(); err != nil {
		return err
	}
	return within(conn, func() error { return dial(conn, secret, hello) })
}

func dial(conn net.Conn, secret []byte, hello Hello) error {
	var nonce [nonceSize]byte
	rand.Read(nonce[:])
	said := transcript{appendHello(nil, hello, nonce)}
	if err := write(conn, "the hello", said.bytes); err != nil {
		return err
	}

	var answer [answerSize]byte
	if err := readPrefix(conn, "the answer", acceptorMagic, answer[:prefixSize]); err != nil {
		return err
	}
	if err := checkVersion(answer[:]); err != nil {
		return err
	}
	if err := read(conn, "the answer", answer[prefixSize:]); err != nil {
		return err
	}
	said.bytes = append(said.bytes, answer[:answerSize-macSize]...)
	if !said.isProof(secret, acceptorLabel, answer[answerSize-macSize:]) {
		// The acceptor takes zeros for another secret. An impostor gets no HMAC to try secrets on.
		_ = write(conn, "the proof", make([]byte, macSize))
		return &SecretError{}
	}
	said.bytes = append(said.bytes, answer[answerSize-macSize:]...)
	proof := said.prove(secret, dialerLabel)
	if err := write(conn, "the proof", proof); err != nil {
		return err
	}
	said.bytes = append(said.bytes, proof...)
	return readVerdict(conn, secret, hello, said)
}

// readVerdict reads what the acceptor says to an authenticated dialer.
func readVerdict(conn net.Conn, secret []byte, hello Hello, said transcript) error {
	var verdict [2 + reasonSize + macSize]byte
	if err := read(conn, "the verdict", verdict[:2]); err != nil {
		return err
	}
	length := int(verdict[1])
	if length > reasonSize {
		return ErrTampered
	}
	if err := read(conn, "the verdict", verdict[2:2+length+macSize]); err != nil {
		return err
	}
	text := verdict[2 : 2+length]
	said.bytes = append(said.bytes, verdict[:2+length]...)
	if !said.isProof(secret, verdictLabel, verdict[2+length:2+length+macSize]) {
		return ErrTampered
	}
	switch code := verdict[0]; {
	case code == accepted && length == 0:
		return nil
	case code == otherJob && length == 0:
		return &JobError{Job: hello.Job}
	case code == wrongPeer && length == 4:
		return &WrongPeerError{Wanted: hello.Peer, Reached: int(binary.BigEndian.Uint32(text) & math.MaxInt32)}
	case code == short:
		return &ShortError{Reason: strings.ToValidUTF8(string(text), "�")}
	case code == refused:
		return &RefusedError{Reason: strings.ToValidUTF8(string(text), "�")}
	}
	return ErrTampered
}

// Accept begins a connection on the side that has accepted it. job is the only job that it takes. check runs when the
// dialer has proved the secret and named this job: it refuses a rank out of range, a duplicate, a wrong peer
// (*[WrongPeerError]), and the dialer is told its reason. It must not wait. A nil check refuses nothing. The connection
// may still fail after check has returned nil, so what check has reserved is given back when Accept returns an error.
//
// Accept takes [Limit] at most, and replaces and clears the deadlines of conn.
//
// The error is a *[ProtocolError], *[VersionError], *[SecretError], *[JobError], *[WrongPeerError], *[RefusedError],
// *[ShortError], *[TimeoutError] or *[ClosedError]. The Hello is what an authenticated dialer has said. With a
// *JobError its Job is empty; with an error from before the dialer was authenticated, it is the zero Hello.
func Accept(conn net.Conn, secret []byte, job string, check func(Hello) error) (Hello, error) {
	var hello Hello
	err := within(conn, func() (err error) {
		hello, err = accept(conn, secret, job, check)
		return err
	})
	return hello, err
}

func accept(conn net.Conn, secret []byte, job string, check func(Hello) error) (Hello, error) {
	var first [helloSize]byte
	if err := readPrefix(conn, "the hello", dialerMagic, first[:prefixSize]); err != nil {
		if other, ok := errors.AsType[*ProtocolError](err); ok && other.Begins[0] == handshakeRecord {
			tellNoTLS(conn)
		}
		return Hello{}, err
	}
	if err := read(conn, "the hello", first[prefixSize:]); err != nil {
		return Hello{}, err
	}
	said := transcript{append([]byte(nil), first[:]...)}

	answer := binary.BigEndian.AppendUint16([]byte(acceptorMagic), Version)
	if err := checkVersion(first[:]); err != nil {
		_ = write(conn, "the answer", answer)
		return Hello{}, err
	}
	var nonce [nonceSize]byte
	rand.Read(nonce[:])
	answer = append(answer, nonce[:]...)
	said.bytes = append(said.bytes, answer...)
	mac := said.prove(secret, acceptorLabel)
	said.bytes = append(said.bytes, mac...)
	if err := write(conn, "the answer", append(answer, mac...)); err != nil {
		return Hello{}, err
	}

	var proof [macSize]byte
	if err := read(conn, "the proof", proof[:]); err != nil {
		return Hello{}, err
	}
	if !said.isProof(secret, dialerLabel, proof[:]) {
		return Hello{}, &SecretError{OtherJob: !isOfJob(first[:], job)}
	}
	said.bytes = append(said.bytes, proof[:]...)

	// The dialer is authenticated.
	hello, refusal := judge(first[:], job, check)
	verdict := appendVerdict(nil, refusal)
	said.bytes = append(said.bytes, verdict...)
	err := write(conn, "the verdict", append(verdict, said.prove(secret, verdictLabel)...))
	if refusal != nil {
		return hello, refusal
	}
	return hello, err
}

// judge decides on an authenticated hello. Its error is a *JobError, *WrongPeerError, *ShortError or *RefusedError.
func judge(first []byte, job string, check func(Hello) error) (Hello, error) {
	hello, err := parseHello(first)
	if !isOfJob(first, job) {
		return hello, &JobError{Job: job}
	}
	hello.Job = job
	if err == nil && check != nil {
		err = check(hello)
	}
	if err == nil {
		return hello, nil
	}
	if wrong, ok := errors.AsType[*WrongPeerError](err); ok {
		return hello, wrong
	}
	if short, ok := errors.AsType[*ShortError](err); ok {
		return hello, short
	}
	return hello, &RefusedError{Reason: err.Error(), Err: err}
}

// appendVerdict appends the code and the text for what judge decided.
func appendVerdict(b []byte, refusal error) []byte {
	switch refusal := refusal.(type) {
	case nil:
		return append(b, accepted, 0)
	case *JobError:
		return append(b, otherJob, 0)
	case *WrongPeerError:
		return binary.BigEndian.AppendUint32(append(b, wrongPeer, 4), uint32(refusal.Reached))
	case *ShortError:
		return appendReason(append(b, short), refusal.Reason)
	default:
		return appendReason(append(b, refused), refusal.(*RefusedError).Reason)
	}
}

func appendReason(b []byte, reason string) []byte {
	reason = Bounded(reason, reasonSize)
	return append(append(b, uint8(len(reason))), reason...)
}

// within runs one side of a handshake under its deadline, and clears the deadline.
func within(conn net.Conn, side func() error) error {
	if err := conn.SetDeadline(time.Now().Add(Limit)); err != nil {
		return failure("everything", err)
	}
	err := side()
	// A closed connection refuses. Whoever uses it next finds that.
	_ = conn.SetDeadline(time.Time{})
	return err
}

// readPrefix reads the magic and the version. It looks at each byte of the magic as it comes, so that another protocol
// is known by its first bytes, however few they are.
func readPrefix(conn net.Conn, stage, magic string, dst []byte) error {
	for have := 0; have < len(dst); {
		n, err := conn.Read(dst[have:])
		have += n
		if seen := dst[:min(have, magicSize)]; !strings.HasPrefix(magic, string(seen)) {
			return &ProtocolError{Begins: append([]byte(nil), seen...)}
		}
		if err != nil && have < len(dst) {
			return failure(stage, err)
		}
	}
	return nil
}

// checkVersion compares the version that follows a magic with this one.
func checkVersion(prefix []byte) error {
	if theirs := binary.BigEndian.Uint16(prefix[magicSize:]); theirs != Version {
		return &VersionError{Mine: Version, Theirs: theirs}
	}
	return nil
}

func read(conn net.Conn, stage string, dst []byte) error {
	if _, err := io.ReadFull(conn, dst); err != nil {
		return failure(stage, err)
	}
	return nil
}

func write(conn net.Conn, stage string, src []byte) error {
	if _, err := conn.Write(src); err != nil {
		return failure(stage, err)
	}
	return nil
}
