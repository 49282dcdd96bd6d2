package methods

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"gogcl.dev/internal/closest"
	"gogcl.dev/methods/schedule"
)

// MaxRulesBytes and MaxRules bound the text of Rules, as it is given and in columns, in bytes, and its lines with a
// rule. A table of eight collectives, 15 sizes of group and four changes of method each has 480 rules and 40 KiB.
const (
	MaxRulesBytes = 1 << 20
	MaxRules      = 4096
)

// maxRuleLine bounds a line, in bytes, and maxMeasured its last part: the rest of it, in columns, is shorter than the
// difference.
const (
	maxRuleLine = 1024
	maxMeasured = 512
)

// ParseRules reads a table of rules. A line is empty, or a comment that begins with #, or a rule in four words, and
// what was measured as the rest of the line:
//
//	all-reduce   5-7   64KiB   direct/Syncful   12.1 us, then clockwise_ring/Syncless 14 us
//
// The words are a collective; a number of ranks, or a range of them, without an end (8-) or with one; a size in bytes,
// KiB, MiB or GiB, with /ranks behind it if all ranks share it; and a method that this process knows, with an
// implementation behind a slash or without one. What the measurement says is for people.
//
// An error is a *RulesError.
func ParseRules(text []byte) (*Rules, error) {
	if len(text) > MaxRulesBytes {
		return nil, &RulesError{0, fmt.Sprintf("rules of %d bytes, want at most %d", len(text), MaxRulesBytes)}
	}
	if !utf8.Valid(text) {
		return nil, &RulesError{0, "rules that are no text in UTF-8"}
	}
	var lines []line
	number, rules := 0, 0
	for each := range strings.Lines(string(text)) {
		number++
		each = strings.TrimSpace(each)
		l, err := parseLine(each, number)
		if err == nil && l.rule != nil {
			if rules++; rules > MaxRules {
				err = fmt.Errorf("more than %d rules, want fewer", MaxRules)
			}
		}
		if err != nil {
			return nil, &RulesError{number, err.Error()}
		}
		lines = append(lines, l)
	}
	out := newRules(lines)
	if n := len(out.String()); n > MaxRulesBytes {
		return nil, &RulesError{0, fmt.Sprintf("rules of %d bytes in columns, want at most %d", n, MaxRulesBytes)}
	}
	return out, nil
}

// RulesError is a text that is no table of rules.
type RulesError struct {
	Line   int    // from 1; 0: the text as a whole
	Reason string // what is wrong, and what would be right
}

func (e *RulesError) Error() string { return "methods: " + e.Words() }

// Words is the error without the name of this package, as in "line 12: ...".
func (e *RulesError) Words() string {
	switch {
	case e == nil:
		return ""
	case e.Line == 0:
		return e.Reason
	}
	return fmt.Sprintf("line %d: %s", e.Line, e.Reason)
}

// parseLine reads one line, which is trimmed.
func parseLine(text string, number int) (line, error) {
	if len(text) > maxRuleLine {
		return line{}, fmt.Errorf("%d bytes, want at most %d", len(text), maxRuleLine)
	}
	if i := strings.IndexFunc(text, func(r rune) bool { return r != '\t' && !unicode.IsPrint(r) }); i >= 0 {
		return line{}, fmt.Errorf("byte %d of it cannot be printed, want text", i+1)
	}
	if text == "" || text[0] == '#' {
		return line{comment: text}, nil
	}
	r := &Rule{Line: number}
	rest := text
	for _, read := range []func(word string) error{r.readCollective, r.readRanks, r.readFrom, r.readWay} {
		word, after := cutWord(rest)
		if word == "" {
			return line{}, fmt.Errorf("%q is no rule: want a collective, ranks, a size from which on, and a method, as "+
				"in \"all-reduce 2-4 64KiB direct\"; or a comment, which begins with #", text)
		}
		if err := read(word); err != nil {
			return line{}, err
		}
		rest = after
	}
	if r.Measured = strings.Join(strings.Fields(rest), " "); len(r.Measured) > maxMeasured {
		return line{}, fmt.Errorf("%d bytes of what was measured, want at most %d", len(r.Measured), maxMeasured)
	}
	return line{rule: r}, nil
}

// cutWord is the first word of a trimmed text, and what follows it.
func cutWord(text string) (word, rest string) {
	if at := strings.IndexFunc(text, unicode.IsSpace); at >= 0 {
		return text[:at], strings.TrimSpace(text[at:])
	}
	return text, ""
}

func (r *Rule) readCollective(word string) error {
	var names []string
	for _, c := range schedule.Collectives() {
		if names = append(names, c.String()); c.String() == word {
			r.Collective = c
			return nil
		}
	}
	return fmt.Errorf("no collective %.*q, the closest is %s; want one of %s", maxName, word,
		closest.Of(word, names), strings.Join(names, ", "))
}

func (r *Rule) readRanks(word string) error {
	low, high, isRange := strings.Cut(word, "-")
	fewest, err1 := strconv.ParseUint(low, 10, 32)
	most, err2 := fewest, error(nil)
	switch {
	case isRange && high == "":
		most = 0
	case isRange:
		most, err2 = strconv.ParseUint(high, 10, 32)
	}
	backwards := isRange && high != "" && most < fewest
	if err1 != nil || err2 != nil || fewest < 2 || fewest > maxRanks || most > maxRanks || backwards {
		return fmt.Errorf("%.*q is no number of ranks: want 2 to %d, as in 4, or a range, as in 5-7, or 8- for 8 and "+
			"more", maxName, word, maxRanks)
	}
	r.Fewest, r.Most = int(fewest), int(most)
	return nil
}

func (r *Rule) readFrom(word string) error {
	size, shared := strings.CutSuffix(word, sharedSuffix)
	digits := strings.TrimRight(size, "KMGiB")
	unit := slices.Index(sizeUnits, size[len(digits):])
	n, err := strconv.ParseUint(digits, 10, 64)
	if err != nil || unit < 0 || n > math.MaxInt64>>(10*unit) {
		return fmt.Errorf("%.*q is no size from which on: want bytes, as in 0, 4096, 64KiB or 2MiB, or with "+
			"%s behind them", maxName, word, sharedSuffix)
	}
	r.FromBytes, r.Shared = int64(n<<(10*unit)), shared
	return nil
}

func (r *Rule) readWay(word string) error {
	name, implementation, given := strings.Cut(word, "/")
	names := current.Load().names
	m, known := names.Lookup(name)
	if !known {
		var want []string // those that make schedules
		for _, m := range All() {
			want = append(want, m.String())
		}
		return fmt.Errorf("no method %.*q, the closest is %s; want one of %s", maxName, name, closest.Of(name, want),
			strings.Join(want, ", "))
	}
	if row := m.row(); m == Auto || m == Native {
		return fmt.Errorf("the method %v makes no schedule, since %s: want another", m, row.unscheduled)
	}
	r.Method = m
	if given {
		i, there := implementationNames.Lookup(implementation)
		if !there || i == AnyImplementation {
			return fmt.Errorf("%.*q behind the method %v is no implementation of a rule: want %v/%v, %v/%v, or %v alone",
				maxName, implementation, m, m, Syncless, m, Syncful, m)
		}
		r.Implementation = i
	}
	return nil
}

// String is the table as text, of which ParseRules makes the same: its comments, and its rules in columns.
func (t *Rules) String() string {
	if t == nil {
		return ""
	}
	var widths [4]int
	cells := func(r *Rule) [4]string {
		return [4]string{r.Collective.String(), r.ranks(), r.from(), r.way()}
	}
	for _, l := range t.lines {
		if l.rule == nil {
			continue
		}
		for i, cell := range cells(l.rule) {
			widths[i] = max(widths[i], len(cell))
		}
	}
	var b strings.Builder
	for _, l := range t.lines {
		if l.rule == nil {
			b.WriteString(l.comment + "\n")
			continue
		}
		var row strings.Builder
		for i, cell := range cells(l.rule) {
			fmt.Fprintf(&row, "%-*s  ", widths[i], cell)
		}
		b.WriteString(strings.TrimRight(row.String()+l.rule.Measured, " ") + "\n")
	}
	return b.String()
}
