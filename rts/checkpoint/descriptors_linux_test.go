package checkpoint

import (
	"context"
	"os"
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"
)

// TestFewDescriptors loads a checkpoint of more shards than its process may have files open.
func TestFewDescriptors(t *testing.T) {
	const child, shards, descriptors = "GOGCL_CHECKPOINT_FEW", 300, 40
	if dir := os.Getenv(child); dir != "" {
		limit := unix.Rlimit{Cur: descriptors, Max: descriptors}
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
			t.Fatal(err)
		}
		m := wide(t, 3)
		loadIt(t, dir, m)
		m.wantEqual(t, wide(t, 3).fill(1))
		saveIt(t, dir, wide(t, shards).fill(2), nil)
		if _, err := Load(context.Background(), dir, m.tensors); err != nil {
			t.Fatal(err)
		}
		m.wantEqual(t, wide(t, 3).fill(2))
		return
	}
	dir := t.TempDir()
	saveIt(t, dir, wide(t, shards).fill(1), nil)
	cmd := exec.Command(os.Args[0], "-test.run=^TestFewDescriptors$")
	cmd.Env = append(os.Environ(), child+"="+dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}
