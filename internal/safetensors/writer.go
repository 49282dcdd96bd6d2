package safetensors

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"unicode/utf8"

	"gogcl.dev/internal/strictjson"
	"gogcl.dev/tensor"
)

// Writer writes a file: the header at once, then the tensors in its order.
type Writer struct {
	w       io.Writer
	tensors []Tensor // the rest, the one being written first
	left    int64    // bytes of that one
	reverse bool     // the bytes of every element
	buf     []byte   // reversed ones
}

// NewWriter writes the header of a file that will have these tensors, and meta if it is not empty. What it is given
// stays the caller's. To lie where a mapped file wants them, at multiples of their sizes, the wider elements should
// come first. Errors, before anything is written: a tensor without a valid type or shape, a name twice, text that is
// not valid UTF-8, more than MaxTensors or MaxMeta, a header longer than the format allows.
func NewWriter(w io.Writer, tensors []Tensor, meta map[string]string) (*Writer, error) {
	return newWriter(w, tensors, meta, bigEndian)
}

func newWriter(w io.Writer, tensors []Tensor, meta map[string]string, reverse bool) (*Writer, error) {
	header, err := headerOf(tensors, meta, maxHeaderBytes)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(header); err != nil {
		return nil, err
	}
	wr := &Writer{w: w, tensors: slices.Clone(tensors), reverse: reverse}
	wr.begin()
	return wr, nil
}

// headerOf is the length of the header and the header, of which that is the most there may be.
func headerOf(tensors []Tensor, meta map[string]string, most int) ([]byte, error) {
	if err := CheckCounts(len(tensors), len(meta)); err != nil {
		return nil, err
	}
	b := bytes.NewBuffer(make([]byte, lengthBytes))
	b.WriteByte('{')
	if len(meta) > 0 {
		b.WriteString(`"` + metaName + `":{`)
		for i, key := range slices.Sorted(maps.Keys(meta)) {
			if err := errors.Join(CheckText(key), CheckText(meta[key])); err != nil {
				return nil, fmt.Errorf("%s: %w", metaName, err)
			}
			separate(b, i > 0)
			b.Write(strictjson.Quote(key))
			b.WriteByte(':')
			b.Write(strictjson.Quote(meta[key]))
		}
		b.WriteByte('}')
	}
	at := int64(0)
	seen := map[string]struct{}{}
	for i, t := range tensors {
		bytes, err := check(t)
		if _, again := seen[t.Name]; again {
			err = errors.New("a second one of that name")
		}
		if err == nil && at+bytes < at {
			err = errors.New("the tensors have more bytes than a file can hold")
		}
		if err != nil {
			return nil, fmt.Errorf("tensor %.100q: %w", t.Name, err)
		}
		seen[t.Name] = struct{}{}
		separate(b, i > 0 || len(meta) > 0)
		fmt.Fprintf(b, `%s:{"dtype":"%s","shape":[`, strictjson.Quote(t.Name), nameOf[t.DType])
		for j, d := range t.Shape {
			separate(b, j > 0)
			fmt.Fprint(b, d)
		}
		fmt.Fprintf(b, `],"data_offsets":[%d,%d]}`, at, at+bytes)
		at += bytes
	}
	b.WriteByte('}')
	for b.Len()%8 != 0 {
		b.WriteByte(' ')
	}
	n := b.Len() - lengthBytes
	if n > most {
		return nil, fmt.Errorf("%d tensors take a header of %d bytes, at most %d are allowed", len(tensors), n, most)
	}
	binary.LittleEndian.PutUint64(b.Bytes(), uint64(n))
	return b.Bytes(), nil
}

func separate(b *bytes.Buffer, comma bool) {
	if comma {
		b.WriteByte(',')
	}
}

// CheckText is the error of text that JSON cannot hold as it is.
func CheckText(text string) error {
	if !utf8.ValidString(text) {
		return fmt.Errorf("%.100q is not valid UTF-8", text)
	}
	return nil
}

// CheckName is the error of what cannot be the name of a tensor.
func CheckName(name string) error {
	if name == metaName {
		return errors.New("the format wants the name for itself")
	}
	return CheckText(name)
}

// check returns the bytes that a tensor takes.
func check(t Tensor) (int64, error) {
	if err := CheckName(t.Name); err != nil {
		return 0, err
	}
	if !t.DType.Valid() {
		return 0, fmt.Errorf("invalid element type %v", t.DType)
	}
	return bytesOf(t)
}

// begin is where the next tensor with bytes begins.
func (w *Writer) begin() {
	for w.left == 0 && len(w.tensors) > 0 {
		w.left, _ = bytesOf(w.tensors[0]) // which headerOf has seen
		if w.left == 0 {
			w.tensors = w.tensors[1:]
		}
	}
}

// reverseBytes are turned round at a time: as much as stays in a cache.
const reverseBytes = 64 << 10

// Write writes the next bytes of the tensor whose turn it is, as the host has them: all of it, or some whole elements.
// Those of no bytes have no turn.
func (w *Writer) Write(data []byte) error {
	if len(data) == 0 {
		return nil
	}
	if len(w.tensors) == 0 {
		return fmt.Errorf("%d bytes after the last tensor", len(data))
	}
	t := w.tensors[0]
	size := t.DType.Size()
	if int64(len(data)) > w.left || len(data)%size != 0 {
		return fmt.Errorf("tensor %.100q: %d bytes, but %d are left of %v of shape %v",
			t.Name, len(data), w.left, t.DType, t.Shape)
	}
	if t.DType == tensor.Bool && slices.ContainsFunc(data, func(b byte) bool { return b > 1 }) {
		return fmt.Errorf("tensor %.100q: a bool is 0 or 1", t.Name)
	}
	w.left -= int64(len(data))
	if w.left == 0 {
		w.tensors = w.tensors[1:]
		w.begin()
	}
	if !w.reverse {
		_, err := w.w.Write(data)
		return err
	}
	if w.buf == nil {
		w.buf = make([]byte, reverseBytes)
	}
	for len(data) > 0 {
		n := min(len(data), reverseBytes)
		reverse(w.buf[:n], data[:n], size)
		if _, err := w.w.Write(w.buf[:n]); err != nil {
			return err
		}
		data = data[n:]
	}
	return nil
}

// Done is an error unless all tensors have been written.
func (w *Writer) Done() error {
	if len(w.tensors) > 0 {
		return fmt.Errorf("tensor %.100q: %d bytes have not been written", w.tensors[0].Name, w.left)
	}
	return nil
}
