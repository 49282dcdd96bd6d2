package popops

import (
	"encoding/binary"
	"fmt"
	"math"

	"gogcl.dev/internal/kernel"
	"gogcl.dev/tensor"
)

// scaleBits is the scale as the kernel wants it: the bits of an element, of floats of 16 bits those of a float32. The
// scale must lie apart from what is written.
func (m *multi) scaleBits(written *tensor.Tensor) (uint64, error) {
	if m.verb != addTo {
		return 0, nil
	}
	if err := checkThere("scale", m.scale); err != nil {
		return 0, err
	}
	dtype := m.t.DType()
	of := m.scale.DType()
	if of != dtype && !(is16(dtype) && of == tensor.F32) {
		if is16(dtype) {
			return 0, fmt.Errorf("scale is %v, want %v or float32", of, dtype)
		}
		return 0, fmt.Errorf("scale is %v, want %v", of, dtype)
	}
	if m.scale.Len() != 1 {
		return 0, fmt.Errorf("scale has shape %v, want one element", m.scale.Shape())
	}
	if overlap(written.Bytes(), m.scale.Bytes()) {
		return 0, fmt.Errorf("t and scale share memory, want them apart")
	}
	return elementBits(m.scale.Bytes(), of), nil
}

// elementBits is the bits of one element, a float of 16 bits made a float32.
func elementBits(b []byte, of tensor.DType) uint64 {
	var bits uint64
	switch len(b) {
	case 1:
		bits = uint64(b[0])
	case 2:
		bits = uint64(binary.NativeEndian.Uint16(b))
	case 4:
		bits = uint64(binary.NativeEndian.Uint32(b))
	case 8:
		bits = binary.NativeEndian.Uint64(b)
	}
	switch of {
	case tensor.F16:
		return uint64(math.Float32bits(kernel.F16ToF32(uint16(bits))))
	case tensor.BF16:
		return uint64(math.Float32bits(kernel.BF16ToF32(uint16(bits))))
	}
	return bits
}
