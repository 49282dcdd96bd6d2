package hosts

import (
	"errors"
	"runtime"
	"testing"
)

// TestName: processes share a name where they share a kernel and a network, and only there.
func TestName(t *testing.T) {
	if first, second := Name(), Name(); first != second {
		t.Errorf("Name is %q and then %q", first, second)
	}
	no := errors.New("no")
	name := func(boot, space string) string {
		return nameOf(func(string) ([]byte, error) {
			if boot == "" {
				return nil, no
			}
			return []byte(boot + "\n"), nil
		}, func(string) (string, error) {
			if space == "" {
				return "", no
			}
			return space, nil
		}, "linux")
	}
	if one, other := name("1", "net:[2]"), name("1", "net:[2]"); one != other {
		t.Errorf("two processes of one host: %q, %q", one, other)
	}
	for _, other := range [][2]string{{"2", "net:[2]"}, {"1", "net:[3]"}, {"", "net:[2]"}, {"1", ""}, {"", ""}} {
		if name("1", "net:[2]") == name(other[0], other[1]) {
			t.Errorf("%q is taken for the same host", other)
		}
	}
	for _, unknown := range [][2]string{{"", "net:[2]"}, {"1", ""}, {"", ""}} {
		if one, other := name(unknown[0], unknown[1]), name(unknown[0], unknown[1]); one == other {
			t.Errorf("two processes that know %q of their host are taken for neighbours", unknown)
		}
	}
	if read := func(string) ([]byte, error) { return nil, no }; runtime.GOOS != "linux" &&
		nameOf(read, nil, "darwin") != Name() {
		t.Error("elsewhere it is the host's name")
	}
}

// TestCrowded: a host is crowded by more replicas than processors that they may run on, all together.
func TestCrowded(t *testing.T) {
	on := func(host string, cpus ...int) Place { return Place{host, cpus} }
	for _, test := range []struct {
		places []Place
		want   bool
	}{
		{[]Place{on("a", 0, 1), on("a", 0, 1)}, false},
		{[]Place{on("a", 0, 1), on("a", 0, 1), on("a", 0, 1)}, true},
		{[]Place{on("a", 0, 1), on("a", 0, 1), on("b", 0, 1)}, false},
		{[]Place{on("a", 0), on("a", 1)}, false},
		{[]Place{on("a", 0), on("a", 0)}, true},
		{[]Place{on("a"), on("a")}, false}, // not known
	} {
		if got := Crowded(test.places, 0); got != test.want {
			t.Errorf("%v: %v, want %v", test.places, got, test.want)
		}
	}
}
