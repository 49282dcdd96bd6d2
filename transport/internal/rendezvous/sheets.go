package rendezvous

import (
	"crypto/sha256"

	"gogcl.dev/transport/internal/handshake"
)

// visitorSheet is the body of a file of any replica but 0.
type visitorSheet struct {
	echoes []nonce           // of replica 0: the sheets that it has read. At most maxEchoes.
	got    [sha256.Size]byte // the table that it has got
	here   here
}

// hostSheet is the body of a file of replica 0.
type hostSheet struct {
	step   tag     // tagHere while it waits
	self   string  // where it is
	echoes []nonce // of other replicas 0
	roster []id    // the processes for which the rest is
	rest   []byte  // a table, the hash of one, an Error
}

// maxEchoes bounds how many replicas 0 are known: one, and those that killed runs have left. Those read last stay.
const maxEchoes = 1024

// maxRoster bounds how many processes a sheet is for.
const maxRoster = 4 * MaxSize

// The longest bodies.
const maxVisitorSheet = 4 + 16*maxEchoes + sha256.Size + maxHere

func maxHostSheet(size int) int {
	return 1 + 1 + maxSelf + 4 + 16*maxEchoes + 4 + (4+16)*maxRoster + max(maxTable(size), maxError)
}

func appendEchoes(b []byte, echoes []nonce) []byte {
	b = appendUint32(b, len(echoes))
	for _, n := range echoes {
		b = append(b, n[:]...)
	}
	return b
}

func (f *fields) echoes() []nonce {
	var echoes []nonce
	for range f.length(maxEchoes) {
		if n := f.bytes(len(nonce{})); n != nil {
			echoes = append(echoes, nonce(n))
		}
	}
	return echoes
}

func appendVisitorSheet(b []byte, s visitorSheet) []byte {
	b = append(appendEchoes(b, s.echoes), s.got[:]...)
	return appendHere(b, s.here)
}

func parseVisitorSheet(b []byte) (s visitorSheet, err error) {
	f := fields{b}
	s.echoes = f.echoes()
	copy(s.got[:], f.bytes(len(s.got)))
	rest := f.rest()
	if f.short() {
		return visitorSheet{}, errMalformed("a replica's file")
	}
	s.here, err = parseHere(rest)
	return s, err
}

func appendHostSheet(b []byte, s hostSheet) []byte {
	b = append(b, byte(s.step), byte(len(s.self)))
	b = appendEchoes(append(b, s.self...), s.echoes)
	b = appendUint32(b, len(s.roster))
	for _, of := range s.roster {
		b = append(appendUint32(b, of.rank), of.nonce[:]...)
	}
	return append(b, s.rest...)
}

func parseHostSheet(b []byte) (s hostSheet, err error) {
	f := fields{b}
	s.step = tag(f.uint8())
	s.self = handshake.Bounded(string(f.bytes(int(f.uint8()))), maxSelf)
	s.echoes = f.echoes()
	for range f.length(maxRoster) {
		of := id{rank: f.length(1<<31 - 1)}
		copy(of.nonce[:], f.bytes(len(of.nonce)))
		if f.short() {
			break
		}
		s.roster = append(s.roster, of)
	}
	s.rest = f.rest()
	if f.short() {
		return hostSheet{}, errMalformed("replica 0's file")
	}
	return s, nil
}

// echo adds a nonce to those that were read, if it is new.
func echo(echoes []nonce, n nonce) (longer []nonce, isNew bool) {
	for _, have := range echoes {
		if have == n {
			return echoes, false
		}
	}
	if len(echoes) == maxEchoes {
		echoes = echoes[1:]
	}
	return append(echoes, n), true
}
