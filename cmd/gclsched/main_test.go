package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"gogcl.dev/internal/command"
	"gogcl.dev/methods"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/methods/schedule/msccl"
)

// xmlFiles is where files of the XML are.
const xmlFiles = "../../methods/schedule/msccl/testdata/"

// gclsched runs a command line and returns its exit code and what it has printed.
func gclsched(t *testing.T, line string) (code int, stdout, stderr string) {
	t.Helper()
	var out, err strings.Builder
	code = run(t.Context(), strings.Fields(line), &out, &err)
	return code, out.String(), err.String()
}

// TestCommands compares what command lines print.
func TestCommands(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ line, want string }{
		{"check " + xmlFiles + "ring.xml", `proved
all-reduce, 3 ranks, 3 chunks
                           schedule      least
rounds                            4          2
messages                         12
most in flight at a rank          2
peers at once                     1
chunks of scratch                 1
most chunks sent                  4          4
most chunks received              4          4
chunks sent, by rank     4 each
chunks received, by rank 4 each
order                    one on all ranks
waste                    none
output                   may be the input
`},
		{"check -method recursive_doubling -collective reduce -n 4 -root 2", `proved
reduce, 4 ranks, 1 chunk
                           schedule      least
rounds                            2          2
messages                          3
most in flight at a rank          1
peers at once                     1
chunks of scratch                 1
most chunks sent                  1          1
most chunks received              2          1
chunks sent, by rank     1 1 0 1
chunks received, by rank 0 0 2 1
order                    one on all ranks
waste                    none
output                   may be the input
`},
		{"check -strict " + xmlFiles + "pair.xml", `proved
all-reduce, 2 ranks, 2 chunks
                           schedule      least
rounds                            2          1
messages                          4
most in flight at a rank          2
peers at once                     1
chunks of scratch                 0
most chunks sent                  2          2
most chunks received              2          2
chunks sent, by rank     2 each
chunks received, by rank 2 each
order                    that of the ranks
waste                    none
output                   may be the input
`},
		{"check testdata/twice.txt", `proved
all-gather, 4 ranks, 4 chunks
                           schedule      least
rounds                            3          2
messages                         16
most in flight at a rank          4
peers at once                     1
chunks of scratch                 0
most chunks sent                  4          3
most chunks received              4          3
chunks sent, by rank     4 each
chunks received, by rank 4 each
waste                    4 chunks sent again, 4 chunks never used, first rank 0 round 2: O3<1 brings chunk 3, which the rank has had
output                   may be the input
`},
		{"price -bytes 1K testdata/twice.txt", `all-gather, 4 ranks, 4 chunks, 3 rounds
network clique of 4 replicas, between rank 0 and others alpha 50ns and beta 0.0455 ns/byte; overhead 0s a message at each end
  bytes  rounds  sent by a rank, at most   time  of the bound
   1024       3                     1024  197ns          43 %
`},
		{"check -method direct -rank-order -n 3", `proved
all-reduce, 3 ranks, 3 chunks
                           schedule      least
rounds                            2          1
messages                         12
most in flight at a rank          4
peers at once                     2
chunks of scratch                 1
most chunks sent                  4          4
most chunks received              4          4
chunks sent, by rank     4 each
chunks received, by rank 4 each
order                    that of the ranks
waste                    none
output                   may be the input
`},
		{"check -method direct -collective alltoall -n 2", `proved
all-to-all, 2 ranks, 2 chunks
                           schedule      least
rounds                            1          1
messages                          2
most in flight at a rank          2
peers at once                     1
chunks of scratch                 0
most chunks sent                  1          1
most chunks received              1          1
chunks sent, by rank     1 each
chunks received, by rank 1 each
waste                    none
output                   must not be the input
`},
		{"check -method circulant -n 3", `proved
all-reduce, 3 ranks, 3 chunks
                           schedule      least
rounds                            4          2
messages                         12
most in flight at a rank          2
peers at once                     1
chunks of scratch                 0
most chunks sent                  4          4
most chunks received              4          4
chunks sent, by rank     4 each
chunks received, by rank 4 each
order                    one on all ranks
waste                    none
output                   may be the input
`},
		{"check testdata/scan.txt", `proved
custom scan, 3 ranks, 1 chunk
                           schedule      least
rounds                            2          2
messages                          2
most in flight at a rank          1
peers at once                     1
chunks of scratch                 0
most chunks sent                  1          1
most chunks received              1          1
chunks sent, by rank     1 1 0
chunks received, by rank 0 1 1
order                    that of the ranks
waste                    none
output                   may be the input
`},
		{"convert -to text testdata/scan.txt", `custom scan, 3 ranks, 1 chunk, 2 rounds, combines
round | rank 0 | rank 1   | rank 2
------+--------+----------+---------
   in | 0      | 0        | 0
  out | 0 of 0 | 0 of 0-1 | 0 of 0-2
    0 | I0>1   | O0=I0+<0 |
      | then   |          |
      | O0=I0  |          |
    1 |        | O0>2     | O0=I0+<1
`},
		{"price -bytes 1K testdata/scan.txt", `custom scan, 3 ranks, 1 chunk, 2 rounds
network clique of 3 replicas, between rank 0 and others alpha 50ns and beta 0.0455 ns/byte; overhead 0s a message at each end
  bytes  rounds  sent by a rank, at most   time  of the bound
   1024       2                     1024  193ns             -
`},
		{"draw " + xmlFiles + "pair.xml", `all-reduce, 2 ranks, 2 chunks, 2 rounds
round   0   1
rank 0 ─⊕─ ─▲─
        │   │
rank 1 ─⊕─ ─▼─
`},
		{"draw " + xmlFiles + "wrong/twice.xml", `all-reduce, 2 ranks, 2 chunks, 2 rounds
round   0   1
rank 0 ─⊕─ !●─⊕!
        │   │ │
rank 1 ─⊕─ ─▼─●─
!: schedule: rank 0 round 1 move 1 (O1=I1+<1): takes a contribution twice: chunk 1 of ranks [0] and chunk 1 of
   ranks [0 1]
`},
		{"draw -picture table " + xmlFiles + "pair.xml", `all-reduce, 2 ranks, 2 chunks, 2 rounds
round | rank 0   | rank 1
------+----------+---------
    0 | I1>1     | I0>0
      | O0=I0+<1 | O1=I1+<0
    1 | O0>1     | O1>0
      | O1<1     | O0<0
`},
		{"convert -to text " + xmlFiles + "pair.xml", `all-reduce, 2 ranks, 2 chunks, 2 rounds
round | rank 0   | rank 1
------+----------+---------
    0 | I1>1     | I0>0
      | O0=I0+<1 | O1=I1+<0
    1 | O0>1     | O1>0
      | O1<1     | O0<0
`},
		{"price -method clockwise_ring -network open-ladder:8 -bytes 8,64M", `all-reduce, 8 ranks, 8 chunks, 14 rounds
network open ladder of 8 replicas, between rank 0 and others alpha 1µs to 4µs and beta 0.0625 ns/byte; overhead 0s a message at each end
     bytes  rounds  sent by a rank, at most        time  of the bound
         8      14                       14    14.001µs          29 %
  67108864      14                117440512  7.354032ms          20 %
`},
		{"price -network clique:2+1 -bytes 3G " + xmlFiles + "ring.xml", `all-reduce, 3 ranks, 3 chunks, 4 rounds
network clique of 2+1 replicas, between rank 0 and others alpha 50ns to 5µs and beta 0.0455 to 0.08 ns/byte; overhead 0s a message at each end
       bytes  rounds  sent by a rank, at most          time  of the bound
  3221225472       4               4294967296  343.617384ms          75 %
`},
		// Six rounds, in each of which 1,024 bytes take 2 us and 10.24 us to replica 3 or from it.
		{"price -method clockwise_ring -n 4 -bytes 4K -network testdata/switch.txt",
			`all-reduce, 4 ranks, 4 chunks, 6 rounds
network testdata/switch.txt of 4 replicas, between rank 0 and others alpha 2µs and beta 1 to 10 ns/byte; overhead 0s a message at each end
  bytes  rounds  sent by a rank, at most     time  of the bound
   4096       6                     6144  73.44µs          58 %
`},
		// An overhead of 1 us for a message sent and one received makes 2 us of each of the six rounds.
		{"price -method clockwise_ring -n 4 -bytes 4K -network testdata/switch.txt -overhead 1us",
			`all-reduce, 4 ranks, 4 chunks, 6 rounds
network testdata/switch.txt of 4 replicas, between rank 0 and others alpha 2µs and beta 1 to 10 ns/byte; overhead 1µs a message at each end
  bytes  rounds  sent by a rank, at most     time  of the bound
   4096       6                     6144  85.44µs          54 %
`},
		{"price -csv -network clique:2+1 -bytes 3G " + xmlFiles + "ring.xml", `collective,ranks,network,alpha,beta_ns_per_byte,overhead_ns,bytes,method,pieces,rounds,sent_bytes,time_ns,times_best,bound_ns,of_bound
all-reduce,3,clique of 2+1 replicas,50ns to 5µs,0.0455 to 0.08,0,3221225472,ring,0,4,4294967296,343617384,1.0000,257698088,0.7500
`},
		{"price -method all -collective all-to-all -in-place -n 3 -bytes 3 -csv", `collective,ranks,network,alpha,beta_ns_per_byte,overhead_ns,bytes,method,pieces,rounds,sent_bytes,time_ns,times_best,bound_ns,of_bound
all-to-all,3,clique of 3 replicas,50ns,0.0455,0,3,broadcast,0,1,2,50,1.0000,50,1.0000
all-to-all,3,clique of 3 replicas,50ns,0.0455,0,3,meet_in_middle_ring,0,1,2,50,1.0000,50,1.0000
all-to-all,3,clique of 3 replicas,50ns,0.0455,0,3,direct,0,1,2,50,1.0000,50,1.0000
all-to-all,3,clique of 3 replicas,50ns,0.0455,0,3,clockwise_ring,0,2,3,100,2.0000,50,0.5000
all-to-all,3,clique of 3 replicas,50ns,0.0455,0,3,anticlockwise_ring,0,2,3,100,2.0000,50,0.5000
all-to-all,3,clique of 3 replicas,50ns,0.0455,0,3,bidirectional_ring_pair,0,2,3,100,2.0000,50,0.5000
all-to-all,3,clique of 3 replicas,50ns,0.0455,0,3,quad_directional_ring,0,2,3,100,2.0000,50,0.5000
all-to-all,3,clique of 3 replicas,50ns,0.0455,0,3,recursive_doubling,0,3,2,100,2.0000,50,0.5000
all-to-all,3,clique of 3 replicas,50ns,0.0455,0,3,bruck,0,2,2,100,2.0000,50,0.5000
`},
	} {
		if code, stdout, stderr := gclsched(t, c.line); code != command.OK || stdout != c.want || stderr != "" {
			t.Errorf("gclsched %s: exit code %d, %s\nprinted\n%s\nwant\n%s", c.line, code, stderr, stdout, c.want)
		}
	}
}

// TestErrors has command lines that are wrong, and schedules and files that are.
func TestErrors(t *testing.T) {
	t.Parallel()
	const lists = " (-h lists the flags)"
	dir := t.TempDir()
	for _, c := range []struct {
		line string
		code int
		want string
	}{
		{"", 2, "no command, want check|draw|price|auto|bench|convert" + lists},
		{"xyzzy", 2, `unknown command "xyzzy", want check|draw|price|auto|bench|convert` + lists},
		{"prise", 2, `unknown command "prise" (did you mean price?), want check|draw|price|auto|bench|convert` + lists},
		{"-x", 2, "flag provided but not defined: -x" + lists},
		{"check", 2, "no schedule, want FILE or -method NAME" + lists},
		{"check -x", 2, "flag provided but not defined: -x" + lists},
		{"check a b", 2, `unexpected argument "b"` + lists},
		{"check a -n 3", 2, `unexpected argument "-n": flags come before FILE` + lists},
		{"check -method direct a", 2, `unexpected argument "a": with -method there is no FILE` + lists},
		{"check -n 3 a", 2, "-n is for -method, and not for a file" + lists},
		{"check -network clique:8 a", 2, "-network is for -method, and not for a file" + lists},
		{"price -method direct -network ring:8", 2, `cost: no network "ring:8", want a name such as torus:8x8x8, `},
		{"price -method direct -network= -n 3", 2, "an empty -network, want a name such as torus:8x8x8, or a file" + lists},
		{"check -method clockwise_ring -network torus:4x4", 2, `-network "torus:4x4", round which no ring goes: want a ` +
			`machine such as open-ladder:8, or price` + lists},
		{"price -method direct -network torus:65537", 2, `-network "torus:65537" of 65537 replicas, want -n of 1 to 65536 ` +
			`of them` + lists},
		{"price -method direct -n 5 -network testdata/switch.txt", 1,
			"testdata/switch.txt: 4 replicas, and the schedule has 5 ranks"},
		{"price -method direct -network testdata/late.txt", 1, "testdata/late.txt: cost: line 2: "},
		{"price -method direct -network testdata/none.txt", 1, "open testdata/none.txt: "},
		{"check -method clockwise_ring -n 65536", 2, "-n 65536: the all-reduce by clockwise_ring among 4096 ranks has some " +
			"67092480 steps already, want 33554432 at most" + lists},
		{"draw -method clockwise_ring -collective all-to-all -n 512", 2, "-n 512: the all-to-all by clockwise_ring among " +
			"512 ranks has some 133956096 steps already, want 33554432 at most" + lists},
		{"price -network clique:4+x a", 2, `cost: network "clique:4+x": "x", want a number from 1 to `},
		{"price -overhead -1ns a", 2, "-overhead -1ns, want 0 to 1s" + lists},
		{"price -overhead 2s a", 2, "-overhead 2s, want 0 to 1s" + lists},
		{"price -overhead 1 a", 2, `invalid value "1" for flag -overhead: `},
		{"check -method all", 2, "-method all is for price, want one method to check" + lists},
		{"bench -method all", 2, "-method all is for price, want one method to bench" + lists},
		{"price -method all -pieces 2 -collective broadcast", 2, "-pieces of -method all, which finds the best number for " +
			"each pipeline: want one method" + lists},
		{"price -method all -root 2 -n 3", 2, "methods: root 2 of all-reduce over 3 ranks" + lists},
		{"price -method all -network clique:4+3 -n 8", 2, "clique:4+3: 7 replicas, and the schedule has 8 ranks" + lists},
		{"price -method all -n 5 -network testdata/switch.txt", 1,
			"testdata/switch.txt: 4 replicas, and the schedule has 5 ranks"},
		{"price -method all -n 3 -network testdata/apart.txt", 1, "testdata/apart.txt: cost: no way leads from replica "},
		{"price -bytes 1K,many a", 2, `-bytes: "many" is no number of bytes such as 8, 4K, 1M or 2G` + lists},
		{"price -bytes 9223372036854775807K a", 2,
			`-bytes: "9223372036854775807K" is no number of bytes such as 8, 4K, 1M or 2G` + lists},
		{"check -method dirct", 2, "-method: "},
		{"check -method halving_doubling -collective gather", 2, "methods: halving_doubling: gather over 8 ranks with " +
			"root 0: it does all-reduce, reduce-scatter, all-gather, and not gather: unsupported operation" + lists},
		{"check -method auto", 2, "methods: auto makes no schedule, since "},
		{"check -method direct -collective sum", 2, `-collective "sum", want one of all-reduce, reduce-scatter, all-gather, ` +
			`all-to-all, broadcast, reduce, gather, scatter, barrier` + lists},
		{"check -method direct -n 0", 2, "-n 0, want 1 to 65536" + lists},
		{"check -method direct -root 1", 2, "methods: root 1 of all-reduce over 8 ranks" + lists},
		{"check -method direct -in-place", 2,
			"-in-place of all-reduce, whose schedule is the same: want -collective all-to-all" + lists},
		{"check -method direct -collective all-gather -rank-order", 2,
			"-rank-order of all-gather, which has no order: want all-reduce, reduce-scatter or reduce" + lists},
		{"check -method direct -pieces 2", 2,
			"-pieces of all-reduce by direct, which is no pipeline: want a broadcast or a reduce on rings" + lists},
		{"check -method direct -network open-ladder:8", 2,
			"-network of direct, which follows no ring: want a method that does, or price" + lists},
		{"check -method clockwise_ring -n 8 -network clique:4+3", 2, "clique:4+3: 7 replicas, and the schedule has 8 ranks" +
			lists},
		{"draw -picture ring a", 2, `-picture "ring", want one of shape, table, time` + lists},
		{"draw -picture time a", 2, "-picture time is a drawing as SVG, want -svg FILE" + lists},
		{"draw -picture table -svg b a", 2, "-svg of a table, want -picture shape or time" + lists},
		{"convert a", 2, "which form? want -to text or -to xml, or an -o that ends in .txt or .xml" + lists},
		{"convert -o b.json a", 2, "which form? want -to text or -to xml, or an -o that ends in .txt or .xml" + lists},
		{"convert -to json a", 2, `-to "json", want text or xml` + lists},

		{"check nothing.txt", 1, "open nothing.txt: no such file or directory"},
		{"check main.go", 1, `main.go: schedule: line 1, column 1: "package main" is no title, want one such as "all-gather, 3 ` +
			`ranks, 3 chunks, 2 rounds"`},
		{"check " + xmlFiles + "wrong/twice.xml", 1, xmlFiles + "wrong/twice.xml: schedule: rank 0 round 1 move 1 (O1=I1+<1): " +
			"takes a contribution twice: chunk 1 of ranks [0] and chunk 1 of ranks [0 1]\n" + `the way of chunk 1:
  round 0: 0 folds into 1
  round 1: 1 folds into 0, which has the contribution of rank 0 from the start
`},
		{"check testdata/late.txt", 1, "testdata/late.txt: schedule: rank 2 round 0 move 0 (O1>0): chunk 1 of O1 was never " +
			"written"},
		{"check -strict testdata/twice.txt", 1, "testdata/twice.txt: data moves for nothing: 4 chunks sent again, 4 chunks " +
			"never used, first rank 0 round 2: O3<1 brings chunk 3, which the rank has had"},
		{"check -strict testdata/late.txt", 1, "testdata/late.txt: schedule: rank 2 round 0 move 0 (O1>0): chunk 1 of O1 " +
			"was never written"},
		{"price testdata/late.txt", 1, "testdata/late.txt: schedule: rank 2 round 0 move 0 (O1>0): chunk 1 of O1 was never " +
			"written"},
		{"price -network testdata/apart.txt " + xmlFiles + "ring.xml", 1, "testdata/apart.txt: cost: no way leads from replica "},
		{"price -network testdata/apart.txt -method direct -n 3", 1, "testdata/apart.txt: cost: no way leads from replica "},
		{"check testdata/orders.txt", 1, "testdata/orders.txt: gcl does not carry the schedule out: ranks combine an element " +
			"in different orders, so that they may end with different bits: chunk 0 is (0+1)+2 at rank 0 and 0+(1+2) at rank 1"},
		{"convert -to xml testdata/late.txt", 1, "testdata/late.txt: msccl: the format has no broadcast: unsupported operation"},
		{"convert -to xml testdata/scan.txt", 1, "testdata/scan.txt: msccl: the format has no custom: unsupported operation"},
		{"convert -to xml " + xmlFiles + "wrong/twice.xml", 1, xmlFiles + "wrong/twice.xml: msccl: only what is proved is " +
			"written: schedule: rank 0 round 1 move 1 (O1=I1+<1): takes a contribution twice: "},
		{"convert -o " + dir + "/no/b.txt -method direct", 1, "open " + dir + "/no/b.txt: no such file or directory"},
		{"draw -svg " + dir + "/no/b.svg -method direct", 1, "open " + dir + "/no/b.svg: no such file or directory"},
	} {
		code, stdout, stderr := gclsched(t, c.line)
		want := "gclsched: " + c.want
		_, way, _ := strings.Cut(stderr, "\n") // the rest, if there is any, is that of a chunk
		if code != c.code || !strings.HasPrefix(stderr, want) || !strings.HasSuffix(stderr, "\n") ||
			way != "" && !strings.HasPrefix(way, "the way of chunk ") ||
			code == command.Usage && stdout != "" || strings.Contains(stdout, "proved") {
			t.Errorf("gclsched %s: exit code %d, want %d; printed %q, and as error\n%swant\n%s", c.line, code, c.code, stdout,
				stderr, want)
		}
	}
}

// TestEmptyFile: a name that a shell has made of nothing is no wish for a method.
func TestEmptyFile(t *testing.T) {
	t.Parallel()
	var stdout, stderr strings.Builder
	const want = "gclsched: an empty FILE, want the name of one (-h lists the flags)\n"
	code := run(t.Context(), []string{"check", ""}, &stdout, &stderr)
	if code != command.Usage || stdout.Len() > 0 || stderr.String() != want {
		t.Errorf("exit code %d, %q, %q, want %d, %q", code, stdout.String(), stderr.String(), command.Usage, want)
	}
}

// TestHelp: each command says what it does and which flags it has.
func TestHelp(t *testing.T) {
	t.Parallel()
	for line, want := range map[string][]string{
		"-h":         {"usage: gclsched check|draw|price|auto|bench|convert [flags] [FILE]\n", "price    Says what"},
		"check -h":   {"usage: gclsched check [flags] [FILE]\n", "-method name"},
		"draw -h":    {"usage: gclsched draw [flags] [FILE]\n", "-svg file"},
		"price -h":   {"usage: gclsched price [flags] [FILE]\n", "-bytes sizes"},
		"bench -h":   {"usage: gclsched bench [flags] [FILE]\n", "-bytes sizes"},
		"convert -h": {"usage: gclsched convert [flags] [FILE]\n", "-to form"},
	} {
		code, stdout, stderr := gclsched(t, line)
		for _, w := range want {
			if code != command.OK || !strings.Contains(stdout, w) || stderr != "" {
				t.Errorf("gclsched %s: exit code %d, %q, printed\n%s\nwant %q", line, code, stderr, stdout, w)
			}
		}
	}
}

// TestFiles draws to files, and converts there and back.
func TestFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must := func(line string) {
		t.Helper()
		if code, stdout, stderr := gclsched(t, line); code != command.OK || stdout != "" || stderr != "" {
			t.Fatalf("gclsched %s: exit code %d, %q, %q", line, code, stdout, stderr)
		}
	}
	read := func(name string) string {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	s, err := methods.Build(methods.Spec{Method: methods.Direct, Collective: schedule.ReduceScatter, Size: 5})
	if err != nil {
		t.Fatal(err)
	}
	var shape, time strings.Builder
	if err := errors.Join(s.WriteSVG(&shape), s.WriteSpaceTimeSVG(&time)); err != nil {
		t.Fatal(err)
	}
	method := " -method direct -collective reduce-scatter -n 5"
	must("draw -svg " + dir + "/shape.svg" + method)
	must("draw -picture time -svg " + dir + "/time.svg" + method)
	if read("shape.svg") != shape.String() || read("time.svg") != time.String() {
		t.Error("other pictures than those of the schedule")
	}
	must("convert -o " + dir + "/a.txt" + method)
	if read("a.txt") != s.String() {
		t.Errorf("wrote\n%s", read("a.txt"))
	}
	must("convert -o " + dir + "/b.xml " + dir + "/a.txt")
	f, err := msccl.Read([]byte(read("b.xml")))
	if err != nil {
		t.Fatal(err)
	}
	if err := schedule.Check(f.Schedule); err != nil || f.Name != "a" {
		t.Errorf("%q: %v", f.Name, err)
	}
	// What the file says beside its steps stays.
	must("convert -to xml -o " + dir + "/c.anything " + xmlFiles + "ring.xml")
	if f, err = msccl.Read([]byte(read("c.anything"))); err != nil || f.Name != "ring" || f.Protocol != "LL128" ||
		f.MinBytes != 1024 || f.MaxBytes != 1<<20 {
		t.Errorf("%+v, %v", f, err)
	}
	must("convert -o " + dir + "/d.txt " + dir + "/b.xml")
	if again, err := schedule.Parse([]byte(read("d.txt"))); err != nil || again.Size != 5 {
		t.Errorf("%v", err)
	}
}

// TestGoRun is what the README says, as a process: a file that proves, and one that does not.
func TestGoRun(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the program")
	}
	t.Parallel()
	for file, want := range map[string]string{
		"ring.xml":        "",
		"wrong/twice.xml": "rank 0 round 1 move 1 (O1=I1+<1): takes a contribution twice: chunk 1 of ranks [0]",
	} {
		cmd := exec.CommandContext(t.Context(), "go", "run", "./cmd/gclsched", "check",
			strings.TrimPrefix(xmlFiles, "../../")+file)
		cmd.Dir = "../.."
		var stderr strings.Builder
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if ok := err == nil; ok != (want == "") || ok != strings.Contains(string(out), "proved\n") ||
			!strings.Contains(stderr.String(), want) || !ok && !strings.Contains(stderr.String(), "exit status 1") {
			t.Errorf("%s: %v, printed %s, %s", file, err, out, &stderr)
		}
	}
}
