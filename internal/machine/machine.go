// Package machine names the machine that a program runs on.
package machine

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
)

// Processor is the name of the processor, which only Linux on some architectures tells, and what the program is built
// for: "Intel(R) Xeon(R) Processor linux/amd64", or "linux/arm64".
func Processor() string {
	name, _ := here()
	return strings.TrimSpace(name + " " + system)
}

// Name is the Processor and how many the machine has, as in "Intel(R) Xeon(R) Processor linux/amd64, 2 cores". It is
// the same for all programs on the machine that are built for one architecture, whatever processors each may run on. It
// is "" where the system does not tell. It allocates in its first call only.
func Name() string { return name() }

var name = sync.OnceValue(func() string {
	name, cores := here()
	switch {
	case name == "" || cores == 0:
		return ""
	case cores == 1:
		return Processor() + ", 1 core"
	}
	return fmt.Sprintf("%s, %d cores", Processor(), cores)
})

const system = runtime.GOOS + "/" + runtime.GOARCH

var here = sync.OnceValues(func() (string, int) { return of(os.DirFS("/")) })

// of is the name of the processor of a system, "" if it is not known, and how many there are, 0 if that is not known.
func of(root fs.FS) (name string, cores int) {
	if f, err := root.Open("proc/cpuinfo"); err == nil {
		first := make([]byte, 4096) // the system asks each processor that is read of
		n, _ := io.ReadFull(f, first)
		f.Close()
		for line := range strings.Lines(string(first[:n])) {
			if key, value, _ := strings.Cut(line, ":"); strings.TrimSpace(key) == "model name" {
				name = strings.Join(strings.Fields(value), " ")
				break
			}
		}
	}
	online, _ := fs.ReadFile(root, "sys/devices/system/cpu/online") // nothing: not known
	return name, count(strings.TrimSpace(string(online)))
}

// count is how many numbers a list has, as in "0-3,6". It is 0 if it is no list.
func count(list string) (n int) {
	for part := range strings.SplitSeq(list, ",") {
		from, to, isRange := strings.Cut(part, "-")
		if !isRange {
			to = from
		}
		a, err := strconv.Atoi(from)
		b, err2 := strconv.Atoi(to)
		if err != nil || err2 != nil || b < a {
			return 0
		}
		n += b - a + 1
	}
	return n
}
