package transport

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"unicode/utf8"
)

// MaxErrorBytes bounds what AppendError appends.
const MaxErrorBytes = 4 << 10

const (
	// maxErrorDepth bounds how deep errors are wrapped in what ParseError takes. AppendError makes a text of what is
	// deeper.
	maxErrorDepth = 32

	// maxTextBytes bounds the text of an error, so that several fit, and maxAloneBytes that of one that travels alone:
	// of a byte JSON may make six.
	maxTextBytes  = MaxErrorBytes / 4
	maxAloneBytes = MaxErrorBytes / 8

	// maxInside bounds how many errors travel with one text.
	maxInside = 8
)

// sentError is an error as it travels, in JSON: a text, or a type by its tag and its fields, which are those of the Go
// type but for the errors in it.
type sentError struct {
	Tag    string          `json:"tag,omitempty"`
	Fields json.RawMessage `json:"fields,omitempty"`
	Text   string          `json:"text,omitempty"`
	Inside []*sentError    `json:"inside,omitempty"`
}

// errorTag is a type of error that travels with its fields, or an error that travels as itself. The tags are part of
// the protocol between processes.
type errorTag struct {
	tag    string
	value  error                                // that travels as itself, or nil
	typ    reflect.Type                         // of the others: a struct, of which a pointer is the error
	inside func(err error) []error              // the errors in it; nil: none
	put    func(err error, inside []error) bool // puts them there, and reports whether all is right
}

// fields is the row of a type without errors in it.
func fields[E any](tag string) errorTag { return errorTag{tag: tag, typ: reflect.TypeFor[E]()} }

// wraps is the row of a type with one error in it.
func wraps[E any](tag string, at func(e *E) *error) errorTag {
	return errorTag{tag: tag, typ: reflect.TypeFor[E](),
		inside: func(err error) []error { return []error{*at(any(err).(*E))} },
		put: func(err error, inside []error) bool {
			if len(inside) == 1 {
				*at(any(err).(*E)) = inside[0]
			}
			return len(inside) == 1
		}}
}

var errorTags = []errorTag{
	{tag: "busy", value: ErrBusy}, {tag: "not shared", value: ErrNotShared},
	{tag: "canceled", value: context.Canceled}, {tag: "deadline exceeded", value: context.DeadlineExceeded},
	fields[MismatchError]("mismatch"), fields[UnmatchedError]("unmatched"), fields[ClosedError]("closed"),
	fields[BatchError]("batch"), fields[ArgumentError]("argument"),
	wraps("round", func(e *RoundError) *error { return &e.Err }),
	wraps("abort", func(e *AbortError) *error { return &e.Cause }),
	wraps("lost", func(e *LostError) *error { return &e.Err }),
	{tag: "deadlock", typ: reflect.TypeFor[DeadlockError](), put: func(err error, inside []error) bool {
		e := err.(*DeadlockError)
		n := min(len(e.Replicas), len(e.Calls))
		e.Replicas, e.Calls = e.Replicas[:n], e.Calls[:n]
		return len(inside) == 0
	}},
	{tag: "late", typ: reflect.TypeFor[LateError](), inside: func(err error) []error {
		if e := err.(*LateError); e.Aborted == nil {
			return []error{e.Err}
		}
		return err.(*LateError).Unwrap()
	}, put: func(err error, inside []error) (ok bool) {
		e := err.(*LateError)
		switch len(inside) {
		case 1:
			e.Err, ok = inside[0], true
		case 2:
			e.Err = inside[0]
			e.Aborted, ok = inside[1].(*AbortError)
		}
		return ok
	}},
}

// tagOf finds the row of an error that travels as more than its text, or returns nil.
func tagOf(err error) *errorTag {
	for i := range errorTags {
		t := &errorTags[i]
		if t.value == err || t.typ != nil && reflect.TypeOf(err) == reflect.PointerTo(t.typ) {
			return t
		}
	}
	return nil
}

// MarshalJSON gives the bytes of AppendCall.
func (c Call) MarshalJSON() ([]byte, error) { return json.Marshal(AppendCall(nil, c)) }

// UnmarshalJSON is the inverse of MarshalJSON.
func (c *Call) UnmarshalJSON(text []byte) error {
	var b []byte
	if err := json.Unmarshal(text, &b); err != nil {
		return err
	}
	if len(b) != CallBytes {
		return fmt.Errorf("transport: a call of %d bytes, want %d", len(b), CallBytes)
	}
	*c = ParseCall(b)
	return nil
}

// AppendError appends an error in the form in which it travels to another process, at most [MaxErrorBytes]. The errors
// of this package travel with their types and fields, and so do [context.Canceled] and [context.DeadlineExceeded]. Any
// other error travels as its text, cut off where it is long, together with those of this package that it wraps. What
// does not fit travels as a text. A nil error appends nothing.
func AppendError(b []byte, err error) []byte {
	if err == nil {
		return b
	}
	whole, bad := json.Marshal(sendError(err, 0))
	if bad != nil || len(whole) > MaxErrorBytes {
		whole, _ = json.Marshal(&sentError{Text: cut(err.Error(), maxAloneBytes)})
	}
	return append(b, whole...)
}

// sendError makes of an error what travels.
func sendError(err error, depth int) *sentError {
	if v := reflect.ValueOf(err); err == nil || v.Kind() == reflect.Pointer && v.IsNil() {
		err = errors.New("no error given")
	}
	s, t, inside := &sentError{}, tagOf(err), []error(nil)
	switch deepest := depth == maxErrorDepth-1; {
	case t == nil || deepest:
		s.Text = cut(err.Error(), maxTextBytes)
		if !deepest {
			inside = typedInside(err)
		}
	default:
		if s.Tag = t.tag; t.typ != nil {
			s.Fields, _ = json.Marshal(err) // no field of these types fails
		}
		if t.inside != nil {
			inside = t.inside(err)
		}
	}
	for _, e := range inside {
		s.Inside = append(s.Inside, sendError(e, depth+1))
	}
	return s
}

// typedInside finds the outermost errors with a tag that an error wraps.
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
		case tagOf(e) != nil:
			out = append(out, e)
		default:
			out = append(out, typedInside(e)...)
		}
	}
	return out[:min(len(out), maxInside)]
}

// cut is a text of at most so many bytes, whole runes of them.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	text = text[:most-len("...")]
	for len(text) > 0 {
		if r, n := utf8.DecodeLastRuneInString(text); r != utf8.RuneError || n != 1 {
			break
		}
		text = text[:len(text)-1]
	}
	return text + "..."
}

// ParseError is the inverse of AppendError: it takes all of b. The result is nil when b is empty. Bytes that are no
// error are an error, the second result.
func ParseError(b []byte) (sent, err error) {
	if len(b) == 0 {
		return nil, nil
	}
	if len(b) > MaxErrorBytes {
		return nil, fmt.Errorf("transport: an error of %d bytes, want at most %d", len(b), MaxErrorBytes)
	}
	var s *sentError
	if strict(b, &s) == nil {
		sent = s.received(0)
	}
	if sent == nil {
		return nil, fmt.Errorf("transport: %d bytes that are no error", len(b))
	}
	return sent, nil
}

// strict reads a value of JSON that is all of b, and whose fields are known.
func strict(b []byte, value any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(value); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("something follows")
	}
	return nil
}

// received is the error that has travelled as s; nil: it makes no sense.
func (s *sentError) received(depth int) error {
	if s == nil || depth >= maxErrorDepth {
		return nil
	}
	var inside []error
	for _, sent := range s.Inside {
		e := sent.received(depth + 1)
		if e == nil {
			return nil
		}
		inside = append(inside, e)
	}
	if s.Tag == "" && len(inside) <= maxInside {
		return &remoteError{s.Text, inside}
	}
	i := slices.IndexFunc(errorTags, func(t errorTag) bool { return t.tag == s.Tag })
	if i < 0 {
		return nil
	}
	t := &errorTags[i]
	if t.value != nil {
		return t.value
	}
	value := reflect.New(t.typ).Interface()
	err, _ := value.(error)
	if strict(s.Fields, value) != nil || t.put == nil && len(inside) > 0 || t.put != nil && !t.put(err, inside) {
		return nil
	}
	return err
}

// remoteError is an error of another process that has no type in this one: its text, and the errors inside it that do.
type remoteError struct {
	text   string
	inside []error
}

func (e *remoteError) Error() string   { return e.text }
func (e *remoteError) Unwrap() []error { return e.inside }
