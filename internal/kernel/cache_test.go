package kernel

import (
	"testing"
	"testing/fstest"
)

// TestLargestLevel reads what Linux shows of several machines, and of none.
func TestLargestLevel(t *testing.T) {
	files := func(words ...string) fstest.MapFS {
		all := fstest.MapFS{}
		for i := 0; i < len(words); i += 2 {
			all[words[i]] = &fstest.MapFile{Data: []byte(words[i+1] + "\n")}
		}
		return all
	}
	three := []string{
		"index0/level", "1", "index0/type", "Data", "index0/size", "32K",
		"index1/level", "1", "index1/type", "Instruction", "index1/size", "64K",
		"index3/level", "3", "index3/type", "Unified", "index3/size", "32768K",
		"index2/level", "2", "index2/type", "Unified", "index2/size", "1024K",
	}
	for _, x := range []struct {
		name  string
		files fstest.MapFS
		want  int
	}{
		{"three levels", files(three...), 32 << 20},
		{"one level", files(three[:12]...), 32 << 10},
		{"a fourth", files(append(three, "index4/level", "4", "index4/type", "Unified", "index4/size", "1G")...), 1 << 30},
		{"megabytes", files("index0/level", "2", "index0/type", "Unified", "index0/size", "3M"), 3 << 20},
		{"bytes", files("index0/level", "2", "index0/type", "Unified", "index0/size", "98304"), 98304},
		{"a level without a size", files(append(three, "index4/level", "4", "index4/type", "Unified")...), 32 << 20},
		{"a size of nothing", files(append(three, "index4/level", "4", "index4/type", "Unified", "index4/size", "0K")...), 32 << 20},
		{"a size of no number", files("index0/level", "3", "index0/type", "Unified", "index0/size", "lots"), 0},
		{"a size of minus", files("index0/level", "3", "index0/type", "Unified", "index0/size", "-1K"), 0},
		{"instructions", files(three[6:12]...), 0},
		{"nothing", files(), 0},
	} {
		if got := largestLevel(x.files); got != x.want {
			t.Errorf("%s: %d, want %d", x.name, got, x.want)
		}
	}
	if got := LastLevelCache(); got < 1<<10 {
		t.Errorf("this machine has %d", got)
	}
}
