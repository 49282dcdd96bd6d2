package checkpoint

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// inMemory is a file that never was on a disk, which is a hundred times as fast.
type inMemory struct {
	*bytes.Reader
	open *int // how many are
}

func (m inMemory) Close() error { *m.open--; return nil }

// FuzzLoad loads a checkpoint whose index and one of whose shards say anything, the index with a right checksum if it
// has room for one. Nothing may panic, nothing is written unless all is well, and then it is what was saved: for that
// the checksums speak, unless they are other ones. And all files are closed.
func FuzzLoad(f *testing.F) {
	dir := f.TempDir()
	saveIt(f, dir, small(f, 3).fill(1), map[string]string{"step": "17"})
	indexPath, shardPath := filepath.Join(dir, "checkpoint-00000001", indexName),
		filepath.Join(dir, "checkpoint-00000001", shard0)
	goodIndex, err := os.ReadFile(indexPath)
	if err != nil {
		f.Fatal(err)
	}
	goodShard, err := os.ReadFile(shardPath)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(goodIndex, goodShard)
	for _, l := range lies() {
		switch l.file {
		case indexName:
			f.Add(l.change(bytes.Clone(goodIndex)), goodShard)
		case shard0:
			f.Add(goodIndex, l.change(bytes.Clone(goodShard)))
		}
	}
	want := small(f, 2).fill(1)
	files, opened := map[string][]byte{}, 0
	for k := 1; k < 3; k++ {
		path := filepath.Join(filepath.Dir(shardPath), shardName(k, 3))
		if files[path], err = os.ReadFile(path); err != nil {
			f.Fatal(err)
		}
	}
	openFile := func(path string) (source, int64, error) {
		data, ok := files[path]
		if !ok {
			return nil, 0, fs.ErrNotExist
		}
		opened++
		return inMemory{bytes.NewReader(data), &opened}, int64(len(data)), nil
	}
	f.Fuzz(func(t *testing.T, index, shard []byte) {
		if len(index) > 100 {
			index = sealIndex(index)
		}
		files[indexPath], files[shardPath] = index, shard
		m := small(t, 2)
		layouts, err := checkAll(m.tensors)
		if err != nil {
			t.Fatal(err)
		}
		c, err := open(context.Background(), filepath.Dir(indexPath), m.tensors, openFile)
		if err == nil {
			_, err = c.load(context.Background(), m.tensors, layouts)
		}
		if opened != 0 {
			t.Fatalf("%d files are open, error %v", opened, err)
		}
		if err != nil && m.writes > 0 {
			t.Fatalf("%d shards were written, error %v", m.writes, err)
		}
		if err == nil && bytes.Equal(index, goodIndex) {
			m.wantEqual(t, want)
		}
	})
}
