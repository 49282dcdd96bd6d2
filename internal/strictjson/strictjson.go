// Package strictjson reads JSON that has to be what is expected and nothing else. The caller says what comes next, and
// what encoding/json would let pass is an error: a name that an object has twice, another case of a name, a number
// that is no whole one, invalid UTF-8, something after the value.
//
// Documents may be hostile. Reading goes through the bytes once, keeps nothing but what it returns and the names of the
// objects that are open, and looks at a context at every step; how many names and numbers there may be is the caller's
// to say. What an error quotes of a document is cut after 100 characters.
package strictjson

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"
)

// Quote is text in JSON. Bytes that are not UTF-8 become U+FFFD.
func Quote(text string) []byte {
	b, _ := json.Marshal(text) // which fails for no string
	return b
}

// Reader goes through a document from its beginning to its end. After an error it is of no more use.
type Reader struct {
	ctx  context.Context
	data []byte
	at   int // what comes next
}

// Read calls read for the one value that data holds. When ctx ends, the methods of its argument return ctx's error.
func Read(ctx context.Context, data []byte, read func(r *Reader) error) error {
	if !utf8.Valid(data) {
		return errors.New("it is not valid UTF-8")
	}
	r := &Reader{ctx: ctx, data: data}
	if err := read(r); err != nil {
		return err
	}
	if r.space(); r.at < len(data) {
		return fmt.Errorf("at byte %d: want the end, found %q", r.at, data[r.at])
	}
	return nil
}

// space goes to what is not space.
func (r *Reader) space() {
	for r.at < len(r.data) && bytes.IndexByte([]byte(" \t\r\n"), r.data[r.at]) >= 0 {
		r.at++
	}
}

// The kinds of tokens that are not a single character.
const (
	text    = '"'
	number  = '0'
	literal = 'a' // true, false or null
)

// token is a piece of a document: one of {}[],: or of the kinds above.
type token struct {
	kind byte
	raw  []byte // of the document
}

// next is the next token.
func (r *Reader) next(want string) (token, error) {
	if r.ctx.Err() != nil {
		return token{}, context.Cause(r.ctx)
	}
	before := r.at
	if r.space(); r.at == len(r.data) {
		return token{}, fmt.Errorf("after byte %d: want %s: %w", before, want, io.ErrUnexpectedEOF)
	}
	begin := r.at
	c := r.data[begin]
	t := token{kind: c}
	var err error
	switch {
	case bytes.IndexByte([]byte("{}[],:"), c) >= 0:
		r.at++
	case c == '"':
		err = r.toQuote()
	case c == '-' || '0' <= c && c <= '9':
		t.kind = number
		r.skip("+-.0123456789Ee")
		if !isNumber(r.data[begin:r.at]) {
			err = fmt.Errorf("%.100q is no number", r.data[begin:r.at])
		}
	case 'a' <= c && c <= 'z':
		t.kind = literal
		r.skip("abcdefghijklmnopqrstuvwxyz")
		if word := string(r.data[begin:r.at]); word != "true" && word != "false" && word != "null" {
			err = fmt.Errorf("%.100q is none of true, false and null", r.data[begin:r.at])
		}
	default:
		found, _ := utf8.DecodeRune(r.data[begin:])
		err = fmt.Errorf("%q begins no value", found)
	}
	if err != nil {
		return token{}, fmt.Errorf("at byte %d: want %s: %w", begin, want, err)
	}
	t.raw = r.data[begin:r.at]
	return t, nil
}

// skip goes to what is none of these characters.
func (r *Reader) skip(characters string) {
	for r.at < len(r.data) && bytes.IndexByte([]byte(characters), r.data[r.at]) >= 0 {
		r.at++
	}
}

// isNumber reports whether a number is as JSON has them: -12.5e-3, and no zeros before another digit.
func isNumber(b []byte) bool {
	digits := func() (n int) {
		for n < len(b) && '0' <= b[n] && b[n] <= '9' {
			n++
		}
		b = b[n:]
		return n
	}
	b = bytes.TrimPrefix(b, []byte("-"))
	zero := bytes.HasPrefix(b, []byte("0"))
	if n := digits(); n == 0 || zero && n > 1 {
		return false
	}
	if len(b) > 0 && b[0] == '.' {
		b = b[1:]
		if digits() == 0 {
			return false
		}
	}
	if len(b) > 0 && (b[0] == 'e' || b[0] == 'E') {
		b = b[1:]
		if len(b) > 0 && (b[0] == '+' || b[0] == '-') {
			b = b[1:]
		}
		if digits() == 0 {
			return false
		}
	}
	return len(b) == 0
}

// toQuote goes from the quote that begins a string to the byte after the one that ends it.
func (r *Reader) toQuote() error {
	for r.at++; r.at < len(r.data); r.at++ {
		switch c := r.data[r.at]; {
		case c == '"':
			r.at++
			return nil
		case c == '\\':
			r.at++
		case c < ' ':
			return fmt.Errorf("the character %q in a string", c)
		}
	}
	r.at = len(r.data)
	return io.ErrUnexpectedEOF
}

// wrong is the error of a token that was not wanted.
func (r *Reader) wrong(want string, found token) error {
	what := fmt.Sprintf("%.100s", found.raw)
	switch found.kind {
	case text:
		s, err := r.unquote(found)
		if err != nil {
			return err
		}
		what = fmt.Sprintf("the string %.100q", s)
	case number:
		what = "the number " + what
	}
	return fmt.Errorf("before byte %d: want %s, found %s", r.at, want, what)
}

// unquote is the text of a string, the token that was read last.
func (r *Reader) unquote(t token) (string, error) {
	inner := t.raw[1 : len(t.raw)-1]
	if bytes.IndexByte(inner, '\\') < 0 {
		return string(inner), nil
	}
	var s string
	if err := json.Unmarshal(t.raw, &s); err != nil {
		return "", fmt.Errorf("before byte %d: a string: %w", r.at, err)
	}
	return s, nil
}

func (r *Reader) delim(kind byte, want string) error {
	t, err := r.next(want)
	if err == nil && t.kind != kind {
		err = r.wrong(want, t)
	}
	return err
}

// more goes on to the next part of an object or array, whose end is that delimiter; first says that none came before.
func (r *Reader) more(end byte, first bool, want string) (bool, error) {
	if r.space(); r.at < len(r.data) && r.data[r.at] == end {
		r.at++
		return false, nil
	}
	if first {
		return true, nil
	}
	return true, r.delim(',', "a comma or "+want)
}

// Object reads an object of at most so many members: member is called for each name, and reads its value. A name that
// comes again is an error.
func (r *Reader) Object(most int, member func(name string) error) error {
	return r.object(map[string]struct{}{}, most, member)
}

// object is Object with the set, empty, that will have the names.
func (r *Reader) object(seen map[string]struct{}, most int, member func(name string) error) error {
	if err := r.delim('{', "an object"); err != nil {
		return err
	}
	for {
		more, err := r.more('}', len(seen) == 0, "the end of an object")
		if err != nil || !more {
			return err
		}
		t, err := r.next("a name")
		if err == nil && t.kind != text {
			err = r.wrong("a name", t)
		}
		if err != nil {
			return err
		}
		name, err := r.unquote(t)
		if err != nil {
			return err
		}
		if _, again := seen[name]; again {
			return fmt.Errorf("before byte %d: the name %.100q for the second time in one object", r.at, name)
		}
		if len(seen) == most {
			return fmt.Errorf("before byte %d: an object of more than %d names", r.at, most)
		}
		seen[name] = struct{}{}
		if err := r.delim(':', "a colon"); err != nil {
			return err
		}
		if err := member(name); err != nil {
			return err
		}
	}
}

// Members reads an object that has all of these names and no others, each with the function that reads its value.
func (r *Reader) Members(members map[string]func() error) error {
	found := map[string]struct{}{}
	err := r.object(found, len(members)+1, func(name string) error {
		read, ok := members[name]
		if !ok {
			return fmt.Errorf("before byte %d: the name %.100q is none of this object's", r.at, name)
		}
		return read()
	})
	if err != nil || len(found) == len(members) {
		return err
	}
	missing := slices.Sorted(maps.Keys(members))
	missing = slices.DeleteFunc(missing, func(name string) bool { _, ok := found[name]; return ok })
	return fmt.Errorf("before byte %d: the object has no %q", r.at, missing)
}

// Array reads an array: element is called where one begins, and reads it.
func (r *Reader) Array(element func() error) error {
	if err := r.delim('[', "an array"); err != nil {
		return err
	}
	for first := true; ; first = false {
		more, err := r.more(']', first, "the end of an array")
		if err != nil || !more {
			return err
		}
		if err := element(); err != nil {
			return err
		}
	}
}

// Ints reads an array of at most so many whole numbers that are not negative and that an int holds.
func (r *Reader) Ints(most int) ([]int, error) {
	var ints []int
	err := r.Array(func() error {
		if len(ints) == most {
			return fmt.Errorf("before byte %d: an array of more than %d numbers", r.at, most)
		}
		n, err := r.Count()
		if err == nil && n > math.MaxInt {
			err = fmt.Errorf("before byte %d: the number %d, too many for this machine", r.at, n)
		}
		ints = append(ints, int(n))
		return err
	})
	return ints, err
}

// Text reads a string.
func (r *Reader) Text() (string, error) {
	const want = "a string"
	t, err := r.next(want)
	if err != nil {
		return "", err
	}
	if t.kind != text {
		return "", r.wrong(want, t)
	}
	return r.unquote(t)
}

// Count reads a whole number that is not negative: digits only, and no more than an int64 holds.
func (r *Reader) Count() (int64, error) {
	n, err := r.whole(63)
	return int64(n), err
}

// Uint64 reads a whole number that is not negative: digits only.
func (r *Reader) Uint64() (uint64, error) { return r.whole(64) }

// whole reads a whole number of at most so many bits.
func (r *Reader) whole(bits int) (uint64, error) {
	const want = "a whole number"
	t, err := r.next(want)
	if err != nil {
		return 0, err
	}
	if t.kind != number {
		return 0, r.wrong(want, t)
	}
	n, err := strconv.ParseUint(string(t.raw), 10, bits)
	if errors.Is(err, strconv.ErrRange) {
		return 0, r.wrong(fmt.Sprintf("a number that %d bits hold", bits), t)
	}
	if err != nil {
		return 0, r.wrong(want, t)
	}
	return n, nil
}

// Raw reads any value and returns it as it is written, a part of the document.
func (r *Reader) Raw() ([]byte, error) {
	r.space()
	begin := r.at
	for depth := 0; ; {
		t, err := r.next("a value")
		if err != nil {
			return nil, err
		}
		switch t.kind {
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		if depth <= 0 {
			break
		}
	}
	raw := r.data[begin:r.at]
	if !json.Valid(raw) {
		return nil, fmt.Errorf("bytes %d to %d are no value", begin, r.at)
	}
	return raw, nil
}
