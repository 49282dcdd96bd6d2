package gcl

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"gogcl.dev/internal/closest"
)

// optionValue is what an option may be.
type optionValue interface {
	// set sets the field to what a text means. false: there is no such text, and o is as it was.
	set(o *Options, text string) bool

	// text is the value of the field. usual says that it is the default.
	text(o *Options) (text string, usual bool)

	// check is a field's value and what would be right, or "" if the value is in range.
	check(o *Options) (value, want string)

	// wants says what is wrong with a text that set refuses, and what would be right.
	wants(text string) string

	// list is what docs/design/options.md says of the values.
	list() string
}

// wantOne says which words there are in place of one that there is not.
func wantOne(word string, words []string) string {
	return fmt.Sprintf(", the closest is %s; want one of %s", closest.Of(word, words), strings.Join(words, ", "))
}

// name is a value that an option has by name.
type name[T any] struct {
	name  string
	value T
	note  string // follows the name in docs/design/options.md
}

// named lists values by their own names.
func named[T fmt.Stringer](values ...T) []name[T] {
	out := make([]name[T], len(values))
	for i, v := range values {
		out[i] = name[T]{v.String(), v, ""}
	}
	return out
}

// choice is an option whose values have names. Where a value has several names, text returns the first. The zero
// value is the default.
type choice[T comparable] struct {
	at    func(*Options) *T
	names func() []name[T]
	more  func() []name[T] // that no text lists; nil: there are none
}

// all are the names, listed or not.
func (c choice[T]) all() []name[T] {
	if c.more == nil {
		return c.names()
	}
	return append(c.names(), c.more()...)
}

func (c choice[T]) words() []string {
	var words []string
	for _, n := range c.names() {
		words = append(words, n.name)
	}
	return words
}

func (c choice[T]) set(o *Options, text string) bool {
	for _, n := range c.all() {
		if n.name == text {
			*c.at(o) = n.value
			return true
		}
	}
	return false
}

func (c choice[T]) text(o *Options) (text string, usual bool) {
	var zero T
	value := *c.at(o)
	for _, n := range c.all() {
		if n.value == value {
			return n.name, value == zero
		}
	}
	return "", false // out of range
}

func (c choice[T]) check(o *Options) (value, want string) {
	var zero T
	if *c.at(o) == zero {
		return "", ""
	}
	if text, _ := c.text(o); text != "" {
		return "", ""
	}
	var words []string // without a second name of a value
	for _, n := range c.names() {
		of := Options{}
		*c.at(&of) = n.value
		if first, _ := c.text(&of); first == n.name {
			words = append(words, n.name)
		}
	}
	return fmt.Sprintf("%d", any(*c.at(o))), "no such value, want one of " + strings.Join(words, ", ")
}

func (c choice[T]) wants(text string) string { return "no such value" + wantOne(text, c.words()) }

func (c choice[T]) list() string {
	var zero T
	names := c.names()
	first := slices.IndexFunc(names, func(n name[T]) bool { return n.value == zero })
	names = slices.Concat(names[first:first+1], names[:first], names[first+1:])
	var words []string
	for _, n := range names {
		word := "`" + n.name + "`"
		if n.note != "" {
			word += " (" + n.note + ")"
		}
		words = append(words, word)
	}
	return strings.Join(words, ", ")
}

// number is an option that is a number from low to high. The field is 0 where the option is not set, and where 0 says
// something else than that, -1 where it is set to 0.
type number struct {
	at        func(*Options) *int
	low, high int
	usual     string // what the default is, in words
	zero      string // where low is 0: the constant of -1; "": 0 is the default
}

func (n number) set(o *Options, text string) bool {
	v, err := strconv.Atoi(text)
	if err != nil || v < n.low || v > n.high {
		return false
	}
	if v == 0 && n.zero != "" {
		v = -1
	}
	*n.at(o) = v
	return true
}

func (n number) text(o *Options) (text string, usual bool) {
	v := *n.at(o)
	if v == -1 && n.zero != "" {
		return "0", false
	}
	return strconv.Itoa(v), v == 0
}

func (n number) check(o *Options) (value, want string) {
	v := *n.at(o)
	if v == 0 || v >= max(n.low, 1) && v <= n.high || v == -1 && n.zero != "" {
		return "", ""
	}
	want = "want " + n.between(max(n.low, 1))
	if n.zero != "" {
		return strconv.Itoa(v), fmt.Sprintf("%s, 0 for %s, or %s (-1)", want, n.usual, n.zero)
	}
	return strconv.Itoa(v), fmt.Sprintf("%s, or 0 for %s", want, n.usual)
}

// between says where numbers lie.
func (n number) between(low int) string {
	if n.high == math.MaxInt {
		return fmt.Sprintf("%d or more", low)
	}
	return fmt.Sprintf("%d to %d", low, n.high)
}

func (n number) wants(string) string {
	return fmt.Sprintf("want a whole number from %d to %d", n.low, n.high)
}

func (n number) list() string { return n.between(n.low) + "; default: " + n.usual }
