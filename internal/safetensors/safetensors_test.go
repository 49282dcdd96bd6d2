package safetensors

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"strings"
	"testing"

	"gogcl.dev/tensor"
)

// file is a file of this header and this many bytes of data, 0, 1, 2...
func file(header string, data int) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	b = append(b, header...)
	for i := range data {
		b = append(b, byte(i))
	}
	return b
}

func readBytes(b []byte) (*File, error) { return Read(bytes.NewReader(b), int64(len(b))) }

// write is a file of tensors whose bytes are 0, 1, 2... in the order of the host, bools 0 and 1.
func write(t testing.TB, tensors []Tensor, meta map[string]string, reverse bool) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := newWriter(&b, tensors, meta, reverse)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range tensors {
		data := dataOf(t, x)
		size := x.DType.Size()
		for _, piece := range [][]byte{data[:len(data)/size/2*size], data[len(data)/size/2*size:]} {
			if err := w.Write(piece); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Done(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func dataOf(t testing.TB, x Tensor) []byte {
	t.Helper()
	n, err := bytesOf(x)
	if err != nil {
		t.Fatal(err)
	}
	data := make([]byte, n)
	for i := range data {
		if data[i] = byte(i); x.DType == tensor.Bool {
			data[i] &= 1
		}
	}
	return data
}

func wantError(t *testing.T, err error, want ...string) {
	t.Helper()
	for _, w := range want {
		if err == nil || !strings.Contains(err.Error(), w) {
			t.Errorf("error %v, want %q", err, w)
		}
	}
}

// TestBytes compares a file with what the format's description makes of it.
func TestBytes(t *testing.T) {
	got := write(t, []Tensor{{"w", tensor.F32, tensor.Shape{2, 1}}, {"none", tensor.F32, tensor.Shape{0, 7}},
		{`a"b`, tensor.U8, nil}}, map[string]string{"made by": "me", "a": ""}, bigEndian)
	header := `{"__metadata__":{"a":"","made by":"me"},"w":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]},` +
		`"none":{"dtype":"F32","shape":[0,7],"data_offsets":[8,8]},"a\"b":{"dtype":"U8","shape":[],"data_offsets":[8,9]}} `
	want := file(header, 8)
	want = append(want, 0)
	if len(header)%8 != 0 || !bytes.Equal(got, want) && !bigEndian {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if got := write(t, nil, nil, false); string(got) != "\x08\x00\x00\x00\x00\x00\x00\x00{}      " {
		t.Errorf("the empty file is %q", got)
	}
}

// TestReference reads the files that are in the tests of the reference implementation, with its order of members.
func TestReference(t *testing.T) {
	f, err := readBytes([]byte("<\x00\x00\x00\x00\x00\x00\x00{\"test\":{\"dtype\":\"I32\",\"shape\":[2,2],\"data_offsets\":[0,16]}}" +
		strings.Repeat("\x00", 16)))
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(f.Tensors()); got != "[{test int32 (2, 2)}]" || f.Meta() != nil {
		t.Errorf("%s, meta %v", got, f.Meta())
	}
	f, err = readBytes([]byte("(\x00\x00\x00\x00\x00\x00\x00{\"__metadata__\":{\"framework\":\"pt\"}}     "))
	if err != nil || len(f.Tensors()) != 0 || f.Meta()["framework"] != "pt" {
		t.Errorf("%+v, error %v", f, err)
	}
}

// TestRoundTrip writes a tensor of every type, in either order of bytes, and reads it in pieces.
func TestRoundTrip(t *testing.T) {
	var tensors []Tensor
	for _, d := range tensor.DTypes() {
		for _, shape := range []tensor.Shape{{}, {0}, {3, 5}, {reverseBytes + 3}} {
			tensors = append(tensors, Tensor{fmt.Sprint(d, shape, "\x00<ä>"), d, shape})
		}
	}
	meta := map[string]string{"": "\u2028", "ä": "\"\\"}
	var files [2][]byte
	for i, reverse := range []bool{false, true} {
		b := write(t, tensors, meta, reverse)
		files[i] = b
		f, err := read(bytes.NewReader(b), int64(len(b)), reverse)
		if err != nil {
			t.Fatal(err)
		}
		if !maps.Equal(f.Meta(), meta) || len(f.Tensors()) != len(tensors) {
			t.Fatalf("meta %v, %d tensors", f.Meta(), len(f.Tensors()))
		}
		found := map[string]Tensor{}
		for _, x := range f.Tensors() {
			found[x.Name] = x
		}
		for _, x := range tensors {
			if y := found[x.Name]; y.DType != x.DType || !y.Shape.Equal(x.Shape) {
				t.Fatalf("%v, want %v", y, x)
			}
			want := dataOf(t, x)
			got := make([]byte, len(want))
			n := len(got) / x.DType.Size()
			cut := n / 3
			for _, part := range [][2]int{{0, cut}, {cut, n}} {
				size := x.DType.Size()
				if err := f.ReadAt(x, part[0], got[part[0]*size:part[1]*size]); err != nil {
					t.Fatal(err)
				}
			}
			if !bytes.Equal(got, want) {
				t.Errorf("%v: other bytes than were written", x)
			}
		}
	}
	if bytes.Equal(files[0], files[1]) {
		t.Error("the order of the bytes makes no difference")
	}
}

// TestReverse looks at the bytes themselves.
func TestReverse(t *testing.T) {
	for size, want := range map[int]string{1: "abcdefgh", 2: "badcfehg", 4: "dcbahgfe", 8: "hgfedcba"} {
		got := make([]byte, 8)
		if reverse(got, []byte("abcdefgh"), size); string(got) != want {
			t.Errorf("size %d: %s, want %s", size, got, want)
		}
		if reverse(got, got, size); string(got) != "abcdefgh" {
			t.Errorf("size %d, twice: %s", size, got)
		}
	}
}

// TestDTypes finds a name for each type, and each type by its name.
func TestDTypes(t *testing.T) {
	for _, d := range tensor.DTypes() {
		if got, err := parseDType(nameOf[d]); err != nil || got != d {
			t.Errorf("%v is %q, which is %v, error %v", d, nameOf[d], got, err)
		}
	}
}

// TestLies reads files with which something is wrong.
func TestLies(t *testing.T) {
	w := func(dtype, shape, offsets string) string {
		return `{"w":{"dtype":"` + dtype + `","shape":` + shape + `,"data_offsets":` + offsets + `}}`
	}
	good := w("F32", "[2,2]", "[0,16]")
	two := func(a, b string) string {
		return `{"a":{"dtype":"U8","shape":[4],"data_offsets":` + a + `},"b":{"dtype":"U8","shape":[4],"data_offsets":` + b + `}}`
	}
	tooMany := "more than"
	if math.MaxInt == math.MaxInt32 {
		tooMany = "too many for this machine"
	}
	tests := []struct {
		name string
		file []byte
		want string
	}{
		{"empty", nil, "it is truncated: 0 bytes, the length of the header takes 8"},
		{"length cut short", make([]byte, 7), "it is truncated: 7 bytes"},
		{"no header", make([]byte, 8), "header: it does not begin with {"},
		{"length of the header 100,000,001", append(binary.LittleEndian.AppendUint64(nil, 100_000_001), good...),
			"it says that its header has 100000001 bytes, at most 100000000 are allowed"},
		{"length of the header 2^64-1", append(binary.LittleEndian.AppendUint64(nil, math.MaxUint64), good...),
			"it says that its header has 18446744073709551615 bytes"},
		{"header longer than the file", append(binary.LittleEndian.AppendUint64(nil, 90_000_000), good...),
			"it is truncated: 65 bytes, a header of 90000000 takes 90000008"},
		{"space before the header", file(" "+good, 16), "header: it does not begin with {"},
		{"newline after the header", file(good+"\n", 16), "header: it does not end with } and spaces"},
		{"an array", file("[]", 0), "header: it does not begin with {"},
		{"two headers", file("{}{}", 0), "header: at byte 2: want the end"},
		{"not UTF-8", file("{\"\xff\":{}}", 0), "header: it is not valid UTF-8"},
		{"a tensor twice", file(`{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"\u0061":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}`, 1),
			`the name "a" for the second time`},
		{"meta twice", file(`{"__metadata__":{},"__metadata__":{}}`, 0), `the name "__metadata__" for the second time`},
		{"key twice", file(`{"__metadata__":{"a":"","a":""}}`, 0), `__metadata__: before byte 27: the name "a" for the second time`},
		{"meta not of strings", file(`{"__metadata__":{"a":1}}`, 0), `__metadata__: before byte 22: want a string, found the number 1`},
		{"meta null", file(`{"__metadata__":null}`, 0), `__metadata__: before byte 20: want an object, found null`},
		{"no shape", file(`{"w":{"dtype":"U8","data_offsets":[0,1]}}`, 1), `tensor "w": before byte 40: the object has no ["shape"]`},
		{"one more member", file(`{"w":{"dtype":"U8","shape":[1],"data_offsets":[0,1],"x":1}}`, 1), `the name "x" is none of this object's`},
		{"unknown dtype", file(w("F31", "[4]", "[0,16]"), 16),
			`tensor "w": dtype "F31" is none of the format's; gogcl reads BOOL, I8, I16, I32, I64, U8, U16, U32, U64, F16, BF16, F32, F64`},
		{"dtype of others", file(w("F8_E4M3", "[4]", "[0,4]"), 4), `tensor "w": dtype F8_E4M3 is none of gogcl's element types`},
		{"negative dimension", file(w("F32", "[-4]", "[0,16]"), 16), `tensor "w": before byte 31: want a whole number, found the number -4`},
		{"dimension with a point", file(w("F32", "[4.0]", "[0,16]"), 16), `want a whole number, found the number 4.0`},
		{"product overflows", file(w("U8", "[4294967296,4294967296]", "[0,0]"), 0), `tensor "w": `},
		{"product overflows, says what", file(w("U8", "[4294967296,4294967296]", "[0,0]"), 0), tooMany},
		{"bytes overflow", file(w("F64", fmt.Sprintf("[%d]", math.MaxInt/4), "[0,0]"), 0), `has more bytes than an int can count`},
		{"one offset", file(w("F32", "[4]", "[16]"), 16), `tensor "w": data_offsets: [16], want two`},
		{"three offsets", file(w("F32", "[4]", "[0,16,16]"), 16), `tensor "w": data_offsets: more than two numbers`},
		{"offset beyond 63 bits", file(w("F32", "[4]", "[0,18446744073709551615]"), 16), `tensor "w": before byte`},
		{"offsets backwards", file(w("F32", "[4]", "[16,0]"), 16), `tensor "w": data_offsets: the end 0 is before the beginning 16`},
		{"offsets and shape", file(w("F32", "[2,3]", "[0,16]"), 16),
			`tensor "w": data_offsets: 0 to 16 are 16 bytes, float32 of shape (2, 3) takes 24`},
		{"past the end", file(good, 15), `tensor "w": it is truncated: its bytes end at 16, the file has 15`},
		{"far past the end", file(w("U8", "[2147483647]", "[0,2147483647]"), 15), `tensor "w": it is truncated: its bytes end at 2147483647`},
		{"data after the last", file(good, 17), "the last 1 bytes are no tensor's"},
		{"data of no tensor", file("{}", 1), "the last 1 bytes are no tensor's"},
		{"overlap", file(two("[0,4]", "[3,7]"), 8), `tensor "b": its bytes 3 to 7 overlap those of tensor "a", which end at 4`},
		{"the same bytes", file(two("[0,4]", "[0,4]"), 4), `tensor "b": its bytes 0 to 4 overlap those of tensor "a"`},
		{"hole", file(two("[5,9]", "[0,4]"), 9), `tensor "a": its bytes begin at 5, and those from 4 on are no tensor's`},
		{"hole at the beginning", file(w("F32", "[4]", "[1,17]"), 17), `tensor "w": its bytes begin at 1, and those from 0 on are no tensor's`},
		{"empty tensor within another", file(`{"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[0],"data_offsets":[2,2]}}`, 4),
			`tensor "b": its bytes 2 to 2 overlap those of tensor "a"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := readBytes(tt.file)
			wantError(t, err, tt.want)
		})
	}
	if _, err := readBytes(file(good+"  ", 16)); err != nil {
		t.Error(err)
	}
	if _, err := readBytes(file(two("[4,8]", "[0,4]"), 8)); err != nil {
		t.Error(err)
	}
}

// TestNoLargeAllocation counts the bytes that are asked for of a file that says that it is large.
func TestNoLargeAllocation(t *testing.T) {
	r := readerAt(func(b []byte, off int64) (int, error) {
		if len(b) != lengthBytes {
			t.Errorf("%d bytes are read", len(b))
		}
		binary.LittleEndian.PutUint64(b, 99_999_999)
		return len(b), nil
	})
	_, err := Read(r, 1000)
	wantError(t, err, "it is truncated: 1000 bytes")
}

type readerAt func(b []byte, off int64) (int, error)

func (r readerAt) ReadAt(b []byte, off int64) (int, error) { return r(b, off) }

// TestReadErrors reads a file that fails, or has become shorter, and what a tensor has not got.
func TestReadErrors(t *testing.T) {
	good := write(t, []Tensor{{"w", tensor.F32, tensor.Shape{4}}, {"b", tensor.Bool, tensor.Shape{3}}}, nil, false)
	bad := errors.New("bad sector")
	for cut, want := range map[int]string{0: "the length of the header: ", 8: "header: ", 40: "header: "} {
		for err, text := range map[error]string{bad: "bad sector", nil: "unexpected EOF", io.EOF: "unexpected EOF"} {
			_, got := Read(readerAt(func(b []byte, off int64) (int, error) {
				if n := copy(b, good[min(off, int64(cut)):cut]); n < len(b) {
					return n, err
				}
				return len(b), nil
			}), int64(len(good)))
			wantError(t, got, want, text)
		}
	}
	f, err := readBytes(good)
	if err != nil {
		t.Fatal(err)
	}
	w := f.Tensors()[0]
	for _, tt := range []struct{ element, bytes int }{{-1, 4}, {0, 17}, {0, 20}, {1, 16}, {4, 4}, {5, 0}, {math.MaxInt, 4}, {0, 3}} {
		wantError(t, f.ReadAt(w, tt.element, make([]byte, tt.bytes)),
			fmt.Sprintf(`tensor "w": it has no %d bytes from element %d on`, tt.bytes, tt.element))
	}
	if err := f.ReadAt(w, 4, nil); err != nil {
		t.Error(err)
	}
	wantError(t, f.ReadAt(Tensor{Name: "v", DType: tensor.F32}, 0, nil), `tensor "v": it has no 0 bytes`)
	f.r = bytes.NewReader(good[:len(good)-4])
	wantError(t, f.ReadAt(w, 0, make([]byte, 16)), `tensor "w": 16 bytes at `, "unexpected EOF")
	good[len(good)-1] = 2
	f.r = bytes.NewReader(good)
	wantError(t, f.ReadAt(f.Tensors()[1], 1, make([]byte, 2)), `tensor "b": element 2 is 2, a bool is 0 or 1`)
}

// failing fails when it has taken so many bytes.
type failing struct{ left int }

func (f *failing) Write(b []byte) (int, error) {
	if f.left -= len(b); f.left < 0 {
		return 0, errors.New("full")
	}
	return len(b), nil
}

type writeError struct {
	tensors []Tensor
	meta    map[string]string
	want    string
}

// TestWriteErrors writes what the format does not allow, and less and more than was said.
func TestWriteErrors(t *testing.T) {
	tests := []writeError{
		{[]Tensor{{"w", 0, nil}}, nil, `tensor "w": invalid element type DType(0)`},
		{[]Tensor{{"w", tensor.U8, tensor.Shape{-1}}}, nil, `tensor "w": tensor: `},
		{[]Tensor{{"w", tensor.F64, tensor.Shape{math.MaxInt / 2}}}, nil, `tensor "w": float64 of shape`},
		{[]Tensor{{"w", tensor.U8, nil}, {"w", tensor.U8, nil}}, nil, `tensor "w": a second one of that name`},
		{[]Tensor{{"__metadata__", tensor.U8, nil}}, nil, `tensor "__metadata__": the format wants the name for itself`},
		{[]Tensor{{"\xff", tensor.U8, nil}}, nil, `tensor "\xff": "\xff" is not valid UTF-8`},
		{nil, map[string]string{"\xff": ""}, `__metadata__: "\xff" is not valid UTF-8`},
		{nil, map[string]string{"": "\xff"}, `__metadata__: "\xff" is not valid UTF-8`},
	}
	if math.MaxInt > math.MaxInt32 {
		tests = append(tests, writeError{[]Tensor{{"v", tensor.U8, tensor.Shape{math.MaxInt}}, {"w", tensor.U8, tensor.Shape{1}}}, nil,
			`tensor "w": the tensors have more bytes than a file can hold`})
	}
	for _, tt := range tests {
		var b bytes.Buffer
		_, err := NewWriter(&b, tt.tensors, tt.meta)
		if wantError(t, err, tt.want); b.Len() > 0 {
			t.Errorf("%s: %d bytes are written", tt.want, b.Len())
		}
	}

	one := []Tensor{{"w", tensor.F32, tensor.Shape{2}}, {"b", tensor.Bool, tensor.Shape{2}}, {"none", tensor.F32, tensor.Shape{0}}}
	if _, err := headerOf(one, nil, 168); err != nil {
		t.Error(err)
	}
	_, err := headerOf(one, nil, 167)
	wantError(t, err, "3 tensors take a header of 168 bytes, at most 167 are allowed")
	if _, err := NewWriter(&failing{8}, one, nil); err == nil {
		t.Error("the header was written to a full disk")
	}
	for _, reverse := range []bool{false, true} {
		header, err := headerOf(one, nil, maxHeaderBytes)
		if err != nil {
			t.Fatal(err)
		}
		w, err := newWriter(&failing{len(header) + 9}, one, nil, reverse)
		if err != nil {
			t.Fatal(err)
		}
		wantError(t, w.Done(), `tensor "w": 8 bytes have not been written`)
		wantError(t, w.Write(make([]byte, 12)), `tensor "w": 12 bytes, but 8 are left of float32 of shape (2,)`)
		wantError(t, w.Write(make([]byte, 3)), `tensor "w": 3 bytes, but 8 are left`)
		for range 2 {
			if err := w.Write(make([]byte, 4)); err != nil {
				t.Error(err)
			}
		}
		wantError(t, w.Done(), `tensor "b": 2 bytes have not been written`)
		wantError(t, w.Write([]byte{1, 2}), `tensor "b": a bool is 0 or 1`)
		wantError(t, w.Write([]byte{1, 0}), "full")
		wantError(t, w.Write(make([]byte, 4)), `4 bytes after the last tensor`)
		if err := w.Done(); err != nil {
			t.Error(err)
		}
	}
}
