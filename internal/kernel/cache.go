package kernel

import (
	"io/fs"
	"math"
	"os"
	"path"
	"strconv"
	"strings"
	"sync"
)

// usualCache is the last-level cache of a machine that does not say what it has. To take a cache for smaller than it is
// costs more than to take it for larger: docs/design/peer-memory.md.
const usualCache = 32 << 20

// LastLevelCache is the size in bytes of the cache of the highest level that processor 0 has, shared with others or
// not: what Linux has in /sys/devices/system/cpu/cpu0/cache
// (https://www.kernel.org/doc/Documentation/ABI/testing/sysfs-devices-system-cpu), read once. It is 32 MiB elsewhere,
// and where that says nothing.
var LastLevelCache = sync.OnceValue(func() int {
	if size := largestLevel(os.DirFS("/sys/devices/system/cpu/cpu0/cache")); size > 0 {
		return size
	}
	return usualCache
})

// largestLevel is the size of the data cache of the highest level, 0 if there is none.
func largestLevel(caches fs.FS) (size int) {
	indices, _ := fs.Glob(caches, "index*") // the pattern is a good one
	highest := 0
	for _, index := range indices {
		level, _ := strconv.Atoi(word(caches, index, "level"))
		bytes, ok := parseCacheSize(word(caches, index, "size"))
		if ok && level > highest && word(caches, index, "type") != "Instruction" {
			highest, size = level, bytes
		}
	}
	return size
}

// word is what a file holds, "" if it cannot be read.
func word(caches fs.FS, index, name string) string {
	data, _ := fs.ReadFile(caches, path.Join(index, name))
	return strings.TrimSpace(string(data))
}

// parseCacheSize reads a size such as 32768K.
func parseCacheSize(text string) (int, bool) {
	unit := 1
	for _, u := range []struct {
		suffix string
		bytes  int
	}{{"K", 1 << 10}, {"M", 1 << 20}, {"G", 1 << 30}} {
		if digits, has := strings.CutSuffix(text, u.suffix); has {
			text, unit = digits, u.bytes
			break
		}
	}
	n, err := strconv.ParseInt(text, 10, 31)
	return int(n) * unit, err == nil && n > 0 && int(n) <= math.MaxInt/unit
}
