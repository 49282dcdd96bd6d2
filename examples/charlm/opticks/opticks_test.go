package opticks

import (
	"bytes"
	"testing"
	"unicode/utf8"
)

func TestText(t *testing.T) {
	text, err := Text()
	if err != nil {
		t.Fatal(err)
	}
	if len(text) != 567198 || !utf8.Valid(text) {
		t.Errorf("%d bytes, UTF-8 %v, want 567198 of UTF-8", len(text), utf8.Valid(text))
	}
	if !bytes.Contains(text, []byte("refrangible")) {
		t.Error("not the book")
	}
}

func TestBroken(t *testing.T) {
	was := packed
	defer func() { packed = was }()
	for _, packed = range [][]byte{nil, was[:len(was)/2]} {
		if _, err := Text(); err == nil {
			t.Errorf("no error for %d bytes", len(packed))
		}
	}
}
