package rounds

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gogcl.dev/gcl/internal/memory"
	"gogcl.dev/methods"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/transport"
)

var updateRounds = flag.Bool("update-rounds", false, "write testdata/rounds.txt anew")

// TestRounds holds the transfers of rounds against testdata/rounds.txt, without a transport. After -update-rounds look
// at what has changed: members of one job agree on segments, windows and tags.
func TestRounds(t *testing.T) {
	var all strings.Builder
	for _, x := range []struct {
		method     methods.Method
		collective schedule.Collective
		root       int
		inPlace    bool
		elements   []int // by run
		segment    int   // bytes
		window     int   // 0: the plan's
	}{
		{methods.ClockwiseRing, schedule.AllReduce, 0, true, []int{16}, 64, 0},
		{methods.ClockwiseRing, schedule.AllReduce, 0, true, []int{16}, 8, 0},
		{methods.ClockwiseRing, schedule.AllReduce, 0, false, []int{7, 0, 30}, 8, 0},
		{methods.Direct, schedule.AllGather, 0, false, []int{24, 40}, 8, 2},
		{methods.SendToAll, schedule.AllReduce, 0, true, []int{6}, 16, 0},
		{methods.RecursiveDoubling, schedule.AllReduce, 0, true, []int{5}, 1024, 0},
		{methods.Direct, schedule.AllToAll, 0, false, []int{16}, 8, 0},
		{methods.Direct, schedule.AllGather, 0, false, []int{8, 16}, 1024, 0},
		{methods.Direct, schedule.Scatter, 1, false, []int{16}, 16, 0},
		{methods.Direct, schedule.Gather, 2, false, []int{16}, 16, 0},
		{methods.MeetInMiddleRing, schedule.AllGather, 0, true, []int{12}, 8, 0},
	} {
		ring := []int{0, 1, 2, 3}
		spec := methods.Spec{Method: x.method, Collective: x.collective, Size: 4, Root: x.root,
			Ring: ring, Second: ring, InPlace: x.inPlace}
		p, err := NewPlan(nil, Programs{Spec: spec}, 2, []int{10, 11, 12, 13}, false)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&all, "%v of 4 ranks by %v, rank 2, root %d, in place %v: float32 x %v, segments of %d bytes\n",
			x.collective, x.method, x.root, x.inPlace, x.elements, x.segment)
		writeRounds(&all, p, x.collective, x.inPlace, x.elements, x.segment, x.window)
	}
	const name = "testdata/rounds.txt"
	if *updateRounds {
		if err := os.WriteFile(name, []byte(all.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), all.String()); diff != "" {
		t.Errorf("-want +have\n%s", diff)
	}
}

// writeRounds writes the batches of all rounds of a plan.
func writeRounds(out *strings.Builder, p *Plan, collective schedule.Collective, inPlace bool, elements []int,
	segment, window int) {
	l := &Runner{tags: make([][2]uint32, 20)}
	runs := make([]Run, len(elements))
	for i, n := range elements {
		in, outs := n, n // of the larger buffer
		contract := collective.Contract()
		if contract.Input == schedule.Own {
			in = n / p.size
		}
		if contract.Output == schedule.Own {
			outs = n / p.size
		}
		r := &runs[i]
		*r = Run{Elements: n, ElemSize: 4, Segment: segment,
			Input: make([]byte, 4*in), Output: make([]byte, 4*outs)}
		if inPlace && in == outs {
			r.Output = r.Input
		}
	}
	l.giveScratch(p, runs)
	if window == 0 {
		window = p.window(runs)
	}
	for t := range p.rounds {
		for first, batch := range l.batches(runs, p.rounds[t].moves, window) {
			fmt.Fprintf(out, "  round %d, segments from %d\n", t, first)
			for i := range batch {
				b := &batch[i]
				next := ""
				if b.Next {
					next = ", with the next"
				}
				with := ""
				if b.With != nil {
					with = " with " + placeOf(runs, b.With)
				}
				fmt.Fprintf(out, "    %-8v %d tag %d  %s%s%s\n", b.Kind, b.Peer, b.Tag,
					placeOf(runs, b.Buf), with, next)
			}
		}
	}
}

// placeOf says where in which buffer of which run some memory lies, in elements.
func placeOf(runs []Run, b []byte) string {
	for i := range runs {
		for _, buffer := range []struct {
			name  string
			bytes []byte
		}{{"output", runs[i].Output}, {"input", runs[i].Input}, {"scratch", runs[i].scratch}} {
			at := int(memory.Address(b)) - int(memory.Address(buffer.bytes))
			if len(b) > 0 && at >= 0 && at+len(b) <= len(buffer.bytes) {
				return fmt.Sprintf("run %d %s %d:%d", i, buffer.name, at/4, (at+len(b))/4)
			}
		}
	}
	return fmt.Sprintf("%d bytes", len(b))
}

// TestBatchesEnd: who takes no more batches gets no more.
func TestBatchesEnd(t *testing.T) {
	ring := []int{0, 1}
	spec := methods.Spec{Method: methods.ClockwiseRing, Collective: schedule.AllGather, Size: 2,
		Ring: ring, Second: ring}
	p, err := NewPlan(nil, Programs{Spec: spec}, 0, ring, false)
	if err != nil {
		t.Fatal(err)
	}
	l := &Runner{tags: make([][2]uint32, 2)}
	runs := []Run{{Elements: 64, ElemSize: 4, Segment: 8,
		Input: make([]byte, 128), Output: make([]byte, 256)}}
	l.giveScratch(p, runs)
	n := 0
	for range l.batches(runs, p.rounds[0].moves, 2) {
		if n++; n == 3 {
			break
		}
	}
	if n != 3 {
		t.Errorf("%d batches", n)
	}
	var sent int
	for _, batch := range l.batches(runs, p.rounds[0].moves, 2) {
		for i := range batch {
			if batch[i].Kind == transport.Send {
				sent += len(batch[i].Buf)
			}
		}
	}
	if sent != 128 {
		t.Errorf("%d bytes are sent, want 128", sent)
	}
}
