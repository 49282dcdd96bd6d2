package launch

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// Rendezvous is the place where the replicas of a job meet. Exactly one of Host, Dir and Unix is set. The zero
// Rendezvous is no place.
type Rendezvous struct {
	Host string // a host name or an IP address without brackets; rank 0 listens there
	Port uint16 // port at Host, 1 or more; 0 without Host
	Dir  string // absolute path of a directory that all hosts share
	Unix string // name of an abstract unix socket, without the "@", for replicas on one host
}

// maxUnix is the longest name of an abstract socket: sun_path has 108 bytes, of which the first is 0.
const maxUnix = 107

// rendezvousForms lists the texts of a rendezvous, for errors.
const rendezvousForms = "want host:port, dir:PATH or unix:@NAME"

// ParseRendezvous reads "host:port" (a name, an IPv4 address or an IPv6 address in brackets), "dir:PATH" or
// "unix:@NAME". [Rendezvous.String] prints a text that parses to the same Rendezvous.
func ParseRendezvous(text string) (Rendezvous, error) {
	if dir, ok := strings.CutPrefix(text, "dir:"); ok {
		if err := checkDir(dir); err != nil {
			return Rendezvous{}, fmt.Errorf("%s: %w", show(text), err)
		}
		return Rendezvous{Dir: dir}, nil
	}
	if socket, ok := strings.CutPrefix(text, "unix:"); ok {
		name, abstract := strings.CutPrefix(socket, "@")
		switch {
		case !abstract:
			return Rendezvous{}, fmt.Errorf("%s: want unix:@NAME: only abstract sockets are used", show(text))
		case name == "" || len(name) > maxUnix || !isPlain(name):
			return Rendezvous{}, fmt.Errorf("%s: want a name of 1 to %d printable ASCII characters without spaces",
				show(text), maxUnix)
		}
		return Rendezvous{Unix: name}, nil
	}
	at := strings.LastIndexByte(text, ':')
	if at < 0 {
		return Rendezvous{}, fmt.Errorf("%s: %s", show(text), rendezvousForms)
	}
	port, err := parsePort(text[at+1:])
	if err != nil {
		return Rendezvous{}, fmt.Errorf("%s: %w", show(text), err)
	}
	host := text[:at]
	inner, bracketed := strings.CutPrefix(host, "[")
	if bracketed {
		if inner, bracketed = strings.CutSuffix(inner, "]"); !bracketed {
			return Rendezvous{}, fmt.Errorf("%s: a bracket is not closed: %s", show(text), rendezvousForms)
		}
		host = inner
	}
	if strings.Contains(host, ":") != bracketed {
		return Rendezvous{}, fmt.Errorf("%s: want an IPv6 address, and nothing else, in brackets, as in [fd00::1]:6000",
			show(text))
	}
	if host, err = parseHost(host); err != nil {
		return Rendezvous{}, fmt.Errorf("%s: %w", show(text), err)
	}
	return Rendezvous{Host: host, Port: port}, nil
}

// String is the text that [ParseRendezvous] reads, "" for the zero Rendezvous.
func (r Rendezvous) String() string {
	switch {
	case r.Dir != "":
		return "dir:" + r.Dir
	case r.Unix != "":
		return "unix:@" + r.Unix
	case strings.Contains(r.Host, ":"):
		return fmt.Sprintf("[%s]:%d", r.Host, r.Port)
	case r.Host != "":
		return fmt.Sprintf("%s:%d", r.Host, r.Port)
	}
	return ""
}

// checkDir refuses relative paths: the processes of a job need not have one working directory.
func checkDir(dir string) error {
	if !strings.HasPrefix(dir, "/") {
		return errors.New("want dir: and an absolute path")
	}
	for i := range len(dir) {
		if dir[i] < ' ' || dir[i] == 0x7f {
			return errors.New("a control character in the path")
		}
	}
	return nil
}

// parseHost checks a host name or an IP address without brackets. Addresses come back in their shortest form.
func parseHost(host string) (string, error) {
	if addr, err := netip.ParseAddr(host); err == nil {
		if !isPlain(addr.Zone()) || strings.ContainsAny(addr.Zone(), "[]%/") {
			return "", errors.New("the zone of the address is no interface")
		}
		return addr.String(), nil
	}
	if strings.Contains(host, ":") {
		return "", errors.New("no IPv6 address")
	}
	if err := checkName(host); err != nil {
		return "", err
	}
	if strings.Trim(host, "0123456789.") == "" {
		return "", errors.New("no IPv4 address")
	}
	return host, nil
}

// maxName is the longest host name, and maxLabel the longest part of it between two dots (RFC 1035).
const maxName, maxLabel = 253, 63

// checkName refuses what cannot be the name of a host. An underscore is allowed, as clusters have it.
func checkName(name string) error {
	if len(name) > maxName {
		return fmt.Errorf("a host name of %d bytes, want at most %d", len(name), maxName)
	}
	for label := range strings.SplitSeq(strings.TrimSuffix(name, "."), ".") {
		if label == "" || len(label) > maxLabel || label[0] == '-' || strings.Trim(label, nameBytes) != "" {
			return fmt.Errorf("no host name: want parts of 1 to %d letters, digits, - or _, with dots between",
				maxLabel)
		}
	}
	return nil
}

// nameBytes are the characters of a part of a host name.
const nameBytes = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

// maxPort is the highest port of TCP.
const maxPort = 1<<16 - 1

func parsePort(text string) (uint16, error) {
	port, ok := number(text, maxPort)
	if !ok || port == 0 {
		return 0, fmt.Errorf("port %s: want a number from 1 to %d", show(text), maxPort)
	}
	return uint16(port), nil
}

// ParsePorts reads a range of ports, "6000-6100" or "6000", as its first and its last.
func ParsePorts(text string) ([2]int, error) {
	low, high, found := strings.Cut(text, "-")
	if !found {
		high = low
	}
	first, err := parsePort(low)
	if err != nil {
		return [2]int{}, fmt.Errorf("%s: %w", show(text), err)
	}
	last, err := parsePort(high)
	if err != nil {
		return [2]int{}, fmt.Errorf("%s: %w", show(text), err)
	}
	if first > last {
		return [2]int{}, fmt.Errorf("%s: the first port is above the last", show(text))
	}
	return [2]int{int(first), int(last)}, nil
}

// number reads decimal digits, without a sign, as a number of at most most.
func number(text string, most int) (int, bool) {
	n, err := strconv.ParseUint(text, 10, 31)
	return int(n), err == nil && n <= uint64(most)
}

// isPlain reports whether text is printable ASCII without spaces.
func isPlain(text string) bool {
	for i := range len(text) {
		if text[i] <= ' ' || text[i] >= 0x7f {
			return false
		}
	}
	return true
}

// maxShown bounds what an error repeats of a text.
const maxShown = 80

// show is a text as an error prints it: in quotes unless it is plain, and cut if it is long.
func show(text string) string {
	cut := ""
	if len(text) > maxShown {
		text, cut = text[:maxShown], "..."
	}
	if text == "" || !isPlain(text) {
		return strconv.Quote(text) + cut
	}
	return text + cut
}
