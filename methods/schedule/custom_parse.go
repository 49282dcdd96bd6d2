package schedule

import "strings"

// custom is where a reader is in what a drawing says of a CustomContract.
type custom struct {
	listing string // rowIn or rowOut: the rows that are being read; "": others
	after   string // the label that came last
	numbers int    // in all lists
	wants   bool   // chunks of outputs have said who contributes
	plain   bool   // chunks of outputs have said nothing of that
}

// maxListed bounds the numbers in the lists of a contract that is read, since a range of few letters is many.
const maxListed = 1 << 22

// ownName reads the name of a collective of a program's own, if it is one.
func (p *reader) ownName(text string) (is bool, err error) {
	name, is := strings.CutPrefix(text, Custom.String())
	if !is || name != "" && name[0] != ' ' {
		return false, nil
	}
	own := &CustomContract{}
	if name != "" {
		own.Name = name[1:]
		if err := checkCustomName(own.Name); err != nil || own.Name == "" {
			return true, p.errorf(len(Custom.String())+1, "%s as a name, want letters a to z, digits and hyphens",
				quoted(own.Name))
		}
	}
	p.s.Collective, p.s.Custom = Custom, own
	return true, nil
}

// ownMark ends the list of the marks of a title that errors have.
func (p *reader) ownMark() string {
	if p.s.Custom == nil {
		return ""
	}
	return ", and combines behind them"
}

// sizes reads the line of the relative sizes of chunks.
func (p *reader) sizes(line string) error {
	at := len(sizesLabel)
	own := p.s.Custom
	own.Sizes = make([]int, 0, min(p.s.Chunks, len(line)))
	for _, word := range strings.Split(line[at:], " ")[1:] {
		at++
		size, rest, err := p.number(at, word, maxCustomTotal)
		if err != nil {
			return err
		}
		times := 1
		if strings.HasPrefix(rest, "x") {
			if times, rest, err = p.number(at+len(word)-len(rest)+1, rest[1:], p.s.Chunks); err != nil {
				return err
			}
		}
		switch {
		case rest != "":
			return p.errorf(at+len(word)-len(rest), "%s after a size, want a blank, or \"x\" and how many chunks have it",
				quoted(rest))
		case times > p.s.Chunks-len(own.Sizes):
			return p.errorf(at, "sizes of more chunks than the title has, which are %d", p.s.Chunks)
		}
		for range times {
			own.Sizes = append(own.Sizes, size)
		}
		at += len(word)
	}
	if len(own.Sizes) != p.s.Chunks {
		return p.errorf(len(line), "sizes of %s, and the title has %d", counted(len(own.Sizes), "chunk"), p.s.Chunks)
	}
	return nil
}

// beginOwn comes with the header, when the number of ranks is known.
func (p *reader) beginOwn() {
	if own := p.s.Custom; own != nil {
		own.Inputs, own.Outputs = make([][]int, p.s.Size), make([][]int, p.s.Size)
	}
}

// ownRow reads the label of a row, and reports whether it is one that says what a contract is. A row without a label
// goes on with what the row above it says.
func (p *reader) ownRow(text string) bool {
	switch {
	case p.s.Custom == nil:
		return false
	case text == "":
		return p.listing != ""
	case p.round < 0 && (text == rowIn && p.after == "" || text == rowOut && p.after == rowIn):
		p.listing, p.after = text, text
		return true
	}
	p.listing = ""
	return false
}

// ownCell reads chunks of a rank's buffer: "0-3, 5", and of an Output perhaps "0-3 of 0, 2".
func (p *reader) ownCell(rank, at int, text string) error {
	if text == "" {
		return nil
	}
	own := p.s.Custom
	chunks, from, says := strings.Cut(text, " of ")
	list := &own.Inputs[rank]
	if p.listing == rowOut {
		list = &own.Outputs[rank]
		p.wants, p.plain = p.wants || says, p.plain || !says
	}
	switch {
	case says && p.listing == rowIn:
		return p.errorf(at+len(chunks), "%s in an input, want its chunks alone", quoted(text[len(chunks):]))
	case p.wants && p.plain:
		return p.errorf(at, "%s: want who contributes to all chunks of outputs, as in \"0 of 0-2\", or to none",
			quoted(text))
	}
	before := len(*list)
	var err error
	if *list, err = p.list(*list, at, chunks, p.s.Chunks-1); err != nil || !says {
		return err
	}
	ranks, err := p.list(nil, at+len(chunks)+len(" of "), from, p.s.Size-1)
	if err != nil {
		return err
	}
	if own.Wants == nil {
		own.Wants = make([][][]int, p.s.Size)
	}
	for range len(*list) - before {
		own.Wants[rank] = append(own.Wants[rank], ranks)
	}
	return nil
}

// list reads numbers and ranges with commas, as ranges writes them, and appends them to others.
func (p *reader) list(to []int, at int, text string, most int) ([]int, error) {
	for word := range strings.SplitSeq(text, ", ") {
		first, rest, err := p.number(at, word, most)
		if err != nil {
			return nil, err
		}
		last := first
		if strings.HasPrefix(rest, "-") {
			from := at + len(word) - len(rest) + 1
			if last, rest, err = p.number(from, rest[1:], most); err != nil {
				return nil, err
			}
			if last <= first {
				return nil, p.errorf(from, "%d to %d, want a last number after the first", first, last)
			}
		}
		switch p.numbers += last - first + 1; {
		case rest != "":
			return nil, p.errorf(at+len(word)-len(rest), "%s after a number, want \", \" and the next, or the end",
				quoted(rest))
		case p.numbers > maxListed:
			return nil, p.errorf(at, "more than %d numbers in the lists of a contract", maxListed)
		}
		for n := first; n <= last; n++ {
			to = append(to, n)
		}
		at += len(word) + len(", ")
	}
	return to, nil
}
