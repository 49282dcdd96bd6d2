package checkpoint

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"
)

// FuzzLoad loads a checkpoint whose index and one of whose shards say anything, the index with a right checksum if it
// has room for one. Nothing may panic, nothing is written unless all is well, and then it is what was saved: for that
// the checksums speak, unless they are other ones.
func FuzzLoad(f *testing.F) {
	dir := f.TempDir()
	saveIt(f, dir, small(f, 3).fill(1), map[string]string{"step": "17"})
	indexPath, shardPath := filepath.Join(dir, "checkpoint-00000001", indexName), filepath.Join(dir, "checkpoint-00000001", shard0)
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
	f.Fuzz(func(t *testing.T, index, shard []byte) {
		if len(index) > 100 {
			index = sealIndex(index)
		}
		if err := os.WriteFile(indexPath, index, 0o666); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(shardPath, shard, 0o666); err != nil {
			t.Fatal(err)
		}
		m := small(t, 2)
		_, err := Load(context.Background(), dir, m.tensors)
		if err != nil && m.writes > 0 {
			t.Fatalf("%d shards were written, error %v", m.writes, err)
		}
		if err == nil && bytes.Equal(index, goodIndex) {
			m.wantEqual(t, want)
		}
	})
}
