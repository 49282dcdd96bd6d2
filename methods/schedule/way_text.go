package schedule

import (
	"fmt"
	"slices"
	"strings"
)

// Bounds of the text of a way. Longer ones lose their middle.
const (
	wayRounds = 12 // lines of rounds
	waySteps  = 6  // steps of a round
	wayRanks  = 4  // ranks that hold a chunk, and contributions that are missing
)

// told is the text of a way: steps that lead to an error, round by round, and then sentences.
func (w *way) told(title string, steps map[int]bool, sentences []string) []string {
	var at []int
	for p := range steps {
		at = append(at, p)
	}
	slices.Sort(at)
	var rounds []string
	for len(at) > 0 {
		t, n := w.passages[at[0]].round, 1
		for n < len(at) && w.passages[at[n]].round == t {
			n++
		}
		var texts []string
		for _, p := range at[:n] {
			texts = append(texts, w.text(p))
		}
		texts = shortened(texts, waySteps, "step")
		rounds = append(rounds, fmt.Sprintf("  round %d: %s", t, strings.Join(texts, ", ")))
		at = at[n:]
	}
	out := append([]string{"the way of " + title + ":"}, shortened(rounds, wayRounds, "round")...)
	for _, s := range sentences {
		out = append(out, "  "+s)
	}
	return out
}

// shortened is a list of texts without its middle if it is longer than most.
func shortened(list []string, most int, noun string) []string {
	if len(list) <= most {
		return list
	}
	front, back := list[:most/2], list[len(list)-most/2:]
	middle := "... " + counted(len(list)-len(front)-len(back), noun) + " ..."
	if strings.HasPrefix(list[0], "  ") {
		middle = "  " + middle
	}
	return slices.Concat(front, []string{middle}, back)
}

// text says what a passage did: "1 folds into 0".
func (w *way) text(p int) string {
	x := &w.passages[p]
	out := stepText(x.rank, x.step, x.spot)
	if number := int(w.m.terms.at(x.value).chunk); number != x.chunk {
		out += fmt.Sprintf(" as chunk %d", x.chunk)
	}
	return out
}

// stepText says what a step of a rank does to a spot.
func stepText(rank int, st Step, at spot) string {
	aside := ""
	if at.buf == Scratch {
		aside = fmt.Sprintf(" (%v)", at)
	}
	switch st.Verb {
	case Recv:
		return fmt.Sprintf("%d sends to %d%s", st.Peer, rank, aside)
	case RecvReduce:
		return fmt.Sprintf("%d folds into %d%s", st.Peer, rank, aside)
	case Copy:
		return fmt.Sprintf("%d copies %v to %v", rank, st.Src, st.Dst)
	}
	return fmt.Sprintf("%d folds %v into %v", rank, st.Src, st.Dst)
}

// String is the spot in the notation of the drawing.
func (s spot) String() string {
	return Span{Buf: s.buf, Slot: s.slot, Base: s.chunk, First: s.chunk, Count: 1}.String()
}

// since says from when on passage p is there.
func (w *way) since(p int) string {
	if p == 0 {
		return "from the start"
	}
	return fmt.Sprintf("since round %d", w.passages[p].round)
}

// ofStep is the way that leads to a step with an error of a chunk.
func (w *way) ofStep(from source, wrong *chunkError) []string {
	steps := map[int]bool{}
	title := fmt.Sprint("chunk ", wrong.chunk)
	if w.step.Verb != RecvReduce && w.step.Verb != Fold || w.m.isUnwritten(w.rank, &w.step) {
		for p := range w.passages {
			if p > 0 && int(w.m.terms.at(w.passages[p].value).chunk) == wrong.chunk {
				steps[p] = true
			}
		}
		when, sp, ever := w.writesLater(from, wrong.chunk)
		say := fmt.Sprintf("rank %d never writes %v", w.rank, sp)
		if ever {
			say = fmt.Sprintf("rank %d first writes %v in round %d, after the step that reads it", w.rank, sp, when)
		}
		return w.told(title, steps, []string{say})
	}
	for i := range w.step.Dst.Count {
		at, _ := w.sources(i)
		of := w.operands(i)
		a, b := w.value(of[0], at[0]), w.value(of[1], at[1])
		doing := fmt.Sprintf("round %d: %s", w.round, stepText(w.rank, w.step, w.at(w.rank, &w.step.Dst, i)))
		x, y := w.m.terms.at(a).chunk, w.m.terms.at(b).chunk
		say := fmt.Sprintf("%s: chunk %d meets chunk %d", doing, y, x)
		if x == y {
			twice := slices.DeleteFunc(w.m.terms.contributors(a), func(r int) bool { return !w.holds(b, r) })
			if len(twice) == 0 {
				continue
			}
			say = fmt.Sprintf("%s, which has the contribution of rank %d %s", doing, twice[0],
				w.since(w.first(of[0], twice[0])))
		}
		w.leadsTo(of[0], steps)
		w.leadsTo(of[1], steps)
		return w.told(title, steps, []string{say})
	}
	return nil
}

// isUnwritten reports whether a step reads what nobody has written.
func (m *machine) isUnwritten(rank int, st *Step) bool {
	_, err := m.read(rank, &st.Src)
	if err == nil && st.Verb == Fold {
		_, err = m.read(rank, &st.Dst)
	}
	return err != nil
}

// first is the passage by which the contribution of rank r came to where passage p is; 0: it was there from the start.
func (w *way) first(p, r int) int {
	for p > 0 {
		before := p
		for _, of := range w.passages[p].from {
			if of > 0 && w.passages[of].rank == w.passages[p].rank && w.holds(w.passages[of].value, r) {
				before = of
			}
		}
		if before == p {
			if w.passages[p].rank == r && w.passages[p].step.Verb != Recv {
				return 0 // its own
			}
			return p
		}
		p = before
	}
	return 0
}

// ofOutcome is the way of what a rank should end with as chunk f of its Output, which want is at. It returns the round
// that spoils it, or atEnd.
func (w *way) ofOutcome(rank, f int, want wants) (lines []string, round int) {
	chunk, ranks := want.from()
	own, steps := spot{rank, Output, 0, f}, map[int]bool{}
	at, have := w.latest[own], w.m.held(rank, f)
	title, name, origin := fmt.Sprint("chunk ", chunk), "the whole", -1
	if len(ranks) == 1 {
		title, name, origin = fmt.Sprintf("chunk %d of rank %d", chunk, ranks[0]), "it", ranks[0]
	}
	begins := w.at(origin, &Span{Buf: Input, First: chunk, Count: 1}, 0)
	var whole []int // passages
	for p := 1; p < len(w.passages); p++ {
		if want.has(w.passages[p].value) {
			whole = append(whole, p)
		}
	}
	tell := func(say ...string) []string { return w.told(title, steps, say) }
	overwritten := func(p int, at spot) string {
		if p > 0 && w.passages[p].lost > 0 {
			return fmt.Sprintf("until round %d gives the slot another layout", w.passages[p].lost-1)
		}
		by := w.next(p, at)
		w.leadsTo(by, steps)
		return fmt.Sprintf("until round %d overwrites it: %s", w.passages[by].round, w.text(by))
	}
	w.leadsTo(at, steps)
	round = atEnd
	if extra := have != none && (int(w.m.terms.at(have).chunk) != chunk ||
		len(w.m.terms.contributors(have)) > len(ranks)-len(w.without(have, ranks))); extra && at > 0 {
		round = w.passages[at].round
	}

	// The rank had it in its place.
	for _, had := range slices.Backward(whole) {
		if w.passages[had].spot == own {
			w.leadsTo(had, steps)
			over := overwritten(had, own)
			return tell(fmt.Sprintf("rank %d has %s in %v %s, %s", rank, name, own, w.since(had), over)),
				w.passages[w.next(had, own)].round
		}
	}
	if begins == own {
		over := overwritten(0, own)
		return tell(fmt.Sprintf("rank %d has %s in %v from the start, %s", rank, name, own, over)),
			w.passages[w.next(0, own)].round
	}

	// The rank has it in another place, where it stays, or else had it first.
	there := -1
	for _, p := range whole {
		if w.passages[p].rank == rank && (there < 0 || !w.stays(there) && w.stays(p)) {
			there = p
		}
	}
	if there >= 0 {
		x := w.passages[there]
		w.leadsTo(there, steps)
		then := fmt.Sprintf("and does not put it into %v", own)
		if !w.stays(there) {
			then = overwritten(there, x.spot)
		}
		return tell(fmt.Sprintf("rank %d has %s in %v %s, %s", rank, name, x.spot, w.since(there), then)), round
	}
	if origin == rank {
		return tell(fmt.Sprintf("rank %d has %s in %v from the start, and does not put it into %v", rank, name, begins,
			own)), round
	}

	// Other ranks have it.
	var holders []string
	sent, seen := false, map[int]bool{}
	if origin >= 0 && (begins.buf == Input || w.latest[begins] == 0) {
		holders, seen[origin] = append(holders, fmt.Sprintf("rank %d from the start", origin)), true
	}
	for i, p := range whole {
		x := w.passages[p]
		sent = sent || x.step.Verb == Recv ||
			x.step.Verb == RecvReduce && x.from[1] > 0 && want.has(w.passages[x.from[1]].value) // it may count again
		if i == 0 && origin < 0 {
			w.leadsTo(p, steps)
		}
		if w.stays(p) && !seen[x.rank] {
			seen[x.rank] = true
			holders = append(holders, fmt.Sprintf("rank %d %s", x.rank, w.since(p)))
		}
	}
	if len(holders) > 0 {
		ends := "nobody sends it on"
		if sent {
			ends = fmt.Sprintf("nobody sends it to rank %d", rank)
		}
		holders = shortened(holders, wayRanks, "rank")
		return tell(fmt.Sprintf("%s is at %s; %s", name, strings.Join(holders, ", "), ends)), round
	}
	if len(whole) > 0 {
		p := whole[len(whole)-1]
		x := w.passages[p]
		return tell(fmt.Sprintf("rank %d has %s in %v %s, %s", x.rank, name, x.spot, w.since(p),
			overwritten(p, x.spot))), round
	}
	if origin >= 0 {
		return tell(fmt.Sprintf("rank %d has %s in %v from the start, %s", origin, name, begins,
			overwritten(0, begins))), round
	}

	// Nobody has all of it.
	var say []string
	missing := w.without(have, ranks)
	for i, r := range missing {
		if i == wayRanks {
			say = append(say, fmt.Sprintf("... and %s more", counted(len(missing)-i, "contribution")))
			break
		}
		say = append(say, w.ofContribution(r, rank, chunk, steps, overwritten))
	}
	if len(missing) == 0 { // it has some that are not wanted
		for _, r := range w.m.terms.contributors(have) {
			if !slices.Contains(ranks, r) {
				p := w.first(at, r)
				say = append(say, fmt.Sprintf("rank %d has the contribution of rank %d, which is not wanted, %s", rank, r,
					w.since(p)))
				break
			}
		}
	}
	return tell(say...), round
}

// ofContribution says how far the contribution of rank r goes, which another rank lacks, and adds the steps that lead
// there.
func (w *way) ofContribution(r, lacks, chunk int, steps map[int]bool, overwritten func(p int, at spot) string) string {
	for p := len(w.passages) - 1; p > 0; p-- {
		x := &w.passages[p]
		if !w.holds(x.value, r) || int(w.m.terms.at(x.value).chunk) != chunk || x.rank == r {
			continue
		}
		w.leadsTo(p, steps)
		ends := fmt.Sprintf("; nobody sends it to rank %d", lacks)
		if x.rank == lacks {
			ends = "; nobody sends it on"
		}
		if !w.stays(p) {
			ends = ", " + overwritten(p, x.spot)
		}
		return fmt.Sprintf("the contribution of rank %d is in %v of rank %d %s%s", r, x.spot, x.rank, w.since(p),
			ends)
	}
	return fmt.Sprintf("nobody sends the contribution of rank %d on", r)
}
