package machine

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
)

func TestOf(t *testing.T) {
	const cpuinfo = "processor\t: 0\nmodel name\t: Some   CPU @ 3 GHz\nprocessor\t: 1\nmodel name\t: other\n"
	for _, x := range []struct{ cpuinfo, online, want string }{
		{cpuinfo, "0-1\n", "Some CPU @ 3 GHz|2"},
		{cpuinfo + strings.Repeat("flags: many\n", 1000), "0,2-3,6", "Some CPU @ 3 GHz|4"},
		{"processor\t: 0\n", "0", "|1"},
		{cpuinfo, "3-1", "Some CPU @ 3 GHz|0"},
		{cpuinfo, "all", "Some CPU @ 3 GHz|0"},
		{cpuinfo, "", "Some CPU @ 3 GHz|0"},
	} {
		name, cores := of(fstest.MapFS{"proc/cpuinfo": {Data: []byte(x.cpuinfo)},
			"sys/devices/system/cpu/online": {Data: []byte(x.online)}})
		if got := fmt.Sprintf("%s|%d", name, cores); got != x.want {
			t.Errorf("%q, %q: %s, want %s", x.cpuinfo, x.online, got, x.want)
		}
	}
	if name, cores := of(fstest.MapFS{}); name != "" || cores != 0 {
		t.Errorf("without files: %q, %d", name, cores)
	}
}

// TestName: a machine has a name or none, and nothing between.
func TestName(t *testing.T) {
	if name := Name(); name != "" && (!strings.HasPrefix(name, Processor()+", ") || !strings.Contains(name, " core")) {
		t.Errorf("%q of %q", name, Processor())
	}
	if !strings.HasSuffix(Processor(), system) {
		t.Error(Processor())
	}
}
