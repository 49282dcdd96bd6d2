package methods

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"path"
	"slices"

	"gogcl.dev/methods/schedule"
)

// Rules is a table of rules, by which Tuning.Choose chooses where a rule fits. ParseRules makes it of a text that
// people read and edit:
//
//	# four cores of some machine, 2026-11-23, tcp
//	# collective  ranks  from   method               measured
//	all-reduce    2      0      recursive_doubling   13.1 us
//	all-reduce    2      256KiB direct               201 us, then recursive_doubling 240 us
//	all-reduce    3-5    0      broadcast/Syncless   30 us
//
// A size may be divided by the ranks: 8193/ranks is 4097 bytes between 2, and 2049 among 4.
//
// A rule fits a call of its collective, over a number of ranks that it names, of at least so many bytes in the larger
// of a rank's two buffers. The last line that fits decides, so that a line at the end goes before all others. A line is
// for the numbers of ranks that it names and no others: gcltune gives each number to the nearest one that it has
// measured, by their ratio.
//
// A line whose method cannot carry out the call is skipped: the line above that fits decides. See [Tuning.Rule]. Rules
// are not changed. Two with equal rules, whatever their comments, choose alike and have one Digest. The zero Rules is a
// table without lines.
type Rules struct {
	name   string // of the file
	title  string // by which rules are cited
	lines  []line
	digest [32]byte

	// at has the rules of each collective in their order: for numbers of ranks below indexed each number its own, and
	// in the first place, which is of no ranks, those that are for larger numbers.
	at [][][]*Rule
}

// line is one of a table: a rule, or else a comment or nothing.
type line struct {
	rule    *Rule
	comment string
}

// indexed bounds the numbers of ranks that are looked up without a search.
const indexed = 65

// newRules makes a table of lines.
func newRules(lines []line) *Rules {
	t := &Rules{lines: lines, at: make([][][]*Rule, schedule.Barrier)}
	for c := range t.at {
		t.at[c] = make([][]*Rule, indexed)
	}
	h := sha256.New()
	for _, l := range lines {
		r := l.rule
		if r == nil {
			continue
		}
		of := t.at[r.Collective]
		for ranks := r.Fewest; ranks < indexed && r.covers(ranks); ranks++ {
			of[ranks] = append(of[ranks], r)
		}
		if r.Most == 0 || r.Most >= indexed {
			of[0] = append(of[0], r)
		}
		from := fmt.Sprint(r.FromBytes)
		if r.Shared {
			from += sharedSuffix
		}
		fmt.Fprintf(h, "%v %d %d %s %s\n", r.Collective, r.Fewest, r.Most, from, r.way()) // never fails
	}
	h.Sum(t.digest[:0])
	return t
}

// above is the last rule that fits, of those above a line, or of all if that is 0.
func (t *Rules) above(below int, c schedule.Collective, ranks int, bytes int64) *Rule {
	if int(c) >= len(t.at) || ranks < 2 {
		return nil
	}
	fit := t.at[c][0]
	if ranks < indexed {
		fit = t.at[c][ranks]
	}
	for _, r := range slices.Backward(fit) {
		if r.reaches(bytes, ranks) && (below == 0 || r.Line < below) && (ranks < indexed || r.covers(ranks)) {
			return r
		}
	}
	return nil
}

// All returns the rules in the order of their lines, in a slice of the caller's own.
func (t *Rules) All() []Rule {
	if t == nil {
		return nil
	}
	var out []Rule
	for _, l := range t.lines {
		if l.rule != nil {
			out = append(out, *l.rule)
		}
	}
	return out
}

// Named returns the same rules with the name of their file, which [Rules.Cite] has without its directory. "" is none.
func (t *Rules) Named(file string) *Rules {
	if t == nil {
		return nil
	}
	out := *t
	if out.name, out.title = file, ""; file != "" {
		out.title = path.Base(file)
	}
	return &out
}

// Name is the file given to Named, or "".
func (t *Rules) Name() string {
	if t == nil {
		return ""
	}
	return t.name
}

// Cite names a rule of the table by file and line, as in "tcp.txt:12".
func (t *Rules) Cite(r *Rule) string {
	switch {
	case r == nil:
		return ""
	case t == nil || t.title == "":
		return fmt.Sprintf("line %d of the rules", r.Line)
	}
	return fmt.Sprintf("%s:%d", t.title, r.Line)
}

// Digest tells tables apart: by the rules in their order, without their lines and what was measured.
func (t *Rules) Digest() [32]byte {
	if t == nil {
		return [32]byte{}
	}
	if t.at == nil { // the zero Rules
		return newRules(nil).digest
	}
	return t.digest
}

// Fingerprint is 64 bits of the Digest, and 0 for nil.
func (t *Rules) Fingerprint() uint64 {
	if t == nil {
		return 0
	}
	d := t.Digest()
	return max(binary.LittleEndian.Uint64(d[:]), 1)
}
