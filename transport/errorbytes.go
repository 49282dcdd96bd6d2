package transport

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"unicode/utf8"
)

// MaxErrorBytes bounds what AppendError appends.
const MaxErrorBytes = 4 << 10

// The kinds of error as they travel. The numbers are part of the protocol between processes.
const (
	textError byte = iota + 1 // a text, and the errors inside that have kinds of their own
	roundError
	mismatchError
	unmatchedError
	deadlockError
	closedError
	abortError
	lateError
	lostError
	batchError
	argumentError
	knownError
)

// knownErrors travel by their place in this list, which is part of the protocol: new ones go to the end.
var knownErrors = []error{ErrBusy, ErrNotShared, context.Canceled, context.DeadlineExceeded}

// maxErrorDepth bounds how deep errors are wrapped in what ParseError takes. AppendError makes a text of what is
// deeper.
const maxErrorDepth = 32

// maxTextBytes bounds a single text, so that several fit.
const maxTextBytes = MaxErrorBytes / 4

// AppendError appends an error in the form in which it travels to another process, at most [MaxErrorBytes]. The errors
// of this package travel with their types and fields, and so do [context.Canceled] and [context.DeadlineExceeded]. Any
// other error travels as its text, cut off where it is long, together with those of this package that it wraps. What
// does not fit travels as a text. A nil error appends nothing.
func AppendError(b []byte, err error) []byte {
	if err == nil {
		return b
	}
	whole := appendError(b, err, 0)
	if len(whole)-len(b) <= MaxErrorBytes {
		return whole
	}
	return appendText(b, err.Error(), nil, 0)
}

func appendError(b []byte, err error, depth int) []byte {
	if v := reflect.ValueOf(err); err == nil || v.Kind() == reflect.Pointer && v.IsNil() {
		err = errors.New("no error given")
	}
	if depth == maxErrorDepth-1 {
		return appendText(b, err.Error(), nil, depth)
	}
	within := func(b []byte, inner error) []byte { return appendError(b, inner, depth+1) }
	if k := slices.Index(knownErrors, err); k >= 0 {
		return append(b, knownError, byte(k))
	}
	switch e := err.(type) {
	case *RoundError:
		b = appendNumbers(append(b, roundError), e.Replica, int(e.Round), int(e.Kind), e.Peer)
		return within(b, e.Err)
	case *MismatchError:
		b = appendNumbers(append(b, mismatchError), e.Replica, e.Peer, e.MineBytes, e.TheirsBytes)
		return AppendCall(AppendCall(b, e.Mine), e.Theirs)
	case *UnmatchedError:
		return AppendCall(appendNumbers(append(b, unmatchedError), e.Replica, e.Peer), e.Theirs)
	case *DeadlockError:
		n := min(len(e.Replicas), len(e.Calls))
		b = appendNumbers(append(b, deadlockError), n)
		for i, r := range e.Replicas[:n] {
			b = AppendCall(appendNumbers(b, r), e.Calls[i])
		}
		return b
	case *ClosedError:
		return appendNumbers(append(b, closedError), e.Replica)
	case *AbortError:
		return within(appendNumbers(append(b, abortError), e.Replica), e.Cause)
	case *LateError:
		b = within(append(b, lateError), e.Err)
		if e.Aborted == nil {
			return append(b, 0)
		}
		return within(append(b, 1), e.Aborted)
	case *LostError:
		return within(appendString(appendNumbers(append(b, lostError), e.Replica), e.Process), e.Err)
	case *BatchError:
		return appendString(appendNumbers(append(b, batchError), e.Index), e.Reason)
	case *ArgumentError:
		return appendString(append(b, argumentError), e.Reason)
	}
	return appendText(b, err.Error(), typedInside(err), depth)
}

// appendText appends an error that is a text, and the errors of this package inside it.
func appendText(b []byte, text string, inside []error, depth int) []byte {
	b = appendString(append(b, textError), text)
	b = append(b, byte(len(inside)))
	for _, e := range inside {
		b = appendError(b, e, depth+1)
	}
	return b
}

// maxInside bounds how many errors travel with one text.
const maxInside = 8

// typedInside finds the outermost errors with a kind of their own that an error wraps.
func typedInside(err error) (out []error) {
	var inner []error
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		inner = []error{e.Unwrap()}
	case interface{ Unwrap() []error }:
		inner = e.Unwrap()
	}
	for _, e := range inner {
		switch {
		case e == nil:
		case hasKind(e):
			out = append(out, e)
		default:
			out = append(out, typedInside(e)...)
		}
	}
	return out[:min(len(out), maxInside)]
}

// hasKind reports whether an error travels as more than its text.
func hasKind(err error) bool {
	switch err.(type) {
	case *RoundError, *MismatchError, *UnmatchedError, *DeadlockError, *ClosedError, *AbortError, *LateError,
		*LostError, *BatchError, *ArgumentError:
		return true
	}
	return slices.Contains(knownErrors, err)
}

func appendNumbers(b []byte, numbers ...int) []byte {
	for _, n := range numbers {
		b = binary.AppendVarint(b, int64(n))
	}
	return b
}

func appendString(b []byte, s string) []byte {
	if len(s) > maxTextBytes {
		s = s[:maxTextBytes-len("...")]
		for len(s) > 0 { // whole runes only
			if r, n := utf8.DecodeLastRuneInString(s); r != utf8.RuneError || n != 1 {
				break
			}
			s = s[:len(s)-1]
		}
		s += "..."
	}
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// ParseError is the inverse of AppendError: it takes all of b. The result is nil when b is empty. Bytes that
// AppendError does not make are an error, the second result.
func ParseError(b []byte) (sent, err error) {
	if len(b) == 0 {
		return nil, nil
	}
	if len(b) > MaxErrorBytes {
		return nil, fmt.Errorf("transport: an error of %d bytes, want at most %d", len(b), MaxErrorBytes)
	}
	p := errorParser{rest: b}
	sent = p.parse(0)
	if !p.bad && len(p.rest) > 0 {
		p.bad = true
	}
	if p.bad {
		return nil, fmt.Errorf("transport: %d bytes that are no error", len(b))
	}
	return sent, nil
}

// errorParser reads an error. After bytes that make no sense bad is set, and the results mean nothing.
type errorParser struct {
	rest []byte
	bad  bool
}

func (p *errorParser) parse(depth int) error {
	if depth >= maxErrorDepth {
		p.bad = true
	}
	switch kind := p.byte(); kind {
	case textError:
		e := &remoteError{text: p.string()}
		n := p.byte()
		if n > maxInside {
			p.bad = true
		}
		for range n {
			if !p.bad {
				e.inside = append(e.inside, p.parse(depth+1))
			}
		}
		return e
	case roundError:
		e := &RoundError{Replica: p.int(), Round: uint32(p.int()), Kind: Kind(p.int()), Peer: p.int()}
		e.Err = p.inner(depth)
		return e
	case mismatchError:
		e := &MismatchError{Replica: p.int(), Peer: p.int(), MineBytes: p.int(), TheirsBytes: p.int()}
		e.Mine, e.Theirs = p.call(), p.call()
		return e
	case unmatchedError:
		return &UnmatchedError{Replica: p.int(), Peer: p.int(), Theirs: p.call()}
	case deadlockError:
		e := &DeadlockError{}
		for n := p.int(); n > 0 && !p.bad; n-- {
			e.Replicas, e.Calls = append(e.Replicas, p.int()), append(e.Calls, p.call())
		}
		return e
	case closedError:
		return &ClosedError{Replica: p.int()}
	case abortError:
		return &AbortError{Replica: p.int(), Cause: p.inner(depth)}
	case lateError:
		e := &LateError{Err: p.inner(depth)}
		switch p.byte() {
		case 0:
		case 1:
			aborted, ok := p.inner(depth).(*AbortError)
			e.Aborted = aborted
			p.bad = p.bad || !ok
		default:
			p.bad = true
		}
		return e
	case lostError:
		return &LostError{Replica: p.int(), Process: p.string(), Err: p.inner(depth)}
	case batchError:
		return &BatchError{Index: p.int(), Reason: p.string()}
	case argumentError:
		return &ArgumentError{Reason: p.string()}
	case knownError:
		if k := int(p.byte()); k < len(knownErrors) {
			return knownErrors[k]
		}
	}
	p.bad = true
	return nil
}

func (p *errorParser) inner(depth int) error {
	if p.bad {
		return nil
	}
	return p.parse(depth + 1)
}

func (p *errorParser) byte() byte {
	if len(p.rest) == 0 {
		p.bad = true
		return 0
	}
	b := p.rest[0]
	p.rest = p.rest[1:]
	return b
}

func (p *errorParser) int() int {
	n, size := binary.Varint(p.rest)
	if size <= 0 || int64(int(n)) != n {
		p.bad = true
		return 0
	}
	p.rest = p.rest[size:]
	return int(n)
}

func (p *errorParser) string() string {
	n, size := binary.Uvarint(p.rest)
	if size <= 0 || n > uint64(len(p.rest)-size) {
		p.bad = true
		return ""
	}
	s := string(p.rest[size : size+int(n)])
	p.rest = p.rest[size+int(n):]
	return s
}

func (p *errorParser) call() Call {
	if len(p.rest) < CallBytes {
		p.bad = true
		return Call{}
	}
	c := ParseCall(p.rest)
	p.rest = p.rest[CallBytes:]
	return c
}

// remoteError is an error of another process that has no type in this one: its text, and the errors inside it that do.
type remoteError struct {
	text   string
	inside []error
}

func (e *remoteError) Error() string   { return e.text }
func (e *remoteError) Unwrap() []error { return e.inside }
