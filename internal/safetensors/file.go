package safetensors

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"gogcl.dev/internal/strictjson"
	"gogcl.dev/tensor"
)

const (
	lengthBytes = 8

	// maxHeaderBytes is MAX_HEADER_SIZE of the reference implementation (safetensors/src/tensor.rs).
	maxHeaderBytes = 100_000_000

	// metaName is the name of the map of strings, which no tensor can have.
	metaName = "__metadata__"
)

// Limits that the format has not got, far from what models have: they keep what a hostile file takes a small multiple
// of its header. The Writer keeps to them too.
const (
	// MaxRank is how many dimensions a shape may have: as many as in NumPy (NPY_MAXDIMS of numpy 2, ndarraytypes.h) and
	// in PyTorch.
	MaxRank = 64

	// MaxTensors is how many tensors may be in a file: ten times those of the largest public models.
	MaxTensors = 1 << 20

	// MaxMeta is how many strings may be in the map of a file.
	MaxMeta = 1 << 16
)

// CheckShape is the error of a shape of more than MaxRank dimensions.
func CheckShape(shape tensor.Shape) error {
	if len(shape) > MaxRank {
		return fmt.Errorf("a shape of %d dimensions, at most %d are allowed", len(shape), MaxRank)
	}
	return nil
}

// CheckCounts is the error of more than MaxTensors tensors, or MaxMeta strings.
func CheckCounts(tensors, meta int) error {
	if tensors > MaxTensors {
		return fmt.Errorf("%d tensors, at most %d are allowed", tensors, MaxTensors)
	}
	if meta > MaxMeta {
		return fmt.Errorf("%d strings in the map, at most %d are allowed", meta, MaxMeta)
	}
	return nil
}

// Tensor is what a file says of a tensor.
type Tensor struct {
	Name  string
	DType tensor.DType
	Shape tensor.Shape
}

// span is where a tensor's bytes are.
type span struct{ begin, end int64 }

// File is a file whose header has been read and found to be right.
type File struct {
	r       io.ReaderAt
	data    int64 // where it begins
	tensors []Tensor
	spans   map[string]span
	meta    map[string]string
	reverse bool // the bytes of every element
}

// Read reads the header of a file of size bytes. Of the data it looks at nothing but that it is all there. r stays in
// use for as long as the File is. When ctx ends, so does Read, with ctx's error.
func Read(ctx context.Context, r io.ReaderAt, size int64) (*File, error) {
	return read(ctx, r, size, bigEndian)
}

func read(ctx context.Context, r io.ReaderAt, size int64, reverse bool) (*File, error) {
	if size < lengthBytes {
		return nil, fmt.Errorf("it is truncated: %d bytes, the length of the header takes %d", size, lengthBytes)
	}
	var length [lengthBytes]byte
	if err := readAt(r, length[:], 0); err != nil {
		return nil, fmt.Errorf("the length of the header: %w", err)
	}
	n := binary.LittleEndian.Uint64(length[:])
	if n > maxHeaderBytes {
		return nil, fmt.Errorf("it says that its header has %d bytes, at most %d are allowed", n, maxHeaderBytes)
	}
	if int64(n) > size-lengthBytes {
		return nil, fmt.Errorf("it is truncated: %d bytes, a header of %d takes %d", size, n, lengthBytes+n)
	}
	header := make([]byte, n)
	if err := readAt(r, header, lengthBytes); err != nil {
		return nil, fmt.Errorf("header: %w", err)
	}
	f := &File{r: r, data: lengthBytes + int64(n), spans: map[string]span{}, reverse: reverse}
	if err := f.parse(ctx, header); err != nil {
		return nil, fmt.Errorf("header: %w", err)
	}
	return f, f.cover(size - f.data)
}

// readAt reads all of dst.
func readAt(r io.ReaderAt, dst []byte, off int64) error {
	n, err := r.ReadAt(dst, off)
	if n == len(dst) {
		return nil // it may be io.EOF
	}
	if err == nil || err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("%d bytes at %d: %w", len(dst), off, err)
}

func (f *File) parse(ctx context.Context, header []byte) error {
	if !bytes.HasPrefix(header, []byte("{")) {
		return errors.New("it does not begin with {")
	}
	header = bytes.TrimRight(header, " ")
	if !bytes.HasSuffix(header, []byte("}")) {
		return errors.New("it does not end with } and spaces")
	}
	return strictjson.Read(ctx, header, func(r *strictjson.Reader) error {
		p := newParser(r)
		return r.Object(MaxTensors+1, func(name string) error {
			if name == metaName {
				f.meta = map[string]string{}
				if err := r.Object(MaxMeta, func(key string) (err error) {
					f.meta[key], err = r.Text()
					return err
				}); err != nil {
					return fmt.Errorf("%s: %w", metaName, err)
				}
				return nil
			}
			t, s, err := p.tensor(name)
			if err != nil {
				return fmt.Errorf("tensor %.100q: %w", name, err)
			}
			f.tensors = append(f.tensors, t)
			f.spans[name] = s
			return CheckCounts(len(f.tensors), 0)
		})
	})
}

// parser reads what is said of tensors, one after the other. It is one for all of them, for there may be a million.
type parser struct {
	r       *strictjson.Reader
	members map[string]func() error

	dtype   tensor.DType
	shape   tensor.Shape
	offsets []int64
}

func newParser(r *strictjson.Reader) *parser {
	p := &parser{r: r}
	p.members = map[string]func() error{
		"dtype": func() error {
			text, err := r.Text()
			if err == nil {
				p.dtype, err = parseDType(text)
			}
			return err
		},
		"shape": func() error {
			shape, err := r.Ints(MaxRank)
			if err != nil {
				return fmt.Errorf("shape: %w", err)
			}
			p.shape = shape
			return nil
		},
		"data_offsets": func() error {
			p.offsets = p.offsets[:0]
			return r.Array(func() error {
				n, err := r.Count()
				if len(p.offsets) == 2 {
					return errors.New("data_offsets: more than two numbers")
				}
				p.offsets = append(p.offsets, n)
				return err
			})
		},
	}
	return p
}

// tensor reads what is said of the next tensor.
func (p *parser) tensor(name string) (Tensor, span, error) {
	if err := p.r.Members(p.members); err != nil {
		return Tensor{}, span{}, err
	}
	t := Tensor{name, p.dtype, p.shape}
	if len(p.offsets) != 2 {
		return t, span{}, fmt.Errorf("data_offsets: %d, want two", p.offsets)
	}
	s := span{p.offsets[0], p.offsets[1]}
	if s.end < s.begin {
		return t, s, fmt.Errorf("data_offsets: the end %d is before the beginning %d", s.end, s.begin)
	}
	want, err := bytesOf(t)
	if err == nil && s.end-s.begin != want {
		err = fmt.Errorf("data_offsets: %d to %d are %d bytes, %v of shape %v takes %d",
			s.begin, s.end, s.end-s.begin, t.DType, t.Shape, want)
	}
	return t, s, err
}

// bytesOf is how many bytes a tensor has. The errors: more than an int can count, more than MaxRank dimensions.
func bytesOf(t Tensor) (int64, error) {
	if err := CheckShape(t.Shape); err != nil {
		return 0, err
	}
	n, err := t.Shape.Elements()
	if err != nil {
		return 0, err
	}
	if n > math.MaxInt/t.DType.Size() {
		return 0, fmt.Errorf("%v of shape %v has more bytes than an int can count", t.DType, t.Shape)
	}
	return int64(n * t.DType.Size()), nil
}

// cover sorts the tensors by where they lie, and sees that they cover the data, each byte once.
func (f *File) cover(data int64) error {
	slices.SortStableFunc(f.tensors, func(a, b Tensor) int {
		x, y := f.spans[a.Name], f.spans[b.Name]
		return cmp.Or(cmp.Compare(x.begin, y.begin), cmp.Compare(x.end, y.end))
	})
	at, before := int64(0), ""
	for _, t := range f.tensors {
		s := f.spans[t.Name]
		switch {
		case s.begin < at:
			return fmt.Errorf("tensor %.100q: its bytes %d to %d overlap those of tensor %.100q, which end at %d",
				t.Name, s.begin, s.end, before, at)
		case s.begin > at:
			return fmt.Errorf("tensor %.100q: its bytes begin at %d, and those from %d on are no tensor's",
				t.Name, s.begin, at)
		case s.end > data:
			return fmt.Errorf("tensor %.100q: it is truncated: its bytes end at %d, the file has %d",
				t.Name, s.end, data)
		}
		at, before = s.end, t.Name
	}
	if at < data {
		return fmt.Errorf("the last %d bytes are no tensor's", data-at)
	}
	return nil
}

// Tensors lists the tensors in the order in which they lie. It is the File's own.
func (f *File) Tensors() []Tensor { return f.tensors }

// Meta is the map of strings, the File's own: nil if there is none.
func (f *File) Meta() map[string]string { return f.meta }

// ReadAt reads len(dst) bytes of a tensor from an element on, as the host wants them. They have to be whole elements of
// the tensor. Bools other than 0 and 1 are an error.
func (f *File) ReadAt(t Tensor, element int, dst []byte) error {
	s, ok := f.spans[t.Name]
	size := t.DType.Size()
	if !ok || len(dst)%size != 0 || element < 0 || int64(element) > (s.end-s.begin)/int64(size) ||
		int64(len(dst)) > s.end-s.begin-int64(element)*int64(size) {
		return fmt.Errorf("tensor %.100q: it has no %d bytes from element %d on", t.Name, len(dst), element)
	}
	if err := readAt(f.r, dst, f.data+s.begin+int64(element)*int64(size)); err != nil {
		return fmt.Errorf("tensor %.100q: %w", t.Name, err)
	}
	if t.DType == tensor.Bool {
		for i, b := range dst {
			if b > 1 {
				return fmt.Errorf("tensor %.100q: element %d is %d, a bool is 0 or 1", t.Name, element+i, b)
			}
		}
	}
	if f.reverse {
		reverse(dst, dst, size)
	}
	return nil
}
