package rendezvous

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gogcl.dev/transport/internal/handshake"
)

// newBoard opens the directory of a place for a process.
func newBoard(t *testing.T, c Config) *board {
	t.Helper()
	at, err := parsePlace(c.Where)
	if err != nil {
		t.Fatal(err)
	}
	c.nonce = nonces(1)[0]
	b, err := openBoard(c, at)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestFileUnderAnotherName: a file that somebody has copied is not believed to be of another replica or process, or the
// next one of its own.
func TestFileUnderAnotherName(t *testing.T) {
	where := "dir:" + t.TempDir()
	mine, theirs := newBoard(t, config(0, 3, where)), newBoard(t, config(1, 3, where))
	if err := mine.put(hereOf(3, nil)); err != nil {
		t.Fatal(err)
	}
	if _, err := theirs.list(); err != nil {
		t.Fatal(err)
	}
	if err := theirs.put(hereOf(3, []byte("blob"))); err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(filepath.Join(theirs.dir, theirs.file))
	if err != nil {
		t.Fatal(err)
	}
	copies := map[string]bool{
		fileName(id{2, theirs.c.nonce}, 0): true, fileName(id{1, nonces(1)[0]}, 0): true,
		fileName(id{1, theirs.c.nonce}, 1): true,
	}
	for name := range copies {
		if err := os.WriteFile(filepath.Join(theirs.dir, name), file, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	fresh, err := mine.list()
	if err != nil {
		t.Fatal(err)
	}
	living := 0
	for _, e := range fresh {
		said, ended := mine.get(e)
		name := strings.TrimPrefix(e.from, "file ")
		switch {
		case e.rank == 1 && string(said.Here.Blob) == "blob":
			living++
		case e.rank != nobody || !copies[name] || !is[*handshake.SecretError](ended):
			t.Errorf("%d %s: %v", e.rank, name, ended)
		}
		delete(copies, name)
	}
	if living != 1 || len(copies) > 0 {
		t.Errorf("%d processes are alive, want replica 1 alone; %v are not refused", living, copies)
	}
}

// TestNoDirectory: a symbolic link in the place of the job's directory is an error at once, whatever it leads to, and
// nothing there is touched.
func TestNoDirectory(t *testing.T) {
	for _, exists := range []bool{false, true} {
		where, _ := sites[2].make(t)
		dir := strings.TrimPrefix(where, "dir:")
		other := filepath.Join(t.TempDir(), "other")
		if exists {
			if err := os.Mkdir(other, 0o700); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Symlink(other, filepath.Join(dir, jobName("job"))); err != nil {
			t.Skip("no symbolic links: ", err)
		}
		c := config(1, 2, where)
		c.Secret = []byte("secret")
		if _, err := Meet(within(t, long), c); err == nil || !strings.Contains(err.Error(), "is no directory but L") {
			t.Errorf("target exists %v: %v", exists, err)
		}
	}
}

// TestAlive: a file is of a living process once it echoes the nonce of the process that reads it. That of an earlier
// life of a replica is not, whatever it says.
func TestAlive(t *testing.T) {
	where := "dir:" + t.TempDir()
	dead, killed := newBoard(t, config(0, 2, where)), newBoard(t, config(1, 2, where))
	for _, b := range []*board{dead, killed, dead} { // each has read the other at the end
		if err := b.put(hereOf(2, nil)); err != nil {
			t.Fatal(err)
		}
		if _, err := b.list(); err != nil {
			t.Fatal(err)
		}
	}
	mine, theirs := newBoard(t, config(0, 2, where)), newBoard(t, config(1, 2, where))
	listed := func(b *board) (ranks []int) {
		t.Helper()
		fresh, err := b.list()
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range fresh {
			ranks = append(ranks, e.rank)
		}
		return ranks
	}
	for _, b := range []*board{mine, theirs} {
		if err := b.put(hereOf(2, nil)); err != nil {
			t.Fatal(err)
		}
	}
	if ranks := listed(mine); len(ranks) > 0 {
		t.Errorf("nobody has read the file of this process, and %d are alive", ranks)
	}
	if ranks := listed(theirs); len(ranks) != 1 || ranks[0] != 0 {
		t.Errorf("replica 1 lists %d, want the living replica 0 alone", ranks)
	}
	if ranks := listed(mine); len(ranks) != 1 || ranks[0] != 1 {
		t.Errorf("replica 0 lists %d, want the living replica 1 alone", ranks)
	}
	if ranks := listed(mine); len(ranks) > 0 {
		t.Errorf("nothing is new, and %d are listed", ranks)
	}
	theirs.leave(context.Background())
	for range missedLooks - 1 {
		if ranks := listed(mine); len(ranks) > 0 {
			t.Errorf("a file may be missed, and %d are listed", ranks)
		}
	}
	fresh, err := mine.list()
	if err != nil || len(fresh) != 1 || fresh[0].ended == nil {
		t.Errorf("replica 1 has left, and %v are listed: %v", fresh, err)
	}
	if text := mine.unmet(); !strings.Contains(text, "of processes that do not answer") {
		t.Errorf("the files of the dead are not told: %q", text)
	}
}
