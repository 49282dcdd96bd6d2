package gcl

import (
	"fmt"

	"gogcl.dev/internal/enum"
)

// Link says which links a group may use. The text forms are GCL's values of link.
type Link uint8

// The links.
const (
	AutoLink Link = iota // whatever serves
	IPULink              // the group must lie inside one link domain
	GWLink               // the members must lie in different link domains
)

var linkNames = enum.New[Link]("link", []string{AutoLink: "auto-link", IPULink: "ipu-link", GWLink: "gw-link"}...)

// String returns the text form, as in "ipu-link".
func (l Link) String() string { return linkNames.String(l) }

// ParseLink is the inverse of String. The error lists what is valid.
func ParseLink(s string) (Link, error) { return linkNames.Parse(s) }

// MarshalText returns the text form, or an error if l is no link.
func (l Link) MarshalText() ([]byte, error) { return linkNames.MarshalText(l) }

// UnmarshalText parses the text form. After an error l is what it was.
func (l *Link) UnmarshalText(text []byte) error { return linkNames.UnmarshalText(l, text) }

// checkLink returns an *OptionError for a group that the option Link does not allow.
func (c *Comm) checkLink() error {
	link := c.options.Link
	if link == AutoLink {
		return nil
	}
	members, domain := c.group.Members, c.conn.topology.Domain
	in := map[int]int{} // by domain: its last member so far
	for i, b := range members {
		reason := ""
		if a, together := in[domain(b)]; together && link == GWLink {
			reason = fmt.Sprintf("the members of the group must lie in different link domains, but replicas %d and "+
				"%d are both in domain %d",
				a, b, domain(a))
		} else if i > 0 && !together && link == IPULink {
			a = members[i-1]
			reason = fmt.Sprintf("the group must lie inside one link domain, but replica %d is in domain %d and "+
				"replica %d in domain %d",
				a, domain(a), b, domain(b))
		}
		in[domain(b)] = b
		if reason != "" {
			return &OptionError{Option: "Link", Value: link.String(), Reason: reason}
		}
	}
	return nil
}
