package main

import (
	"fmt"
	"strings"
)

// mutant is one fault.
type mutant struct {
	name, file string
	tests      []string // arguments of go test
	old, new   string
}

// parse reads a table of mutants: mutants.txt says how it is written.
func parse(table string) ([]mutant, error) {
	var out []mutant
	seen := map[string]bool{}
	for i, line := range strings.Split(table, "\n") {
		bad := func(why string) error { return fmt.Errorf("line %d: %s: %q", i+1, why, line) }
		if line == "" || line[0] == '#' {
			continue
		}
		body, indented := strings.CutPrefix(line, "\t")
		if !indented {
			words := strings.Fields(line)
			if len(words) != 2 || seen[words[0]] {
				return nil, bad("want a new name and a file")
			}
			seen[words[0]] = true
			out = append(out, mutant{name: words[0], file: words[1]})
			continue
		}
		if out == nil {
			return nil, bad("before the first name")
		}
		m := &out[len(out)-1]
		switch {
		case strings.HasPrefix(body, "test "):
			m.tests = strings.Fields(body)[1:]
		case strings.HasPrefix(body, "-"):
			m.old += "\n" + body[1:]
		case strings.HasPrefix(body, "+"):
			m.new += "\n" + body[1:]
		default:
			return nil, bad("want test, - or +")
		}
	}
	for i := range out {
		m := &out[i]
		if m.old == "" || m.tests == nil {
			return nil, fmt.Errorf("%s: want a line with test, and one with -", m.name)
		}
		m.old, m.new = m.old[1:], strings.TrimPrefix(m.new, "\n")
	}
	return out, nil
}

// apply returns a file's text with the fault in it.
func (m *mutant) apply(text string) (string, error) {
	if n := strings.Count(text, m.old); n != 1 {
		return "", fmt.Errorf("no longer applies: its text is in %s %d times", m.file, n)
	}
	return strings.Replace(text, m.old, m.new, 1), nil
}
