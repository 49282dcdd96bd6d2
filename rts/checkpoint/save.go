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

// Save saves the tensors, each of whose shards it reads once, and the strings in meta, which Load returns. It opens the
// directory as Open does, which makes it, and closes it: who saves more than once, or wants to know beforehand whether
// it will work, opens it for as long. When Save returns, the checkpoint is on the disk, and older ones are gone. After
// an error it is not, unless the error says that the checkpoint is saved, and what was there before is there still.
// When ctx ends, so does Save, with ctx's error.
//
// It takes memory for the index, and what Read does.
func Save(ctx context.Context, dir string, tensors []Tensor, meta map[string]string, options ...SaveOption) error {
	return saveError(dir, func() (err error) {
		p, err := prepare(ctx, dir, tensors, meta, options)
		if err != nil {
			return err
		}
		d, err := openDirectory(dir, osfile.SyncDir)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, d.Close()) }()
		return d.save(ctx, p)
	}())
}

func saveError(dir string, err error) error {
	if err != nil {
		return fmt.Errorf("checkpoint: save to %s: %w", dir, err)
	}
	return nil
}

// prepared is what a Save is to do.
type prepared struct {
	tensors []Tensor
	index   *index // without checksums
	keep    int
}

// prepare looks at what a Save is given.
func prepare(ctx context.Context, dir string, tensors []Tensor, meta map[string]string,
	options []SaveOption) (prepared, error) {
	s := settings{keep: 1}
	for _, option := range options {
		if option != nil {
			option(&s)
		}
	}
	switch {
	case ctx == nil:
		return prepared{}, errNoContext
	case dir == "":
		return prepared{}, errNoName
	}
	if s.keep < 1 {
		return prepared{}, fmt.Errorf("Keep(%d): want 1 or more", s.keep)
	}
	x, err := newIndex(tensors, meta)
	if err == nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return prepared{tensors, x, s.keep}, err
}

func (d *Directory) save(ctx context.Context, p prepared) (err error) {
	if err := d.begin(true); err != nil {
		return err
	}
	defer d.endSave()
	number, beside, err := d.beside()
	if err != nil {
		return err
	}
	done := false
	defer func() { // also when a Read panics
		if !done {
			err = errors.Join(err, remove(beside))
		}
	}()
	for k := range p.index.files() {
		path := filepath.Join(beside, shardName(k, p.index.files()))
		if err := p.index.createShard(ctx, path, k, p.tensors); err != nil {
			return err
		}
	}
	return d.finish(p, beside, number, &done)
}

// endSave is the end of a Save.
func (d *Directory) endSave() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.saving = false
}

// finish writes the index beside files that are complete, and makes all a checkpoint. done says that it is one, even
// where there is an error.
func (d *Directory) finish(p prepared, beside string, number int, done *bool) error {
	if err := p.index.write(beside); err != nil {
		return err
	}
	if err := os.Rename(beside, entry{kind: inPlace, number: number}.path(d.dir)); err != nil {
		return err
	}
	*done = true
	if err := osfile.SyncDir(d.dir); err != nil {
		return fmt.Errorf("the checkpoint is saved, but may not outlast the machine: %w", err)
	}
	if err := prune(d.dir, p.keep); err != nil {
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
	if err := checkMeta(meta); err != nil {
		return nil, err
	}
	x := &index{meta: maps.Clone(meta), tensors: make([]saved, len(tensors))}
	for i, t := range tensors {
		if t.Read == nil {
			return nil, fmt.Errorf("tensor %.100q: Read is nil", t.Name)
		}
		x.tensors[i] = saved{name: t.Name, dtype: t.DType, shape: t.Shape.Clone(), sums: make([]uint32, t.Shards),
			layout: layouts[i]}
	}
	var id [idBytes]byte
	if _, err := rand.Read(id[:]); err != nil {
		return nil, err
	}
	x.id = hex.EncodeToString(id[:])
	return x, nil
}

// checkMeta looks at the strings of a checkpoint.
func checkMeta(meta map[string]string) error {
	if err := safetensors.CheckCounts(0, len(meta)); err != nil {
		return fmt.Errorf("meta: %w", err)
	}
	for key, value := range meta {
		if err := errors.Join(safetensors.CheckText(key), safetensors.CheckText(value)); err != nil {
			return fmt.Errorf("meta: %w", err)
		}
	}
	return nil
}

// createShard writes file k, and waits until it is on the disk.
func (x *index) createShard(ctx context.Context, path string, k int, tensors []Tensor) error {
	return create(path, func(w io.Writer) error { return x.writeShard(ctx, w, k, readers(tensors)) })
}

// readers are the Reads of tensors, by name.
func readers(tensors []Tensor) map[string]func(k int) (*tensor.Tensor, error) {
	read := map[string]func(k int) (*tensor.Tensor, error){}
	for _, t := range tensors {
		read[t.Name] = t.Read
	}
	return read
}

// write writes the index into the directory of a checkpoint, and waits until all names in it are on the disk.
func (x *index) write(dir string) error {
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
func (x *index) writeShard(ctx context.Context, w io.Writer, k int,
	read map[string]func(k int) (*tensor.Tensor, error)) error {
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
			err = fmt.Errorf("what Read has returned is %v of shape %v, want %v of shape %v",
				shard.DType(), shard.Shape(), t.dtype, shards[i].Shape)
		}
		if err != nil {
			return fmt.Errorf("tensor %.100q: shard %d of %d: %w", t.name, k, t.shards, err)
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
