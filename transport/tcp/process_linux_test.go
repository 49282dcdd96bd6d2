package tcp

import (
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestProcessEnded: the kernel says of a process whether it has ended, also of one whose number another has got since.
func TestProcessEnded(t *testing.T) {
	mine := processName()
	if own := newProcess(mine, mine); own != nil {
		t.Errorf("this process asks the kernel after itself, as %+v", own)
	}
	own := &process{os.Getpid(), startOf(os.Getpid())}
	if own.ended(0) {
		t.Error("this process has ended")
	}
	if again := (&process{own.pid, own.start + "0"}); !again.ended(0) {
		t.Error("a process whose number this one has got has not ended")
	}
	for _, name := range []string{"", "pid:[1] 1", strings.Replace(mine, " ", " -", 1), mine + "x"} {
		if p := newProcess(mine, name); p != nil {
			t.Errorf("%q is %+v", name, p)
		}
	}
	if newProcess("", "") != nil || newProcess("", mine) != nil || (*process)(nil).ended(0) {
		t.Error("a process that is not known can be asked after")
	}
	child := exec.Command("sleep", "1000")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	space, _, _ := strings.Cut(mine, " ")
	p := &process{child.Process.Pid, startOf(child.Process.Pid)}
	if q := newProcess(mine, space+" "+strconv.Itoa(p.pid)); q == nil || *q != *p {
		t.Errorf("the child is %+v, want %+v", q, p)
	}
	if p.ended(0) {
		t.Error("the child has ended")
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if !p.ended(time.Minute) { // it has not been waited for
		t.Error("the child has not ended")
	}
	child.Wait()
	if !p.ended(0) {
		t.Error("the child is still there")
	}
	if q := newProcess(mine, space+" "+strconv.Itoa(p.pid)); q == nil || !q.ended(0) {
		t.Errorf("a process that has ended before it is asked after is %+v", q)
	}
	// What is said of a control connection that has ended without a word.
	here, there := net.Pipe()
	defer here.Close()
	defer there.Close()
	c := newControl(quietMesh(0, 2), 1)
	for _, test := range []struct {
		process *process
		err     error
		want    string
	}{
		{own, io.EOF, "its control connection (pipe to pipe) has ended without a word"},
		{nil, io.EOF, "its control connection (pipe to pipe) has ended without a word"},
		{own, syscall.ECONNRESET, "its control connection (pipe to pipe) has ended without a word: connection reset by peer"},
		{p, io.EOF, "its process has ended without closing its communicator"},
		{p, syscall.ECONNRESET, "its process has ended without closing its communicator"},
		{p, errChanged, errChanged.Error()},
	} {
		c.process = test.process
		if got := c.why(here, test.err, 0); got.Error() != test.want {
			t.Errorf("%v of %+v: %q, want %q", test.err, test.process, got, test.want)
		}
	}
}
