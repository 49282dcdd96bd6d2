package remote_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gogcl.dev/commgroup"
	"gogcl.dev/ir"
	"gogcl.dev/remote"
	"gogcl.dev/tensor"
)

// TestFilesOfOtherShards goes on with variables of which files hold shards, but of tensors of another shape, or other
// shards: the entries have the same shape all along.
func TestFilesOfOtherShards(t *testing.T) {
	dir := t.TempDir()
	pairs := commgroup.Group{Type: commgroup.Consecutive, Size: 2}
	apart := commgroup.Group{Type: commgroup.Orthogonal, Size: 2}
	make := func(shape tensor.Shape, options ...remote.VariableOption) error {
		p := ir.New(4)
		remote.UseStorage(p, remote.Dir(dir))
		b := remote.NewBuffer(p, ir.Spec{DType: tensor.I32, Shape: tensor.Shape{3}})
		v := remote.NewVariable(p, nil, b, 0, append(options, remote.Name("w"),
			remote.FirstValue(ir.Spec{DType: tensor.I32, Shape: shape}, func(int, *tensor.Tensor) error {
				return nil
			}))...)
		s, err := ir.NewSession(p)
		if err != nil {
			return err
		}
		_, err = v.Read(s)
		return errors.Join(err, s.Close())
	}
	if err := make(tensor.Shape{2, 3}, remote.Sharded(pairs)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		err  error
		want string
	}{
		{make(tensor.Shape{3, 2}, remote.Sharded(pairs)), "0.remote: its entries are shard 0 of tensors of shape (2, 3); wanted: shard 0 of tensors of shape (3, 2)"},
		{make(tensor.Shape{5}, remote.Sharded(pairs)), "0.remote: its entries are shard 0 of tensors of shape (2, 3); wanted: shard 0 of tensors of shape (5,)"},
		{make(tensor.Shape{3}), "0.remote: its entries are shard 0 of tensors of shape (2, 3); wanted: whole tensors"},
		{make(tensor.Shape{2, 3}, remote.Sharded(apart)), "1.remote: its entries are shard 1 of tensors of shape (2, 3); wanted: shard 0 of tensors of shape (2, 3)"},
	} {
		if c.err == nil || !strings.Contains(c.err.Error(), filepath.Join(dir, "w.")+c.want) {
			t.Errorf("error %v, want one that says %s", c.err, c.want)
		}
	}
	if err := make(tensor.Shape{2, 3}, remote.Sharded(pairs)); err != nil {
		t.Error(err)
	}
}

// TestEntriesOfAnotherFile gives a file of one buffer or replica the header of another, and puts an entry in the place
// of another: none is taken for what it is not.
func TestEntriesOfAnotherFile(t *testing.T) {
	const size = 12
	dir := t.TempDir()
	spec := func(buffer string, replica int) remote.Spec {
		return remote.Spec{Buffer: buffer, Replica: replica, DType: tensor.F32, Shape: tensor.Shape{3}, Entries: 2}
	}
	path := func(s remote.Spec) string {
		return filepath.Join(dir, map[int]string{0: s.Buffer + ".0.remote", 1: s.Buffer + ".1.remote"}[s.Replica])
	}
	files := map[string][]byte{}
	for i, s := range []remote.Spec{spec("a", 0), spec("a", 1), spec("b", 0), spec("b", 1)} {
		e, err := remote.Dir(dir).Open(s)
		for entry := range min(6-2*i, 2) { // none in the last
			err = errors.Join(err, e.Store(entry, bytes.Repeat([]byte{byte(2*i + entry)}, size)))
		}
		if err = errors.Join(err, e.Close()); err != nil {
			t.Fatal(err)
		}
		if files[path(s)], err = os.ReadFile(path(s)); err != nil {
			t.Fatal(err)
		}
	}
	own := files[path(spec("a", 0))]
	const head, row, table = 8192, 16, 4096 // bytes
	swapped := bytes.Clone(own)
	copy(swapped[head:], own[head+row:head+2*row]) // the row and the bytes of entry 1, in the place of entry 0
	copy(swapped[head+table:], own[head+table+16:head+table+16+size])
	for name, c := range map[string]struct {
		file []byte
		lost int // entries
	}{
		"nothing": {own, 0},
		"replica": {append(bytes.Clone(own[:head]), files[path(spec("a", 1))][head:]...), 2},
		"buffer":  {append(bytes.Clone(own[:head]), files[path(spec("b", 0))][head:]...), 2},
		"never":   {append(bytes.Clone(own[:head]), files[path(spec("b", 1))][head:]...), 2},
		"entry":   {swapped, 1},
	} {
		if err := os.WriteFile(path(spec("a", 0)), c.file, 0o666); err != nil {
			t.Fatal(err)
		}
		e, err := remote.Dir(dir).Open(spec("a", 0))
		if err != nil {
			t.Fatal(err)
		}
		got := make([]byte, size)
		for entry := range 2 {
			err := e.Load(entry, got)
			switch {
			case entry < c.lost && (!errors.Is(err, remote.ErrLost) ||
				!strings.Contains(err.Error(), path(spec("a", 0)))):
				t.Errorf("%s: entry %d is %v, error %v, want ErrLost", name, entry, got, err)
			case entry >= c.lost && (err != nil || !bytes.Equal(got, bytes.Repeat([]byte{byte(entry)}, size))):
				t.Errorf("%s: entry %d is %v, error %v", name, entry, got, err)
			}
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
