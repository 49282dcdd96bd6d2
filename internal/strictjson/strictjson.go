// Package strictjson reads JSON that has to be what is expected and nothing else. The caller says what comes next, and
// what encoding/json would let pass is an error: a name that an object has twice, another case of a name, a number
// that is no whole one, invalid UTF-8, something after the value.
package strictjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"unicode/utf8"
)

// Reader goes through a document from its beginning to its end. After an error it is of no more use.
type Reader struct{ dec *json.Decoder }

// Read calls read for the one value that data holds. It allocates what that does, and no more than a small multiple of
// the length of data.
func Read(data []byte, read func(r *Reader) error) error {
	if !utf8.Valid(data) {
		return errors.New("it is not valid UTF-8")
	}
	r := &Reader{json.NewDecoder(bytes.NewReader(data))}
	r.dec.UseNumber()
	if err := read(r); err != nil {
		return err
	}
	end := r.dec.InputOffset()
	if rest := bytes.TrimLeft(data[end:], " \t\r\n"); len(rest) > 0 {
		return fmt.Errorf("at byte %d: want the end, found %q", len(data)-len(rest), rest[0])
	}
	return nil
}

// token is the next token.
func (r *Reader) token(want string) (json.Token, error) {
	t, err := r.dec.Token()
	if err != nil {
		return nil, fmt.Errorf("after byte %d: want %s: %w", r.dec.InputOffset(), want, err)
	}
	return t, nil
}

// wrong is the error of a token that was not wanted.
func (r *Reader) wrong(want string, found json.Token) error {
	at := r.dec.InputOffset()
	switch t := found.(type) {
	case json.Delim:
		return fmt.Errorf("before byte %d: want %s, found %v", at, want, t)
	case string:
		return fmt.Errorf("before byte %d: want %s, found the string %.100q", at, want, t)
	case json.Number:
		return fmt.Errorf("before byte %d: want %s, found the number %.100s", at, want, t)
	case bool:
		return fmt.Errorf("before byte %d: want %s, found %v", at, want, t)
	}
	return fmt.Errorf("before byte %d: want %s, found null", at, want)
}

func (r *Reader) delim(d json.Delim, want string) error {
	t, err := r.token(want)
	if err == nil && t != d {
		err = r.wrong(want, t)
	}
	return err
}

// Object reads an object: member is called for each name, and reads its value. A name that comes again is an error.
func (r *Reader) Object(member func(name string) error) error {
	if err := r.delim('{', "an object"); err != nil {
		return err
	}
	seen := map[string]struct{}{}
	for r.dec.More() {
		t, err := r.token("a name")
		if err != nil {
			return err
		}
		name := t.(string) // the decoder takes no other token for a name
		if _, again := seen[name]; again {
			return fmt.Errorf("before byte %d: the name %.100q for the second time in one object", r.dec.InputOffset(), name)
		}
		seen[name] = struct{}{}
		if err := member(name); err != nil {
			return err
		}
	}
	return r.delim('}', "the end of an object")
}

// Members reads an object that has all of these names and no others, each with the function that reads its value.
func (r *Reader) Members(members map[string]func() error) error {
	missing := maps.Clone(members)
	err := r.Object(func(name string) error {
		read, ok := members[name]
		if !ok {
			return fmt.Errorf("before byte %d: the name %.100q is none of this object's", r.dec.InputOffset(), name)
		}
		delete(missing, name)
		return read()
	})
	if err == nil && len(missing) > 0 {
		err = fmt.Errorf("before byte %d: the object has no %q", r.dec.InputOffset(), slices.Sorted(maps.Keys(missing)))
	}
	return err
}

// Array reads an array: element is called where one begins, and reads it.
func (r *Reader) Array(element func() error) error {
	if err := r.delim('[', "an array"); err != nil {
		return err
	}
	for r.dec.More() {
		if err := element(); err != nil {
			return err
		}
	}
	return r.delim(']', "the end of an array")
}

// Text reads a string.
func (r *Reader) Text() (string, error) {
	t, err := r.token("a string")
	if err != nil {
		return "", err
	}
	s, ok := t.(string)
	if !ok {
		return "", r.wrong("a string", t)
	}
	return s, nil
}

// Count reads a whole number that is not negative: digits only, and no more than an int64 holds.
func (r *Reader) Count() (int64, error) {
	const want = "a whole number"
	t, err := r.token(want)
	if err != nil {
		return 0, err
	}
	number, ok := t.(json.Number)
	if !ok {
		return 0, r.wrong(want, t)
	}
	n, err := strconv.ParseUint(string(number), 10, 63)
	if errors.Is(err, strconv.ErrRange) {
		return 0, r.wrong("a number that 63 bits hold", t)
	}
	if err != nil {
		return 0, r.wrong(want, t)
	}
	return int64(n), nil
}

// Raw reads any value and returns it as it is written.
func (r *Reader) Raw() ([]byte, error) {
	var raw json.RawMessage
	if err := r.dec.Decode(&raw); err != nil {
		return nil, fmt.Errorf("after byte %d: want a value: %w", r.dec.InputOffset(), err)
	}
	return raw, nil
}
