package main

import (
	"flag"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"gogcl.dev/gcl"
	"gogcl.dev/internal/command"
	"gogcl.dev/internal/measure"
	"gogcl.dev/methods"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
)

func TestDefaults(t *testing.T) {
	s, err := settled(nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Sizes) != 24 || s.Sizes[0] != 8 || s.Sizes[23] != 64<<20 {
		t.Errorf("sizes %v", s.Sizes)
	}
	if !slices.Equal(s.Collectives, collectives(schedule.AllReduce)) ||
		!slices.Equal(s.Methods, []methods.Method{methods.Auto}) || s.N != 2 ||
		s.DType != tensor.F32 || s.Op != gcl.Add || len(s.places) != 2 || s.time != 100*time.Millisecond ||
		s.Transport != "inproc" || s.Processes {
		t.Errorf("%+v", s)
	}
}

func TestFlags(t *testing.T) {
	s, err := settled(strings.Fields("-collective allgather,broadcast -n 4 -method direct,clockwise_ring " +
		"-implementation syncful,Auto -reproducible -dtype bfloat16 " +
		"-op square_add -root 3 -place ip -min 1K -max 1MiB -factor 4 -iters 7 -sync -csv"))
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(s.Collectives, collectives(schedule.AllGather, schedule.Broadcast)) ||
		!slices.Equal(s.Methods, []methods.Method{methods.Direct, methods.ClockwiseRing}) ||
		s.N != 4 || !slices.Equal(s.Implementations, []gcl.Implementation{gcl.Syncful, gcl.AutoImplementation}) ||
		!s.reproducible || s.DType != tensor.BF16 || s.Op != gcl.SquareAdd || s.Root != 3 ||
		!slices.Equal(s.places, []measure.Place{measure.InPlace}) ||
		!slices.Equal(s.Sizes, []int{1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20}) ||
		s.iters != 7 || !s.sync || s.format != asCSV {
		t.Errorf("%+v", s)
	}
}

// TestShortFlags: nccl-tests' letters are the long flags.
func TestShortFlags(t *testing.T) {
	short, err := settled(strings.Fields("-b 8 -e 64M -f 8 -d float16 -o max -r 1 -w 5 -c 0"))
	if err != nil {
		t.Fatal(err)
	}
	long, err := settled(strings.Fields("-min 8 -max 64M -factor 8 -dtype float16 -op MAX -root 1 -w 5 -c 0"))
	if err != nil || !reflect.DeepEqual(short, long) {
		t.Errorf("%+v, want %+v; %v", short, long, err)
	}
	if !slices.Equal(short.Sizes, []int{8, 64, 512, 4 << 10, 32 << 10, 256 << 10, 2 << 20, 16 << 20}) ||
		short.DType != tensor.F16 || short.Op != gcl.Max || short.Root != 1 || short.warm != 5 || short.tries != 0 {
		t.Errorf("%+v", short)
	}
}

// TestWordsOfNCCL: a word of nccl-tests is one of ours.
func TestWordsOfNCCL(t *testing.T) {
	for words, ours := range map[string]string{
		"-b 8 -e 40 -i 16 -g 3 -d half -o avg": "-sizes 8,24,40 -n 3 -dtype float16 -op MEAN",
		"-b 8 -e 39 -i 16 -d float -o sum":     "-sizes 8,24 -dtype float32 -op ADD",
		"-sizes 8 -d double,int8 -o PROD,min":  "-sizes 8 -dtype float64,int8 -op MUL,MIN",
	} {
		got, err1 := settled(strings.Fields(words))
		want, err2 := settled(strings.Fields(ours))
		if err1 != nil || err2 != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v; %v, %v", words, got, want, err1, err2)
		}
	}
}

// TestAllKinds measures all operators and types that go together, each once: those of a collective that does not reduce
// by type alone. Values of one type in the buffers are no harm to the next.
func TestAllKinds(t *testing.T) {
	want := map[string]int{}
	for _, d := range tensor.DTypes() {
		want["allgather none "+d.String()] = 1
		for _, op := range operators(t, d) {
			want["allreduce "+op.String()+" "+d.String()] = 1
		}
	}
	got := perform(t, t.Context(), nil, strings.Fields("-collective allreduce,allgather -d all -o all -sizes 64 -place ip "+
		"-iters 1 -json")...)
	if got.code != command.OK || got.stderr != "" {
		t.Fatal(got)
	}
	have := map[string]int{}
	for _, m := range parsed(t, got.stdout) {
		have[m.Collective+" "+m.Op+" "+m.DType]++
		if m.Bytes != 64 || m.Wrong != 0 {
			t.Errorf("%+v", m)
		}
	}
	if !maps.Equal(have, want) {
		t.Errorf("measured %v, want %v", have, want)
	}
	// One table has all rows.
	got = perform(t, t.Context(), nil, strings.Fields("-d float,int32 -o all -sizes 8,16 -iters 1")...)
	if rows := strings.Count(got.stdout, "\n    "); got.code != command.OK || rows != 2*(7+6) ||
		strings.Count(got.stdout, " algbw ") != 2 {
		t.Errorf("%d rows, want %d: %+v", rows, 2*(7+6), got)
	}
}

// TestChecksAndWarmUp counts the checked calls, and finds none with -c 0.
func TestChecksAndWarmUp(t *testing.T) {
	for c, want := range map[string]int{"0": 0, "1": 2, "3": 6} {
		var calls atomic.Int64
		got := perform(t, t.Context(), func(replica int, _ []byte) {
			if replica == 1 {
				calls.Add(1)
			}
		}, "-sizes", "64", "-place", "oop", "-iters", "3", "-w", "4", "-c", c)
		if got.code != command.OK || int(calls.Load()) != want ||
			strings.Contains(got.stdout, "# Wrong values         : 0 OK") != (want > 0) {
			t.Errorf("-c %s: %d checked calls, want %d: %+v", c, calls.Load(), want, got)
		}
	}
}

func collectives(list ...schedule.Collective) (out []measure.Collective) {
	for _, c := range list {
		out = append(out, measure.Collective(c))
	}
	return out
}

// settled are the settings of a command line.
func settled(args []string) (*settings, error) {
	l := read(args)
	if l.err != nil {
		return nil, l.err
	}
	return l.raw.settings(l.given, 0)
}

// TestWrongFlags wants one clear line, and exit code 2.
func TestWrongFlags(t *testing.T) {
	bad := filepath.Join(t.TempDir(), "bad.csv")
	if err := os.WriteFile(bad, []byte("arlimit,2\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]string{
		"-nonsense":                              "not defined: -nonsense\n",
		"-tune tcp.txt":                          "not defined: -tune: it is what gcltune does\n",
		"-sweep":                                 "not defined: -sweep: it is what gcltune does\n",
		"-n 2,4":                                 `invalid value "2,4" for flag -n`,
		"-passes 2":                              "not defined: -passes: it is what gcltune does\n",
		"-n":                                     "needs an argument: -n",
		"-n x":                                   `invalid value "x" for flag -n`,
		"extra":                                  `unexpected argument "extra"`,
		"-n 0":                                   "-n 0, want 1 to 1024",
		"-n 1025":                                "-n 1025, want 1 to 1024",
		"-collective allreduce,allreduce":        "-collective: allreduce is given twice",
		"-method auto,direct,auto":               "-method: auto is given twice",
		"-implementation auto,Auto":              "-implementation: Auto is given twice",
		"-implementation Syncful,":               `unknown implementation ""`,
		"-sizes 8,8":                             "-sizes: 8 comes after 8 B, want smaller ones first and each once",
		"-sizes 8,1K,512":                        "-sizes: 512 comes after 1 KiB",
		"-svg .":                                 "-svg . is a directory, want a file",
		"-svg=":                                  "-svg has no name of a file",
		"-floor=":                                "-floor is drawn by -svg only",
		"-svg x.svg -floor=":                     "-floor: open : no such file",
		"-root 2":                                "-root 2 is not a rank, 0 to 1",
		"-root -1":                               "-root -1 is not a rank",
		"-collective allsum":                     `-collective "allsum" does not exist (did you mean all?); there is allreduce, reducescatter, allgather, alltoall, broadcast, reduce, gather, scatter, all`,
		"-collective allreduce,":                 `-collective ""`,
		"-transport udp":                         `-transport "udp" does not exist; there is inproc, tcp, unix, shm`,
		"-transport inproc,udp":                  `-transport "udp" does not exist; there is inproc, tcp, unix, shm, mpi`,
		"-transport tcp,inproc,tcp":              "-transport: tcp is given twice",
		"-network torus:4":                       "-network is that of -transport sim",
		"-overhead 1us":                          "-overhead is that of -transport sim",
		"-transport sim,inproc -network torus:4": "-transport sim is measured by itself",
		"-transport sim -network torus:4 -overhead -1s": "-overhead -1s, want 0 to 1s",
		"-transport sim":                                 "-transport sim needs a -network, such as torus:8x8",
		"-transport sim -network torus:0":                `-network: cost: network "torus:0": "0", want a number`,
		"-transport sim -network torus:4 -n 3":           "-n 3, and -network torus:4 has 4 replicas: leave -n out",
		"-transport inproc,mpi":                          "-transport mpi needs gclperf built with MPI: go build -tags mpi ./cmd/gclperf",
		"-transport inproc,tcp -svg x.svg -floor " + bad: "-floor is that of one address space, want -transport inproc",
		"-transport tcp -svg x.svg -floor " + bad:        "-floor is that of one address space, want -transport inproc",
		"-method ring":                                   `unknown method "ring", the closest is swing; want one of auto, broadcast, clockwise_ring`,
		"-method direct,":                                `unknown method ""`,
		"-implementation hybird":                         `unknown implementation "hybird", the closest is Hybrid; want one of Auto, Syncless, Syncful, Hybrid`,
		"-dtype floats":                                  `-dtype "floats" does not exist (did you mean float16?); there is bool, int8`,
		"-d flaot64":                                     `-d "flaot64" does not exist (did you mean float64?)`,
		"-op ADDS":                                       `-op "ADDS" does not exist (did you mean ADD?); there is ADD, MEAN`,
		"-o mulsum":                                      "-o mulsum multiplies by a factor of each rank before it adds, which no operator here does: want sum\n",
		"-d f8e4m3":                                      "-d f8e4m3 is a float of 8 bits, which is no element type here: want half or bfloat16\n",
		"-o sum,ADD":                                     "-o: ADD is given twice",
		"-d float,all":                                   "-d float,all: all stands by itself",
		"-o sum,max -d int32,bool":                       "-op ADD -dtype bool: operator ADD takes numbers, not bool",
		"-o square":                                      `-o "square" does not exist (did you mean SQUARE_ADD?)`,
		"-dtype quaternion":                              `-dtype "quaternion" does not exist; there is bool`,
		"-methd ring":                                    "not defined: -methd (did you mean -method?)",
		"--minbytes=8":                                   "not defined: -minbytes (did you mean -min?)",
		"-warmup_iters 5":                                "not defined: -warmup_iters (did you mean -w?)",
		"-g 4 -n 20": "-g and -n are one flag: want one of them; the -n of nccl-tests, the number of calls, is " +
			"-iters here\n",
		"-b 8 -min 4":    "-b and -min are one flag: want one of them\n",
		"-t 4":           "not defined: -t: it is for threads of nccl-tests: want -n, the number of replicas\n",
		"-z 1":           "not defined: -z: it is for calls of nccl-tests that wait: all wait here\n",
		"--ngpus 4":      "not defined: -ngpus (did you mean -n?)",
		"-i 1":           "-i 1 makes 67108857 sizes, want 10000 at most",
		"-i 8 -f 2":      "-i and -f exclude each other",
		"-step 1Q":       `-step: size "1Q"`,
		"-sizes 8 -i 8":  "-sizes excludes -min, -max, -factor and -step",
		"-b 0":           `-b: size "0"`,
		"-b 2K -e 1K":    "-b 2K is more than -e 1K",
		"-f 1":           "-f 1, want 2 or more",
		"-r 2":           "-r 2 is not a rank, 0 to 1",
		"-sizes 8 -e 1K": "-sizes excludes -min, -max, -factor and -step",
		"-c -1":          "-c -1, want 0 to 1000",
		"-w 2001":        "-w 2001, want 0 to 2000",
		"-v -csv":        "-v is for the table",
		"-cpu -json":     "-cpu is for the table",
		"-op MEAN -dtype int32": "gclperf: -op MEAN -dtype int32: operator MEAN takes floating point, " +
			"not int32\n",
		"-op LOGICAL_AND":                     "operator LOGICAL_AND takes bool, not float32",
		"-dtype bool":                         "operator ADD takes numbers, not bool",
		"-collective reducescatter -op AND":   `-op "AND" does not exist (did you mean LOGICAL_AND?); there is ADD`,
		"-place here":                         `-place "here", want oop, ip or both`,
		"-min 0":                              `-min: size "0", want something like 8, 1K, 1KiB or 64MiB`,
		"-max 1Q":                             `-max: size "1Q"`,
		"-min 2K -max 1K":                     "-min 2K is more than -max 1K",
		"-factor 1":                           "-factor 1, want 2 or more",
		"-sizes 8,x":                          `-sizes: size "x"`,
		"-sizes 8 -max 1K":                    "-sizes excludes -min, -max, -factor and -step",
		"-sizes ":                             "needs an argument",
		"-iters 0":                            "-iters 0, want 1 or more",
		"-iters -3":                           "-iters -3, want 1 or more",
		"-sync -iters 1000000":                "-iters 1000000, want 200000 at most with -sync",
		"-iters 3 -time 1s":                   "-iters and -time exclude each other",
		"-time 0s":                            "-time 0s, want more than 0",
		"-time 3":                             `invalid value "3" for flag -time`,
		"-json -csv":                          "-json and -csv exclude each other",
		"-svg /no/such/dir/x.svg":             "-svg /no/such/dir/x.svg: there is no such directory",
		"-floor x":                            "-floor is drawn by -svg only",
		"-svg x.svg -floor /no/such/file.csv": "-floor: open /no/such/file.csv",
		"-svg x.svg -floor " + bad:            `line 1: "arlimit,2" is not a line of arlimit`,
	} {
		got := perform(t, t.Context(), nil, strings.Fields(args)...)
		if got.code != command.Usage || !strings.Contains(got.stderr, want) || strings.Count(got.stderr, "\n") != 1 ||
			got.stdout != "" {
			t.Errorf("%s: code %d, stderr %q, want %q; stdout %q", args, got.code, got.stderr, want, got.stdout)
		}
	}
}

// TestOperatorIsFree lets collectives without an operator have any.
func TestOperatorIsFree(t *testing.T) {
	got := perform(t, t.Context(), nil,
		strings.Fields("-collective allgather,alltoall,broadcast -dtype bool -sizes 8 -iters 1 -json")...)
	if got.code != command.OK {
		t.Fatal(got)
	}
	for _, m := range parsed(t, got.stdout) {
		if m.Op != "none" || (m.Root == -1) == (m.Collective == "broadcast") {
			t.Errorf("%+v", m)
		}
	}
}

func TestHelp(t *testing.T) {
	got := perform(t, t.Context(), nil, "-h")
	if got.code != command.OK || got.stderr != "" {
		t.Fatal(got)
	}
	flags(&raw{}).VisitAll(func(f *flag.Flag) {
		if f.Usage == "" || !strings.Contains(got.stdout, "  -"+f.Name) {
			t.Errorf("-h does not explain -%s", f.Name)
		}
	})
	if !strings.Contains(got.stdout, "environment variable GCL_OPTIONS") {
		t.Error("-h does not explain GCL_OPTIONS")
	}
	for line := range strings.Lines(got.stdout) {
		wide := strings.ReplaceAll(strings.TrimSuffix(line, "\n"), "    \t", "        ") // as a terminal shows it
		if len(wide) > command.Columns {
			t.Errorf("%d columns: %s", len(wide), line)
		}
	}
}
