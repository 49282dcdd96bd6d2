package rendezvous

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"slices"
	"time"

	"gogcl.dev/transport/internal/handshake"
)

// step is how far a process is.
type step uint8

const (
	stepHere   step = iota + 1 // the process has come
	stepTable                  // the host: all have come
	stepGot                    // a visitor: it has the table
	stepBegin                  // the host: all have the table
	stepFailed                 // the job cannot be
)

// sheet is what a process says at a time. A new one takes the place of the one before: nobody needs to have read that.
type sheet struct {
	Step   step
	Here   here   `json:",omitzero"` // of stepHere
	Table  table  `json:",omitzero"` // of stepTable
	Failed *Error `json:",omitzero"` // of stepFailed
}

// here is what a process says of itself.
type here struct {
	Size  int           // of the job, as the process believes
	Left  time.Duration // until its deadline; 0: none
	Nonce nonce
	Self  string // where it is
	Blob  []byte // none of the host's, which is in the table only
}

// nonce tells a process from others of its rank, in this job or an earlier one. The process has drawn it.
type nonce string

// nonceSize is the length of a nonce, in bytes: that of [crypto/rand.Text].
const nonceSize = 26

// table says who is in the job, by rank. A copy without blobs is for those who are not.
type table struct {
	Roster []nonce
	Blobs  [][]byte
}

// has reports whether a process is in the job. A stranger ([nobody]) is not.
func (t table) has(rank int, n nonce) bool {
	return rank != nobody && rank < len(t.Roster) && t.Roster[rank] == n
}

// Bounds of a sheet that are no bounds of the job.
const (
	maxSelf     = 255     // bytes of the text of where a process is
	maxReason   = 4 << 10 // bytes of that of an error
	maxReplicas = 2 * MaxSize
	maxLeft     = 1 << 53 // nanoseconds: 104 days
)

// maxSheet bounds the bytes of a sheet of the host or of a visitor.
func maxSheet(byHost bool, size int) int {
	const others = 4<<10 + 6*(maxSelf+maxReason) + 11*maxReplicas + 4*MaxBlob/3 // here and failed, in JSON
	if byHost {
		return others + size*(64+4*MaxBlob/3)
	}
	return others
}

// malformedError says that an authenticated process has sent bytes that are no sheet.
type malformedError struct {
	what string
}

func (e *malformedError) Error() string { return "malformed: " + e.what }

func errMalformed(what string) error { return &malformedError{what} }

// check says why a sheet of the host or of a visitor cannot be, in a job of a size.
func (s *sheet) check(byHost bool, size int) error {
	ok := false
	switch h, t := s.Here, s.Table; s.Step {
	case stepHere:
		ok = h.Size >= 0 && h.Size <= MaxSize && h.Left >= 0 && h.Left <= maxLeft && len(h.Nonce) == nonceSize &&
			len(h.Self) <= maxSelf && len(h.Blob) <= MaxBlob
	case stepTable:
		ok = byHost && len(t.Roster) == size && (t.Blobs == nil || len(t.Blobs) == size)
		for _, blob := range t.Blobs {
			ok = ok && len(blob) <= MaxBlob
		}
	case stepGot:
		ok = !byHost
	case stepBegin:
		ok = byHost
	case stepFailed: // a rank in it may be out of range, and that of a duplicate come twice
		e := s.Failed
		ok = e != nil && e.Kind >= Missing && e.Kind <= lastKind && len(e.Replicas) <= maxReplicas &&
			len(e.Reason) <= maxReason
	}
	others := []any{s.Here, s.Table, s.Failed} // what is of no other step
	if k := slices.Index([]step{stepHere, stepTable, stepFailed}, s.Step); k >= 0 {
		others = slices.Delete(others, k, k+1)
	}
	for _, of := range others {
		ok = ok && reflect.ValueOf(of).IsZero()
	}
	if !ok {
		return errMalformed(fmt.Sprintf("sheet %d", s.Step))
	}
	if s.Step == stepFailed && s.Failed.Kind == Missing {
		s.Failed.Err = context.DeadlineExceeded
	}
	return nil
}

// failing is the sheet of an error.
func failing(e *Error) sheet {
	e.Reason = handshake.Bounded(e.Reason, maxReason)
	return sheet{Step: stepFailed, Failed: e}
}

// encode is a sheet, or what has one, as JSON.
func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil { // there is nothing in a sheet that cannot be marshalled
		panic(err)
	}
	return b
}

// decode is the inverse. It takes what comes from the host or from a visitor, in a job of a size.
func decode(b []byte, byHost bool, size int) (s sheet, err error) {
	if err := json.Unmarshal(b, &s); err != nil {
		return sheet{}, errMalformed(err.Error())
	}
	if err := s.check(byHost, size); err != nil {
		return sheet{}, err
	}
	return s, nil
}

// appendMessage appends a sheet as it is sent over a connection: four bytes of length, then JSON.
func appendMessage(b []byte, s sheet) []byte {
	body := encode(s)
	return append(binary.BigEndian.AppendUint32(b, uint32(len(body))), body...)
}

// readMessage reads a sheet of the host or of a visitor. The buffer grows with what arrives, not by the length that was
// sent.
func readMessage(r io.Reader, byHost bool, size int) (sheet, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return sheet{}, err
	}
	length, most := int64(binary.BigEndian.Uint32(head[:])), int64(maxSheet(byHost, size))
	if length > most {
		return sheet{}, errMalformed(fmt.Sprintf("a sheet of %d bytes, at most %d", length, most))
	}
	var body bytes.Buffer
	if _, err := io.CopyN(&body, r, length); err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return sheet{}, err
	}
	return decode(body.Bytes(), byHost, size)
}
