package rendezvous

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"testing"
)

// FuzzMessages: a stream of any bytes, as replica 0 and as another replica reads it. What is understood is written
// alike.
func FuzzMessages(f *testing.F) {
	f.Add(appendMessage(nil, tagHere, appendHere(nil, here{size: 3, left: 5, self: "here", blob: []byte("blob")})))
	f.Add(appendMessage(nil, tagTable, appendTable(nil, [][]byte{{1}, nil, {2, 3}})))
	f.Add(appendMessage(appendMessage(nil, tagGot, nil), tagBegin, nil))
	f.Add(appendMessage(nil, tagFailed, appendError(nil, &Error{Kind: Missing, Replicas: []int{1, 2}, Reason: "why"})))
	f.Add([]byte{byte(tagTable), 255, 255, 255, 255})
	f.Fuzz(func(t *testing.T, stream []byte) {
		for _, limit := range []func(tag) int{limitAtHost, limitAtVisitor(3)} {
			r := bytes.NewReader(stream)
			for {
				kind, body, err := readMessage(r, limit)
				if err != nil {
					break
				}
				understand(t, kind, body)
			}
		}
	})
}

// understand parses a body, writes it again and parses that.
func understand(t *testing.T, kind tag, body []byte) {
	switch kind {
	case tagHere:
		h, err := parseHere(body)
		if err != nil {
			return
		}
		if again, err := parseHere(appendHere(nil, h)); err != nil || !reflect.DeepEqual(again, h) {
			t.Errorf("%+v: %+v, %v", h, again, err)
		}
	case tagTable:
		blobs, err := parseTable(body, 3)
		if err == nil && !bytes.Equal(appendTable(nil, blobs), body) {
			t.Errorf("%x: %x", body, blobs)
		}
	case tagFailed:
		e, err := parseError(body)
		if err != nil {
			return
		}
		if again, err := parseError(appendError(nil, e)); err != nil || again.Kind != e.Kind {
			t.Errorf("%+v: %+v, %v", e, again, err)
		}
	}
}

// FuzzSheets: files of any bytes, authentic or not.
func FuzzSheets(f *testing.F) {
	f.Add(appendVisitorSheet(nil, visitorSheet{echoes: []nonce{{1}}, here: here{size: 3}}))
	f.Add(appendHostSheet(nil, hostSheet{step: tagTable, self: "x", echoes: []nonce{{1}}, roster: []id{{rank: 1}}}))
	f.Add([]byte(boardMagic + "\x00\x01"))
	f.Fuzz(func(t *testing.T, body []byte) {
		if s, err := parseVisitorSheet(body); err == nil {
			if again, err := parseVisitorSheet(appendVisitorSheet(nil, s)); err != nil || !reflect.DeepEqual(again, s) {
				t.Errorf("%+v: %+v, %v", s, again, err)
			}
		}
		if s, err := parseHostSheet(body); err == nil {
			if again, err := parseHostSheet(appendHostSheet(nil, s)); err != nil || !reflect.DeepEqual(again, s) {
				t.Errorf("%+v: %+v, %v", s, again, err)
			}
		}
		b := &board{secret: secret, job: "job"}
		if _, err := b.check("name", body, 1<<20); err == nil {
			t.Errorf("%q is authentic", body)
		}
	})
}

// TestLimits: nothing longer than its limit is read, and no memory is taken for it.
func TestLimits(t *testing.T) {
	endless := io.MultiReader(bytes.NewReader([]byte{byte(tagFailed), 0, 1, 0, 0}), bytes.NewReader(make([]byte, 10)))
	if _, _, err := readMessage(endless, limitAtHost); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("half a message: %v", err)
	}
	for _, kind := range []tag{0, tagHere, tagTable, tagGot, tagBegin, tagFailed, 77} {
		for _, limit := range []func(tag) int{limitAtHost, limitAtVisitor(2)} {
			most := limit(kind)
			head := append([]byte{byte(kind)}, appendUint32(nil, most+1)...)
			stream := append(head, make([]byte, most+1)...)
			if _, _, err := readMessage(bytes.NewReader(stream), limit); !is[*malformedError](err) {
				t.Errorf("message %d of %d bytes: %v", kind, most+1, err)
			}
		}
	}
}

// TestTooLong: parsers refuse what is in bounds as a message and not as a field.
func TestTooLong(t *testing.T) {
	if _, err := parseHere(appendHere(nil, here{size: 1, blob: make([]byte, MaxBlob+1)})); err == nil {
		t.Error("a blob of more than MaxBlob")
	}
	if _, err := parseHere(appendHere(nil, here{size: MaxSize + 1})); err == nil {
		t.Error("a size of more than MaxSize")
	}
	if _, err := parseTable(appendTable(nil, [][]byte{make([]byte, MaxBlob+1)}), 1); err == nil {
		t.Error("a table with a blob of more than MaxBlob")
	}
	if _, err := parseTable(append(appendTable(nil, [][]byte{{1}}), 0), 1); err == nil {
		t.Error("a table with a byte too many")
	}
}
