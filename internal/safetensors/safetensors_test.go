package safetensors

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"runtime"
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

func readBytes(b []byte) (*File, error) {
	return Read(context.Background(), bytes.NewReader(b), int64(len(b)))
}

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
	t.Parallel()
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
	t.Parallel()
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
	t.Parallel()
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
		f, err := read(context.Background(), bytes.NewReader(b), int64(len(b)), reverse)
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
	t.Parallel()
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
	t.Parallel()
	for _, d := range tensor.DTypes() {
		if got, err := parseDType(nameOf[d]); err != nil || got != d {
			t.Errorf("%v is %q, which is %v, error %v", d, nameOf[d], got, err)
		}
	}
}

// TestLies reads files with which something is wrong.
func TestLies(t *testing.T) {
	t.Parallel()
	w := func(dtype, shape, offsets string) string {
		return `{"w":{"dtype":"` + dtype + `","shape":` + shape + `,"data_offsets":` + offsets + `}}`
	}
	good := w("F32", "[2,2]", "[0,16]")
	two := func(a, b string) string {
		return `{"a":{"dtype":"U8","shape":[4],"data_offsets":` + a +
			`},"b":{"dtype":"U8","shape":[4],"data_offsets":` + b + `}}`
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
		{"negative dimension", file(w("F32", "[-4]", "[0,16]"), 16), `tensor "w": shape: before byte 31: want a whole number, found the number -4`},
		{"dimension with a point", file(w("F32", "[4.0]", "[0,16]"), 16), `want a whole number, found the number 4.0`},
		{"product overflows", file(w("U8", "[4294967296,4294967296]", "[0,0]"), 0), `tensor "w": `},
		{"product overflows, says what", file(w("U8", "[4294967296,4294967296]", "[0,0]"), 0), tooMany},
		{"bytes overflow", file(w("F64", fmt.Sprintf("[%d]", math.MaxInt/4), "[0,0]"), 0), `has more bytes than an int can count`},
		{"65 dimensions", file(w("U8", "[1"+strings.Repeat(",1", 64)+"]", "[0,1]"), 1), `tensor "w": shape: before byte 156: an array of more than 64 numbers`},
		{"a million dimensions", file(w("U8", "[0"+strings.Repeat(",1", 1_000_000)+"]", "[0,1]"), 1), `tensor "w": shape: before byte 156: an array of more than 64 numbers`},
		{"64 large dimensions", file(w("U8", "["+strings.Repeat("1000000000,", 63)+"1000000000]", "[0,1]"), 1), `more than`},
		{"a name of 3 MB", file(strings.Replace(good, "w", strings.Repeat("w", 3_000_000), 1), 15), `tensor "` + strings.Repeat("w", 100) + `": it is truncated`},
		{"a name of 3 MB and two offsets",
			file(strings.Replace(w("F32", "[4]", "[0,4]"), "w", strings.Repeat("w", 3_000_000), 1), 4),
			`tensor "` + strings.Repeat("w", 100) + `": data_offsets: 0 to 4`},
		{"overlap of names of 3 MB",
			file(strings.NewReplacer("a\":{", strings.Repeat("a", 3_000_000)+"\":{",
				"b\":{", strings.Repeat("b", 3_000_000)+"\":{").Replace(two("[0,4]", "[3,7]")), 8),
			`overlap those of tensor "` + strings.Repeat("a", 100) + `"`},
		{"a hole before a name of 3 MB", file(strings.Replace(w("F32", "[4]", "[1,17]"), "w", strings.Repeat("w", 3_000_000), 1), 17), `its bytes begin at 1`},
		{"65,537 strings", file(`{"__metadata__":{`+strings.Join(keys(MaxMeta+1), ",")+`}}`, 0), `__metadata__: before byte`},
		{"65,537 strings, says what", file(`{"__metadata__":{`+strings.Join(keys(MaxMeta+1), ",")+`}}`, 0), `an object of more than 65536 names`},
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
		{"empty tensor within another",
			file(`{"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[0],"data_offsets":[2,2]}}`, 4),
			`tensor "b": its bytes 2 to 2 overlap those of tensor "a"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := readBytes(tt.file)
			wantError(t, err, tt.want)
			if n := len(fmt.Sprint(err)); n > 2000 {
				t.Errorf("the error has %d bytes", n)
			}
		})
	}
	if _, err := readBytes(file(good+"  ", 16)); err != nil {
		t.Error(err)
	}
	if _, err := readBytes(file(two("[4,8]", "[0,4]"), 8)); err != nil {
		t.Error(err)
	}
}

// keys are members of an object, each with a name of its own.
func keys(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf(`"%x":""`, i)
	}
	return all
}

// TestMost reads and writes as many dimensions and strings as there may be.
func TestMost(t *testing.T) {
	t.Parallel()
	meta := map[string]string{}
	for i := range MaxMeta {
		meta[fmt.Sprint(i)] = ""
	}
	shape := make(tensor.Shape, MaxRank)
	for i := range shape {
		shape[i] = 1
	}
	f, err := readBytes(write(t, []Tensor{{"w", tensor.U8, shape}}, meta, false))
	if err != nil || !maps.Equal(f.Meta(), meta) || !f.Tensors()[0].Shape.Equal(shape) {
		t.Errorf("error %v", err)
	}
}

// TestTooManyTensors reads a file of one tensor more than there may be.
func TestTooManyTensors(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("a header of 60 MB takes seconds; the full run reads it")
	}
	var header bytes.Buffer
	for i := range MaxTensors + 1 {
		fmt.Fprintf(&header, `%c"%d":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}`, "{,"[min(i, 1)], i)
	}
	header.WriteByte('}')
	_, err := readBytes(file(header.String(), 0))
	wantError(t, err, "header: 1048577 tensors, at most 1048576 are allowed")
}

// TestMemory reads headers that are made to take much memory, and counts what is allocated, all in all.
func TestMemory(t *testing.T) {
	members := func(n int, format string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `%c"%x":`+format, "{,"[min(i, 1)], i)
		}
		return b.String() + "}"
	}
	for _, tt := range []struct {
		name, header string
		most         uint64 // times the length of the header, with 1 for the header
	}{
		{"shape", `{"w":{"dtype":"U8","shape":[` + strings.Repeat("0,", 1<<20) + `0],"data_offsets":[0,0]}}`, 2},
		{"offsets", `{"w":{"dtype":"U8","shape":[0],"data_offsets":[` + strings.Repeat("0,", 1<<20) + `0]}}`, 2},
		{"strings", `{"__metadata__":` + members(MaxMeta, `""`) + `}`, 40},
		{"too many strings", `{"__metadata__":` + members(16*MaxMeta, `""`) + `}`, 3},
		{"tensors", members(1<<15, `{"dtype":"U8","shape":[],"data_offsets":[0,0]}`), 20},
		{"empty tensors", members(1<<15, `{"dtype":"U8","shape":[0],"data_offsets":[0,0]}`), 20},
		{"a long name", `{"` + strings.Repeat("a", 1<<22) + `":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}`, 3},
		{"a long name of escapes", `{"` + strings.Repeat(`\n`, 1<<21) + `":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}`, 5},
		{"a long number", `{"w":{"dtype":"U8","shape":[` + strings.Repeat("1", 1<<22) + `],"data_offsets":[0,0]}}`, 5},
	} {
		b := file(tt.header, 0)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := readBytes(b)
		runtime.ReadMemStats(&after)
		got := after.TotalAlloc - before.TotalAlloc
		t.Logf("%s: %.1f times the header, error %v", tt.name, float64(got)/float64(len(b)), err)
		if most := tt.most*uint64(len(b)) + 1<<16; got > most {
			t.Errorf("%s: %d bytes for a header of %d, want at most %d", tt.name, got, len(b), most)
		}
	}
}

// TestContext ends ctx before the header is read.
func TestContext(t *testing.T) {
	t.Parallel()
	why := errors.New("Ctrl-C")
	ctx, end := context.WithCancelCause(context.Background())
	end(why)
	b := file("{}", 0)
	if _, err := Read(ctx, bytes.NewReader(b), int64(len(b))); !errors.Is(err, why) {
		t.Errorf("error %v, want %v", err, why)
	}
}

// TestNoLargeAllocation counts the bytes that are asked for of a file that says that it is large.
func TestNoLargeAllocation(t *testing.T) {
	t.Parallel()
	r := readerAt(func(b []byte, off int64) (int, error) {
		if len(b) != lengthBytes {
			t.Errorf("%d bytes are read", len(b))
		}
		binary.LittleEndian.PutUint64(b, 99_999_999)
		return len(b), nil
	})
	_, err := Read(context.Background(), r, 1000)
	wantError(t, err, "it is truncated: 1000 bytes")
}

type readerAt func(b []byte, off int64) (int, error)

func (r readerAt) ReadAt(b []byte, off int64) (int, error) { return r(b, off) }

// TestReadErrors reads a file that fails, or has become shorter, and what a tensor has not got.
func TestReadErrors(t *testing.T) {
	t.Parallel()
	good := write(t, []Tensor{{"w", tensor.F32, tensor.Shape{4}}, {"b", tensor.Bool, tensor.Shape{3}}}, nil, false)
	bad := errors.New("bad sector")
	for cut, want := range map[int]string{0: "the length of the header: ", 8: "header: ", 40: "header: "} {
		for err, text := range map[error]string{bad: "bad sector", nil: "unexpected EOF", io.EOF: "unexpected EOF"} {
			_, got := Read(context.Background(), readerAt(func(b []byte, off int64) (int, error) {
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
	for _, tt := range []struct{ element, bytes int }{{-1, 4}, {0, 17}, {0, 20}, {1, 16}, {4, 4}, {5, 0},
		{math.MaxInt, 4}, {0, 3}} {
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
	t.Parallel()
	tooMany := map[string]string{}
	for i := range MaxMeta + 1 {
		tooMany[fmt.Sprint(i)] = ""
	}
	tests := []writeError{
		{[]Tensor{{"w", tensor.U8, make(tensor.Shape, 65)}}, nil, `tensor "w": a shape of 65 dimensions, at most 64 are allowed`},
		{make([]Tensor, MaxTensors+1), nil, `1048577 tensors, at most 1048576 are allowed`},
		{nil, tooMany, `65537 strings in the map, at most 65536 are allowed`},
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
		tests = append(tests, writeError{[]Tensor{{"v", tensor.U8, tensor.Shape{math.MaxInt}},
			{"w", tensor.U8, tensor.Shape{1}}}, nil,
			`tensor "w": the tensors have more bytes than a file can hold`})
	}
	for _, tt := range tests {
		var b bytes.Buffer
		_, err := NewWriter(&b, tt.tensors, tt.meta)
		if wantError(t, err, tt.want); b.Len() > 0 {
			t.Errorf("%s: %d bytes are written", tt.want, b.Len())
		}
	}

	one := []Tensor{{"w", tensor.F32, tensor.Shape{2}}, {"b", tensor.Bool, tensor.Shape{2}},
		{"none", tensor.F32, tensor.Shape{0}}}
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
