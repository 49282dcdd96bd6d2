package gcl_test

import (
	"context"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"gogcl.dev/gcl"
	"gogcl.dev/tensor"
)

// mapping is what /proc/self/smaps says of the mappings that a piece of memory lies in.
type mapping struct {
	hugeKB  int // in huge pages
	advised bool
}

func mappingOf(t *testing.T, b []byte) mapping {
	t.Helper()
	text, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	from := uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b))))
	to := from + uint64(len(b))
	var m mapping
	inside := false
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if lo, hi, ok := strings.Cut(fields[0], "-"); ok && !strings.HasSuffix(fields[0], ":") {
			first, err1 := strconv.ParseUint(lo, 16, 64)
			last, err2 := strconv.ParseUint(hi, 16, 64)
			if err1 != nil || err2 != nil {
				t.Fatalf("smaps: %q", line)
			}
			inside = first < to && last > from
			continue
		}
		switch {
		case !inside:
		case fields[0] == "AnonHugePages:":
			n, err := strconv.Atoi(fields[1])
			if err != nil {
				t.Fatalf("smaps: %q", line)
			}
			m.hugeKB += n
		case fields[0] == "VmFlags:":
			for _, flag := range fields[1:] {
				m.advised = m.advised || flag == "hg"
			}
		}
	}
	return m
}

// TestAllocPages reports how much of the memory is in huge pages, which is up to the system; that it has been asked is
// what fails the test. Only a kernel without huge pages has no file that says so.
func TestAllocPages(t *testing.T) {
	const bytes = 32 << 20
	enabled, err := os.ReadFile("/sys/kernel/mm/transparent_hugepage/enabled")
	t.Logf("transparent_hugepage/enabled: %s(%v)", enabled, err)
	touch := func(b []byte) []byte {
		for i := 0; i < len(b); i += 4096 {
			b[i] = 1
		}
		return b
	}
	t.Logf("make: %d of %d KiB in huge pages", mappingOf(t, touch(make([]byte, bytes))).hugeKB, bytes>>10)
	alone(t, func(_ context.Context, c *gcl.Comm) error {
		for _, used := range []bool{false, true} {
			if used { // certainly; the first time, tests before this one may have
				for range 4 {
					touch(make([]byte, bytes+2*hugePage))
				}
				runtime.GC()
			}
			s, err := gcl.Alloc[float32](c, bytes/4)
			if err != nil {
				return err
			}
			b := tensor.Bytes(s)
			before := mappingOf(t, b)
			touch(b)
			after := mappingOf(t, b)
			t.Logf("Alloc, heap made to be used before: %v: %d of %d KiB in huge pages, %d of them before it was "+
				"touched", used, after.hugeKB, bytes>>10, before.hugeKB)
			if enabled != nil && !after.advised {
				t.Error("the memory is not marked as one for huge pages")
			}
		}
		return nil
	})
}
