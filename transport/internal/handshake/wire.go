package handshake

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
)

// Version is the version of the handshake and of what follows it.
const Version = 5

// The first 8 bytes of each direction. No text protocol begins like this, and no side takes its own bytes for an
// answer.
const (
	dialerMagic   = "gogcl\x00\r>"
	acceptorMagic = "gogcl\x00\r<"
)

// Sizes in bytes. helloSize and prefixSize are the same in all versions.
const (
	magicSize  = 8
	prefixSize = magicSize + 2 // magic and version
	helloSize  = 128
	nonceSize  = 32
	macSize    = sha256.Size
	answerSize = prefixSize + nonceSize + macSize
	reasonSize = 200 // the longest text of a verdict
)

// The layout of a hello. What is not named is zero.
const (
	roleAt  = 11
	rankAt  = 12
	peerAt  = 16
	laneAt  = 24
	jobAt   = 32
	nonceAt = 64
)

// The labels of the three proofs.
const (
	acceptorLabel = "gogcl handshake acceptor\x00"
	dialerLabel   = "gogcl handshake dialer\x00"
	verdictLabel  = "gogcl handshake verdict\x00"
)

// The codes of a verdict.
const (
	accepted  = 1
	otherJob  = 2
	wrongPeer = 3 // the text is the rank of the acceptor, 4 bytes
	refused   = 4 // the text is the reason
	short     = 5 // the acceptor has no descriptor; the text says whose limit that is
)

// Role is what a connection is for.
type Role uint8

// The roles. The zero Role is none.
const (
	Rendezvous Role = iota + 1 // replicas find each other
	Control                    // one connection a pair of processes
	Data                       // one connection a pair and lane
	Newcomer                   // who wants to come into a job that runs asks where its replicas are
)

func (r Role) String() string {
	switch r {
	case Rendezvous:
		return "rendezvous"
	case Control:
		return "control"
	case Data:
		return "data"
	case Newcomer:
		return "newcomer"
	}
	return fmt.Sprintf("role %d", uint8(r))
}

// Hello is what a dialer says about a connection.
type Hello struct {
	Job  string // of any length; its SHA-256 travels
	Rank int    // the replica that dials
	Peer int    // the replica that it wants
	Role Role
	Lane uint64 // of a Data connection; of a Control connection the dialer's attempt
}

// validate reports a hello that cannot be sent.
func (h Hello) validate() error {
	switch {
	case h.Rank < 0 || h.Rank > math.MaxInt32 || h.Peer < 0 || h.Peer > math.MaxInt32:
		return fmt.Errorf("replica %d cannot dial replica %d: a replica's number is from 0 to %d",
			h.Rank, h.Peer, math.MaxInt32)
	case h.Role < Rendezvous || h.Role > Newcomer:
		return fmt.Errorf("%v is unknown", h.Role)
	}
	return nil
}

// appendHello appends the bytes of a hello.
func appendHello(b []byte, h Hello, nonce [nonceSize]byte) []byte {
	var out [helloSize]byte
	copy(out[:], dialerMagic)
	binary.BigEndian.PutUint16(out[magicSize:], Version)
	out[roleAt] = uint8(h.Role)
	binary.BigEndian.PutUint32(out[rankAt:], uint32(h.Rank))
	binary.BigEndian.PutUint32(out[peerAt:], uint32(h.Peer))
	binary.BigEndian.PutUint64(out[laneAt:], h.Lane)
	job := sha256.Sum256([]byte(h.Job))
	copy(out[jobAt:], job[:])
	copy(out[nonceAt:], nonce[:])
	return append(b, out[:]...)
}

// parseHello takes a hello apart, apart from its job. Its error is for an authenticated dialer.
func parseHello(b []byte) (Hello, error) {
	rank, peer := binary.BigEndian.Uint32(b[rankAt:]), binary.BigEndian.Uint32(b[peerAt:])
	if rank > math.MaxInt32 || peer > math.MaxInt32 {
		return Hello{}, fmt.Errorf("replica %d wants replica %d: a replica's number is at most %d",
			rank, peer, math.MaxInt32)
	}
	h := Hello{
		Rank: int(rank),
		Peer: int(peer),
		Role: Role(b[roleAt]),
		Lane: binary.BigEndian.Uint64(b[laneAt:]),
	}
	return h, h.validate()
}

// isOfJob reports whether the bytes of a hello name a job.
func isOfJob(b []byte, job string) bool {
	want := sha256.Sum256([]byte(job))
	return hmac.Equal(b[jobAt:jobAt+sha256.Size], want[:])
}

// transcript is all that was said, in order.
type transcript struct {
	bytes []byte
}

// prove is the HMAC of a label and the transcript.
func (t *transcript) prove(secret []byte, label string) []byte {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(label))
	mac.Write(t.bytes)
	return mac.Sum(nil)
}

// isProof compares in constant time.
func (t *transcript) isProof(secret []byte, label string, proof []byte) bool {
	return hmac.Equal(t.prove(secret, label), proof)
}
