package watch

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestFiles: what is written is read again, the newest of a replica. What is cut, foreign or of another job is named,
// and left out.
func TestFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	write := func(job, run string, replica, pid int, when int64) string {
		path, err := WriteFile(dir, Process{Job: job, Run: run, Size: 4, PID: pid, At: time.Unix(when, 0), Host: "h",
			Replicas: []Replica{at(replica, 5, replica != 2)}})
		if err != nil {
			t.Fatal(err)
		}
		return path
	}
	write("j", "run 2", 0, 1, 1)
	write("j", "run 2", 0, 1, 2) // in the place of that
	for replica := range 4 {
		write("j", "run 1", replica, 9, 1)
	}
	write("j", "run 2", 2, 3, 2)
	write("other", "run 0", 1, 5, 1)
	cut := write("j", "run 2", 1, 2, 2)
	text, err := os.ReadFile(cut)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		cut: string(text[:len(text)/2]), filepath.Join(dir, "gcl-foreign.json"): `{"format": "something"}`,
		filepath.Join(dir, "gcl-size.json"):    `{"format": "gcl process 1", "size": 1e9}`,
		filepath.Join(dir, "gcl-replica.json"): `{"format": "gcl process 1", "size": 2, "replicas": [{"replica": 2}]}`,
		filepath.Join(dir, "notes.txt"):        "mine",
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	job, complaints, err := ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(job.Processes) != 2 || job.Processes[0].PID != 1 || !job.Processes[0].At.Equal(time.Unix(2, 0)) {
		t.Errorf("%+v", job.Processes)
	}
	lines := strings.Join(job.Explain(complaints), "\n")
	for _, want := range []string{
		"job j, 4 replicas: 2 processes; no file of replicas 1, 3", "left out: 1 file of another run, of job \"other\" at ",
		"left out: 4 files of another run, of job \"j\" at ",
		filepath.Base(cut) + ": it is cut or damaged", "gcl-foreign.json: it is no file of a process of gcl",
		"gcl-size.json: it is cut or damaged", "gcl-replica.json: replica 2 of 2",
		"first: replicas 1, 3, for whom the others wait",
	} {
		if !strings.Contains(lines, want) {
			t.Errorf("there is no %q in\n%s", want, lines)
		}
	}
	if _, _, err := ReadDir(filepath.Join(dir, "none")); err == nil {
		t.Error("no error for a directory that is not there")
	}
	if _, err := WriteFile(cut, Process{}); err == nil {
		t.Error("no error for a directory that is a file")
	}
}

// TestHeard: what a process has heard of others counts where they have written no file.
func TestHeard(t *testing.T) {
	dir := t.TempDir()
	p := Process{Job: "j", Size: 2, Replicas: []Replica{at(0, 5, true)}, Heard: []Process{
		{Job: "j", Size: 2, Replicas: []Replica{at(1, 4, false)}}}}
	p.Heard[0].Replicas[0].Stack = "time.Sleep, in main.work"
	p.Replicas[0].Connections[0].Calls[0].Waits[0].Members = []int{0, 1}
	if _, err := WriteFile(dir, p); err != nil {
		t.Fatal(err)
	}
	job, _, err := ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Join(job.Explain(nil), "\n")
	if !strings.Contains(lines, "first: replica 1, ") || !strings.Contains(lines, "time.Sleep, in main.work") {
		t.Error(lines)
	}
}

// TestStack: where a goroutine is, without the library and the runtime.
func TestStack(t *testing.T) {
	for _, c := range []struct {
		name, text string
		number     uint64
		want       string
		isMain     bool
	}{
		{"a lock in a body", `goroutine 7 [sync.Mutex.Lock, 2 minutes]:
internal/sync.runtime_SemacquireMutex(0x1, 0x2)
	/go/src/runtime/sema.go:95 +0x25
sync.(*Mutex).Lock(...)
	/go/src/sync/mutex.go:46
example.org/train.(*Loader).next(0x1)
	/src/loader.go:17 +0x1d
main.step({0x1, 0x2})
	/src/main.go:40 +0x44
gogcl.dev/gcl.runReplicas.func1.1()
	/src/gcl/run.go:144 +0x1
gogcl.dev/gcl.guard(0x1, 0x2)
	/src/gcl/work.go:203 +0x2
created by gogcl.dev/gcl.runReplicas in goroutine 1
	/src/gcl/run.go:143 +0x3
`, 7, "sync.(*Mutex).Lock, in example.org/train.(*Loader).next (/src/loader.go:17), main.step (/src/main.go:40)", false},
		{"a collective in main", `goroutine 1 [select]:
gogcl.dev/transport/tcp.(*lane).wait(0x1)
	/src/wait.go:1 +0x1
gogcl.dev/gcl.AllReduce[...]({0x1, 0x2})
	/src/collectives.go:9 +0x1
main.main()
	/src/main.go:12 +0x1
`, 1, "gogcl.dev/gcl.AllReduce[...], in main.main (/src/main.go:12)", true},
		{"main waits for bodies", `goroutine 1 [sync.WaitGroup.Wait]:
gogcl.dev/gcl.Run({0x1})
	/src/run.go:1 +0x1
main.main()
	/src/main.go:12 +0x1
`, 1, "", true},
		{"computes", `goroutine 12 [runnable]:
main.work()
	/src/main.go:7 +0x1
created by main.main in goroutine 1
	/src/main.go:12 +0x1
`, 12, "runnable, in main.work (/src/main.go:7)", false},
		{"a panic in a body", `goroutine 9 [running]:
runtime/debug.Stack()
	/go/src/runtime/debug/stack.go:26 +0x1
gogcl.dev/gcl.guard.func1()
	/src/gcl/work.go:199 +0x1
panic({0x1, 0x2})
	/go/src/runtime/panic.go:1 +0x1
main.look()
	/src/main.go:7 +0x1
gogcl.dev/gcl.guard(0x1, 0x2)
	/src/gcl/work.go:203 +0x2
`, 9, "panic, in main.look (/src/main.go:7)", false},
		{"nothing", "", 0, "", false},
	} {
		number, got, isMain := stackOf(c.text)
		if number != c.number || got != c.want || isMain != c.isMain {
			t.Errorf("%s: %d, %q, %t, want %d, %q, %t", c.name, number, got, isMain, c.number, c.want, c.isMain)
		}
	}
}
