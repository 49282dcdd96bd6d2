package schedule_test

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gogcl.dev/internal/thinned"
	"gogcl.dev/methods"
	"gogcl.dev/methods/schedule"
)

// sending is what a reader of a drawing sees: in a round one rank sends chunks to another, which combines them with
// other data or does not.
type sending struct {
	round, from, to int
	combined        bool
	chunks          int
}

func (s sending) compare(other sending) int {
	return cmp.Or(cmp.Compare(s.round, other.round), cmp.Compare(s.from, other.from), cmp.Compare(s.to, other.to))
}

// TestShapeIsTrue reads the drawings of every method and collective, as text and as SVG, and compares them with the
// receives of the schedule.
func TestShapeIsTrue(t *testing.T) {
	for _, m := range thinned.Constants() {
		t.Run(fmt.Sprintf("method=%v", m), func(t *testing.T) {
			t.Parallel()
			for _, c := range schedule.Collectives() {
				for k := 2; k <= 9; k++ {
					for variant := range 3 {
						spec := methods.Spec{Method: m, Collective: c, Size: k, Pieces: 1 + variant}
						spec.RankOrder = variant == 1
						if c.Contract().Rooted() {
							spec.Root = k / 2
						}
						for i := range k { // rings 0 1 2 ... and, where there is one, 0 2 4 ... 1 3 ...
							spec.Ring = append(spec.Ring, i)
							spec.Second = append(spec.Second, i*(1+k%2)%k)
						}
						s, err := methods.Build(spec)
						if err != nil {
							t.Fatal(err)
						}
						want := receives(s)
						read := map[string][]sending{"text": readText(t, s.Shape()), "SVG": readSVG(t, s)}
						for name, got := range read {
							slices.SortFunc(got, sending.compare)
							if !slices.Equal(got, want) {
								t.Fatalf("%v, %d ranks, variant %d: the %s says\n%v\nwant\n%v\n%s",
									c, k, variant, name, got, want, s.Shape())
							}
						}
					}
				}
			}
		})
	}
}

// receives lists what is received. A receive begins a fold if the next move of its round has the same destination.
func receives(s *schedule.Schedule) []sending {
	sum := map[sending]int{}
	for rank, p := range s.Programs {
		for t, round := range p {
			for i, st := range round.Moves {
				if st.Verb != schedule.Recv && st.Verb != schedule.RecvReduce {
					continue
				}
				combined := st.Verb == schedule.RecvReduce
				if i+1 < len(round.Moves) && round.Moves[i+1].Dst == st.Dst {
					combined = true
				}
				sum[sending{t, st.Peer, rank, combined, 0}] += st.Dst.Count
			}
		}
	}
	var out []sending
	for k, n := range sum {
		k.chunks = n
		out = append(out, k)
	}
	slices.SortFunc(out, sending.compare)
	return out
}

// readText reads a drawing: from each mark where a line begins, down the line.
func readText(t *testing.T, text string) (out []sending) {
	t.Helper()
	_, text, _ = strings.Cut(text, "\n")
	for text != "" {
		var rows [][]rune // ranks, and the lines between them
		var heading, chunks []rune
		for text != "" {
			line, rest, _ := strings.Cut(text, "\n")
			switch first, _, _ := strings.Cut(line, " "); {
			case first == "round" && heading == nil:
				heading = []rune(line)
			case first == "chunks":
				chunks = []rune(line)
			case first == "rank" || first == "":
				rows = append(rows, []rune(line))
			case first != "round":
				t.Fatalf("unexpected line %q", line)
			}
			if strings.HasPrefix(line, "round") && len(rows) > 0 {
				break
			}
			text = rest
		}
		at := func(row, x int) rune {
			if row < 0 || row >= len(rows) || x >= len(rows[row]) {
				return ' '
			}
			return rows[row][x]
		}
		begin := 7 // of a column
		for x := begin; x <= len(rows[0]); x++ {
			if at(0, x) != ' ' {
				continue
			}
			first, last := number(heading, begin+1), 0
			last = first
			if name := string(heading[begin+1:]); strings.Contains(strings.Fields(name)[0], "-") {
				last = number(heading, begin+2+len(strconv.Itoa(first)))
			}
			each := number(chunks, begin+1)
			if chunks == nil {
				each = 1
			}
			for _, s := range readColumn(at, len(rows), begin, x, each) {
				for s.round = first; s.round <= last; s.round++ {
					out = append(out, s)
				}
			}
			begin = x + 1
		}
	}
	return out
}

// number reads the digits at a place of a line; 0 if there are none.
func number(line []rune, x int) (n int) {
	for ; x < len(line) && line[x] >= '0' && line[x] <= '9'; x++ {
		n = 10*n + int(line[x]-'0')
	}
	return n
}

// readColumn reads the lines between two places from left to right.
func readColumn(at func(row, x int) rune, rows, begin, end, each int) (out []sending) {
	for x := begin; x < end; x++ {
		for top := range rows {
			if top%2 == 1 || at(top+1, x) != '│' || at(top-1, x) == '│' {
				continue
			}
			bottom := top
			for at(bottom+1, x) == '│' {
				bottom += 2
			}
			marks, sender, chunks := map[int]rune{}, -1, each
			for row := top; row <= bottom; row += 2 {
				if m := at(row, x); m == '●' {
					sender = row / 2
				} else if m != '│' {
					marks[row/2] = m
				}
				var digits []rune
				for i := x + 1; at(row, i) >= '0' && at(row, i) <= '9'; i++ {
					digits = append(digits, at(row, i))
				}
				if len(digits) > 0 {
					chunks = number(digits, 0)
				}
			}
			if chunks == 0 {
				chunks = 1
			}
			for to, mark := range marks {
				from := sender
				if sender < 0 {
					from = top/2 + bottom/2 - to
				}
				if mark == '▼' && from > to || mark == '▲' && from < to {
					mark = '?'
				}
				if mark != '⊕' && mark != '▲' && mark != '▼' {
					from = -1 // no reader understands this
				}
				out = append(out, sending{0, from, to, mark == '⊕', chunks})
			}
		}
	}
	return out
}

// readSVG reads the arrows of a drawing, and the texts that say which rank, round and how many chunks.
func readSVG(t *testing.T, s *schedule.Schedule) (out []sending) {
	t.Helper()
	var b bytes.Buffer
	if err := s.WriteSVG(&b); err != nil {
		t.Fatal(err)
	}
	type arrow struct{ x1, y1, x2, y2, head int }
	var arrows []arrow
	ranks := map[int]int{}                   // by height
	rounds, chunks := [][3]int{}, [][3]int{} // place from the left, first round, last one; chunks
	var heads []int                          // heights of the rows of rounds
	row := map[int]int{}                     // by height of a row of rounds: the place of its first round in rounds
	numbers := []int{}                       // of chunks, in the order of the arrows
	var place struct{ x, y int }             // of the text
	for d := xml.NewDecoder(&b); ; {
		token, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		switch token := token.(type) {
		case xml.StartElement:
			value := map[string]string{}
			for _, a := range token.Attr {
				value[a.Name.Local] = a.Value
			}
			var a arrow
			if n, _ := fmt.Sscanf(value["marker-end"], "url(#schedule-%d)", &a.head); n == 1 {
				if _, err := fmt.Sscanf(value["d"], "M%d %dL%d %d", &a.x1, &a.y1, &a.x2, &a.y2); err != nil {
					t.Fatal(err)
				}
				arrows = append(arrows, a)
			}
			place.x, _ = strconv.Atoi(value["x"])
			place.y, _ = strconv.Atoi(value["y"])
		case xml.CharData:
			text := string(token)
			var n, m int
			switch {
			case place.x == 14 && text == "round":
				heads = append(heads, place.y)
				row[place.y] = len(rounds)
			case place.x == 14:
				if is, _ := fmt.Sscanf(text, "rank %d", &n); is == 1 {
					ranks[place.y-4] = n
				}
			case strings.Contains(text, "chunk"):
				_, _ = fmt.Sscanf(text, "%d", &n)
				chunks = append(chunks, [3]int{place.x, n, place.y})
			case len(heads) > 0 && place.y == heads[len(heads)-1]:
				if is, _ := fmt.Sscanf(text, "%d-%d", &n, &m); is < 2 {
					m = n
				}
				rounds = append(rounds, [3]int{place.x, n, m})
			default:
				if is, _ := fmt.Sscanf(text, "%d", &n); is == 1 {
					numbers = append(numbers, n)
				}
			}
			place.x = -1
		}
	}
	nearest := func(list [][3]int, x int) int {
		best := -1
		for i, e := range list {
			if max(e[0]-x, x-e[0]) <= 76 && (best < 0 || max(e[0]-x, x-e[0]) < max(list[best][0]-x, x-list[best][0])) {
				best = i
			}
		}
		return best
	}
	for _, a := range arrows {
		from, is := ranks[a.y1]
		to, too := ranks[a.y2]
		if !is || !too {
			continue // of the legend
		}
		head := 0
		for i, y := range heads {
			if y < min(a.y1, a.y2) {
				head = i
			}
		}
		of := rounds[row[heads[head]]:]
		if head+1 < len(heads) {
			of = rounds[row[heads[head]]:row[heads[head+1]]]
		}
		column := of[nearest(of, (a.x1+a.x2)/2)]
		s := sending{0, from, to, a.head == 1, 0}
		for _, c := range chunks {
			if c[0] == column[0] && c[2] > heads[head] && (head+1 == len(heads) || c[2] < heads[head+1]) {
				s.chunks = c[1]
			}
		}
		if s.chunks == 0 {
			s.chunks, numbers = numbers[0], numbers[1:]
		}
		for s.round = column[1]; s.round <= column[2]; s.round++ {
			out = append(out, s)
		}
	}
	return out
}
