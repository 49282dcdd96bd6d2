package remote

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// mostName is how many bytes the name of a buffer may have.
const mostName = 200

// checkName is the error of what cannot be the name of a buffer. A file of a [Dir] is named after it, so that no name
// may lead out of the directory.
func checkName(name string) error {
	switch {
	case name == "":
		return errors.New("the buffer has no name")
	case len(name) > mostName:
		return fmt.Errorf("the buffer's name %.40q has %d bytes, at most %d are allowed", name, len(name), mostName)
	case !utf8.ValidString(name):
		return fmt.Errorf("the buffer's name %q is not valid UTF-8", name)
	case name == "." || name == "..":
		return fmt.Errorf("the buffer's name %q is that of a directory", name)
	}
	if at := strings.IndexFunc(name, unicode.IsControl); at >= 0 {
		return fmt.Errorf("the buffer's name %q has a control character at byte %d", name, at)
	}
	if at := strings.IndexAny(name, `/\`); at >= 0 {
		return fmt.Errorf("the buffer's name %q has %q at byte %d, which would lead to another directory: a dot will do", name, name[at:at+1], at)
	}
	return nil
}

// Named gives the buffer a name, and returns the buffer: what a [Storage] keeps for the buffer it keeps under that
// name. A [Dir] names the files after it, so that the next process finds them whatever the order in which it makes its
// buffers. A buffer without a name has that of the variable at its lowest entry, among those that have one; a buffer
// without either is known by its ID, which is its place in the order. Give a buffer whose variables may become more a
// name of its own: one at a lower entry would change the buffer's, and begin anew beside the files of the name before.
//
// A name has 1 to 200 bytes of UTF-8, no control characters, and neither / nor \. Errors, which stick to the program:
// another name, the name of another buffer of the program, a second name, a session that has the buffers open.
func (b *Buffer) Named(name string) *Buffer {
	if !b.made() {
		return b
	}
	err := b.checkOwn(name)
	if err == nil && b.name != "" {
		err = fmt.Errorf("buffer %d has the name %q, and cannot have %q", b.id, b.name, name)
	}
	if err == nil && len(of(b.program).open) > 0 {
		err = errSession
	}
	if err != nil {
		b.program.Fail("remote buffer", err)
		return b
	}
	b.name = name
	return b
}

// Name returns the name of the buffer, which may be that of a variable, or "" if it has none.
func (b *Buffer) Name() string {
	b = b.orNone()
	if b.name == "" && b.first != nil {
		return b.first.name
	}
	return b.name
}

// nameBy gives the buffer the name of a variable in it, if it has no own, and no variable before that one has a name.
func (b *Buffer) nameBy(v *Variable) error {
	if v.name == "" || b.name != "" || b.first != nil && b.first.offset < v.offset {
		return nil
	}
	if err := b.checkOwn(v.name); err != nil {
		return err
	}
	b.first = v
	return nil
}

// checkOwn is the error of a name that the buffer cannot have.
func (b *Buffer) checkOwn(name string) error {
	if err := checkName(name); err != nil {
		return err
	}
	for _, o := range of(b.program).all {
		if o != b && o.Name() == name {
			return fmt.Errorf("buffers %d and %d both have the name %q: a storage cannot tell them apart",
				min(o.id, b.id), max(o.id, b.id), name)
		}
	}
	return nil
}

// key is what a Storage knows the buffer by.
func (b *Buffer) key() string {
	if name := b.Name(); name != "" {
		return name
	}
	return fmt.Sprint(b.id)
}

// checkKeys is the error of two buffers that a Storage cannot tell apart: one is named as another without a name is
// numbered.
func (all *buffers) checkKeys() error {
	by := map[string]*Buffer{}
	for _, b := range all.all {
		if o := by[b.key()]; o != nil {
			return fmt.Errorf("remote: buffer %d without a name and buffer %d are both known as %q to a storage: "+
				"name both", min(o.id, b.id), max(o.id, b.id), b.key())
		}
		by[b.key()] = b
	}
	return nil
}
