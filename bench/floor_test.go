package bench

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
)

// arlimit compiles peers/arlimit.c with one text in it replaced by another.
func arlimit(t *testing.T, text, by string) (program string) {
	t.Helper()
	cpu, _ := os.ReadFile("/proc/cpuinfo")
	if runtime.GOARCH != "amd64" || !strings.Contains(string(cpu), "avx512f") {
		t.Skip("no AVX-512")
	}
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skip("no gcc")
	}
	source, err := os.ReadFile("peers/arlimit.c")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(source), text) {
		t.Fatalf("%q is not in arlimit.c", text)
	}
	program = filepath.Join(t.TempDir(), "arlimit")
	if err := os.WriteFile(program+".c", []byte(strings.ReplaceAll(string(source), text, by)), 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("gcc", "-O1", "-march=native", "-pthread", "-o", program, program+".c").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return program
}

// TestMeetFloor wants a line of times from processes that only meet, whether they sleep or not, and refuses what makes
// no sense.
func TestMeetFloor(t *testing.T) {
	if _, err := exec.LookPath("gcc"); err != nil || runtime.GOOS != "linux" {
		t.Skip("no gcc, or no Linux")
	}
	program := filepath.Join(t.TempDir(), "meet")
	out, err := exec.Command("gcc", "-O2", "-Wall", "-Werror", "-o", program, "peers/meet.c").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, args := range []string{"0.001 2 32", "0.001 4 0", "0.001 3 8"} {
		code, stdout, stderr := exit(t, program, strings.Fields(args)...)
		var n, looks int
		var median, least float64
		fields := strings.Fields(args)
		if _, err := fmt.Sscanf(stdout, "meet,%d,%d,%f,%f\n", &n, &looks, &median, &least); err != nil || code != 0 ||
			strconv.Itoa(n) != fields[1] || strconv.Itoa(looks) != fields[2] || least <= 0 || median < least {
			t.Errorf("%s: code %d, %q, %q, %v", args, code, stdout, stderr, err)
		}
	}
	for _, args := range []string{"", "1 2", "0 2 32", "1 1 32", "1 65 32", "1 2 -1", "1 2 8x", "x 2 8"} {
		code, stdout, stderr := exit(t, program, strings.Fields(args)...)
		if code != 2 || stdout != "" || !strings.Contains(stderr, "want seconds, 2 to 64 processes") {
			t.Errorf("%q: code %d, %q, %q", args, code, stdout, stderr)
		}
	}
}

// TestSocketWays wants a line for each way of sockets.c, with times, and refuses ways that there are not. The ways that
// add check their sums.
func TestSocketWays(t *testing.T) {
	if _, err := exec.LookPath("gcc"); err != nil || runtime.GOOS != "linux" {
		t.Skip("no gcc, or no Linux")
	}
	program := filepath.Join(t.TempDir(), "sockets")
	out, err := exec.Command("gcc", "-O2", "-Wall", "-Werror", "-pthread", "-o", program,
		"peers/sockets.c").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	const ways = "1,3,1x64,2s256f,1s128b"
	for _, n := range []string{"2", "3"} {
		code, stdout, stderr := exit(t, program, "-n", n, "-w", ways, "-s", "100,70000,300000", "-t", "0.001")
		var got []string
		for line := range strings.SplitSeq(strings.TrimSpace(stdout), "\n") {
			fields := strings.Split(line, ",")
			got = append(got, strings.Join(fields[:min(len(fields), 5)], ","))
			var us, median, least, greatest float64
			_, err := fmt.Sscanf(strings.Join(fields[min(len(fields), 5):], " "), "%f %f %f %f", &us, &median, &least,
				&greatest)
			if err != nil || us <= 0 || least <= 0 || median < least || greatest < median ||
				fields[4] == "1" && (least != 1 || greatest != 1) {
				t.Errorf("line %q, %v", line, err)
			}
		}
		var want []string
		for _, size := range []string{"100", "70000", "300000"} {
			for _, name := range []string{"allreduce", "reducescatter", "allgather", "alltoall", "broadcast"} {
				for way := range strings.SplitSeq(ways, ",") {
					want = append(want, strings.Join([]string{"tcp", n, name, size, way}, ","))
				}
			}
		}
		if code != 0 || strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("code %d\n%s\n%s", code, stdout, stderr)
		}
	}
	for _, way := range []string{"0", "9", "1y", "1x0", "1s", "4b", "1ff", "", "1s9999999", "1,1,1,1,1,1,1,1,1,1"} {
		code, stdout, stderr := exit(t, program, "-w", way)
		if code != 2 || stdout != "" || !strings.Contains(stderr, "want 1 to 8 connections") {
			t.Errorf("%q: code %d, %q, %q", way, code, stdout, stderr)
		}
	}
}

// exit runs a program. code is 0 or how it failed.
func exit(t *testing.T, program string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	c := exec.Command(program, args...)
	var out, errs strings.Builder
	c.Stdout, c.Stderr = &out, &errs
	if err := c.Run(); err != nil {
		var failed *exec.ExitError
		if !errors.As(err, &failed) {
			t.Fatal(err)
		}
		code = failed.ExitCode()
	}
	return code, out.String(), errs.String()
}

// TestFloor wants a line for each size, place and kind of store, by as many threads as buffers or cores.
func TestFloor(t *testing.T) {
	program := arlimit(t, "", "")
	for n := 2; n <= 8; n *= 2 {
		code, stdout, stderr := exit(t, program, "0.001", strconv.Itoa(n), "4,6,1K,256KiB")
		var got []string
		for line := range strings.SplitSeq(strings.TrimSpace(stdout), "\n") {
			fields := strings.Split(line, ",")
			got = append(got, strings.Join(fields[:min(len(fields), 6)], ","))
			if len(fields) != 10 {
				t.Errorf("line %q", line)
			}
		}
		each := strconv.Itoa(min(n, runtime.NumCPU()))
		var want []string
		for _, part := range []string{"4,oop,reg", "4,ip,reg", "8,oop,reg", "8,ip,reg", "1024,oop,reg", "1024,ip,reg",
			"262144,oop,reg", "262144,oop,nt", "262144,ip,reg", "262144,ip,nt"} {
			want = append(want, "arlimit,"+strconv.Itoa(n)+","+part+","+each)
		}
		if code != 0 || strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("code %d\n%s\n%s", code, stdout, stderr)
		}
	}
}

// TestFloorChecksSums has floors that do less than an all-reduce: each must say so and print no time.
func TestFloorChecksSums(t *testing.T) {
	for name, change := range map[string][2]string{
		"nothing":         {"reduce(2, lo, hi, 0, to); break;", "break;"},
		"one shard":       {"reduce(2, lo, hi, 0, to); break;", "if (t == 0) reduce(2, lo, hi, 0, to); break;"},
		"one output":      {"_mm512_storeu_ps(to[k] + i, s)", "_mm512_storeu_ps(to[0] + i, s)"},
		"another element": {"_mm512_loadu_ps(in[k] + i)", "_mm512_loadu_ps(in[k] + lo)"},
		"tail":            {"to[k][i] = s", "to[0][i] = s"},
	} {
		program := arlimit(t, change[0], change[1])
		code, stdout, stderr := exit(t, program, "0.001", "2", "1036")
		if code != 1 || stdout != "" || !strings.Contains(stderr, "arlimit: R 2, 1036 bytes, oop, reg: buffer ") {
			t.Errorf("%s: code %d, %q, %q", name, code, stdout, stderr)
		}
	}
	// A call too few in place: out of place it does not show.
	program := arlimit(t, "i = 0; i < iters; i++) call(t)", "i = in_place; i < iters; i++) call(t)")
	code, stdout, stderr := exit(t, program, "0.001", "2", "32M")
	const want = "33554432 bytes, ip, reg: buffer 0 "
	if code != 1 || strings.Count(stdout, "\n") != 2 || !strings.Contains(stderr, want) {
		t.Errorf("code %d, %q, %q", code, stdout, stderr)
	}
}

func TestFloorArguments(t *testing.T) {
	program := arlimit(t, "", "")
	for args, want := range map[string]string{
		"1 2":                              "want three arguments",
		"0 2 8":                            "want seconds",
		"1 3 8":                            "want 2, 4 or 8 buffers",
		"1 2 ,":                            "want sizes",
		"1 2 8,-4":                         "want sizes such as",
		"1 2 8x":                           "want sizes such as",
		"1 2 8iB":                          "want sizes such as",
		"1 2 5G":                           "want sizes such as",
		"1 2 8" + strings.Repeat(",8", 64): "want 64 sizes at most",
	} {
		code, stdout, stderr := exit(t, program, strings.Fields(args)...)
		if code != 2 || stdout != "" || !strings.Contains(stderr, want) {
			t.Errorf("%s: code %d, %q, %q", args, code, stdout, stderr)
		}
	}
}
