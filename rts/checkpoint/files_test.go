package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"gogcl.dev/tensor"
)

// wide has more files than a Load has open.
func wide(t testing.TB, shards int) *model {
	return newModel(t, spec{"w", tensor.F32, tensor.Shape{1000}, shards},
		spec{"b", tensor.I16, tensor.Shape{7}, shards},
		spec{"step", tensor.I64, nil, 1})
}

// counted is an open file that says when it is closed.
type counted struct {
	source
	closed func()
}

func (c counted) Close() error {
	c.closed()
	return c.source.Close()
}

// loadWith is Load with another opener.
func loadWith(t testing.TB, dir string, m *model, openFile opener) error {
	t.Helper()
	layouts, err := checkAll(m.tensors)
	if err != nil {
		t.Fatal(err)
	}
	_, err = loadNewest(context.Background(), dir, m.tensors, layouts, openFile)
	return err
}

// TestOpenFiles loads with at most so many descriptors, of which there are fewer than a Load would have, and none in
// the end.
func TestOpenFiles(t *testing.T) {
	dir := t.TempDir()
	const shards = 2*mostOpen + 5
	saveIt(t, dir, wide(t, shards).fill(1), nil)
	for _, room := range []int{1, 2, mostOpen - 1, mostOpen, shards} {
		t.Run(fmt.Sprintf("descriptors=%d", room), func(t *testing.T) {
			now, most := 0, 0
			openFile := func(path string) (source, int64, error) {
				if now == room {
					return nil, 0, &fs.PathError{Op: "open", Path: path, Err: syscall.EMFILE}
				}
				f, size, err := openRegular(path)
				if err == nil {
					now++
					most = max(most, now)
				}
				return counted{f, func() { now-- }}, size, err
			}
			m := wide(t, 3)
			if err := loadWith(t, dir, m, openFile); err != nil {
				t.Fatal(err)
			}
			m.wantEqual(t, wide(t, 3).fill(1))
			if want := min(room, mostOpen); now != 0 || most != want {
				t.Errorf("%d files are open and %d have been at once, want 0 and %d", now, most, want)
			}
		})
	}
	err := loadWith(t, dir, wide(t, 3), func(path string) (source, int64, error) {
		if !strings.HasSuffix(path, indexName) {
			return nil, 0, &fs.PathError{Op: "open", Path: path, Err: syscall.EMFILE}
		}
		return openRegular(path)
	})
	if wantError(t, err, "shard 0 of "); !errors.Is(err, syscall.EMFILE) {
		t.Errorf("error %v, want EMFILE", err)
	}
}

// TestRemovedWhileWriting has a Save remove a checkpoint of which some tensors have been written: the newer one is
// loaded, all of it.
func TestRemovedWhileWriting(t *testing.T) {
	dir := t.TempDir()
	saveIt(t, dir, wide(t, 2*mostOpen).fill(1), nil)
	m := wide(t, 3)
	write, saved := m.tensors[0].Write, false
	m.tensors[0].Write = func(k int, shard *tensor.Tensor) error {
		if !saved {
			saved = true
			saveIt(t, dir, wide(t, 2*mostOpen).fill(2), nil)
		}
		return write(k, shard)
	}
	loadIt(t, dir, m)
	m.wantEqual(t, wide(t, 3).fill(2))
}

// TestWriteFindsNothing has a Write return the error of a file of its own: it is called once, not again for a newer
// checkpoint.
func TestWriteFindsNothing(t *testing.T) {
	dir := t.TempDir()
	saveIt(t, dir, small(t, 2).fill(1), nil)
	m, writes := small(t, 2), 0
	m.tensors[0].Write = func(int, *tensor.Tensor) error { writes++; return fs.ErrNotExist }
	_, err := Load(context.Background(), dir, m.tensors)
	if !errors.Is(err, fs.ErrNotExist) || writes != 1 {
		t.Errorf("error %v after %d writes, want fs.ErrNotExist after 1", err, writes)
	}
}
