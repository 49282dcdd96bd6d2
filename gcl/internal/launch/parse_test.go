package launch

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

func TestParseRendezvous(t *testing.T) {
	for text, want := range map[string]Rendezvous{
		"node1:6000":              {Host: "node1", Port: 6000},
		"node1.:1":                {Host: "node1.", Port: 1},
		"n_1.a-b.c:65535":         {Host: "n_1.a-b.c", Port: 65535},
		"192.0.2.1:6000":          {Host: "192.0.2.1", Port: 6000},
		"[fd00::1]:6000":          {Host: "fd00::1", Port: 6000},
		"[FD00:0::1]:6000":        {Host: "fd00::1", Port: 6000},
		"[fe80::1%eth0]:6000":     {Host: "fe80::1%eth0", Port: 6000},
		"[::ffff:192.0.2.1]:6000": {Host: "::ffff:192.0.2.1", Port: 6000},
		"dir:/shared/a job:1":     {Dir: "/shared/a job:1"},
		"unix:@gcl-ada-1":         {Unix: "gcl-ada-1"},
		"unix:@@":                 {Unix: "@"},

		"unix:@" + strings.Repeat("n", 107): {Unix: strings.Repeat("n", 107)},
	} {
		got, err := ParseRendezvous(text)
		if err != nil || got != want {
			t.Errorf("%s: %+v, %v, want %+v", text, got, err, want)
		}
		if back, err := ParseRendezvous(got.String()); err != nil || back != got {
			t.Errorf("%s: printed %s: %+v, %v", text, got, back, err)
		}
	}
	if text := (Rendezvous{}).String(); text != "" {
		t.Errorf("no rendezvous prints as %q", text)
	}
	if text := (Rendezvous{Host: "fd00::1", Port: 1}).String(); text != "[fd00::1]:1" {
		t.Errorf("an IPv6 address prints as %q", text)
	}
}

// failure is the text of an error, "" for none.
func failure(_ any, err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// TestWrongTexts compares the errors of all parsers with testdata/texts.txt. With -update it writes the file.
func TestWrongTexts(t *testing.T) {
	var got strings.Builder
	check := func(parser, text, err string) {
		if err == "" {
			t.Errorf("%s %q: no error", parser, text)
		}
		fmt.Fprintf(&got, "%s %q\n  %s\n", parser, text, err)
	}
	for _, text := range []string{"", "a", ":6000", "a:", "a:b", "a:0", "a:65536", "a:+1", "a b:1", "-a:1", "a..b:1",
		".:1", "\u00e9:1", "1.2.3:1", "300.1.1.1:1", "::1:6000", "[::1:6000", "[a]:1", "[1.2.3.4]:1", "[::1]6000",
		"[g::1]:1", "[fe80::1%a/b]:1", "dir:", "dir:a", "dir:/a\nb", "dir:/a\x7f", "unix:", "unix:/a", "unix:@",
		"unix:@a b", "unix:@" + strings.Repeat("n", 108), strings.Repeat("n", 64) + ":1",
		strings.Repeat("n.", 127) + ":1"} {
		check("rendezvous", text, failure(ParseRendezvous(text)))
	}
	for _, text := range []string{"", "^", "=", "^=", "eth,", ",eth", "=^eth", "eth,^ib", "eth,=ib", "a b", "eth0:1",
		"\u00e9", "10.0.0.0/33", "10.0.0/8", "10.0.0.1", "fd00::1", "fe80::1%eth0", "=10.0.0.0/8", "eth,10.0.0.0/8",
		"10.0.0.0/8,eth", "::ffff:10.0.0.0/104"} {
		check("interface", text, failure(ParseInterface(text)))
	}
	for _, text := range []string{"", "-", "6000-", "-6000", "0-1", "6000-65536", "6001-6000", "6000-6100-6200"} {
		check("ports", text, failure(ParsePorts(text)))
	}
	for _, text := range []string{"", ",", "a,", "a,,b", "a[", "a]", "a[]", "a[1", "a[1]]", "a[[1]]", "a[1,]", "a[1-]",
		"a[-1]", "a[3-1]", "a[1-2-3]", "a[01-3]", "a[1-03]", "a[x]", "a[0000000001]", "a[1-1000000000]", "a b", "-a",
		"a[0-65536]", "a[0-99999],b", "a,b[0-65535]", "a[0-999][0-999]",
		"a[0-65535][0-65535][0-65535][0-65535]", // 2^64 names
		"a[0-999999999][0-999999999][0-999999999]",
		strings.Repeat("a", 300), strings.Repeat("a", 300) + "[1-65536]", strings.Repeat("[1]", 300),
		strings.Repeat("a.", 125) + "[1-65536]"} {
		check("nodes", text, failure(Nodes(text)))
	}
	golden(t, "texts.txt", got.String())
}

func TestParsePorts(t *testing.T) {
	for text, want := range map[string][2]int{"6000-6100": {6000, 6100}, "6000": {6000, 6000}, "1-65535": {1, 65535}} {
		if got, err := ParsePorts(text); err != nil || got != want {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
}

func TestInterface(t *testing.T) {
	for _, x := range []struct{ text, matches string }{
		{"eth", "eth0 eth1"},
		{"eth,ib", "eth0 eth1 ib0"},
		{"=eth0", "eth0"},
		{"=eth", ""},
		{"=eth0,ib0", "eth0 ib0"},
		{"^docker,lo", "eth0 eth1 ib0"},
		{"^=docker0,eth", "eth0 eth1 ib0 lo"},
		{"10.0.0.0/8", "eth0"},
		{"10.9.9.9/8,fe80::/10", "eth0 eth1"},
		{"^10.0.0.0/8,127.0.0.0/8", "docker0 eth1 ib0"},
		{"192.0.2.0/24", "docker0 ib0"},
	} {
		m, err := ParseInterface(x.text)
		if err != nil {
			t.Errorf("%s: %v", x.text, err)
			continue
		}
		if got := matching(m); got != x.matches {
			t.Errorf("%s: %s, want %s", x.text, got, x.matches)
		}
		if back, err := ParseInterface(m.String()); err != nil || matching(back) != x.matches {
			t.Errorf("%s: printed %s: %v", x.text, m, err)
		}
	}
	if got := matching(Interface{}); got != "docker0 eth0 eth1 ib0 lo" {
		t.Errorf("the zero Interface: %s", got)
	}
}

// matching lists those of five interfaces that match.
func matching(m Interface) string {
	var names []string
	for name, addr := range map[string]string{"eth0": "10.1.2.3", "eth1": "fe80::1%eth1", "ib0": "::ffff:192.0.2.1",
		"lo": "127.0.0.1", "docker0": "192.0.2.7"} {
		if m.Matches(name, netip.MustParseAddr(addr)) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

func TestNodes(t *testing.T) {
	for list, want := range map[string]string{
		"login1":                 "login1",
		"node[01-03,7],login1":   "node01 node02 node03 node7 login1",
		"gpu[1-2]-ib[0-1]":       "gpu1-ib0 gpu1-ib1 gpu2-ib0 gpu2-ib1",
		"gpu[1-2]-ib[0-1].a,b":   "gpu1-ib0.a gpu1-ib1.a gpu2-ib0.a gpu2-ib1.a b",
		"[8-11]":                 "8 9 10 11",
		"a[098-101]":             "a098 a099 a100 a101",
		"a[0,2][1]":              "a01 a21",
		"b,a,b":                  "b a b",
		"a[999999999]":           "a999999999",
		"a[000000001-000000002]": "a000000001 a000000002",
	} {
		if names, err := Nodes(list); err != nil || strings.Join(names, " ") != want {
			t.Errorf("%s: %q, %v", list, names, err)
		}
	}
	if names, err := Nodes("a,b[1-65535]"); err != nil || len(names) != 65536 || names[65535] != "b65535" {
		t.Errorf("%d names, %v", len(names), err)
	}
}

// maxError bounds the text of an error: four values of which each byte takes four characters, and words.
const maxError = 4*4*maxShown + 400

// FuzzRendezvous: a text that parses prints to one that parses to the same, and has one form only.
func FuzzRendezvous(f *testing.F) {
	for _, text := range []string{"a:1", "[::1]:1", "[fe80::1%eth0]:1", "dir:/a", "unix:@a", "1.2.3.4:5", "dir:80"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := ParseRendezvous(text)
		if err != nil {
			if r != (Rendezvous{}) || len(err.Error()) > maxError {
				t.Fatalf("%q: %+v, %v", text, r, err)
			}
			return
		}
		if forms := fmt.Sprint(r.Host != "", r.Dir != "", r.Unix != ""); strings.Count(forms, "true") != 1 ||
			(r.Host != "") != (r.Port != 0) {
			t.Fatalf("%q: %+v", text, r)
		}
		if back, err := ParseRendezvous(r.String()); err != nil || back != r {
			t.Fatalf("%q is %+v, printed %s, parsed back %+v, %v", text, r, r, back, err)
		}
	})
}

// FuzzInterface: a text that parses prints to one that matches the same.
func FuzzInterface(f *testing.F) {
	for _, text := range []string{"eth,ib", "=eth0", "^docker", "^=docker0", "10.0.0.0/8,fd00::/8", "^127.0.0.0/8"} {
		f.Add(text, "eth0", []byte{10, 1, 2, 3})
	}
	f.Fuzz(func(t *testing.T, text, name string, ip []byte) {
		m, err := ParseInterface(text)
		if err != nil {
			if len(err.Error()) > maxError {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		back, err := ParseInterface(m.String())
		if err != nil {
			t.Fatalf("%q, printed %s: %v", text, m, err)
		}
		addr, _ := netip.AddrFromSlice(ip)
		if back.String() != m.String() || back.Matches(name, addr) != m.Matches(name, addr) {
			t.Fatalf("%q, printed %s, printed again %s: differ for %q, %v", text, m, back, name, addr)
		}
	})
}

// FuzzNodes: names have no brackets, and a list of the names means the same.
func FuzzNodes(f *testing.F) {
	for _, text := range []string{"node[01-03,7],login1,gpu[1-2]-ib[0-1]", "a[0-65535]", "[1]", "a[1][2],b", "a[9-1]"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		names, err := Nodes(text)
		if err != nil {
			if names != nil || len(err.Error()) > maxError {
				t.Fatalf("%q: %d names, %v", text, len(names), err)
			}
			return
		}
		list := strings.Join(names, ",")
		if len(names) == 0 || len(names) > maxNodes || strings.ContainsAny(list, "[]") {
			t.Fatalf("%q: %d names: %.200s", text, len(names), list)
		}
		if back, err := Nodes(list); err != nil || !slices.Equal(back, names) {
			t.Fatalf("%q is %.200s, parsed back %d names, %v", text, list, len(back), err)
		}
	})
}

// FuzzEnvironment: a job that is read is one, with a rendezvous that parses back; an error is short.
func FuzzEnvironment(f *testing.F) {
	for _, name := range recordings(f) {
		for _, e := range recorded(f, name) {
			var text strings.Builder
			for name, value := range e.env {
				fmt.Fprintf(&text, "%s=%s\n", name, value)
			}
			f.Add(text.String())
		}
	}
	for _, text := range wrong {
		f.Add(strings.ReplaceAll(text, " ", "\n"))
	}
	f.Fuzz(func(t *testing.T, text string) {
		job, err := Read(parseVariables(text).lookup)
		if err != nil {
			if job.Size != 0 || len(err.Error()) > maxError {
				t.Fatalf("%+v, %v", job, err)
			}
			return
		}
		if job.Rank < 0 || job.Rank >= job.Size ||
			job.LocalRank < -1 || job.LocalRank >= job.Size ||
			job.LocalSize < 0 || job.LocalSize > job.Size || job.LocalSize > 0 && job.LocalRank >= job.LocalSize ||
			len(job.Name) > maxJob || !isPlain(job.Name) {
			t.Fatalf("%+v", job)
		}
		meeting, err := job.Rendezvous()
		if err != nil {
			if job.noMeeting == "" {
				t.Fatalf("%+v: %v", job, err)
			}
			return
		}
		if back, err := ParseRendezvous(meeting.String()); err != nil || back != meeting {
			t.Fatalf("%+v, parsed back %+v, %v", meeting, back, err)
		}
	})
}
