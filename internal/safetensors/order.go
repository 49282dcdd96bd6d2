package safetensors

import "encoding/binary"

// bigEndian says that the host's order of bytes is not the format's.
var bigEndian = binary.NativeEndian.Uint16([]byte{0, 1}) == 1

// reverse turns the bytes of every element of b round, between big endian and little. src and dst may be the same.
func reverse(dst, src []byte, size int) {
	switch size {
	case 1:
		copy(dst, src)
	case 2:
		for i := 0; i < len(src); i += 2 {
			binary.BigEndian.PutUint16(dst[i:], binary.LittleEndian.Uint16(src[i:]))
		}
	case 4:
		for i := 0; i < len(src); i += 4 {
			binary.BigEndian.PutUint32(dst[i:], binary.LittleEndian.Uint32(src[i:]))
		}
	case 8:
		for i := 0; i < len(src); i += 8 {
			binary.BigEndian.PutUint64(dst[i:], binary.LittleEndian.Uint64(src[i:]))
		}
	}
}
