package safetensors

import (
	"bytes"
	"encoding/binary"
	"maps"
	"testing"

	"gogcl.dev/tensor"
)

// FuzzRead reads a file of this header and this data, with the right length before them or the one given. What is found
// in it is in it: it can be read, fills the data to the last byte, and is the same when it is written and read again.
func FuzzRead(f *testing.F) {
	good := write(f, []Tensor{{"w", tensor.F32, tensor.Shape{2, 3}}, {"b", tensor.Bool, tensor.Shape{3}},
		{"e", tensor.U8, tensor.Shape{0}}},
		map[string]string{"a": "b"}, false)
	n := lengthBytes + int(binary.LittleEndian.Uint64(good))
	f.Add(uint64(0), good[lengthBytes:n], good[n:])
	f.Add(uint64(50), good[lengthBytes:n], good[n:])
	f.Add(uint64(0), []byte(`{"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"I64","shape":[],"data_offsets":[4,12]}}`), good[:12])
	f.Fuzz(func(t *testing.T, length uint64, header, data []byte) {
		if length == 0 {
			length = uint64(len(header))
		}
		b := append(append(binary.LittleEndian.AppendUint64(nil, length), header...), data...)
		file, err := readBytes(b)
		if err != nil {
			return
		}
		var again bytes.Buffer
		w, err := NewWriter(&again, file.Tensors(), file.Meta())
		if err != nil {
			t.Fatal(err)
		}
		total, bools := 0, true
		for _, x := range file.Tensors() {
			n, err := bytesOf(x)
			if err != nil {
				t.Fatal(err)
			}
			total += int(n)
			got := make([]byte, n)
			if err := file.ReadAt(x, 0, got); err != nil && x.DType != tensor.Bool {
				t.Fatal(err)
			} else if err != nil {
				bools = false
				clear(got)
			}
			if err := w.Write(got); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Done(); err != nil {
			t.Fatal(err)
		}
		if want := len(b) - lengthBytes - int(length); total != want {
			t.Fatalf("tensors have %d bytes, the data %d", total, want)
		}
		second, err := readBytes(again.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		if !maps.Equal(second.Meta(), file.Meta()) || len(second.Tensors()) != len(file.Tensors()) {
			t.Fatalf("%v and %v, want %v and %v", second.Meta(), second.Tensors(), file.Meta(), file.Tensors())
		}
		for i, x := range second.Tensors() {
			if y := file.Tensors()[i]; x.Name != y.Name || x.DType != y.DType || !x.Shape.Equal(y.Shape) {
				t.Fatalf("%v, want %v", x, y)
			}
		}
		if bools && !bytes.Equal(again.Bytes()[again.Len()-total:], b[len(b)-total:]) {
			t.Fatal("other data than was read")
		}
	})
}
