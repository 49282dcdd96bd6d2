package msccl

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"regexp"
	"testing"

	"gogcl.dev/methods/schedule"
)

// trace is a random program of the format: steps one after the other, and what lies where when all are done.
type trace struct {
	*writer
	rand    *rand.Rand
	inPlace bool
	holds   []map[location]uint64 // by gpu; input and output in place are one memory, as in writer.memory
	wires   map[[2]int][]sent     // by sender and receiver
	block   []map[int]peerOf      // by gpu and peer: the thread block that receives from it
	sender  []map[int]peerOf      // by gpu and peer: the thread block that sends to it
}

// sent is data on its way.
type sent struct {
	first  int // number of its first chunk
	values []uint64
}

// scratches is how many times the scratch holds all chunks.
const scratches = 2

func newTrace(seed uint64, c schedule.Collective, size, each int, inPlace bool) *trace {
	s := &schedule.Schedule{Collective: c, Size: size, Chunks: size * each,
		Apart: !inPlace}
	tr := &trace{writer: &writer{Schedule: s}, rand: rand.New(rand.NewPCG(seed, 1)), inPlace: inPlace,
		wires: map[[2]int][]sent{}}
	for rank := range size {
		r := newRankWriter(nil)
		r.scratch = scratches * s.Chunks
		tr.ranks = append(tr.ranks, r)
		holds := map[location]uint64{}
		a := area{input, 0, s.Chunks}
		if c.Contract().Input == schedule.Own {
			a.count = each
		}
		for _, l := range tr.memory(rank, a) {
			holds[l] = tr.rand.Uint64()
		}
		tr.holds = append(tr.holds, holds)
		receives, sends := map[int]peerOf{}, map[int]peerOf{}
		order := tr.rand.Perm(size) // a thread block sends to one and receives from another
		for k, to := range order {
			from := order[(k+1)%size]
			b := peerOf{to, from}
			if to == rank {
				b.send = -1
			}
			if from == rank {
				b.recv = -1
			}
			sends[to], receives[from] = b, b
		}
		tr.block, tr.sender = append(tr.block, receives), append(tr.sender, sends)
	}
	return tr
}

// pick returns the buffer's area for chunks by number, if the gpu has it.
func (tr *trace) pick(rank int, first, count int) (area, bool) {
	contract := tr.Collective.Contract()
	each := tr.Chunks / tr.Size
	switch buf := []byte{input, output, scratch, scratch}[tr.rand.IntN(4)]; {
	case buf == scratch:
		return area{scratch, tr.rand.IntN(scratches)*tr.Chunks + first, count}, true
	case buf == input && contract.Input == schedule.Own || buf == output && contract.Output == schedule.Own:
		return area{buf, first - rank*each, count}, first >= rank*each && first+count <= (rank+1)*each
	default:
		return area{buf, first, count}, true
	}
}

// full reports whether all of an area was written.
func (tr *trace) full(rank int, a area) bool {
	for _, l := range tr.memory(rank, a) {
		if _, ok := tr.holds[rank][l]; !ok {
			return false
		}
	}
	return true
}

// values reads an area.
func (tr *trace) values(rank int, a area) []uint64 {
	var out []uint64
	for _, l := range tr.memory(rank, a) {
		out = append(out, tr.holds[rank][l])
	}
	return out
}

func (tr *trace) put(rank int, a area, values []uint64) {
	for k, l := range tr.memory(rank, a) {
		tr.holds[rank][l] = values[k]
	}
}

func sum(a, b []uint64) []uint64 {
	out := make([]uint64, len(a))
	for i := range a {
		out[i] = a[i] + b[i]
	}
	return out
}

// step adds a random step, if what it draws is possible.
func (tr *trace) step() {
	rank := tr.rand.IntN(tr.Size)
	count := 1 + tr.rand.IntN(2)
	first := tr.rand.IntN(tr.Chunks - count + 1)
	src, ok := tr.pick(rank, first, count)
	dst, ok2 := tr.pick(rank, first, count)
	if !ok || !ok2 {
		return
	}
	switch tr.rand.IntN(6) {
	case 0: // local
		kind := []string{"cpy", "re"}[tr.rand.IntN(2)]
		if !tr.full(rank, src) || kind == "re" && (!tr.full(rank, dst) || src == dst) {
			return
		}
		v := tr.values(rank, src)
		if kind == "re" {
			v = sum(v, tr.values(rank, dst))
		}
		tr.add(rank, tr.sender[rank][tr.rand.IntN(tr.Size)], written{kind: kind, src: src, dst: dst})
		tr.put(rank, dst, v)
	case 1, 2: // send
		to := tr.rand.IntN(tr.Size)
		if to == rank || !tr.full(rank, src) {
			return
		}
		tr.add(rank, tr.sender[rank][to], written{kind: "s", src: src, dst: dst})
		wire := [2]int{rank, to}
		tr.wires[wire] = append(tr.wires[wire], sent{first, tr.values(rank, src)})
	default:
		tr.receive(tr.rand.IntN(tr.Size), rank)
	}
}

// receive takes what is next on a wire.
func (tr *trace) receive(from, rank int) {
	wire := [2]int{from, rank}
	if len(tr.wires[wire]) == 0 {
		return
	}
	m := tr.wires[wire][0]
	count := len(m.values)
	src, ok := tr.pick(rank, m.first, count)
	dst, ok2 := tr.pick(rank, m.first, count)
	block := tr.block[rank][from]
	if !ok || !ok2 {
		return
	}
	kind := []string{"r", "rcs", "rrc", "rrs", "rrcs"}[tr.rand.IntN(5)]
	folds, keeps, sends := kind != "r" && kind != "rcs", kind != "rrs", kind == "rcs" || kind == "rrs" || kind == "rrcs"
	if sends && block.send < 0 || folds && !tr.full(rank, src) {
		return
	}
	tr.wires[wire] = tr.wires[wire][1:]
	v := m.values
	if folds {
		v = sum(v, tr.values(rank, src))
	}
	tr.add(rank, block, written{kind: kind, src: src, dst: dst})
	if keeps {
		tr.put(rank, dst, v)
	}
	if sends {
		on := [2]int{rank, block.send}
		tr.wires[on] = append(tr.wires[on], sent{m.first, v})
	}
}

// end receives all that is on its way.
func (tr *trace) end() {
	for from := range tr.Size {
		for rank := range tr.Size {
			for len(tr.wires[[2]int{from, rank}]) > 0 {
				m := tr.wires[[2]int{from, rank}][0]
				tr.wires[[2]int{from, rank}] = tr.wires[[2]int{from, rank}][1:]
				dst := area{scratch, m.first, len(m.values)}
				tr.add(rank, tr.block[rank][from], written{kind: "r", src: dst, dst: dst})
				tr.put(rank, dst, m.values)
			}
		}
	}
}

// file is the program in the format.
func (tr *trace) file() []byte {
	var b bytes.Buffer
	name := ""
	for _, n := range names {
		if n.collective == tr.Collective {
			name = n.name
		}
	}
	inPlace := 0
	if tr.inPlace {
		inPlace = 1
	}
	fmt.Fprintf(&b, `<algo name="random" proto="LL" nchannels="1" nchunksperloop="%d" ngpus="%d" coll="%s" inplace="%d">`+
		"\n", tr.Chunks, tr.Size, name, inPlace)
	for rank := range tr.Size {
		tr.gpu(&b, rank)
	}
	b.WriteString("</algo>\n")
	return b.Bytes()
}

// carryOut carries out a schedule on numbers, round by round: sends read before anything of the round is written. The
// result is the Outputs, by rank and chunk.
func carryOut(t *testing.T, s *schedule.Schedule, inputs []map[int]uint64, inPlace bool) []map[int]uint64 {
	t.Helper()
	type key struct {
		buf         schedule.Buffer
		slot, chunk int
	}
	state := make([]map[key]uint64, s.Size)
	for rank := range state {
		state[rank] = map[key]uint64{}
	}
	places := func(sp schedule.Span) []key {
		var out []key
		for k := range int(sp.Count) {
			p := key{sp.Buf, int(sp.Slot), int(sp.First-sp.Base) + k}
			if inPlace && p.buf == schedule.Input {
				p.buf = schedule.Output
			}
			out = append(out, p)
		}
		return out
	}
	read := func(rank int, sp schedule.Span) []uint64 {
		var out []uint64
		for _, p := range places(sp) {
			v, ok := state[rank][p]
			if !ok {
				t.Errorf("rank %d reads %v, which was never written", rank, sp)
			}
			out = append(out, v)
		}
		return out
	}
	write := func(rank int, sp schedule.Span, values []uint64) {
		for k, p := range places(sp) {
			state[rank][p] = values[k]
		}
	}
	local := func(rank int, st schedule.Step) {
		v := read(rank, st.Src)
		if st.Verb == schedule.Fold {
			v = sum(v, read(rank, st.Dst))
		}
		write(rank, st.Dst, v)
	}
	for rank, input := range inputs {
		for f, v := range input {
			write(rank, schedule.In(f, 1), []uint64{v})
		}
	}
	for round := range rounds(s) {
		wires := map[[2]int][][]uint64{}
		for rank, p := range s.Programs {
			for _, st := range p[round].Moves {
				if st.Verb == schedule.Send {
					wire := [2]int{rank, int(st.Peer)}
					wires[wire] = append(wires[wire], read(rank, st.Src))
				}
			}
		}
		for rank, p := range s.Programs {
			for _, st := range p[round].Moves {
				switch st.Verb {
				case schedule.Send:
				case schedule.Fold:
					local(rank, st)
				default:
					wire := [2]int{int(st.Peer), rank}
					v := wires[wire][0]
					wires[wire] = wires[wire][1:]
					if st.Verb == schedule.RecvReduce {
						v = sum(v, read(rank, st.Src))
					}
					write(rank, st.Dst, v)
				}
			}
			for _, st := range p[round].Then {
				local(rank, st)
			}
		}
	}
	out := make([]map[int]uint64, s.Size)
	for rank := range out {
		out[rank] = map[int]uint64{}
		for p, v := range state[rank] {
			if p.buf == schedule.Output {
				out[rank][p.chunk] = v
			}
		}
	}
	return out
}

// accepted are complaints of the checker about programs that compute nothing in particular.
var accepted = regexp.MustCompile(`ends with`)

// TestRandomPrograms reads random programs of the format, with all its steps, thread blocks and sends that are
// buffered for long. The schedule does what the steps do one after the other, whether or not Output is Input, and has
// no race and no deadlock.
func TestRandomPrograms(t *testing.T) {
	t.Parallel()
	programs, kept := 2000, 0
	if testing.Short() {
		programs = 200
	}
	for seed := range uint64(programs) {
		draw := rand.New(rand.NewPCG(seed, 0))
		c := names[draw.IntN(len(names))].collective
		tr := newTrace(seed, c, 2+draw.IntN(3), 1+draw.IntN(2), draw.IntN(2) == 0)
		inputs := make([]map[int]uint64, tr.Size)
		for rank, holds := range tr.holds {
			inputs[rank] = map[int]uint64{}
			for l, v := range holds {
				inputs[rank][l.chunk] = v
			}
		}
		for range draw.IntN(100) {
			tr.step()
		}
		tr.end()
		text := tr.file()
		f, err := Read(text)
		if err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, text)
		}
		s := f.Schedule
		if s.Again = s.Collective.Contract().Combines; !s.Again {
			s.Collective, s.Again = schedule.AllReduce, true // so that the checker takes folds
		}
		for _, inPlace := range []bool{false, true} {
			if inPlace && s.Apart {
				continue
			}
			got := carryOut(t, s, inputs, inPlace)
			for rank, holds := range tr.holds {
				for f := range tr.Chunks {
					l := location{output, f}
					if tr.inPlace {
						l.buf = input
					}
					lo, hi := 0, tr.Chunks
					if tr.Collective.Contract().Output == schedule.Own {
						lo, hi = rank*tr.Chunks/tr.Size, (rank+1)*tr.Chunks/tr.Size
					}
					if want, ok := holds[l]; ok && f >= lo && f < hi && got[rank][f] != want {
						t.Errorf("seed %d: Output is Input: %v: rank %d ends with %x in chunk %d, want %x", seed, inPlace, rank,
							got[rank][f], f, want)
					}
				}
			}
			for _, program := range s.Programs {
				for _, r := range program {
					for _, st := range r.Then {
						if st.Dst.Buf == schedule.Scratch && st.Verb == schedule.Copy {
							kept++
						}
					}
				}
			}
		}
		s.Apart = false
		err = schedule.Check(s)
		if err != nil && !accepted.MatchString(err.Error()) && tr.Collective.Contract().Combines {
			t.Errorf("seed %d: %v\n%s\n%v", seed, err, text, s)
		}
		if t.Failed() {
			t.Fatalf("%s\n%v", text, s)
		}
	}
	if kept == 0 {
		t.Error("no program had data copied to scratch for a send or for what overwrites the input")
	}
}
