package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"gogcl.dev/internal/command"
)

// TestFaults: what a launcher says at its end is right, or what is wrong with it.
func TestFaults(t *testing.T) {
	const (
		other = "another replica is blamed"
		often = "more than one line blames"
		early = "the last line does not blame"
		bare  = "neither the signal nor the exit code is named"
		right = "gclrun: replica 2 (pid 77 on node1) was ended by signal 9 (killed)\n"
		wrong = "gclrun: replica 0 (pid 75 on node1) ended with exit code 1\n"
	)
	for _, x := range []struct {
		code   int
		stderr string
		want   []string
	}{
		{137, right, nil},
		{137, "rts: replica 2 is lost\n" + right, nil},
		{137, "gclrun: replica 2 (pid 77) ended with exit code 137\n", nil},
		{1, right, []string{"the exit code is 1, want 137"}},
		{1, wrong, []string{"the exit code is 1, want 137", other}},
		{137, wrong + right, []string{often}},
		{137, right + "rts: replica 2 is lost\n", []string{early}},
		{137, "gclrun: replica 2 (pid 777 on node1) was ended by signal 9 (killed)\n", []string{other}},
		{137, "gclrun: replica 2 (pid 77) is gone\n", []string{bare}},
		{137, "rts: replica 2 is lost\n", []string{"nobody is blamed"}},
		{137, "", []string{"nobody is blamed"}},
	} {
		got := launcherEnd{name: "gclrun", code: x.code, stderr: x.stderr}.faults(child{rank: 2, pid: 77}, 9, 137)
		if !slices.Equal(got, x.want) {
			t.Errorf("%d, %q: %q, want %q", x.code, x.stderr, got, x.want)
		}
	}
}

// asLauncher is the first argument of a test's launcher; the second says whom it blames.
const asLauncher = "launcher"

// beALauncher starts two replicas, which wait for their end, and blames the first that ends, or the other.
func beALauncher(blames string) int {
	ends := make(chan int)
	var replicas []*exec.Cmd
	for rank := range 2 {
		c := exec.Command("sleep", "600")
		c.Env, c.SysProcAttr = append(os.Environ(), fmt.Sprintf("RANK=%d", rank)), attributes()
		if err := c.Start(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 99
		}
		replicas = append(replicas, c)
		go func() {
			_ = c.Wait()
			ends <- rank
		}()
	}
	fmt.Println("at work")
	rank := <-ends
	code := 128 + int(replicas[rank].ProcessState.Sys().(syscall.WaitStatus).Signal())
	other := 1 - rank
	_ = replicas[other].Process.Kill()
	<-ends
	if blames == "other" {
		rank, code = other, 1
	}
	fmt.Fprintf(os.Stderr, "%s: replica %d (pid %d on here) ended with exit code %d\n", filepath.Base(os.Args[0]), rank,
		replicas[rank].Process.Pid, code)
	return code
}

// TestBlame: the mode blame counts what a launcher says wrongly.
func TestBlame(t *testing.T) {
	onLinux(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for blames, x := range map[string]struct {
		code int
		want string
	}{
		"first": {command.OK, "3 jobs with a signal 15, 0 blamed wrongly"},
		"other": {command.Failed, "3 jobs with a signal 15, 3 blamed wrongly"},
	} {
		var stdout, stderr bytes.Buffer
		args := []string{"blame", "-runs", "3", "-signal", "15", "-begin", "at w", self, asLauncher, blames}
		code := run(t.Context(), args, &stdout, &stderr)
		if code != x.code || !strings.Contains(stdout.String(), x.want) {
			t.Errorf("%s: exit code %d\n%s%s", blames, code, &stdout, &stderr)
		}
		if blames == "other" && (!strings.Contains(stdout.String(), "   3 times another replica is blamed\n") ||
			!strings.Contains(stdout.String(), "   3 times the exit code is 1, want 143\n")) {
			t.Errorf("%s", &stdout)
		}
	}
	t.Run("no job", func(t *testing.T) {
		var stdout, stderr bytes.Buffer
		code := run(t.Context(), []string{"blame", "-runs", "1", "echo", "epoch"}, &stdout, &stderr)
		if code != command.Failed || !strings.Contains(stderr.String(), "no children") &&
			!strings.Contains(stderr.String(), "has ended before its work") {
			t.Errorf("exit code %d\n%s%s", code, &stdout, &stderr)
		}
	})
}
