package schedule

import (
	"errors"
	"fmt"
	"io"
	"slices"
)

// Lengths in drawings of space and time, in pixels.
const (
	timeRank  = 104 // from rank to rank, at least
	timeSmall = 6   // about the width of a letter of chunks
	timeAside = 7   // from a rank's line to the chunks beside it
	timeTop   = 84  // above the first round
	timeLabel = 48  // numbers of rounds
	timeLine  = 15  // from message to message
	timeSlope = 40  // from where a round's last message begins to where its last one ends, at least
	timeInset = 10  // above the first message of a round, and below the last
)

// maxTimeMessages bounds the arrows of a drawing.
const maxTimeMessages = 1 << 13

// WriteSpaceTimeSVG draws every message as SVG: a vertical line for each rank, time downwards in bands that are rounds,
// an arrow from each send to its receive, and the chunks beside where it begins. The colours and the heads of arrows
// are those of [Schedule.WriteSVG]. A square on a rank's line is local steps when the round's messages are done; their
// number stands beside it. The picture has a title for screen readers, and is dark where the reader prefers that. The
// same schedule gives the same bytes.
//
// Ranks stand further apart where chunks beside their lines need more room.
//
// Any Schedule has a drawing. Of one that [Check] refuses a cell is red, as in [Schedule.WriteSVG].
// Text below it says what is not drawn: ranks from 32 on, rounds after 256, messages after
// the first 8,192, and those that no rank can receive. It is an error if s or w is nil, and if w fails.
func (s *Schedule) WriteSpaceTimeSVG(w io.Writer) error {
	switch {
	case w == nil:
		return errors.New("schedule: nothing to write a drawing to")
	case s == nil:
		return errors.New("schedule: no schedule to draw")
	}
	if _, err := w.Write(s.spaceTime()); err != nil {
		return fmt.Errorf("schedule: drawing %v: %w", s.Collective, err)
	}
	return nil
}

// arrow is a message in a drawing of space and time.
type arrow struct {
	from, to     int
	begin, end   int // which of the sends of its sender, and of the receives of its receiver
	ends         ending
	count        int
	chunks       string // their numbers at the sender
	sent, caught bool   // false: there is no send, or no receive
}

// arrows are the messages of a round among the first ranks, in the order of senders, and how many have no place.
func (s *Schedule) arrows(t, ranks int) (out []arrow, astray int) {
	type pair struct{ from, to int }
	open := map[pair][]int{} // sends that have met no receive, as places in out
	sends, receives := make([]int, ranks), make([]int, ranks)
	each := func(do func(rank int, st Step)) {
		for rank, p := range s.Programs[:ranks] {
			if t < len(p) {
				for _, st := range p[t].Moves {
					do(rank, st)
				}
			}
		}
	}
	combined := make([]map[Span]bool, ranks)
	for rank, p := range s.Programs[:ranks] {
		if t < len(p) {
			combined[rank] = p[t].combined()
		}
	}
	each(func(rank int, st Step) {
		peer := int(st.Peer)
		switch {
		case st.Verb > RecvReduce || peer >= ranks && peer < len(s.Programs):
		case peer < 0 || peer >= ranks || peer == rank:
			astray++
		case st.Verb == Send:
			k := pair{rank, peer}
			open[k] = append(open[k], len(out))
			out = append(out, arrow{from: rank, to: peer, begin: sends[rank], ends: mismatch, sent: true,
				count: int(st.Src.Count), chunks: clipped(st.Src.numbers())})
			sends[rank]++
		}
	})
	each(func(rank int, st Step) {
		peer := int(st.Peer)
		if st.Verb != Recv && st.Verb != RecvReduce || peer < 0 || peer >= ranks || peer == rank {
			return
		}
		end := kept
		if st.Verb == RecvReduce || combined[rank][st.Dst] {
			end = folded
		}
		k := pair{peer, rank}
		if list := open[k]; len(list) > 0 {
			a := &out[list[0]]
			open[k] = list[1:]
			a.end, a.caught = receives[rank], true
			if a.count == int(st.Dst.Count) {
				a.ends = end
			}
		} else {
			out = append(out, arrow{from: peer, to: rank, end: receives[rank], ends: mismatch, caught: true})
		}
		receives[rank]++
	})
	return out, astray
}

// beside is how far the ranks are from each other, so that the chunks at one rank's line do not meet those at the next.
func beside(rounds [][]arrow) int {
	left, right := 0, 0 // letters
	for _, list := range rounds {
		for _, a := range list {
			if a.to < a.from {
				left = max(left, len(a.chunks))
			} else {
				right = max(right, len(a.chunks))
			}
		}
	}
	return max(timeRank, timeSmall*(left+right+1)+2*timeAside)
}

// spaceTime draws space and time.
func (s *Schedule) spaceTime() []byte {
	ranks, rounds := min(len(s.Programs), maxShapeRanks), s.rounds()
	var notes []string
	if n := len(s.Programs); n > ranks {
		notes = append(notes, "not drawn: "+numbered("rank", ranks, n-1)+", and messages with them")
	}
	var lists [][]arrow // by round
	seen := [mismatch + 1]bool{}
	messages, astray := 0, 0
	for t := range rounds {
		if t == maxShapeColumns {
			notes = append(notes, "not drawn: "+numbered("round", t, rounds-1))
			break
		}
		list, bad := s.arrows(t, ranks)
		astray += bad
		if messages += len(list); messages > maxTimeMessages {
			notes = append(notes, "not drawn: "+numbered("round", t, rounds-1)+", with more messages than fit")
			break
		}
		lists = append(lists, list)
		for _, a := range list {
			seen[a.ends] = true
		}
	}
	if astray > 0 {
		notes = append(notes, "not drawn: "+counted(astray, "message")+" with no other rank of the group")
	}
	var captions []caption
	for end, is := range seen {
		if is {
			captions = append(captions, caption{text: svgNames[end], arrow: true, end: ending(end)})
		}
	}
	if slices.ContainsFunc(s.Programs[:ranks], func(p Program) bool {
		return slices.ContainsFunc(p, func(r Round) bool { return len(r.Then) > 0 })
	}) {
		captions = append(captions, caption{text: "squares: local steps, and how many"})
	}
	for _, note := range notes {
		captions = append(captions, caption{text: note})
	}

	refused := s.refusal()
	captions = append(captions, refused.captions()...)

	body, y, across := &canvas{}, timeTop, beside(lists)
	for t, list := range lists {
		y = s.band(body, t, ranks, across, y, list, refused.at(t, ranks)-1)
	}
	title := s.title(rounds) + s.marks()
	width := max(2*svgMargin+timeLabel+across*ranks, 2*svgMargin+svgBold*len(title))
	for _, c := range captions {
		width = max(width, 2*svgMargin+c.indent()+svgLetter*len(c.text))
	}
	height := y + svgRow + svgLine*len(captions)
	c := &canvas{}
	c.begin(width, height, "Messages in space and time: "+title)
	c.text(svgMargin, 24, `font-size="14" font-weight="bold" fill="#000000"`, title)
	for r := range ranks {
		x := timeX(r, across)
		c.text(x, timeTop-24, `text-anchor="middle" fill="#333333"`, fmt.Sprint("rank ", r))
		c.line(x, timeTop-14, x, y, `stroke="#bbbbbb"`)
	}
	_, _ = c.Write(body.Bytes())
	c.captions(captions, y+svgRow)
	c.WriteString("</svg>\n")
	return c.Bytes()
}

// timeX is where a rank's line is, with so much from rank to rank.
func timeX(rank, across int) int { return svgMargin + timeLabel + across*rank + across/2 }

// band draws a round from y on, and returns where it ends. The cell of rank wrong is refused; -1: none is.
func (s *Schedule) band(c *canvas, t, ranks, across, y int, list []arrow, wrong int) int {
	const halo = `font-size="10" fill="#000000" stroke="#ffffff" stroke-width="3" paint-order="stroke"`
	first, last := 0, 0 // the most messages that a rank sends, and receives
	for _, a := range list {
		first, last = max(first, a.begin), max(last, a.end)
	}
	begin := y + timeInset
	end := begin + timeSlope + timeLine*max(first, last)
	locals := slices.ContainsFunc(s.Programs[:ranks], func(p Program) bool { return t < len(p) && len(p[t].Then) > 0 })
	bottom := end + timeInset
	if locals {
		bottom += timeLine
	}
	if wrong >= 0 {
		c.cell(timeX(wrong, across)-across/2+2, y+2, across-4, bottom-y-4)
	}
	for rank := range ranks {
		p := s.Programs[rank]
		if t >= len(p) || len(p[t].Then) == 0 {
			continue
		}
		x, at := timeX(rank, across), end+timeInset
		fmt.Fprintf(c, `<path d="M%d %dh8v8h-8Z" fill="#666666"/>`+"\n", x-4, at)
		c.text(x+8, at+8, halo, fmt.Sprint(len(p[t].Then)))
	}
	c.text(svgMargin, y+timeInset+8, `fill="#666666"`, fmt.Sprint("round ", t))
	right := svgMargin + timeLabel + across*ranks
	c.line(svgMargin, y, right, y, `stroke="#dddddd"`)
	for _, a := range list {
		x1, y1 := timeX(a.from, across), begin+timeLine*a.begin
		x2, y2 := timeX(a.to, across), end-timeLine*(last-a.end)
		switch { // half an arrow has half the way
		case !a.caught:
			x2, y2 = (x1+x2)/2, y1+timeSlope/2
		case !a.sent:
			x1, y1 = (x1+x2)/2, y2-timeSlope/2
		}
		c.arrow(x1, y1, x2, y2, a.ends)
		fmt.Fprintf(c, `<circle cx="%d" cy="%d" r="3" fill="#333333"/>`+"\n", x1, y1)
	}
	for _, a := range list { // upon all arrows
		if !a.sent {
			continue
		}
		x, anchor := timeX(a.from, across)+timeAside, "start"
		if a.to < a.from {
			x, anchor = timeX(a.from, across)-timeAside, "end"
		}
		c.text(x, begin+timeLine*a.begin+3, fmt.Sprintf(`text-anchor="%s" `, anchor)+halo, a.chunks)
	}
	return bottom
}
