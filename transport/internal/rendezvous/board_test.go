package rendezvous

import (
	"os"
	"path/filepath"
	"testing"

	"gogcl.dev/transport/internal/handshake"
)

// TestFileUnderAnotherName: a file that somebody has copied is not believed to be of another replica or process, or the
// next one of its own.
func TestFileUnderAnotherName(t *testing.T) {
	path := t.TempDir()
	mine, err := newBoard(path, config(0, 3, "dir:"+path))
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := newBoard(path, config(1, 3, "dir:"+path))
	if err != nil {
		t.Fatal(err)
	}
	if err := theirs.post([]byte("body")); err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(filepath.Join(theirs.dir, theirs.mine))
	if err != nil {
		t.Fatal(err)
	}
	copies := []string{
		fileName(id{2, theirs.id.nonce}, 0), fileName(id{1, nonce{}}, 0), fileName(theirs.id, 1),
	}
	for _, name := range copies {
		if err := os.WriteFile(filepath.Join(theirs.dir, name), file, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	posted, refused, err := mine.look(isAny, 100)
	if err != nil {
		t.Fatal(err)
	}
	if len(posted) != 1 || string(posted[theirs.id]) != "body" {
		t.Errorf("of %d processes there is a file, want that of replica 1 alone", len(posted))
	}
	for _, name := range copies {
		if !is[*handshake.SecretError](refused[name]) {
			t.Errorf("%s: %v", name, refused[name])
		}
	}
}
