package main

import (
	"bufio"
	"bytes"
	"io/fs"
	"math"
	"os"
	"path"
	"runtime"
	"strconv"
	"strings"
)

// available is how many bytes of memory the process can still have, and who says so. It is known on Linux only.
func available() (bytes float64, source string, known bool) {
	if runtime.GOOS != "linux" {
		return 0, "", false
	}
	bytes, source, known = availableIn(os.DirFS("/"))
	if known && bytes > addressBytes { // a process of 32 bits on a larger machine
		bytes, source = addressBytes, byAddresses
	}
	return bytes, source, known
}

// availableIn reads what Linux has under its root: the memory of the machine, and the limits of the process' cgroups,
// of version 1 and 2, and of the groups around them. The least counts. Files that are not there, or not as they should
// be, say nothing.
func availableIn(root fs.FS) (bytes float64, source string, known bool) {
	bytes = math.Inf(1)
	note := func(n float64, by string) {
		if n = max(n, 0); n < bytes {
			bytes, source, known = n, by, true
		}
	}
	if kilobytes, ok := fieldOf(root, "proc/meminfo", "MemAvailable:"); ok {
		note(kilobytes*1024, "MemAvailable in /proc/meminfo")
	}
	groups, _ := fs.ReadFile(root, "proc/self/cgroup")
	for line := range strings.Lines(string(groups)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3) // number, controllers, path
		if len(parts) != 3 || !strings.HasPrefix(parts[2], "/") {
			continue
		}
		for _, v := range cgroupVersions {
			if !v.has(parts[1]) {
				continue
			}
			for group := path.Clean(parts[2]); ; group = path.Dir(group) {
				dir := path.Join(v.dir, group)
				if left, ok := v.left(root, dir); ok {
					note(left, "limit of memory in /"+path.Join(dir, v.limit))
				}
				if group == "/" {
					break
				}
			}
		}
	}
	return bytes, source, known
}

// cgroupVersion is where a version of control groups has what.
type cgroupVersion struct {
	dir, limit, usage string
	reclaimable       string // field of memory.stat: pages of files that are given up when memory is short
	has               func(controllers string) bool
}

var cgroupVersions = []cgroupVersion{
	{"sys/fs/cgroup", "memory.max", "memory.current", "inactive_file", func(c string) bool { return c == "" }},
	{"sys/fs/cgroup/unified", "memory.max", "memory.current", "inactive_file", func(c string) bool { return c == "" }},
	{"sys/fs/cgroup/memory", "memory.limit_in_bytes",
		"memory.usage_in_bytes", "total_inactive_file", func(c string) bool {
			return strings.Contains(","+c+",", ",memory,")
		}},
}

// left is what a group may still have. There is no number where there is no limit, or no such group to be seen.
func (v *cgroupVersion) left(root fs.FS, dir string) (float64, bool) {
	limit, ok1 := numberIn(root, path.Join(dir, v.limit))
	usage, ok2 := numberIn(root, path.Join(dir, v.usage))
	reclaimable, _ := fieldOf(root, path.Join(dir, "memory.stat"), v.reclaimable)
	return limit - usage + reclaimable, ok1 && ok2
}

// numberIn is the number that a file holds.
func numberIn(root fs.FS, name string) (float64, bool) {
	text, err := fs.ReadFile(root, name)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64) // not of "max"
	return float64(n), err == nil
}

// fieldOf is the number behind a name, in a file with a name at the beginning of each line.
func fieldOf(root fs.FS, file, name string) (float64, bool) {
	text, err := fs.ReadFile(root, file)
	if err != nil {
		return 0, false
	}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		if f := strings.Fields(lines.Text()); len(f) >= 2 && f[0] == name {
			n, err := strconv.ParseUint(f[1], 10, 64)
			return float64(n), err == nil
		}
	}
	return 0, false
}
