//go:build unix

package watch

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// room is the directory of sockets that Dir makes. Its path is short.
func room(t *testing.T) string {
	dir, err := os.MkdirTemp("", "gcl")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	t.Setenv("XDG_RUNTIME_DIR", dir)
	made, err := Dir()
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// open has a replica of a job of so many answer.
func open(t *testing.T, dir, job string, replica, size int, others ...Process) io.Closer {
	own := Process{Job: job, Run: job, Size: size, Replicas: []Replica{{Replica: replica}}}
	c, err := Answer(dir, job, replica, func(all bool) Job {
		out := Job{Name: job, Run: job, Size: size, Processes: []Process{own}}
		if all {
			out.Processes = append(out.Processes, others...)
		}
		return out
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// summary is the jobs in short: their processes' replicas, and who is missing.
func summary(t *testing.T, dir string) string {
	jobs, err := Ask(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, j := range jobs {
		words := []string{fmt.Sprintf("%s of %d:", j.Name, j.Size)}
		for _, p := range j.Processes {
			words = append(words, fmt.Sprint(p.first()))
		}
		for _, m := range j.Missing {
			words = append(words, fmt.Sprintf("%d %s", m.Replica, m.Why))
		}
		out = append(out, strings.Join(words, " "))
	}
	return strings.Join(out, "; ")
}

// TestAsk: all replicas are heard that answer, and those of other hosts from one that does. Jobs are told apart.
func TestAsk(t *testing.T) {
	dir := room(t)
	if got := summary(t, dir); got != "" {
		t.Error(got)
	}
	others := []Process{{Replicas: []Replica{{Replica: 3}}}, {Replicas: []Replica{{Replica: 0}}}}
	open(t, dir, "b", 1, 4, others...)
	zero := open(t, dir, "b", 0, 4, others...)
	open(t, dir, "a", 0, 1)
	const want = "a of 1: 0; b of 4: 0 1 3 2 does not answer"
	if got := summary(t, dir); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if err := zero.Close(); err != nil {
		t.Error(err)
	}
	if got := summary(t, dir); got != want { // 0 is on another host now
		t.Errorf("%s, want %s", got, want)
	}
}

// TestAskDead: sockets that nobody listens to are removed, and nothing else is. Who does not answer is named.
func TestAskDead(t *testing.T) {
	dir := room(t)
	over := exec.Command(os.Args[0], "-test.run=^$") // a process that has ended
	if err := over.Run(); err != nil {
		t.Fatal(err)
	}
	left := func(host uint32, replica, pid int) string {
		path := filepath.Join(dir, fmt.Sprintf("%08x-%08x-%d-%d-1.sock", short("j"), host, replica, pid))
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
		if err != nil {
			t.Fatal(err)
		}
		l.SetUnlinkOnClose(false)
		l.Close()
		return path
	}
	dead := left(short(Hostname()), 1, over.Process.Pid)
	alive := left(short(Hostname()), 1, os.Getpid())                                   // is about to listen
	foreign := []string{"notes.txt", "a-b-c-d-e.sock", "00000000-00000000-1-2-3.sock"} // the last is no socket
	foreign = append(foreign, filepath.Base(alive), filepath.Base(left(short("another host"), 2, over.Process.Pid)))
	for _, name := range foreign[:3] {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	mute, err := net.ListenUnix("unix", &net.UnixAddr{
		Name: filepath.Join(dir, fmt.Sprintf("%08x-%08x-2-%d-1.sock", short("j"), short(Hostname()), os.Getpid())),
		Net:  "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer mute.Close()
	open(t, dir, "j", 0, 3)
	if got, want := summary(t, dir), "j of 3: 0 1 does not answer 2 does not answer"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if _, err := os.Lstat(dead); err == nil {
		t.Error("the dead socket is there")
	}
	for _, name := range foreign {
		if _, err := os.Lstat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
}

// TestAnswerNonsense: who asks for nothing that is known gets no answer, and others do.
func TestAnswerNonsense(t *testing.T) {
	dir := room(t)
	open(t, dir, "j", 0, 1)
	all, err := sockets(dir)
	if err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	for _, text := range []string{"", "own", "nonsense\n", strings.Repeat("x", 1000) + "\n"} {
		conn, err := net.Dial("unix", all[0].path)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(conn, text) // the other side may have enough of it
		if err := conn.(*net.UnixConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if answer, _ := io.ReadAll(conn); len(answer) > 0 {
			t.Errorf("the answer to %.20q is %q", text, answer)
		}
		conn.Close()
	}
	if got := summary(t, dir); got != "j of 1: 0" {
		t.Error(got)
	}
}

// TestDir: a directory that is not this user's alone is refused.
func TestDir(t *testing.T) {
	dir := room(t)
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := Dir(); err == nil || !strings.Contains(err.Error(), "chmod 700") {
		t.Error(err)
	}
	os.Remove(dir)
	if err := os.Symlink(t.TempDir(), dir); err != nil {
		t.Fatal(err)
	}
	if _, err := Dir(); err == nil || !strings.Contains(err.Error(), "no directory") {
		t.Error(err)
	}
	if os.Geteuid() == 0 {
		os.Remove(dir)
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(dir, 1234, 1234); err != nil {
			t.Skip(err) // in a namespace with one user
		}
		if _, err := Dir(); err == nil || !strings.Contains(err.Error(), "another user") {
			t.Error(err)
		}
	}
	_, err := Answer(strings.Repeat("long/", 50), "j", 0, nil)
	if err == nil || !strings.Contains(err.Error(), "path") {
		t.Error(err)
	}
}
