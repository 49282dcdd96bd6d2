package remote

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"gogcl.dev/tensor"
)

// bytesMedium is a file in memory. To reach beyond it panics.
type bytesMedium []byte

func (m bytesMedium) word(off int64) (uint64, error) { return binary.NativeEndian.Uint64(m[off:]), nil }
func (m bytesMedium) read(off int64, dst []byte) error {
	copy(dst, m[off:off+int64(len(dst))])
	return nil
}
func (m bytesMedium) write(off int64, src []byte) error {
	copy(m[off:off+int64(len(src))], src)
	return nil
}
func (m bytesMedium) setWord(off int64, w uint64) error {
	binary.NativeEndian.PutUint64(m[off:], w)
	return nil
}
func (m bytesMedium) resize(int64) error      { return errors.New("no") }
func (m bytesMedium) sync(int64, int64) error { return nil }
func (m bytesMedium) close() error            { return nil }

func pageOf(t testing.TB, h header) []byte {
	p, err := h.page()
	fatal(t, err)
	return p
}

func fatal(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// FuzzFile reads a file of two header pages, given without the zeros at their ends, and of groups. With sealed, the
// headers' checksums are right, whatever they say. Nothing may panic, or believe a header more than the file's size;
// what is found to be there can be loaded, and what is lost cannot, until it is stored.
func FuzzFile(f *testing.F) {
	h := header{spec: Spec{Buffer: "w", Replica: 2, DType: tensor.F32, Shape: tensor.Shape{3}, Entries: 3}, bytes: 12,
		seq: 2, open: true}
	first := bytes.TrimRight(pageOf(f, h)[:pageBytes-sumBytes], "\x00")
	h.seq = 3
	second := bytes.TrimRight(pageOf(f, h)[:pageBytes-sumBytes], "\x00")
	k := &file{medium: bytesMedium(make([]byte, entryAt(12, 3))), head: h, missing: map[int]struct{}{}}
	fatal(f, k.writeRows(0, 3, []string{"a", "", "b"}))
	fatal(f, k.store(0, []byte("hello, world")))
	fatal(f, k.store(1, []byte("hello, there")))
	groups := k.medium.(bytesMedium)[headBytes:]
	f.Add(first, second, []byte(groups), true)
	f.Add(first, second, []byte(groups), false)
	f.Add(first, []byte(nil), []byte(groups), true)
	f.Add(first, second, []byte(groups[:tableBytes+20]), true)
	f.Add([]byte("my thesis"), []byte(nil), []byte(nil), true)
	all := make([]byte, headBytes, headBytes+1<<16)
	f.Fuzz(func(t *testing.T, first, second, groups []byte, sealed bool) {
		data := append(all[:headBytes], groups...)
		clear(data[:headBytes])
		copy(data[:pageBytes], first)
		copy(data[pageBytes:headBytes], second)
		if sealed {
			seal(data[:pageBytes])
			seal(data[pageBytes:headBytes])
		}
		h, err := parseHead(data[:headBytes], int64(len(data)))
		if err != nil || h.spec.Entries == 0 {
			return
		}
		if want, err := fileBytes(h.bytes, h.spec.Entries); err != nil || want > int64(len(data)) {
			t.Fatalf("%+v in %d bytes", h, len(data))
		}
		fatal(t, differs(h.spec, h.spec))
		if _, err := h.page(); err != nil {
			t.Fatal(err)
		}
		k := &file{medium: bytesMedium(data), head: h, missing: map[int]struct{}{}}
		if err := k.readRows([]string{"a"}); err != nil && !strings.Contains(err.Error(), "another name") {
			t.Fatal(err)
		}
		k.scan()
		buf := make([]byte, h.bytes)
		for i := range h.spec.Entries {
			_, lost := k.missing[i]
			if err := k.pass(i, buf); errors.Is(err, ErrLost) != lost || (err != nil && !lost) {
				t.Fatalf("entry %d: lost %v, error %v", i, lost, err)
			}
		}
		last := h.spec.Entries - 1
		fatal(t, k.store(last, buf))
		got := make([]byte, len(buf))
		if fatal(t, k.pass(last, got)); !bytes.Equal(got, buf) {
			t.Fatal("the entry is not what was stored")
		}
	})
}
