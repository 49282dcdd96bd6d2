// Package enum gives types whose few values are numbered from 0 their text forms: String, Parse, MarshalText and
// UnmarshalText, with the same errors everywhere.
//
//	var colours = enum.New[Colour]("colour", "red", "green")
//
//	func (c Colour) String() string                   { return colours.String(c) }
//	func ParseColour(name string) (Colour, error)      { return colours.Parse(name) }
//	func (c Colour) MarshalText() ([]byte, error)      { return colours.MarshalText(c) }
//	func (c *Colour) UnmarshalText(text []byte) error  { return colours.UnmarshalText(c, text) }
package enum

import (
	"fmt"
	"slices"
	"strings"

	"gogcl.dev/internal/closest"
)

// maxQuoted bounds how much of a name that is unknown an error quotes.
const maxQuoted = 100

// Names are the text forms of the values of T.
type Names[T ~uint8] struct {
	kind  string   // the word for a value in errors, such as "colour"
	names []string // by value; "" where the number is no value
}

// New returns the names of T, by value. A number without a name, or with the name "", is no value. kind is the word for
// a value in errors. Errors begin with the name of T's package.
func New[T ~uint8](kind string, names ...string) *Names[T] {
	return &Names[T]{kind, names}
}

// Valid reports whether v is a value.
func (n *Names[T]) Valid(v T) bool { return int(v) < len(n.names) && n.names[v] != "" }

// All lists the names in the order of their values.
func (n *Names[T]) All() []string {
	return slices.DeleteFunc(slices.Clone(n.names), func(name string) bool { return name == "" })
}

// String returns the name of v; where v is no value, its type and number, as in "Colour(7)".
func (n *Names[T]) String(v T) string {
	if n.Valid(v) {
		return n.names[v]
	}
	_, name := typeName[T]()
	return fmt.Sprintf("%s(%d)", name, uint8(v))
}

// Lookup returns the value of a name, case and all.
func (n *Names[T]) Lookup(name string) (v T, ok bool) {
	i := slices.Index(n.names, name)
	if name == "" || i < 0 {
		return 0, false
	}
	return T(i), true
}

// Parse is Lookup with an error for an unknown name. The error says which name is the closest, and lists all.
func (n *Names[T]) Parse(name string) (T, error) {
	v, ok := n.Lookup(name)
	if !ok {
		pkg, _ := typeName[T]()
		all := n.All()
		return 0, fmt.Errorf("%s: unknown %s %.*q, the closest is %s; want one of %s",
			pkg, n.kind, maxQuoted, name, closest.Of(name, all), strings.Join(all, ", "))
	}
	return v, nil
}

// Check returns an error where v is no value. The error does not name the package.
func (n *Names[T]) Check(v T) error {
	if n.Valid(v) {
		return nil
	}
	return fmt.Errorf("%s is no %s, want one of %s", n.String(v), n.kind, strings.Join(n.All(), ", "))
}

// MarshalText returns the name of v, or the error of Check after the name of the package.
func (n *Names[T]) MarshalText(v T) ([]byte, error) {
	if err := n.Check(v); err != nil {
		pkg, _ := typeName[T]()
		return nil, fmt.Errorf("%s: %w", pkg, err)
	}
	return []byte(n.names[v]), nil
}

// UnmarshalText sets v to the value that text names. After an error of Parse v is what it was.
func (n *Names[T]) UnmarshalText(v *T, text []byte) error {
	parsed, err := n.Parse(string(text))
	if err == nil {
		*v = parsed
	}
	return err
}

// typeName returns the names of T and of its package.
func typeName[T any]() (pkg, name string) {
	var v T
	pkg, name, _ = strings.Cut(fmt.Sprintf("%T", v), ".")
	return pkg, name
}
