package gcl

import (
	"fmt"
	"strings"
)

// Link says which links a collective may use. The text forms are GCL's values of the option link.
type Link uint8

// The links.
const (
	AutoLink Link = iota // whatever serves
	IPULink              // the group lies inside one link domain
	GWLink               // its members lie in different link domains
	numLinks
)

var linkNames = [numLinks]string{"auto-link", "ipu-link", "gw-link"}

// String returns the text form, as in "ipu-link".
func (l Link) String() string {
	if l < numLinks {
		return linkNames[l]
	}
	return fmt.Sprintf("Link(%d)", uint8(l))
}

// ParseLink is the inverse of String. The error lists what is valid.
func ParseLink(s string) (Link, error) {
	for l, name := range linkNames {
		if s == name {
			return Link(l), nil
		}
	}
	return 0, fmt.Errorf("gcl: unknown link %q, want one of %s", s, strings.Join(linkNames[:], ", "))
}

// MarshalText returns the text form, or an error if l is no link.
func (l Link) MarshalText() ([]byte, error) {
	if l >= numLinks {
		return nil, fmt.Errorf("gcl: %v is not a link", l)
	}
	return []byte(l.String()), nil
}

// UnmarshalText parses the text form. After an error the link is what it was.
func (l *Link) UnmarshalText(text []byte) error {
	parsed, err := ParseLink(string(text))
	if err == nil {
		*l = parsed
	}
	return err
}
