package meddler

import (
	"bytes"
	"io"
	"net"
	"testing"
)

// TestProxy: bytes go through the filter in both directions, and a reset ends a connection.
func TestProxy(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	p, err := New(l.Addr().String(), func(number int, back bool, b []byte) []byte {
		if back {
			return bytes.ToUpper(b)
		}
		return bytes.ReplaceAll(b, []byte("a"), []byte{'0' + byte(number)})
	})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for number := range 2 {
		near, err := net.Dial("tcp", p.Address())
		if err != nil {
			t.Fatal(err)
		}
		defer near.Close()
		far, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer far.Close()
		got := make([]byte, 4)
		near.Write([]byte("abca"))
		if _, err := io.ReadFull(far, got); err != nil || string(got) != []string{"0bc0", "1bc1"}[number] {
			t.Errorf("%q, %v", got, err)
		}
		far.Write(got)
		if _, err := io.ReadFull(near, got); err != nil || string(got) != []string{"0BC0", "1BC1"}[number] {
			t.Errorf("%q, %v", got, err)
		}
		p.Reset(number)
		if _, err := near.Read(got); err == nil || err == io.EOF {
			t.Errorf("after a reset: %v", err)
		}
	}
}
