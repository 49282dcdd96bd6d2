package schedule

import (
	"fmt"
	"strconv"
	"strings"
)

// Parse reads what [Schedule.String] draws. The columns need not be aligned, blank lines and lines that begin with "#"
// are skipped, and an "of" may name the chunk with which a slot begins though it is the first one. The schedule is the
// caller's, and is not proved: see [Check].
//
// Errors name the line and the column, in bytes and from 1, what is wrong there, and what would be right: a title, a
// header or a cell that is none; counts in the title other than those of columns and rounds; numbers of rounds that do
// not follow each other; more than 1,048,576 ranks, chunks, rounds or slots; lists of a [CustomContract] of more than
// 4,194,304 numbers in all. Memory is proportional to the text and to these numbers.
func Parse(text []byte) (*Schedule, error) {
	p := &reader{s: &Schedule{}}
	number := 0
	for line := range strings.Lines(string(text)) {
		number++
		p.line = number
		line = strings.TrimRight(line, " \t\r\n")
		if line == "" || line[0] == '#' {
			continue
		}
		if err := p.next(line); err != nil {
			return nil, err
		}
	}
	p.line = number + 1
	switch {
	case p.s.Size == 0:
		return nil, p.errorf(0, "the text ends before the title, want one such as %q", titleExample)
	case p.state < wantRow:
		return nil, p.errorf(0, "the text ends before the rounds, want a header such as %q and a line of hyphens",
			"round | rank 0 | rank 1")
	case p.round+1 != p.rounds:
		return nil, p.errorf(0, "the text ends after %s, and the title has %d", counted(p.round+1, "round"), p.rounds)
	}
	return p.s, nil
}

const titleExample = "all-gather, 3 ranks, 3 chunks, 2 rounds"

// expected says which line comes next.
type expected uint8

const (
	wantTitle expected = iota
	wantHeader
	wantRule
	wantRow
)

// reader reads a drawing line by line.
type reader struct {
	s      *Schedule
	state  expected
	line   int
	rounds int // by the title
	round  int // of the last row; -1 before the first

	custom // the contract of a program's own that is being read

	locals []bool // by rank: the round's "then" has come
	idles  []bool // by rank: the round's cell is idle
}

// errorf is an error at a place of the line, in bytes from 0.
func (p *reader) errorf(at int, format string, a ...any) error {
	return fmt.Errorf("schedule: line %d, column %d: %s", p.line, at+1, fmt.Sprintf(format, a...))
}

// next reads a line that is not blank.
func (p *reader) next(line string) error {
	switch p.state {
	case wantTitle:
		p.state = wantHeader
		return p.title(line)
	case wantHeader:
		if p.s.Custom != nil && p.s.Custom.Sizes == nil && strings.HasPrefix(line+" ", sizesLabel+" ") {
			return p.sizes(line)
		}
		p.state = wantRule
		return p.header(line)
	case wantRule:
		p.state = wantRow
		if at := strings.IndexFunc(line, func(r rune) bool { return !strings.ContainsRune("-+ ", r) }); at >= 0 {
			return p.errorf(at, "want a line of hyphens below the header")
		}
		return nil
	}
	return p.row(line)
}

// title reads the first line.
func (p *reader) title(line string) error {
	at := 0
	parts := strings.Split(line, ", ")
	if len(parts) < 4 {
		return p.errorf(0, "%s is no title, want one such as %q", quoted(line), titleExample)
	}
	if err := p.collective(parts[0]); err != nil {
		return err
	}
	at += len(parts[0]) + 2
	for i, noun := range [...]string{"rank", "chunk", "round"} {
		n, rest, err := p.number(at, parts[1+i], 1<<20)
		if err != nil {
			return err
		}
		if parts[1+i] != counted(n, noun) {
			return p.errorf(at+len(parts[1+i])-len(rest), "%s, want %q", quoted(parts[1+i]), counted(n, noun))
		}
		switch {
		case n == 0 && noun != "round":
			return p.errorf(at, "0 %ss, want 1 or more", noun)
		case noun == "rank":
			p.s.Size = n
		case noun == "chunk":
			p.s.Chunks = n
		default:
			p.rounds = n
		}
		at += len(parts[1+i]) + 2
	}
	seen := 0 // marks come in one order, each once
	for _, mark := range parts[4:] {
		root, isRoot := strings.CutPrefix(mark, "root ")
		switch {
		case isRoot && seen < 1:
			n, rest, err := p.number(at+len("root "), root, p.s.Size-1)
			if err != nil {
				return err
			}
			if rest != "" {
				return p.errorf(at+len(mark)-len(rest), "%s after the root, want \", \" or the end", quoted(rest))
			}
			p.s.Root, seen = n, 1
		case ", "+mark == markApart && seen < 2:
			p.s.Apart, seen = true, 2
		case ", "+mark == markAgain && seen < 3:
			p.s.Again, seen = true, 3
		case ", "+mark == markCombines && seen < 4 && p.s.Custom != nil:
			p.s.Custom.Combines, seen = true, 4
		default:
			return p.errorf(at, "%s, want root and a rank, apart, or again, in this order%s", quoted(mark), p.ownMark())
		}
		at += len(mark) + 2
	}
	return nil
}

// collective reads the name of one.
func (p *reader) collective(name string) error {
	if is, err := p.ownName(name); is {
		return err
	}
	var names []string
	for c := range numCollectives {
		if c.String() == name {
			p.s.Collective = c
			return nil
		}
		names = append(names, c.String())
	}
	return p.errorf(0, "unknown collective %s, want one of %s", quoted(name), strings.Join(names, ", "))
}

// header reads the names of the columns.
func (p *reader) header(line string) error {
	at := 0
	for i, cell := range strings.Split(line, "|") {
		want := fmt.Sprint("rank ", i-1)
		if i == 0 {
			want = "round"
		}
		name := strings.TrimSpace(cell)
		switch {
		case i > p.s.Size:
			return p.errorf(at, "a column after that of the last of %s", counted(p.s.Size, "rank"))
		case name != want:
			return p.errorf(at+indent(cell), "%s in the header, want %q", quoted(name), want)
		}
		at += len(cell) + 1
	}
	if n := strings.Count(line, "|"); n < p.s.Size {
		return p.errorf(len(line), "%s in the header, and the title has %d", counted(n, "rank"), p.s.Size)
	}
	p.round = -1
	p.s.Programs = make([]Program, p.s.Size)
	p.locals, p.idles = make([]bool, p.s.Size), make([]bool, p.s.Size)
	p.beginOwn()
	return nil
}

// row reads a line of a round.
func (p *reader) row(line string) error {
	if n := strings.Count(line, "|"); n != p.s.Size {
		return p.errorf(len(line), "a row of %s, want %d, one after each \"|\"", counted(n, "rank"), p.s.Size)
	}
	at := 0
	for i, cell := range strings.Split(line, "|") {
		text, from := strings.TrimSpace(cell), at+indent(cell)
		switch {
		case i == 0 && p.ownRow(text):
		case p.listing != "":
			if err := p.ownCell(i-1, from, text); err != nil {
				return err
			}
		case i == 0:
			if err := p.begin(from, text); err != nil {
				return err
			}
		case text != "":
			if err := p.cell(i-1, from, text); err != nil {
				return err
			}
		}
		at += len(cell) + 1
	}
	return nil
}

// begin reads the number of a row's round, which the first row of a round has.
func (p *reader) begin(at int, text string) error {
	if text == "" {
		if p.round < 0 {
			return p.errorf(at, "a row without the number of its round, want 0")
		}
		return nil
	}
	n, rest, err := p.number(at, text, 1<<20)
	switch {
	case err != nil:
		return err
	case rest != "" || n != p.round+1:
		return p.errorf(at, "%s as the number of a round, want %d", quoted(text), p.round+1)
	case n >= p.rounds:
		return p.errorf(at, "round %d, and the title has %s", n, counted(p.rounds, "round"))
	}
	p.round = n
	clear(p.locals)
	clear(p.idles)
	return nil
}

// cell reads what a rank does in a row.
func (p *reader) cell(rank, at int, text string) error {
	program := &p.s.Programs[rank]
	empty := len(*program) <= p.round
	switch {
	case p.idles[rank]:
		return p.errorf(at, "%s in a round that is empty by its %q", quoted(text), idle)
	case text == idle && (!empty || p.locals[rank]):
		return p.errorf(at, "%q in a round that is not empty", idle)
	case text == "then" && p.locals[rank]:
		return p.errorf(at, "a second \"then\" in one round")
	case text == "then":
		p.locals[rank] = true
		return nil
	}
	var st Step
	if text != idle {
		var err error
		if st, err = p.step(at, text); err != nil {
			return err
		}
	}
	for len(*program) <= p.round {
		*program = append(*program, Round{})
	}
	round := &(*program)[p.round]
	switch {
	case text == idle:
		p.idles[rank] = true
	case p.locals[rank]:
		round.Then = append(round.Then, st)
	default:
		round.Moves = append(round.Moves, st)
	}
	return nil
}

// step reads a step.
func (p *reader) step(at int, text string) (Step, error) {
	whole := text
	here := func() int { return at + len(whole) - len(text) }
	a, text, err := p.span(at, text)
	if err != nil {
		return Step{}, err
	}
	st := Step{Peer: -1, Dst: a}
	peer := func(verb Verb, rest string) error {
		text = rest
		st.Verb = verb
		n, rest, err := p.number(here(), text, 1<<20)
		text = rest
		st.Peer = n
		return err
	}
	span := func(verb Verb, rest string) error {
		text = rest
		st.Verb = verb
		var err error
		st.Src, text, err = p.span(here(), text)
		return err
	}
	switch {
	case strings.HasPrefix(text, ">"):
		st.Src, st.Dst = a, Span{}
		err = peer(Send, text[1:])
	case strings.HasPrefix(text, "<"):
		err = peer(Recv, text[1:])
	case strings.HasPrefix(text, "+<"):
		st.Src = a
		err = peer(RecvReduce, text[2:])
	case strings.HasPrefix(text, "+"):
		err = span(Fold, text[1:])
	case strings.HasPrefix(text, "="):
		if err = span(Copy, text[1:]); err == nil && strings.HasPrefix(text, "+<") {
			err = peer(RecvReduce, text[2:])
		}
	default:
		return Step{}, p.errorf(here(), "%s after %v, want \">\", \"<\", \"+<\" and a rank, or \"=\" or \"+\" and a "+
			"span", quoted(text), a)
	}
	if err != nil {
		return Step{}, err
	}
	if text != "" {
		return Step{}, p.errorf(here(), "%s after the step %v, want the end of the cell", quoted(text), st)
	}
	return st, nil
}

// span reads a span at the beginning of a text, and returns the rest.
func (p *reader) span(at int, text string) (Span, string, error) {
	whole := text
	here := func() int { return at + len(whole) - len(text) }
	const notation = "want a span such as I3, O0-2, O1-2:4x6, S1[5] or S1[5 of 2-]"
	if text == "" {
		return Span{}, "", p.errorf(here(), "nothing, %s", notation)
	}
	buf := text[0]
	text = text[1:]
	switch buf {
	case 'I', 'O':
		sp, rest, err := p.chunks(here(), text)
		if buf == 'O' {
			sp.Buf = Output
		}
		return sp, rest, err
	case 'S':
	default:
		return Span{}, "", p.errorf(at, "%s, %s", quoted(whole), notation)
	}
	slot, text, err := p.number(here(), text, maxSlots-1)
	if err != nil {
		return Span{}, "", err
	}
	if !strings.HasPrefix(text, "[") {
		return Span{}, "", p.errorf(here(), "%s after slot %d, want \"[\" and its chunks", quoted(text), slot)
	}
	text = text[1:]
	sp, text, err := p.chunks(here(), text)
	if err != nil {
		return Span{}, "", err
	}
	sp.Buf, sp.Slot, sp.Base = Scratch, slot, sp.First
	if rest, ok := strings.CutPrefix(text, " of "); ok {
		text = rest
		if sp.Base, text, err = p.number(here(), text, sp.First); err != nil {
			return Span{}, "", err
		}
		if !strings.HasPrefix(text, "-") {
			return Span{}, "", p.errorf(here(), "%s after \"of %d\", want \"-]\"", quoted(text), sp.Base)
		}
		text = text[1:]
	}
	if !strings.HasPrefix(text, "]") {
		return Span{}, "", p.errorf(here(), "%s in a slot, want \"]\" or \" of \" and the chunk it begins with",
			quoted(text))
	}
	return sp, text[1:], nil
}

// chunks reads the number of a chunk or of the first and the last, and behind a colon the stride and the number of
// chunks of a strided span, of whose first run the others are. The span is in the Input.
func (p *reader) chunks(at int, text string) (Span, string, error) {
	whole := text
	here := func() int { return at + len(whole) - len(text) }
	first, text, err := p.number(here(), text, p.s.Chunks-1)
	run := 1
	if err == nil && strings.HasPrefix(text, "-") {
		text = text[1:]
		most, from := p.s.Chunks-1, here()
		if strings.HasPrefix(strings.TrimLeft(text, "0123456789"), ":") {
			most += first // a run goes round
		}
		var last int
		last, text, err = p.number(from, text, most)
		if err == nil && last <= first {
			err = p.errorf(from, "chunks %d to %d, want a last chunk after the first", first, last)
		}
		run = last - first + 1
	}
	if err != nil || !strings.HasPrefix(text, ":") {
		return In(first, run), text, err
	}
	text = text[1:]
	from := here()
	stride, text, err := p.number(from, text, p.s.Chunks-1)
	switch {
	case err != nil:
		return Span{}, "", err
	case stride == 0:
		return Span{}, "", p.errorf(from, "a stride of 0, want 1 to %d", p.s.Chunks-1)
	case !strings.HasPrefix(text, "x"):
		return Span{}, "", p.errorf(here(), "%s after a stride, want \"x\" and the number of chunks", quoted(text))
	}
	text = text[1:]
	from = here()
	count, text, err := p.number(from, text, p.s.Chunks)
	if err == nil && count <= run {
		err = p.errorf(from, "%s in runs of %d, want more than one run", counted(count, "chunk"), run)
	}
	return Span{First: first, Count: count, Stride: stride, Run: run}, text, err
}

// number reads a number at the beginning of a text, at most most, and returns the rest.
func (p *reader) number(at int, text string, most int) (int, string, error) {
	end := 0
	for end < len(text) && text[end] >= '0' && text[end] <= '9' {
		end++
	}
	if end == 0 {
		return 0, "", p.errorf(at, "%s, want a number from 0 to %d", quoted(text), most)
	}
	if end > 1 && text[0] == '0' {
		return 0, "", p.errorf(at, "%s, want a number without zeros before it", quoted(text[:end]))
	}
	n, err := strconv.Atoi(text[:end])
	if err != nil || n > most {
		return 0, "", p.errorf(at, "%s, want a number from 0 to %d", clipped(text[:end]), most)
	}
	return n, text[end:], nil
}

// indent is the number of blanks before a cell's text.
func indent(cell string) int { return len(cell) - len(strings.TrimLeft(cell, " \t")) }
