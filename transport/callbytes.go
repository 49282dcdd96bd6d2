package transport

import "encoding/binary"

// CallBytes is the length of a Call as it travels.
const CallBytes = 44

// AppendCall appends a call in the form in which it travels: CallBytes bytes, all numbers little endian.
func AppendCall(b []byte, c Call) []byte {
	b = binary.LittleEndian.AppendUint64(b, c.Group)
	b = binary.LittleEndian.AppendUint64(b, c.Seq)
	b = binary.LittleEndian.AppendUint64(b, c.Count)
	b = binary.LittleEndian.AppendUint64(b, c.Digest)
	b = binary.LittleEndian.AppendUint32(b, c.Root)
	b = binary.LittleEndian.AppendUint32(b, c.Round)
	return append(b, c.Collective, c.Operator, c.DType, c.Method)
}

// ParseCall is the inverse of AppendCall. Of fewer than CallBytes bytes it makes the zero Call.
func ParseCall(b []byte) Call {
	if len(b) < CallBytes {
		return Call{}
	}
	return Call{
		Group:  binary.LittleEndian.Uint64(b),
		Seq:    binary.LittleEndian.Uint64(b[8:]),
		Count:  binary.LittleEndian.Uint64(b[16:]),
		Digest: binary.LittleEndian.Uint64(b[24:]),
		Root:   binary.LittleEndian.Uint32(b[32:]),
		Round:  binary.LittleEndian.Uint32(b[36:]),

		Collective: b[40], Operator: b[41], DType: b[42], Method: b[43],
	}
}
