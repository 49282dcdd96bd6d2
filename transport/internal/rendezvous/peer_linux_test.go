package rendezvous

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// otherUserWhere names the environment variable by which this binary is a visitor of another user.
const otherUserWhere = "GOGCL_TEST_RENDEZVOUS"

// TestVisitor is the visitor's program.
func TestVisitor(t *testing.T) {
	where := os.Getenv(otherUserWhere)
	if where == "" {
		t.Skip("run by TestOtherUser")
	}
	_, err := Meet(within(t, long), config(1, 2, where))
	fmt.Println(err)
}

// TestOtherUser: neither side of an abstract socket takes the process of another user.
func TestOtherUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can start a process as another user")
	}
	dir := t.TempDir()
	for _, d := range []string{dir, filepath.Dir(dir)} {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	binary, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "visitor")
	if err := os.WriteFile(program, binary, 0o755); err != nil {
		t.Fatal(err)
	}
	where, _ := sites[1].make(t)
	visitor := exec.Command(program, "-test.run=^TestVisitor$")
	visitor.Dir = "/"
	visitor.Env = []string{otherUserWhere + "=" + where}
	visitor.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}

	var hosting sync.WaitGroup
	var host error
	c, time, refused := config(0, 2, where), newDeadline(), make(chan bool)
	var once sync.Once
	c.came = func(int) { once.Do(func() { close(refused) }) }
	hosting.Go(func() { _, host = Meet(time, c) })
	out, err := visitor.CombinedOutput()
	started := err == nil || len(out) > 0
	if started {
		<-refused
	}
	close(time.over) // the visitor has ended by itself, and replica 0 has refused it
	hosting.Wait()
	if !started {
		t.Skip("cannot start a process as another user: ", err)
	}
	if !strings.Contains(string(out), "is of user 0, this one of user 65534") {
		t.Errorf("the visitor: %s", out)
	}
	if e := errorOf(t, host); e.Kind != Missing || !strings.Contains(e.Reason, "is of user 65534, this one of user 0") {
		t.Errorf("replica 0: %v", e)
	}
}
