package user

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"

	"gogcl.dev/internal/leaktest"
)

// TestMain also is the process of another user, which dials what the test listens on.
func TestMain(m *testing.M) {
	if at, ok := strings.CutPrefix(os.Args[len(os.Args)-1], "dial:"); ok {
		network, address, _ := strings.Cut(at, "=")
		conn, err := net.Dial(network, address)
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		conn.Read(make([]byte, 1)) // until the test closes it
		os.Exit(0)
	}
	leaktest.Main(m)
}

// listeners are one of each kind that Check knows.
func listeners(t *testing.T) map[string]net.Listener {
	out := map[string]net.Listener{}
	for name, at := range map[string][2]string{
		"unix": {"unix", fmt.Sprintf("@gogcl-user-test-%d", os.Getpid())},
		"IPv4": {"tcp4", "127.0.0.1:0"}, "IPv6": {"tcp6", "[::1]:0"},
	} {
		l, err := net.Listen(at[0], at[1])
		if err != nil {
			t.Logf("%s: %v", name, err)
			continue
		}
		t.Cleanup(func() { l.Close() })
		out[name] = l
	}
	return out
}

// TestCheck: both ends of a connection within this process are of its user.
func TestCheck(t *testing.T) {
	for name, l := range listeners(t) {
		dialed, err := net.Dial(l.Addr().Network(), l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer dialed.Close()
		accepted, err := Only(l, nil).Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer accepted.Close()
		if err := Check(dialed); err != nil {
			t.Errorf("%s, dialed: %v", name, err)
		}
	}
}

// TestCheckOther: a process of another user is refused, and the next one of this user is taken.
func TestCheckOther(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to start a process of another user")
	}
	// Another user may not reach the directory of the test binary.
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	binary, err := os.CreateTemp("/tmp", "gogcl-user-test")
	if err != nil {
		t.Fatal(err)
	}
	defer os.Remove(binary.Name())
	_, err = binary.Write(self)
	if err := errorsOf(err, binary.Chmod(0o755), binary.Close()); err != nil {
		t.Fatal(err)
	}
	for name, l := range listeners(t) {
		t.Run(name, func(t *testing.T) {
			other := exec.Command(binary.Name(), "dial:"+l.Addr().Network()+"="+l.Addr().String())
			other.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65432, Gid: 65432}}
			other.Dir = "/"
			var refused error
			guarded := Only(l, func(_ net.Conn, err error) {
				refused = err
				dialed, err := net.Dial(l.Addr().Network(), l.Addr().String())
				if err != nil {
					t.Error(err)
					return
				}
				t.Cleanup(func() { dialed.Close() })
			})
			if err := other.Start(); err != nil {
				t.Fatal(err)
			}
			defer other.Wait()
			conn, err := guarded.Accept()
			if err != nil {
				t.Fatal(err)
			}
			conn.Close()
			if refused == nil || !strings.Contains(refused.Error(), "of user 65432") {
				t.Errorf("refused: %v", refused)
			}
		})
	}
}

func errorsOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// text is a table in the kernel's words, and how often it has been read.
type text struct {
	lines string
	reads int
	begun chan chan struct{} // if there is one: each reading gives it a channel, and waits until that is closed
}

func (k *text) read(line func([]byte)) error {
	k.reads++
	if k.begun != nil {
		wait := make(chan struct{})
		k.begun <- wait
		<-wait
	}
	for l := range strings.Lines(k.lines) {
		line([]byte(strings.TrimSuffix(l, "\n")))
	}
	return nil
}

// sample has connections from 127.0.0.1:50000 and [::1]:50000 to port 6000 and those behind it.
const sample = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1770 00000000:0000 0A 00000000:00000000 00:00000000 00000000     1        0 1 1
   1: 0100007F:1770 0100007F:C350 06 00000000:00000000 00:00000000 00000000     2        0 1 1
   2: 0100007F:1770 0100007F:C350 01 00000000:00000000 00:00000000 00000000     3        0 1 1
   3: 0000000000000000FFFF00000100007F:1771 0000000000000000FFFF00000100007F:C350 01 0:0 00:0 0     4        0 1 1
   4: 00000000000000000000000001000000:1772 00000000000000000000000001000000:C350 01 0:0 00:0 0     5        0 1 1
   5: short
100000: 0100007F:1774 0100007F:C350 01 00000000:00000000 00:00000000 00000000     6        0 1 1
`

func littleEndian(t *testing.T) {
	if words([]byte{1, 0, 0, 0}) != "00000001" {
		t.Skip("the lines are of a little-endian machine")
	}
}

// ends are the addresses of a connection of sample.
func ends(port uint16) (local, remote netip.AddrPort) {
	host := netip.MustParseAddr("127.0.0.1")
	if port == 6002 {
		host = netip.IPv6Loopback()
	}
	return netip.AddrPortFrom(host, port), netip.AddrPortFrom(host, 50000)
}

// TestSearch: addresses in all forms that the kernel writes.
func TestSearch(t *testing.T) {
	littleEndian(t)
	for port, want := range map[uint16]uint32{6000: 3, 6001: 4, 6002: 5, 6003: 0, 6004: 6} {
		kernel := text{lines: sample}
		uid, found, err := newTable(kernel.read).owner(ends(port))
		if err != nil || uid != want || found != (want != 0) {
			t.Errorf("port %d: user %d, %v, %v; want %d", port, uid, found, err, want)
		}
	}
	failing := newTable(func(func([]byte)) error { return os.ErrPermission })
	if _, found, err := failing.owner(ends(6000)); found || err != os.ErrPermission {
		t.Errorf("a table that cannot be read: %v, %v", found, err)
	}
}

// TestSearchTogether: all who ask while the table is read are answered by one more reading.
func TestSearchTogether(t *testing.T) {
	littleEndian(t)
	synctest.Test(t, func(t *testing.T) {
		kernel := text{lines: sample, begun: make(chan chan struct{})}
		sockets := newTable(kernel.read)
		var asking sync.WaitGroup
		ask := func(port uint16, want uint32) {
			asking.Go(func() {
				uid, found, err := sockets.owner(ends(port))
				if err != nil || uid != want || found != (want != 0) {
					t.Errorf("port %d: user %d, %v, %v; want %d", port, uid, found, err, want)
				}
			})
		}
		ask(6000, 3)
		first := <-kernel.begun
		for range 100 {
			ask(6000, 3)
			ask(6001, 4)
			ask(6003, 0)
		}
		synctest.Wait() // all have asked
		close(first)
		close(<-kernel.begun)
		asking.Wait()
		if kernel.reads != 2 {
			t.Errorf("301 questions took %d readings, want 2", kernel.reads)
		}
	})
}

// TestCheckDir: a directory of this user's, and what else there is.
func TestCheckDir(t *testing.T) {
	dir := t.TempDir()
	os.Chmod(dir, 0o755)
	if err := errorsOf(CheckDir(dir), CheckParent(dir), CheckParent("/tmp")); err != nil {
		t.Error(err)
	}
	os.Chmod(dir, 0o777)
	for name, err := range map[string]error{"writable": CheckDir(dir), "parent": CheckParent(dir),
		"link": CheckDir("/proc/self/exe"), "missing": CheckDir(dir + "/no")} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
