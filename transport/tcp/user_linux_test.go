package tcp

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

const otherUser = "GCL_TEST_OTHER_USER"

// copyForOthers is a copy of this test binary that other users may run.
func copyForOthers(t *testing.T) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root, to start a process of another user")
	}
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	binary, err := os.CreateTemp("/tmp", "gogcl-tcp-test") // t.TempDir may be closed to others
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Remove(binary.Name()) })
	for _, err := range []error{write(binary, self), binary.Chmod(0o755), binary.Close()} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return binary.Name()
}

// asOther is a test of a copy of this binary, about to run as another user.
func asOther(binary, test, env string) *exec.Cmd {
	c := exec.Command(binary, "-test.run=^"+test+"$", "-test.v")
	c.Env, c.Dir = append(os.Environ(), otherUser+"="+env), "/"
	c.SysProcAttr = &syscall.SysProcAttr{
		Credential: &syscall.Credential{Uid: 65432, Gid: 65432}, Pdeathsig: syscall.SIGKILL,
	}
	return c
}

func write(f *os.File, b []byte) error {
	_, err := f.Write(b)
	return err
}

// TestJoinOtherUser: without a secret a process of another user is no replica, neither as replica 0 nor as another one.
// With a secret it is.
func TestJoinOtherUser(t *testing.T) {
	// Before anything runs in parallel: a process that is started meanwhile would hold the copy open for writing.
	binary := copyForOthers(t)
	t.Parallel()
	for _, test := range []struct{ kind, secret string }{{"loopback", ""}, {"unix", ""}, {"loopback", "secret"}} {
		for rank := range 2 {
			t.Run(fmt.Sprintf("%s/secret=%s/rank=%d", test.kind, test.secret, rank), func(t *testing.T) {
				t.Parallel()
				where := places(t)[test.kind]
				other := asOther(binary, "TestOtherReplica", fmt.Sprintf("%d %s %s", 1-rank, where, test.secret))
				var out strings.Builder
				other.Stdout = &out
				runtime.LockOSThread() // Pdeathsig is about the thread
				defer runtime.UnlockOSThread()
				if err := other.Start(); err != nil {
					t.Fatal(err)
				}
				err := joinAs(rank, where, test.secret)
				other.Wait()
				switch {
				case test.secret != "" && (err != nil || !strings.Contains(out.String(), "JOINED: <nil>")):
					t.Errorf("%v; the other: %s", err, out.String())
				case test.secret == "" && (err == nil || !strings.Contains(err.Error(), "of user 65432")):
					t.Errorf("%v does not tell of the other user", err)
				case test.secret == "" && !strings.Contains(out.String(), "of user 0"):
					t.Errorf("the other does not tell of this user: %s", out.String())
				}
			})
		}
	}
}

// joinAs joins a job of two, and leaves it.
func joinAs(rank int, where, secret string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 8*time.Second)
	defer cancel()
	e, err := Join(ctx, Config{Rank: rank, Size: 2, Secret: []byte(secret), Network: TCP}, Meeting{Where: where})
	if e != nil {
		e.Close()
	}
	return err
}

// TestOtherReplica is the replica of another user.
func TestOtherReplica(t *testing.T) {
	env, ok := os.LookupEnv(otherUser)
	if !ok {
		t.Skip("TestJoinOtherUser starts it")
	}
	f := strings.Split(env, " ")
	rank, _ := strconv.Atoi(f[0])
	t.Logf("JOINED: %v", joinAs(rank, f[1], f[2]))
}

// TestDirOfOtherUser: without a secret, replicas do not meet in what others have made or may change.
func TestDirOfOtherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to give a directory away")
	}
	for name, test := range map[string]struct {
		spoil func(dir, of string) error
		want  string
	}{
		"of another user": {func(_, of string) error { return os.Chown(of, 65432, 65432) }, "of user 65432"},
		"open":            {func(_, of string) error { return os.Chmod(of, 0o777) }, "others may write"},
		"open parent":     {func(dir, _ string) error { return os.Chmod(dir, 0o777) }, "all users may write"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			join := func() error {
				ctx, cancel := context.WithTimeout(context.Background(), time.Second)
				defer cancel()
				_, err := Join(ctx, Config{Rank: 1, Size: 2}, Meeting{Where: "dir:" + dir})
				return err
			}
			// The name of the job's directory is that which a replica makes.
			first := make(chan error)
			go func() { first <- join() }()
			of := ""
			for of == "" {
				if entries, _ := os.ReadDir(dir); len(entries) > 0 {
					of = filepath.Join(dir, entries[0].Name())
				}
			}
			if err := <-first; err == nil {
				t.Fatal("joined alone")
			}
			if err := os.Mkdir(of, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := test.spoil(dir, of); err != nil {
				t.Fatal(err)
			}
			if err := join(); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v does not say %q", err, test.want)
			}
		})
	}
}
