package streamsim

import (
	"encoding/binary"
	"hash/crc32"
	"math/rand/v2"

	"gogcl.dev/transport"
)

// liar is what makes a replica's node, which is honest, lie: some of its headers and control messages are changed on
// the way, and some are made up.
type liar struct {
	rng   *rand.Rand
	left  int // headers, and
	words int // control messages, before the next lie
	lies  int // that are still to come
	told  int
}

func newLiar(rng *rand.Rand) *liar {
	l := &liar{rng: rng, lies: 1 + rng.IntN(3)}
	l.again()
	return l
}

func (l *liar) again() { l.left, l.words = l.rng.IntN(12), l.rng.IntN(8) }

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// changeHeader changes a header that has been sent on a pipe, or not. It returns how it lies then, if the receiver must
// find that. With spoil the checksum of the payload is to be changed.
func (l *liar) changeHeader(p *pipe, b []byte) (lie string, spoil bool) {
	if l.lies == 0 {
		return "", false
	}
	if l.left--; l.left >= 0 {
		return "", false
	}
	l.lies--
	l.told++
	l.again()
	random := l.rng
	length := binary.LittleEndian.Uint64(b[lengthAt:])
	summed := b[flagsAt]&summedFlag != 0
	message := b[flagsAt]&creditsFlag == 0
	sum := true // the header's checksum is made right
	switch random.IntN(9) {
	case 0:
		sum, lie = false, "noise"
		for i := range b[:headerBytes] {
			b[i] = byte(random.Uint32())
		}
	case 1:
		sum, lie = false, "a bit"
		b[random.IntN(headerBytes)] ^= 1 << random.IntN(8)
	case 2:
		lie = "version"
		b[2] += byte(1 + random.IntN(255))
	case 3:
		lie = "flags"
		b[flagsAt] |= 1 << (2 + random.IntN(6))
	case 4: // more has been read than was sent
		read := binary.LittleEndian.Uint16(b[readAt:])
		back := p.from.in // of which it has read so many
		if uint64(back.whole) < 1<<15 {
			read = uint16(back.whole) + uint16(back.unread) + 1 + uint16(random.IntN(3))
		}
		binary.LittleEndian.PutUint16(b[readAt:], read+uint16(random.IntN(2)))
	case 5:
		if message {
			lie = "length"
			lengths := []uint64{0, length - 1, length + 1, length + 64, 1 << 31, 1 << 32, 1 << 62, 1 << 63, 1<<64 - 1}
			binary.LittleEndian.PutUint64(b[lengthAt:], lengths[random.IntN(len(lengths))])
			if binary.LittleEndian.Uint64(b[lengthAt:]) == length {
				lie = ""
			}
		}
	case 6:
		lie = "the call"
		b[callAt+random.IntN(transport.CallBytes)] ^= 1 << random.IntN(8)
	case 7:
		if message {
			lie = "the tag"
			tag := binary.LittleEndian.Uint16(b[tagAt:])
			binary.LittleEndian.PutUint16(b[tagAt:], tag+1000+uint16(random.IntN(60000)))
		}
	case 8:
		if message && summed && length > 0 {
			spoil = true
		}
	}
	if sum {
		binary.LittleEndian.PutUint32(b[crcAt:], crc32.Checksum(b[:crcAt], castagnoli))
	}
	p.w.note("replica %d lies in a header to %d: %s", p.from.node.rank, p.to.node.rank, lie)
	return lie, spoil
}

// fixed are the lengths of control messages about a lane that have one, without the kind and the lane.
var fixed = map[byte]int{3: transport.CallBytes, 10: 4, 12: transport.CallBytes, 13: transport.CallBytes}

// tell sends a control message of the replica as it is, or changed, or with another one before it.
func (l *liar) tell(n *node, peer int, m []byte) {
	if l.words--; l.words >= 0 || l.lies == 0 {
		n.send(peer, m, "")
		return
	}
	l.lies--
	l.told++
	l.again()
	random := l.rng
	lane := uint64(1)
	if len(m) >= 9 && m[0] != 1 {
		lane = binary.LittleEndian.Uint64(m[1:])
	}
	about := func(kind byte, more ...byte) []byte {
		return append(binary.LittleEndian.AppendUint64([]byte{kind}, lane), more...)
	}
	noise := func(n int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(random.Uint32())
		}
		return b
	}
	u64 := binary.LittleEndian.AppendUint64
	switch random.IntN(10) {
	case 0: // anything
		n.send(peer, noise(random.IntN(100)), "")
	case 1:
		kind := []byte{0, 16, 17, 99, 255}[random.IntN(5)]
		n.send(peer, append([]byte{kind}, noise(random.IntN(60))...), "no such kind")
	case 2:
		kind := byte(2 + random.IntN(12))
		if kind == 7 {
			kind = 2
		}
		n.send(peer, append([]byte{kind}, noise(random.IntN(8))...), "too short")
	case 3:
		kind := []byte{3, 10, 12, 13}[random.IntN(4)]
		size := fixed[kind] + 1 + random.IntN(20)
		if random.IntN(2) == 0 {
			size = random.IntN(fixed[kind])
		}
		n.send(peer, about(kind, noise(size)...), "a wrong length")
	case 4: // credit that it was not given
		lane = 1
		n.send(peer, about(4, u64(nil, 1<<(20+random.IntN(44)))...), "credit for messages that were never sent")
	case 5: // that it leaves, with so many messages sent and read, and calls cut off
		size := 17 + transport.CallBytes*random.IntN(20)
		if random.IntN(2) == 0 {
			size += 1 + random.IntN(transport.CallBytes-1)
		}
		b := noise(size)
		lie := ""
		if (size-17)%transport.CallBytes != 0 {
			lie = "a call cut off"
		}
		n.send(peer, about(2, b...), lie)
	case 6: // that it waits in a call which nobody makes
		call := transport.Call{Group: random.Uint64N(3) + 1, Seq: random.Uint64N(4), Count: random.Uint64()}
		n.send(peer, transport.AppendCall(about(3), call), "")
	case 7: // an abort by a replica that there is not
		by := uint32(len(n.w.nodes) + random.IntN(100))
		b := transport.AppendError(binary.LittleEndian.AppendUint32([]byte{1}, by), errBoom)
		n.send(peer, b, "an abort by nobody")
	case 8: // probes with any path
		b := about(8, noise(4)...)
		b = append(b, byte(random.IntN(6)))
		b = append(b, noise(8)...)
		for range random.IntN(5) {
			b = binary.LittleEndian.AppendUint32(b, uint32(random.IntN(len(n.w.nodes)+1)))
			b = transport.AppendCall(b, transport.Call{Group: random.Uint64(), Seq: random.Uint64N(5)})
		}
		n.send(peer, b, "")
	case 9: // lanes that nobody opens
		for range 1 + random.IntN(20) {
			lane = random.Uint64()
			n.send(peer, about([]byte{3, 6}[random.IntN(2)], transport.AppendCall(nil, transport.Call{})...), "")
		}
	}
	n.send(peer, m, "")
}
