package main

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gogcl.dev/gcl"
	"gogcl.dev/methods"
	"gogcl.dev/tensor"
)

func TestDefaults(t *testing.T) {
	s, err := parse(nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(s.sizes) != 24 || s.sizes[0] != 8 || s.sizes[23] != 64<<20 {
		t.Errorf("sizes %v", s.sizes)
	}
	if !slices.Equal(s.collectives, []collective{allReduce}) ||
		!slices.Equal(s.methods, []methods.Method{methods.Auto}) || s.n != 2 ||
		s.dtype != tensor.F32 || s.op != gcl.Add || len(s.places) != 2 || s.time != 100*time.Millisecond ||
		s.transport.name != "inproc" {
		t.Errorf("%+v", s)
	}
}

func TestFlags(t *testing.T) {
	s, err := parse(strings.Fields("-collective allgather,broadcast -n 4 -method direct,clockwise_ring " +
		"-implementation syncful,Auto -reproducible -dtype bfloat16 " +
		"-op square_add -root 3 -place ip -min 1K -max 1MiB -factor 4 -iters 7 -sync -csv"))
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(s.collectives, []collective{allGather, broadcast}) ||
		!slices.Equal(s.methods, []methods.Method{methods.Direct, methods.ClockwiseRing}) ||
		s.n != 4 || !slices.Equal(s.implementations, []gcl.Implementation{gcl.Syncful, gcl.AutoImplementation}) ||
		!s.reproducible || s.dtype != tensor.BF16 || s.op != gcl.SquareAdd || s.root != 3 ||
		!slices.Equal(s.places, []place{inPlace}) ||
		!slices.Equal(s.sizes, []int{1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20}) ||
		s.iters != 7 || !s.sync || s.format != asCSV {
		t.Errorf("%+v", s)
	}
}

// TestWrongFlags wants one clear line, and exit code 2.
func TestWrongFlags(t *testing.T) {
	bad := filepath.Join(t.TempDir(), "bad.csv")
	if err := os.WriteFile(bad, []byte("arlimit,2\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]string{
		"-nonsense":                       "not defined: -nonsense",
		"-n":                              "needs an argument: -n",
		"-n x":                            `invalid value "x" for flag -n`,
		"extra":                           `unexpected argument "extra"`,
		"-n 0":                            "-n 0, want 1 to 1024",
		"-n 1025":                         "-n 1025, want 1 to 1024",
		"-collective allreduce,allreduce": "-collective: allreduce is given twice",
		"-method auto,direct,auto":        "-method: auto is given twice",
		"-implementation auto,Auto":       "-implementation: Auto is given twice",
		"-implementation Syncful,":        `unknown implementation ""`,
		"-sizes 8,8":                      "-sizes: 8 comes after 8 B, want smaller ones first and each once",
		"-sizes 8,1K,512":                 "-sizes: 512 comes after 1 KiB",
		"-svg .":                          "-svg . is a directory, want a file",
		"-svg=":                           "-svg has no name of a file",
		"-floor=":                         "-floor is drawn by -svg only",
		"-svg x.svg -floor=":              "-floor: open : no such file",
		"-root 2":                         "-root 2 is not a rank, 0 to 1",
		"-root -1":                        "-root -1 is not a rank",
		"-collective allsum":              `-collective "allsum", want some of allreduce, reducescatter, allgather, alltoall, broadcast, reduce, gather, scatter, or all`,
		"-collective allreduce,":          `-collective ""`,
		"-transport tcp":                  `-transport "tcp" does not exist; there is inproc`,
		"-method ring":                    `unknown method "ring", the closest is auto; want one of auto, broadcast, clockwise_ring`,
		"-method direct,":                 `unknown method ""`,
		"-implementation hybird":          `unknown implementation "hybird", the closest is Hybrid; want one of Auto, Syncless, Syncful, Hybrid`,
		"-dtype float":                    `unknown dtype "float", the closest is float16; want one of`,
		"-op SUM":                         `unknown operator "SUM", the closest is MUL; want one of ADD`,
		"-op MEAN -dtype int32": "gclperf: -op MEAN -dtype int32: operator MEAN takes floating point, " +
			"not int32\n",
		"-op LOGICAL_AND":                     "operator LOGICAL_AND takes bool, not float32",
		"-dtype bool":                         "operator ADD takes numbers, not bool",
		"-collective reducescatter -op AND":   `unknown operator "AND"`,
		"-place here":                         `-place "here", want oop, ip or both`,
		"-min 0":                              `-min: size "0", want something like 8, 1K, 1KiB or 64MiB`,
		"-max 1Q":                             `-max: size "1Q"`,
		"-min 2K -max 1K":                     "-min 2K is more than -max 1K",
		"-factor 1":                           "-factor 1, want 2 or more",
		"-sizes 8,x":                          `-sizes: size "x"`,
		"-sizes 8 -max 1K":                    "-sizes excludes -min, -max and -factor",
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
		if got.code != exitUsage || !strings.Contains(got.stderr, want) || strings.Count(got.stderr, "\n") != 1 ||
			got.stdout != "" {
			t.Errorf("%s: code %d, stderr %q, want %q; stdout %q", args, got.code, got.stderr, want, got.stdout)
		}
	}
}

// TestOperatorIsFree lets collectives without an operator have any.
func TestOperatorIsFree(t *testing.T) {
	got := perform(t, t.Context(), nil,
		strings.Fields("-collective allgather,alltoall,broadcast -dtype bool -sizes 8 -iters 1 -json")...)
	if got.code != exitOK {
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
	if got.code != exitOK || got.stderr != "" {
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
}
