package checkpoint

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"gogcl.dev/tensor"
)

func openIt(t *testing.T, dir string) *Directory {
	t.Helper()
	d, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// TestDirectory opens a directory, saves to it, and asks what is in it.
func TestDirectory(t *testing.T) {
	ctx, dir := context.Background(), filepath.Join(t.TempDir(), "new")
	d := openIt(t, dir)
	if got := names(t, dir); len(got) > 0 {
		t.Errorf("Open has made %q", got)
	}
	if _, err := d.Meta(ctx); !errors.Is(err, ErrNone) {
		t.Errorf("Meta: error %v, want ErrNone", err)
	}
	if _, err := d.Load(ctx, small(t, 2).tensors); !errors.Is(err, ErrNone) {
		t.Errorf("Load: error %v, want ErrNone", err)
	}
	for i, meta := range []map[string]string{{"step": "1"}, {"step": "2", "": "x"}, {}} {
		if err := d.Save(ctx, small(t, 2).fill(i).tensors, meta); err != nil {
			t.Fatal(err)
		}
		m := small(t, 3)
		loaded, err := d.Load(ctx, m.tensors)
		if err != nil || !maps.Equal(loaded, meta) {
			t.Errorf("Load: meta %q, error %v, want %q", loaded, err, meta)
		}
		m.wantEqual(t, small(t, 3).fill(i))
		if got, err := d.Meta(ctx); err != nil || !maps.Equal(got, meta) {
			t.Errorf("Meta: %q, error %v, want %q", got, err, meta)
		}
	}
	// Meta needs no shards.
	if err := os.Remove(filepath.Join(dir, "checkpoint-00000003", "shard-00001-of-00002.safetensors")); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Meta(ctx); err != nil {
		t.Error(err)
	}
	index := filepath.Join(dir, "checkpoint-00000003", indexName)
	if err := os.Truncate(index, 30); err != nil {
		t.Fatal(err)
	}
	_, err := d.Meta(ctx)
	wantError(t, err, "checkpoint: load from "+dir+": file "+index)
	ended, end := context.WithCancel(ctx)
	end()
	if _, err := d.Meta(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that of ctx", err)
	}
}

// TestInUse keeps others from a directory for as long as it is open, also while there is no Save.
func TestInUse(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	d := openIt(t, dir)
	if err := d.Save(ctx, small(t, 2).fill(1).tensors, nil); err != nil {
		t.Fatal(err)
	}
	before := names(t, dir)
	inUse := func(err error, what string) {
		t.Helper()
		wantError(t, err, "checkpoint: "+what+" "+dir+": file "+filepath.Join(dir,
			lockName)+": the directory is in use")
		if !errors.Is(err, ErrInUse) || !slices.Equal(names(t, dir), before) {
			t.Errorf("error %v, want ErrInUse; %q, want %q", err, names(t, dir), before)
		}
	}
	_, err := Open(dir)
	inUse(err, "open")
	inUse(Save(ctx, dir, small(t, 2).tensors, nil), "save to")
	m := small(t, 3)
	loadIt(t, dir, m)
	m.wantEqual(t, small(t, 3).fill(1))
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	openIt(t, dir)
}

// TestSaveInSave saves, and closes, while a Save of the same Directory is at work.
func TestSaveInSave(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	d := openIt(t, dir)
	m := small(t, 2).fill(1)
	inner := m.tensors[0].Read
	m.tensors[0].Read = func(k int) (*tensor.Tensor, error) {
		wantError(t, d.Save(ctx, small(t, 2).tensors, nil), "checkpoint: save to "+dir+": another Save is at work in "+
			"this directory")
		wantError(t, d.Close(), "checkpoint: close "+dir+": a Save is at work")
		return inner(k)
	}
	if err := d.Save(ctx, m.tensors, nil); err != nil {
		t.Fatal(err)
	}
	got := small(t, 2)
	loadIt(t, dir, got)
	got.wantEqual(t, m)
	failing := small(t, 2)
	failing.tensors[0].Read = func(int) (*tensor.Tensor, error) { return nil, errors.New("out of luck") }
	wantError(t, d.Save(ctx, failing.tensors, nil), "out of luck")
	if err := d.Save(ctx, m.tensors, nil); err != nil {
		t.Error("after a Save that failed: ", err)
	}
}

// TestClosed uses a Directory after Close.
func TestClosed(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	d := openIt(t, dir)
	if err := errors.Join(d.Save(ctx, small(t, 2).tensors, nil), d.Close(), d.Close()); err != nil {
		t.Fatal(err)
	}
	_, metaErr := d.Meta(ctx)
	_, loadErr := d.Load(ctx, small(t, 2).tensors)
	for _, err := range []error{metaErr, loadErr, d.Save(ctx, small(t, 2).tensors, nil)} {
		if wantError(t, err, dir+": the Directory is closed: Open it anew"); !errors.Is(err, fs.ErrClosed) {
			t.Errorf("error %v, want fs.ErrClosed", err)
		}
	}
}

// TestCannotOpen opens what is no directory.
func TestCannotOpen(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{"": "the directory has no name", file: "it is not a directory",
		filepath.Join(dir, "none", "c"): filepath.Join(dir, "none", "c")} {
		d, err := Open(path)
		wantError(t, err, "checkpoint: open "+path+": ", want)
		if d != nil {
			t.Errorf("%s is open", path)
		}
	}
	if got := names(t, dir); !slices.Equal(got, []string{"file"}) {
		t.Errorf("%q", got)
	}
}

// TestNameOutlasts sees that Open syncs the directory that holds the one it opens, whoever has made that, and however
// it is called.
func TestNameOutlasts(t *testing.T) {
	parent := t.TempDir()
	t.Chdir(parent)
	if err := errors.Join(os.Mkdir("made", 0o777), os.Mkdir("elsewhere", 0o777)); err != nil {
		t.Fatal(err)
	}
	dirs := []string{"made", "made/", "new1", "new2/",
		"new3//", "./new4", filepath.Join(parent, "new5") + "/", "made/../made"}
	if err := os.Symlink(filepath.Join(parent, "made"), "elsewhere/link"); err == nil {
		dirs = append(dirs, "elsewhere/link", "elsewhere/link/")
	}
	want, err := os.Stat(parent)
	if err != nil {
		t.Fatal(err)
	}
	check := func(dir string, want os.FileInfo) {
		t.Helper()
		var synced []string
		found := false
		d, err := openSyncing(dir, func(name string) error {
			got, err := os.Stat(name)
			found = found || os.SameFile(got, want)
			synced = append(synced, name)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if !found {
			t.Errorf("%s: synced are %q, which are not the directory that holds it", dir, synced)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
	for _, dir := range dirs {
		check(dir, want)
	}
	t.Chdir("made")
	check(".", want)

	bad := errors.New("bad sector")
	for _, dir := range []string{parent, filepath.Join(parent, "new6")} {
		_, err := openSyncing(dir, func(string) error { return bad })
		if wantError(t, err, "checkpoint: open "+dir+": bad sector"); !errors.Is(err, bad) {
			t.Error("it is another error")
		}
	}
	denied := func(string) error { return &fs.PathError{Op: "open", Path: "..", Err: fs.ErrPermission} }
	d, err := openSyncing(parent, denied)
	if err != nil {
		t.Fatalf("a directory whose parent cannot be read: %v", err)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	_, err = openSyncing(filepath.Join(parent, "new7"), denied)
	wantError(t, err, "permission")
	if _, err := os.Stat(filepath.Join(parent, "new7")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v: the directory that could not be synced is there, and the next Open would not mind", err)
	}
}
