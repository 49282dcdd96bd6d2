package msccl

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"

	"gogcl.dev/methods/schedule"
)

// parse reads the elements and attributes of a file.
func parse(text []byte) (*algorithm, error) {
	p := &parser{a: &algorithm{}, decoder: xml.NewDecoder(bytes.NewReader(text)),
		most: max(maxNamed, len(text)/namedBytes)}
	begun := false
	for {
		line, _ := p.decoder.InputPos()
		token, err := p.decoder.Token()
		switch {
		case errors.Is(err, io.EOF) && begun:
			return p.a, p.whole()
		case errors.Is(err, io.EOF):
			return nil, nowhere(line).errorf("no element, want <algo>")
		case err != nil:
			at, _ := p.decoder.InputPos()
			return nil, nowhere(at).errorf("%w", err)
		}
		switch token := token.(type) {
		case xml.StartElement:
			if begun || token.Name.Local != "algo" {
				return nil, nowhere(line).errorf("element <%s>, want one <algo>", token.Name.Local)
			}
			begun = true
			if err := p.algo(line, token); err != nil {
				return nil, err
			}
		case xml.CharData:
			if err := blank(nowhere(line), token); err != nil {
				return nil, err
			}
		}
	}
}

type parser struct {
	a       *algorithm
	decoder *xml.Decoder
	line    int // of <algo>
	named   int // chunks that steps name
	most    int // of these
}

// blank refuses text between elements.
func blank(at where, text []byte) error {
	if text = bytes.TrimSpace(text); len(text) > 0 {
		return at.errorf("text %q between elements", clipped(string(text)))
	}
	return nil
}

// children calls do with each element inside the one that has begun.
func (p *parser) children(at where, want string, do func(line int, e xml.StartElement) error) error {
	for {
		line, _ := p.decoder.InputPos()
		token, err := p.decoder.Token()
		if err != nil {
			end, _ := p.decoder.InputPos()
			return nowhere(end).errorf("%w", err)
		}
		here := at
		here.line = line
		switch token := token.(type) {
		case xml.EndElement:
			return nil
		case xml.CharData:
			if err := blank(here, token); err != nil {
				return err
			}
		case xml.StartElement:
			if token.Name.Local != want {
				inside := "no element"
				if want != "" {
					inside = "<" + want + ">"
				}
				return here.errorf("element <%s>, want %s", token.Name.Local, inside)
			}
			if err := do(line, token); err != nil {
				return err
			}
		}
	}
}

// algo reads the file's element.
func (p *parser) algo(line int, e xml.StartElement) error {
	p.line = line
	at := nowhere(line)
	attributes, err := newAttributes(at, e)
	if err != nil {
		return err
	}
	p.a.Name = attributes.text("name")
	p.a.Protocol = attributes.text("proto")
	coll := attributes.text("coll")
	p.a.chunks = attributes.number("nchunksperloop", 1, maxChunks)
	channels := attributes.number("nchannels", 0, maxChannels)
	gpus := attributes.number("ngpus", 1, maxGPUs)
	p.a.want = gpus
	p.a.inPlace = attributes.number("inplace", 0, 1) == 1
	outOfPlace := !p.a.inPlace
	if attributes.has("outofplace") {
		outOfPlace = attributes.number("outofplace", 0, 1) == 1
	}
	p.a.MinBytes, p.a.MaxBytes = 0, defaultMaxBytes
	if attributes.has("minBytes") {
		p.a.MinBytes = attributes.bytes("minBytes")
	}
	if attributes.has("maxBytes") {
		p.a.MaxBytes = attributes.bytes("maxBytes")
	}
	if attributes.err != nil {
		return attributes.err
	}
	if p.a.collective, err = collectiveOf(at, coll); err != nil {
		return err
	}
	switch contract := p.a.collective.Contract(); {
	case !slices.Contains(protocols, p.a.Protocol):
		return at.errorf("proto=%q, want one of %v", p.a.Protocol, protocols)
	case !p.a.inPlace && !outOfPlace:
		return at.errorf("inplace=\"0\" and outofplace=\"0\", want one of them to be 1")
	case p.a.MinBytes > p.a.MaxBytes:
		return at.errorf("minBytes=\"%d\" is more than maxBytes=\"%d\"", p.a.MinBytes, p.a.MaxBytes)
	case contract.PerRank() && p.a.chunks%gpus != 0:
		return at.errorf("nchunksperloop=\"%d\" of %s, want a multiple of ngpus=\"%d\"", p.a.chunks, coll, gpus)
	case p.a.chunks > maxBuffers/gpus:
		return at.errorf("nchunksperloop=\"%d\" on ngpus=\"%d\", want a product of at most %d", p.a.chunks, gpus,
			maxBuffers)
	}
	p.a.apart = !p.a.inPlace && p.a.collective.Contract().Output == schedule.Blocks
	if outOfPlace {
		p.a.inPlace = false
	}
	// The list grows with the elements, not with what the attribute says.
	return p.children(at, "gpu", func(line int, e xml.StartElement) error { return p.gpu(line, e, gpus, channels) })
}

// gpu reads a gpu of so many.
func (p *parser) gpu(line int, e xml.StartElement, gpus, channels int) error {
	at := nowhere(line)
	attributes, err := newAttributes(at, e)
	if err != nil {
		return err
	}
	id := attributes.number("id", 0, gpus-1)
	at.gpu = id
	if attributes.err == nil {
		attributes.at = at
	}
	g := gpu{line: line, present: true, chunks: map[byte]int{}}
	for _, buf := range []byte{input, output, scratch} {
		g.chunks[buf] = attributes.number(string(buf)+"_chunks", 0, p.mostChunks(buf, gpus))
	}
	if attributes.err != nil {
		return attributes.err
	}
	for id >= len(p.a.gpus) {
		// An id far beyond the elements before it is one of a file in another order: at most ngpus, which is bounded.
		p.a.gpus = append(p.a.gpus, gpu{})
	}
	if p.a.gpus[id].present {
		return at.errorf("a second <gpu id=\"%d\">", id)
	}
	err = p.children(at, "tb", func(line int, e xml.StartElement) error {
		return p.block(at, line, e, &g, gpus, channels)
	})
	if err != nil {
		return err
	}
	for i, b := range g.blocks {
		if !b.present {
			return at.errorf("no <tb id=\"%d\">, and there is one with id=\"%d\"", i, len(g.blocks)-1)
		}
	}
	p.a.gpus[id] = g
	return nil
}

// mostChunks is the most chunks that a buffer can have.
func (p *parser) mostChunks(buf byte, gpus int) int {
	contract := p.a.collective.Contract()
	switch {
	case buf == scratch:
		return maxChunks
	case buf == input && contract.Input == schedule.Own, buf == output && contract.Output == schedule.Own:
		return p.a.chunks / gpus
	}
	return p.a.chunks
}

// block reads a thread block.
func (p *parser) block(at where, line int, e xml.StartElement, g *gpu, gpus, channels int) error {
	at.line = line
	attributes, err := newAttributes(at, e)
	if err != nil {
		return err
	}
	id := attributes.number("id", 0, maxChunks)
	b := block{line: line, present: true, send: attributes.number("send", -1, gpus-1),
		recv: attributes.number("recv", -1, gpus-1), channel: attributes.number("chan", -1, channels-1)}
	if attributes.err != nil {
		return attributes.err
	}
	rank := at.gpu
	at.block = id
	switch {
	case b.send == rank || b.recv == rank:
		return at.errorf("send=\"%d\" and recv=\"%d\", want another gpu, or -1 for none", b.send, b.recv)
	case b.channel < 0 && (b.send >= 0 || b.recv >= 0):
		return at.errorf("chan=\"%d\", want 0 to %d where there is a peer", b.channel, channels-1)
	}
	for id >= len(g.blocks) {
		g.blocks = append(g.blocks, block{})
	}
	if g.blocks[id].present {
		return at.errorf("a second <tb id=\"%d\">", id)
	}
	err = p.children(at, "step", func(line int, e xml.StartElement) error { return p.step(at, line, e, g, &b) })
	g.blocks[id] = b
	return err
}

// step reads a step.
func (p *parser) step(at where, line int, e xml.StartElement, g *gpu, b *block) error {
	at.line, at.step = line, len(b.steps)
	attributes, err := newAttributes(at, e)
	if err != nil {
		return err
	}
	const anything = 1 << 20
	s := attributes.number("s", 0, anything)
	name := attributes.text("type")
	count := attributes.number("cnt", 0, maxChunks)
	st := step{line: line, depBlock: attributes.number("depid", -1, anything),
		depStep: attributes.number("deps", -1, anything), hasDep: attributes.number("hasdep", 0, 1) == 1}
	areas := [2]area{{count: count}, {count: count}}
	for i, side := range []string{"src", "dst"} {
		text := attributes.text(side + "buf")
		areas[i].first = attributes.number(side+"off", -1, maxChunks)
		if attributes.err == nil && text != "i" && text != "o" && text != "s" {
			return at.errorf("%sbuf=%q, want i, o or s", side, text)
		}
		if text != "" {
			areas[i].buf = text[0]
		}
	}
	if attributes.err != nil {
		return attributes.err
	}
	i := slices.IndexFunc(kinds, func(k kind) bool { return k.name == name })
	if i < 0 {
		var known []string
		for _, k := range kinds {
			known = append(known, k.name)
		}
		return at.errorf("type=%q, want one of %s", name, strings.Join(known, ", "))
	}
	st.kind = kinds[i]
	switch {
	case s != len(b.steps):
		return at.errorf("s=\"%d\", want %d, after the steps before it", s, len(b.steps))
	case st.kind.sends && b.send < 0:
		return at.errorf("type=%q in a thread block with send=\"-1\"", name)
	case st.kind.receives && b.recv < 0:
		return at.errorf("type=%q in a thread block with recv=\"-1\"", name)
	case (st.depBlock < 0) != (st.depStep < 0):
		return at.errorf("depid=\"%d\" and deps=\"%d\", want both or neither to be -1", st.depBlock, st.depStep)
	case name != "nop" && count == 0:
		return at.errorf("cnt=\"0\", want 1 or more")
	}
	for i, side := range []string{"src", "dst"} {
		if uses := [2]bool{st.kind.src, st.kind.dst}[i]; !uses {
			continue
		}
		a := areas[i]
		if most := g.chunks[a.buf]; a.first < 0 || a.first+a.count > most {
			return at.errorf("%s is chunks %d to %d of buffer %c, which has %d by %c_chunks", side, a.first,
				a.first+a.count-1, a.buf, most, a.buf)
		}
		p.named += a.count
	}
	if p.named > p.most {
		return at.errorf("with this step the file names %d chunks, want at most %d", p.named, p.most)
	}
	st.src, st.dst = areas[0], areas[1]
	b.steps = append(b.steps, st)
	return p.children(at, "", nil)
}

// whole checks what can be seen when all has been read.
func (p *parser) whole() error {
	gpus := 0
	for _, g := range p.a.gpus {
		if g.present {
			gpus++
		}
	}
	if want := p.a.want; gpus != want {
		return nowhere(p.line).errorf("ngpus=\"%d\", and there are %d elements <gpu>", want, gpus)
	}
	return nil
}

// attributes are those of an element. The first error of its methods stays.
type attributes struct {
	at     where
	values map[string]string
	err    error
}

func newAttributes(at where, e xml.StartElement) (*attributes, error) {
	out := &attributes{at: at, values: map[string]string{}}
	for _, a := range e.Attr {
		if out.has(a.Name.Local) {
			return nil, at.errorf("attribute %s is there twice", a.Name.Local)
		}
		out.values[a.Name.Local] = a.Value
	}
	return out, nil
}

func (a *attributes) has(name string) bool {
	_, ok := a.values[name]
	return ok
}

func (a *attributes) fail(format string, args ...any) {
	if a.err == nil {
		a.err = a.at.errorf(format, args...)
	}
}

// text is an attribute that there must be.
func (a *attributes) text(name string) string {
	if !a.has(name) {
		a.fail("no attribute %s", name)
	}
	return a.values[name]
}

// number is an attribute with a number in a range.
func (a *attributes) number(name string, least, most int) int {
	text := a.text(name)
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > most {
		a.fail("%s=%q, want a number from %d to %d", name, clipped(text), least, most)
		return least
	}
	return n
}

// bytes is an attribute with a number of bytes.
func (a *attributes) bytes(name string) int64 {
	text := a.text(name)
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		a.fail("%s=%q, want a number of bytes", name, clipped(text))
		return 0
	}
	return n
}

// clipped is a text, cut if it is long.
func clipped(text string) string {
	const most = 40
	if len(text) > most {
		return text[:most] + "..."
	}
	return text
}
