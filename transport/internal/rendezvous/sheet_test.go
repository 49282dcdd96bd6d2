package rendezvous

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"
)

// nonces draws some.
func nonces(n int) []nonce {
	drawn := make([]nonce, n)
	for i := range drawn {
		drawn[i] = nonce(rand.Text())
	}
	return drawn
}

// tableOf is a table with blobs.
func tableOf(blobs ...[]byte) sheet {
	return sheet{Step: stepTable, Table: table{Roster: nonces(len(blobs)), Blobs: blobs}}
}

// hereOf is a sheet of a process that has come.
func hereOf(size int, blob []byte) sheet {
	return sheet{Step: stepHere, Here: here{Size: size, Left: 5, Nonce: nonces(1)[0], Self: "here", Blob: blob}}
}

// FuzzMessages: a stream of any bytes, as the host and as a visitor reads it. What is understood is written alike.
func FuzzMessages(f *testing.F) {
	f.Add(appendMessage(nil, hereOf(3, []byte("blob"))))
	f.Add(appendMessage(nil, tableOf([]byte{1}, nil, []byte{2, 3})))
	f.Add(appendMessage(appendMessage(nil, sheet{Step: stepGot}), sheet{Step: stepBegin}))
	f.Add(appendMessage(nil, failing(&Error{Kind: Missing, Replicas: []int{1, 2}, Reason: "why"})))
	f.Add([]byte{255, 255, 255, 255})
	f.Add(appendMessage(nil, sheet{Step: stepFailed}))
	f.Fuzz(func(t *testing.T, stream []byte) {
		for _, byHost := range []bool{false, true} {
			r := bytes.NewReader(stream)
			for {
				said, err := readMessage(r, byHost, 3)
				if err != nil {
					break
				}
				understood := appendMessage(nil, said)
				again, err := readMessage(bytes.NewReader(understood), byHost, 3)
				if err != nil || !reflect.DeepEqual(again, said) {
					t.Errorf("%+v: %+v, %v", said, again, err)
				}
			}
		}
	})
}

// FuzzFiles: nothing is taken from a file that has no proof.
func FuzzFiles(f *testing.F) {
	b := &board{c: Config{Secret: secret, Job: "job"}}
	f.Add(b.seal("another name", content{Echoes: nonces(2), Sheet: hereOf(3, nil)}))
	f.Add([]byte(boardMagic + "\x00\x01"))
	f.Fuzz(func(t *testing.T, file []byte) {
		if _, err := b.unseal("name", file, 1<<20); err == nil {
			t.Errorf("%q is authentic", file)
		}
	})
}

// TestOtherFields: a sheet has the fields of its step and no others, and a table all blobs or none.
func TestOtherFields(t *testing.T) {
	table := tableOf([]byte{1}, nil, []byte{2})
	none := table
	none.Table.Blobs = nil
	if err := none.check(true, 3); err != nil {
		t.Error(err)
	}
	empty := table
	empty.Table.Blobs = [][]byte{}
	here, failed := hereOf(3, nil), failing(&Error{Kind: Missing})
	for name, s := range map[string]sheet{
		"no blobs":            empty,
		"here with a table":   {Step: stepHere, Here: here.Here, Table: table.Table},
		"failed with a table": {Step: stepFailed, Failed: failed.Failed, Table: table.Table},
		"table with here":     {Step: stepTable, Here: here.Here, Table: table.Table},
		"begin with an error": {Step: stepBegin, Failed: failed.Failed},
		"begin with a table":  {Step: stepBegin, Table: table.Table},
	} {
		if s.check(true, 3) == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestLimits: nothing longer than its limit is read, and no memory is taken for it.
func TestLimits(t *testing.T) {
	for _, byHost := range []bool{false, true} {
		most := maxSheet(byHost, 2)
		endless := io.MultiReader(bytes.NewReader(binary.BigEndian.AppendUint32(nil, uint32(most))),
			bytes.NewReader(make([]byte, 10)))
		if _, err := readMessage(endless, byHost, 2); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("part of a sheet: %v", err)
		}
		stream := bytes.NewReader(append(binary.BigEndian.AppendUint32(nil, uint32(most+1)), make([]byte, most+1)...))
		if _, err := readMessage(stream, byHost, 2); !is[*malformedError](err) || stream.Len() != most+1 {
			t.Errorf("a sheet of %d bytes: %v, and %d bytes are left", most+1, err, stream.Len())
		}
	}
}

// TestLongest: the longest sheets that can be are within their limits.
func TestLongest(t *testing.T) {
	blob := bytes.Repeat([]byte{255}, MaxBlob)
	longest := here{Size: MaxSize, Left: maxLeft, Nonce: nonces(1)[0], Blob: blob,
		Self: strings.Repeat("\x01", maxSelf)}
	failed := &Error{Kind: lastKind, Replicas: make([]int, maxReplicas), Reason: strings.Repeat("\x01", maxReason)}
	for i := range failed.Replicas {
		failed.Replicas[i] = 1<<31 - 1
	}
	for _, s := range []sheet{{Step: stepHere, Here: longest}, failing(failed), tableOf(blob, blob, blob)} {
		byHost := s.Step == stepTable
		again, err := readMessage(bytes.NewReader(appendMessage(nil, s)), byHost, 3)
		if err != nil || !reflect.DeepEqual(again, s) {
			t.Errorf("sheet %d: %v", s.Step, err)
		}
	}
}

// TestNoSheet: what is in bounds as bytes and cannot be as a sheet, or not from who has sent it.
func TestNoSheet(t *testing.T) {
	large := make([]byte, MaxBlob+1)
	drawn := nonces(1)[0]
	entered := func(h here) sheet { return sheet{Step: stepHere, Here: h} }
	for what, s := range map[string]sheet{
		"a blob of more than MaxBlob":   hereOf(3, large),
		"a size of more than MaxSize":   hereOf(MaxSize+1, nil),
		"a size of less than 0":         hereOf(-1, nil),
		"more time than there is":       entered(here{Size: 3, Left: maxLeft + 1, Nonce: drawn}),
		"no nonce":                      entered(here{Size: 3, Left: time.Second}),
		"a place of more than maxSelf":  entered(here{Nonce: drawn, Self: string(large)}),
		"a table with too large a blob": tableOf(nil, nil, large),
		"a table of another size":       tableOf(nil, nil),
		"a table with a blob too many":  {Step: stepTable, Table: table{Roster: nonces(3), Blobs: make([][]byte, 4)}},
		"an error of no kind":           {Step: stepFailed, Failed: &Error{}},
		"an error of an unknown kind":   {Step: stepFailed, Failed: &Error{Kind: lastKind + 1}},
		"an error of too many replicas": {Step: stepFailed, Failed: &Error{Kind: Gone, Replicas: make([]int, maxReplicas+1)}},
		"an error with too long a text": {Step: stepFailed, Failed: &Error{Kind: Gone, Reason: string(large)}},
		"no error":                      {Step: stepFailed},
		"nothing":                       {},
		"an unknown step":               {Step: 77},
	} {
		for _, byHost := range []bool{false, true} {
			if _, err := decode(encode(s), byHost, 3); !is[*malformedError](err) {
				t.Errorf("%s: %v", what, err)
			}
		}
	}
	of := map[bool][]sheet{true: {{Step: stepGot}}, false: {{Step: stepBegin}, tableOf(nil, nil, nil)}}
	for byHost, sheets := range of {
		for _, s := range sheets {
			if _, err := decode(encode(s), byHost, 3); !is[*malformedError](err) {
				t.Errorf("sheet %d, by the host: %v: %v", s.Step, byHost, err)
			}
			if _, err := decode(encode(s), !byHost, 3); err != nil {
				t.Errorf("sheet %d, by the host: %v: %v", s.Step, !byHost, err)
			}
		}
	}
}
