package checkpoint

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"gogcl.dev/internal/osfile"
	"gogcl.dev/internal/safetensors"
	"gogcl.dev/tensor"
)

// bufferBytes is written and read at a time where elements are few: larger than the transfers that disks like best, and
// little beside a model.
const bufferBytes = 256 << 10

// SaveOption is one of Keep.
type SaveOption func(*settings)

type settings struct{ keep int }

// Keep is how many checkpoints are there after a Save, with the new one: 1 or more, and 1 without Keep.
func Keep(n int) SaveOption { return func(s *settings) { s.keep = n } }

// Save saves the tensors, each of whose shards it reads once, and the strings in meta, which Load returns. It makes the
// directory, but not the one that is to hold it. When it returns, the checkpoint is on the disk, and older ones are
// gone. After an error it is not, unless the error says that the checkpoint is saved, and what was there before is
// there still. There is one Save at a time in a directory: the other is an error (on systems without file locks the
// user must see to it). When ctx ends, so does Save, with ctx's error.
//
// It takes memory for the index, and what Read does.
func Save(ctx context.Context, dir string, tensors []Tensor, meta map[string]string, options ...SaveOption) error {
	s := settings{keep: 1}
	for _, option := range options {
		option(&s)
	}
	if err := save(ctx, dir, tensors, meta, s); err != nil {
		return fmt.Errorf("checkpoint: save to %s: %w", dir, err)
	}
	return nil
}

func save(ctx context.Context, dir string, tensors []Tensor, meta map[string]string, s settings) (err error) {
	if dir == "" {
		return errors.New("the directory has no name")
	}
	if s.keep < 1 {
		return fmt.Errorf("Keep(%d): want 1 or more", s.keep)
	}
	x, err := newIndex(tensors, meta)
	if err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	lock, err := take(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	number, err := clean(dir)
	if err != nil {
		return err
	}
	beside := entry{kind: saving, number: number}.path(dir)
	if err := os.Mkdir(beside, 0o777); err != nil {
		return err
	}
	done := false
	defer func() { // also when a Read panics
		if !done {
			err = errors.Join(err, remove(beside))
		}
	}()
	if err := x.write(ctx, beside, tensors); err != nil {
		return err
	}
	if err := os.Rename(beside, entry{kind: inPlace, number: number}.path(dir)); err != nil {
		return err
	}
	done = true
	if err := osfile.SyncDir(dir); err != nil {
		return fmt.Errorf("the checkpoint is saved, but may not outlast the machine: %w", err)
	}
	if err := prune(dir, s.keep); err != nil {
		return fmt.Errorf("the checkpoint is saved, but an older one could not be removed: %w", err)
	}
	return nil
}

// newIndex is an index without checksums.
func newIndex(tensors []Tensor, meta map[string]string) (*index, error) {
	layouts, err := checkAll(tensors)
	if err != nil {
		return nil, err
	}
	for key, value := range meta {
		if err := errors.Join(safetensors.CheckText(key), safetensors.CheckText(value)); err != nil {
			return nil, fmt.Errorf("meta: %w", err)
		}
	}
	x := &index{meta: maps.Clone(meta), tensors: make([]saved, len(tensors))}
	for i, t := range tensors {
		if t.Read == nil {
			return nil, fmt.Errorf("tensor %q: Read is nil", t.Name)
		}
		x.tensors[i] = saved{name: t.Name, dtype: t.DType, shape: t.Shape.Clone(), sums: make([]uint32, t.Shards), layout: layouts[i]}
	}
	var id [idBytes]byte
	if _, err := rand.Read(id[:]); err != nil {
		return nil, err
	}
	x.id = hex.EncodeToString(id[:])
	return x, nil
}

// write writes the files of a checkpoint into an empty directory, and waits until they are on the disk.
func (x *index) write(ctx context.Context, dir string, tensors []Tensor) error {
	read := map[string]func(k int) (*tensor.Tensor, error){}
	for _, t := range tensors {
		read[t.Name] = t.Read
	}
	files := x.files()
	for k := range files {
		err := create(filepath.Join(dir, shardName(k, files)), func(w io.Writer) error { return x.writeShard(ctx, w, k, read) })
		if err != nil {
			return err
		}
	}
	data, err := x.encode(maxIndexBytes)
	if err != nil {
		return err
	}
	err = create(filepath.Join(dir, indexName), func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
	if err != nil {
		return err
	}
	return osfile.SyncDir(dir)
}

// create makes a file, lets write fill it, and waits until it is on the disk.
func create(path string, write func(w io.Writer) error) (err error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	defer func() { err = inFile(path, errors.Join(err, f.Close())) }()
	buffered := bufio.NewWriterSize(f, bufferBytes)
	if err := write(buffered); err != nil {
		return err
	}
	if err := buffered.Flush(); err != nil {
		return err
	}
	return f.Sync()
}

// summed remembers the checksum of what is written through it.
type summed struct {
	w   io.Writer
	sum uint32
}

func (s *summed) Write(b []byte) (int, error) {
	s.sum = crc32.Update(s.sum, castagnoli, b)
	return s.w.Write(b)
}

// writeShard writes file k and puts the checksums of what it holds into the index.
func (x *index) writeShard(ctx context.Context, w io.Writer, k int, read map[string]func(k int) (*tensor.Tensor, error)) error {
	in := x.inFile(k)
	shards := make([]safetensors.Tensor, len(in))
	for i, t := range in {
		shards[i] = t.shard()
	}
	s := &summed{w: w}
	file, err := safetensors.NewWriter(s, shards, x.fileMeta(k))
	if err != nil {
		return err
	}
	var zeros []byte
	for i, t := range in {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		shard, err := read[t.name](k)
		switch {
		case err != nil:
		case shard == nil:
			err = errors.New("what Read has returned is nil")
		case shard.DType() != t.dtype || !slices.Equal(shard.Shape(), shards[i].Shape):
			err = fmt.Errorf("what Read has returned is %v of shape %v, want %v of shape %v", shard.DType(), shard.Shape(), t.dtype, shards[i].Shape)
		}
		if err != nil {
			return fmt.Errorf("tensor %q: shard %d of %d: %w", t.name, k, t.shards, err)
		}
		s.sum = 0
		held := t.held(k) * t.dtype.Size()
		if err := file.Write(shard.Bytes()[:held]); err != nil {
			return err
		}
		for left := t.per*t.dtype.Size() - held; left > 0; {
			if zeros == nil {
				zeros = make([]byte, bufferBytes)
			}
			n := min(left, bufferBytes)
			if err := file.Write(zeros[:n]); err != nil {
				return err
			}
			left -= n
		}
		t.sums[k] = s.sum
	}
	return file.Done()
}
