package msccl_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gogcl.dev/methods/schedule"
	"gogcl.dev/methods/schedule/msccl"
)

var update = flag.Bool("update", false, "rewrite the golden files; commit only what you understand")

// TestFiles reads the files in testdata, which were written by hand from the format's description. They are proved, and
// become the schedules beside them.
func TestFiles(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.xml")
	if err != nil || len(files) < 8 {
		t.Fatalf("%d files, error %v", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			f := read(t, file)
			if err := schedule.Check(f.Schedule); err != nil {
				t.Errorf("%v\n%v", err, f.Schedule)
			}
			if want := strings.TrimSuffix(filepath.Base(file), ".xml"); f.Name != want {
				t.Errorf("name %q, want %q", f.Name, want)
			}
			golden := strings.TrimSuffix(file, ".xml") + ".txt"
			got := f.Schedule.String()
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("read another schedule (-want +got); run with -update if that is right:\n%s", diff)
			}
			roundTrip(t, f.Schedule)
		})
	}
}

func read(t *testing.T, file string) *msccl.File {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	f, err := msccl.Read(text)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestHead reads what a file says beside its steps.
func TestHead(t *testing.T) {
	t.Parallel()
	f := read(t, "testdata/ring.xml")
	f.Schedule = nil
	want := &msccl.File{Name: "ring", Protocol: "LL128", MinBytes: 1024, MaxBytes: 1 << 20}
	if diff := cmp.Diff(want, f); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	f = read(t, "testdata/pair.xml")
	if f.MinBytes != 0 || f.MaxBytes != 32<<30 {
		t.Errorf("%d to %d bytes", f.MinBytes, f.MaxBytes)
	}
}

// TestNotProved reads a file that folds a contribution twice. The checker has the counterexample.
func TestNotProved(t *testing.T) {
	t.Parallel()
	const want = "schedule: rank 0 round 1 move 1 (O1=I1+<1): takes a contribution twice: chunk 1 of ranks [0] and chunk 1 " +
		"of ranks [0 1]"
	err := schedule.Check(read(t, "testdata/wrong/twice.xml").Schedule)
	if err == nil || !strings.HasPrefix(err.Error(), want+"\nthe way of chunk 1:\n") {
		t.Errorf("error %v, want %s", err, want)
	}
}

// TestReadErrors spoils a file in one place at a time.
func TestReadErrors(t *testing.T) {
	t.Parallel()
	good, err := os.ReadFile("testdata/pair.xml")
	if err != nil {
		t.Fatal(err)
	}
	const (
		step0 = `<step s="0" type="s" srcbuf="i" srcoff="1"`
		step2 = `<step s="2" type="s" srcbuf="i" srcoff="0" dstbuf="i" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="0"/>`
	)
	for _, c := range []struct{ old, new, want string }{
		{`<algo`, `<!-- -->`, `line 2: text "name=\"pair\" proto=\"Simple\" nchannels=\"1\"..." between elements`},
		{`<algo`, `<program`, `line 2: element <program>, want one <algo>`},
		{`</algo>`, ``, `line 20: XML syntax error on line 20: unexpected EOF`},
		{`</algo>`, `</algo><algo/>`, `line 19: element <algo>, want one <algo>`},
		{`</tb>`, `</gpu>`, `line 9: XML syntax error on line 9: element <tb> closed by </gpu>`},
		{` ngpus="2"`, ``, `line 2: no attribute ngpus`},
		{` ngpus="2"`, ` ngpus="2" ngpus="3"`, `line 2: attribute ngpus is there twice`},
		{` ngpus="2"`, ` ngpus="two"`, `line 2: ngpus="two", want a number from 1 to 65536`},
		{` ngpus="2"`, ` ngpus="3"`, `line 2: ngpus="3", and there are 2 elements <gpu>`},
		{` ngpus="2"`, ` ngpus="99999999999999999999"`, `line 2: ngpus="99999999999999999999", want a number from 1 to 65536`},
		{` nchunksperloop="2"`, ` nchunksperloop="32769"`, `line 2: nchunksperloop="32769", want a number from 1 to 32768`},
		{` nchunksperloop="2" ngpus="2"`, ` nchunksperloop="32768" ngpus="65536"`,
			`line 2: nchunksperloop="32768" on ngpus="65536", want a product of at most 4194304`},
		{`nchunksperloop="2" ngpus="2" coll="allreduce"`, `nchunksperloop="3" ngpus="2" coll="alltoall"`,
			`line 2: nchunksperloop="3" of alltoall, want a multiple of ngpus="2"`},
		{`"allreduce"`, `"allsum"`, `line 2: coll="allsum", want one of [allreduce reduce_scatter allgather alltoall]`},
		{`"allreduce"`, `"broadcast"`, `line 2: coll="broadcast", want one of [allreduce reduce_scatter allgather alltoall]: ` +
			errors.ErrUnsupported.Error()},
		{`"Simple"`, `"Hard"`, `line 2: proto="Hard", want one of [Simple LL LL128]`},
		{` inplace="1"`, ` inplace="0" outofplace="0"`,
			`line 2: inplace="0" and outofplace="0", want one of them to be 1`},
		{` inplace="1"`, ` inplace="1" minBytes="2" maxBytes="1"`, `line 2: minBytes="2" is more than maxBytes="1"`},
		{` inplace="1"`, ` inplace="1" minBytes="-2"`, `line 2: minBytes="-2", want a number of bytes`},
		{`<gpu id="0"`, `<gpu id="2"`, `line 3: id="2", want a number from 0 to 1`},
		{`<gpu id="1"`, `<gpu id="0"`, `line 11: gpu 0: a second <gpu id="0">`},
		{`<gpu id="1"`, `<rank id="0"`, `line 11: element <rank>, want <gpu>`},
		{` i_chunks="2"`, ` i_chunks="2" i_chunks="2"`, `line 3: attribute i_chunks is there twice`},
		{` recv="1"`, ` recv="1" recv="1"`, `line 4: gpu 0: attribute recv is there twice`},
		{` cnt="1"`, ` cnt="1" cnt="1"`, `line 5: gpu 0 thread block 0 step 0: attribute cnt is there twice`},
		{` i_chunks="2"`, ` i_chunks="3"`, `line 3: gpu 0: i_chunks="3", want a number from 0 to 2`},
		{` s_chunks="0"`, ``, `line 3: gpu 0: no attribute s_chunks`},
		{`<tb id="0"`, `<tb id="1"`, `line 3: gpu 0: no <tb id="0">, and there is one with id="1"`},
		{`  </gpu>`, "<tb id=\"0\" send=\"-1\" recv=\"-1\" chan=\"-1\"/></gpu>", `line 10: gpu 0 thread block 0: a second <tb id="0">`},
		{`send="1"`, `send="0"`, `line 4: gpu 0 thread block 0: send="0" and recv="1", want another gpu, or -1 for none`},
		{`send="1"`, `send="2"`, `line 4: gpu 0: send="2", want a number from -1 to 1`},
		{`chan="0"`, `chan="1"`, `line 4: gpu 0: chan="1", want a number from -1 to 0`},
		{`chan="0"`, `chan="-1"`, `line 4: gpu 0 thread block 0: chan="-1", want 0 to 0 where there is a peer`},
		{`send="1"`, `send="-1"`, `line 5: gpu 0 thread block 0 step 0: type="s" in a thread block with send="-1"`},
		{`recv="1"`, `recv="-1"`, `line 6: gpu 0 thread block 0 step 1: type="rrc" in a thread block with recv="-1"`},
		{`<step s="0"`, `<step s="1"`, `line 5: gpu 0 thread block 0 step 0: s="1", want 0, after the steps before it`},
		{`type="s"`, `type="send"`,
			`line 5: gpu 0 thread block 0 step 0: type="send", want one of s, r, rcs, rrc, rrs, rrcs, cpy, re, nop`},
		{`srcbuf="i"`, `srcbuf="x"`, `line 5: gpu 0 thread block 0 step 0: srcbuf="x", want i, o or s`},
		{`dstbuf="i"`, `dstbuf=""`, `line 5: gpu 0 thread block 0 step 0: dstbuf="", want i, o or s`},
		{`srcoff="1"`, `srcoff="-2"`, `line 5: gpu 0 thread block 0 step 0: srcoff="-2", want a number from -1 to 32768`},
		{step0, `<step s="0" type="s" srcbuf="i" srcoff="2"`,
			`line 5: gpu 0 thread block 0 step 0: src is chunks 2 to 2 of buffer i, which has 2 by i_chunks`},
		{step0, `<step s="0" type="s" srcbuf="s" srcoff="0"`,
			`line 5: gpu 0 thread block 0 step 0: src is chunks 0 to 0 of buffer s, which has 0 by s_chunks`},
		{step0, `<step s="0" type="s" srcbuf="i" srcoff="-1"`,
			`line 5: gpu 0 thread block 0 step 0: src is chunks -1 to -1 of buffer i, which has 2 by i_chunks`},
		{`cnt="1"`, `cnt="0"`, `line 5: gpu 0 thread block 0 step 0: cnt="0", want 1 or more`},
		{` hasdep="0"`, ``, `line 5: gpu 0 thread block 0 step 0: no attribute hasdep`},
		{`depid="-1"`, `depid="0"`,
			`line 5: gpu 0 thread block 0 step 0: depid="0" and deps="-1", want both or neither to be -1`},
		{`depid="-1" deps="-1"`, `depid="1" deps="0"`,
			`line 5: gpu 0 thread block 0 step 0: depid="1", and the gpu has 1 thread blocks`},
		{`depid="-1" deps="-1"`, `depid="0" deps="9"`,
			`line 5: gpu 0 thread block 0 step 0: deps="9", and thread block 0 has 4 steps`},
		{`depid="-1" deps="-1"`, `depid="0" deps="1"`, `line 5: gpu 0 thread block 0 step 0: a dependency on step 1 of ` +
			`thread block 0, which has hasdep="0" and so never says that it is done; want hasdep="1"`},
		{`depid="-1" deps="-1" hasdep="0"`, `depid="0" deps="0" hasdep="1"`, `line 5: gpu 0 thread block 0 step 0: ` +
			`deadlock: it waits for gpu 0 thread block 0 step 0`},
		{`/>`, `>wait</step>`, `line 5: gpu 0 thread block 0 step 0: text "wait" between elements`},
		{`/>`, `><step/></step>`, `line 5: gpu 0 thread block 0 step 0: element <step>, want no element`},
		{step0, strings.Replace(step0, `"s"`, `"nop"`, 1), `line 16: gpu 1 thread block 0 step 3: a receive without a ` +
			`send: gpu 0 sends 1 times to gpu 1 over channel 0, and this is receive 2`},
		{step2, strings.Replace(step2, `"s"`, `"nop"`, 1), `line 16: gpu 1 thread block 0 step 3: a receive without a ` +
			`send: gpu 0 sends 1 times to gpu 1 over channel 0, and this is receive 2`},
		{`<step s="3" type="r"`, `<step s="3" type="nop"`, `line 15: gpu 1 thread block 0 step 2: a send without a ` +
			`receive: gpu 0 receives 1 times from gpu 1 over channel 0, and this is send 2`},
		{`srcoff="1" dstbuf="i" dstoff="1" cnt="1"`, `srcoff="0" dstbuf="i" dstoff="0" cnt="2"`, `line 14: gpu 1 thread ` +
			`block 0 step 1: receives cnt="1", and gpu 0 thread block 0 step 0, whose receive it is, sends cnt="2"`},
	} {
		text := strings.Replace(string(good), c.old, c.new, 1)
		if text == string(good) {
			t.Errorf("%s is not in the file", c.old)
		}
		f, err := msccl.Read([]byte(text))
		if err == nil || err.Error() != "msccl: "+c.want || f != nil {
			t.Errorf("%s for %s\nerror  %v\nwant   msccl: %s", c.new, c.old, err, c.want)
		}
		if strings.HasSuffix(c.want, errors.ErrUnsupported.Error()) != errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("errors.Is of %v", err)
		}
	}
	if _, err := msccl.Read(nil); err == nil || err.Error() != "msccl: line 1: no element, want <algo>" {
		t.Errorf("no text: error %v", err)
	}
}

// file makes a file of thread blocks, each in one element, over two gpus.
func file(head, gpu0, gpu1 string) []byte {
	return []byte(`<algo name="a" proto="LL" nchannels="2" nchunksperloop="2" ngpus="2" coll="allreduce" ` + head + ">\n" +
		`<gpu id="0" i_chunks="2" o_chunks="2" s_chunks="2">` + "\n" + gpu0 + "</gpu>\n" +
		`<gpu id="1" i_chunks="2" o_chunks="2" s_chunks="2">` + "\n" + gpu1 + "</gpu></algo>")
}

// TestOrderErrors has files whose steps wait for each other, or for nothing where they should.
func TestOrderErrors(t *testing.T) {
	t.Parallel()
	const dep = `depid="-1" deps="-1" hasdep="0"/>`
	block := func(id, peers, steps string) string {
		return `<tb id="` + id + `" ` + peers + ">\n" + steps + "</tb>\n"
	}
	for name, c := range map[string]struct {
		gpu0, gpu1, want string
	}{
		"both receive first": {
			block("0", `send="1" recv="1" chan="0"`, `<step s="0" type="r" srcbuf="i" srcoff="0" dstbuf="o" dstoff="0" cnt="1" `+
				dep+"\n"+`<step s="1" type="s" srcbuf="i" srcoff="0" dstbuf="o" dstoff="0" cnt="1" `+dep+"\n"),
			block("0", `send="0" recv="0" chan="0"`, `<step s="0" type="r" srcbuf="i" srcoff="0" dstbuf="o" dstoff="0" cnt="1" `+
				dep+"\n"+`<step s="1" type="s" srcbuf="i" srcoff="0" dstbuf="o" dstoff="0" cnt="1" `+dep+"\n"),
			"line 4: gpu 0 thread block 0 step 0: deadlock: it waits for gpu 1 thread block 0 step 1, which waits for gpu 1 " +
				"thread block 0 step 0, which waits for gpu 0 thread block 0 step 1, which waits for gpu 0 thread block 0 step 0",
		},
		"thread blocks of a gpu": {
			block("0", `send="-1" recv="-1" chan="-1"`, `<step s="0" type="cpy" srcbuf="i" srcoff="0" dstbuf="o" dstoff="0" `+
				`cnt="1" depid="1" deps="0" hasdep="1"/>`+"\n") +
				block("1", `send="-1" recv="-1" chan="-1"`, `<step s="0" type="cpy" srcbuf="i" srcoff="1" dstbuf="o" dstoff="1" `+
					`cnt="1" depid="0" deps="0" hasdep="1"/>`+"\n"), "",
			"line 4: gpu 0 thread block 0 step 0: deadlock: it waits for gpu 0 thread block 1 step 0, which waits for gpu 0 " +
				"thread block 0 step 0",
		},
		"race": {
			block("0", `send="-1" recv="-1" chan="-1"`, `<step s="0" type="cpy" srcbuf="i" srcoff="0" dstbuf="o" dstoff="0" `+
				`cnt="1" `+dep+"\n") +
				block("1", `send="-1" recv="-1" chan="-1"`, `<step s="0" type="re" srcbuf="i" srcoff="1" dstbuf="o" dstoff="0" `+
					`cnt="1" `+dep+"\n"), "",
			"line 7: gpu 0 thread block 1 step 0: it and thread block 0 step 0 both use chunk o[0], one of them writes it, and " +
				"nothing says which is first; want a dependency (depid, deps)",
		},
		"race of a write with an earlier read": {
			block("0", `send="-1" recv="-1" chan="-1"`, `<step s="0" type="cpy" srcbuf="i" srcoff="0" dstbuf="o" dstoff="0" `+
				`cnt="1" `+dep+"\n") +
				block("1", `send="-1" recv="-1" chan="-1"`, `<step s="0" type="cpy" srcbuf="i" srcoff="1" dstbuf="i" dstoff="0" `+
					`cnt="1" `+dep+"\n"), "",
			"line 7: gpu 0 thread block 1 step 0: it and thread block 0 step 0 both use chunk i[0], one of them writes it, and " +
				"nothing says which is first; want a dependency (depid, deps)",
		},
		"race of a read with an earlier write": {
			block("0", `send="-1" recv="-1" chan="-1"`, `<step s="0" type="cpy" srcbuf="i" srcoff="0" dstbuf="o" dstoff="0" `+
				`cnt="1" `+dep+"\n") +
				block("1", `send="-1" recv="-1" chan="-1"`, `<step s="0" type="cpy" srcbuf="o" srcoff="0" dstbuf="s" dstoff="1" `+
					`cnt="1" `+dep+"\n"), "",
			"line 7: gpu 0 thread block 1 step 0: it and thread block 0 step 0 both use chunk o[0], one of them writes it, and " +
				"nothing says which is first; want a dependency (depid, deps)",
		},
		"two thread blocks on one connection": {
			block("0", `send="1" recv="-1" chan="0"`, `<step s="0" type="s" srcbuf="i" srcoff="0" dstbuf="o" dstoff="0" cnt="1" `+
				dep+"\n") +
				block("1", `send="1" recv="-1" chan="0"`, `<step s="0" type="s" srcbuf="i" srcoff="1" dstbuf="o" dstoff="1" `+
					`cnt="1" `+dep+"\n"), "",
			"line 7: gpu 0 thread block 1 step 0: thread block 0 sends to gpu 1 over channel 0 too, want one thread block for " +
				"that",
		},
	} {
		if _, err := msccl.Read(file(`inplace="0"`, c.gpu0, c.gpu1)); err == nil || err.Error() != "msccl: "+c.want {
			t.Errorf("%s:\nerror  %v\nwant   msccl: %s", name, err, c.want)
		}
	}
}

// TestLongCircle has ten gpus that all wait for the one before them: the error names some.
func TestLongCircle(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString(`<algo name="a" proto="LL" nchannels="1" nchunksperloop="1" ngpus="10" coll="allreduce" inplace="1">`)
	for i := range 10 {
		fmt.Fprintf(&b, `<gpu id="%d" i_chunks="1" o_chunks="0" s_chunks="0"><tb id="0" send="%d" recv="%d" chan="0">`+
			`<step s="0" type="rcs" srcbuf="i" srcoff="0" dstbuf="i" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="0"/>`+
			`</tb></gpu>`, i, (i+1)%10, (i+9)%10)
	}
	b.WriteString(`</algo>`)
	const want = "msccl: line 1: gpu 0 thread block 0 step 0: deadlock: it waits for gpu 9 thread block 0 step 0, which " +
		"waits for gpu 8 thread block 0 step 0, "
	const end = ", which waits for others, which waits for gpu 0 thread block 0 step 0"
	_, err := msccl.Read([]byte(b.String()))
	if err == nil || !strings.HasPrefix(err.Error(), want) || !strings.HasSuffix(err.Error(), end) {
		t.Errorf("error %v, want %s...%s", err, want, end)
	}
}

// TestChunkOfOneMemory: where input and output are one memory, an error names a chunk by the larger of them.
func TestChunkOfOneMemory(t *testing.T) {
	t.Parallel()
	const text = `<algo name="a" proto="LL" nchannels="0" nchunksperloop="4" ngpus="2" coll="allgather" inplace="1">
<gpu id="0" i_chunks="2" o_chunks="4" s_chunks="0"></gpu><gpu id="1" i_chunks="2" o_chunks="4" s_chunks="0">
<tb id="0" send="-1" recv="-1" chan="-1">
<step s="0" type="cpy" srcbuf="i" srcoff="1" dstbuf="o" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="0"/></tb>
<tb id="1" send="-1" recv="-1" chan="-1">
<step s="0" type="cpy" srcbuf="o" srcoff="0" dstbuf="o" dstoff="3" cnt="1" depid="-1" deps="-1" hasdep="0"/></tb>
</gpu></algo>`
	const want = "msccl: line 6: gpu 1 thread block 1 step 0: it and thread block 0 step 0 both use chunk o[0], "
	if _, err := msccl.Read([]byte(text)); err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("error %v, want %s", err, want)
	}
}

// TestNeverWritten sends what nobody has written. The checker says so.
func TestNeverWritten(t *testing.T) {
	t.Parallel()
	const end = `<tb id="0" send="%d" recv="%d" chan="0">` +
		`<step s="0" type="%s" srcbuf="%c" srcoff="1" dstbuf="o" dstoff="1" cnt="1" depid="-1" deps="-1" hasdep="0"/></tb>`
	for buf, want := range map[byte]string{
		's': "schedule: rank 0 round 0 move 0 (S0[0]>1): nothing was put into slot 0",
		'o': "schedule: rank 0 round 0 move 0 (O1>1): chunk 1 of O1 was never written",
	} {
		f, err := msccl.Read(file(`inplace="0"`, fmt.Sprintf(end, 1, -1, "s", buf), fmt.Sprintf(end, -1, 0, "r", buf)))
		if err != nil {
			t.Fatal(err)
		}
		if err := schedule.Check(f.Schedule); err == nil || strings.SplitN(err.Error(), "\n", 2)[0] != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

// TestManyRounds has two of many gpus send one chunk to and fro.
func TestManyRounds(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("a file of 65,536 gpus")
	}
	var b strings.Builder
	b.WriteString(`<algo name="a" proto="LL" nchannels="1" nchunksperloop="1" ngpus="65536" coll="allreduce" inplace="1">`)
	for i := range 1 << 16 {
		fmt.Fprintf(&b, `<gpu id="%d" i_chunks="1" o_chunks="0" s_chunks="0">`, i)
		if i < 2 {
			fmt.Fprintf(&b, `<tb id="0" send="%d" recv="%[1]d" chan="0">`, 1-i)
			for s := range 70 {
				kind := "s"
				if s%2 != i {
					kind = "r"
				}
				fmt.Fprintf(&b, `<step s="%d" type="%s" srcbuf="i" srcoff="0" dstbuf="i" dstoff="0" cnt="1" depid="-1" `+
					`deps="-1" hasdep="0"/>`, s, kind)
			}
			b.WriteString(`</tb>`)
		}
		b.WriteString(`</gpu>`)
	}
	b.WriteString(`</algo>`)
	const want = "msccl: 70 rounds of 65536 gpus, want a product of at most 4194304"
	if _, err := msccl.Read([]byte(b.String())); err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

// FuzzRead reads any text. What it takes has as many ranks as it says, and is drawn and read.
func FuzzRead(f *testing.F) {
	files, err := filepath.Glob("testdata/*.xml")
	if err != nil || len(files) == 0 {
		f.Fatalf("%d files, error %v", len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		file, err := msccl.Read(text)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "msccl: ") || file != nil {
				t.Errorf("error %v", err)
			}
			return
		}
		s := file.Schedule
		if len(s.Programs) != s.Size || s.Size > len(text) {
			t.Errorf("%d programs for %d ranks of %d bytes", len(s.Programs), s.Size, len(text))
		}
		if s.Size*len(s.Programs[0]) < 1<<12 {
			if _, err := schedule.Parse([]byte(s.String())); err != nil {
				t.Error(err)
			}
		}
	})
}
