package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"gogcl.dev/internal/safetensors"
	"gogcl.dev/tensor"
)

// ErrNone is the error of Load when there is no checkpoint, or no directory.
var ErrNone = errors.New("there is no checkpoint")

// Load loads the newest checkpoint in a directory into the tensors, of which it has to have all and no others, with the
// same types and shapes, but in any number of shards. It returns the strings that were saved with them, the caller's
// own. When ctx ends, so does Load, with ctx's error.
//
// Nothing is written before all of the checkpoint has been found to be whole. If it is a Write that fails, or ctx ends
// then, or the disk changes its mind, some tensors have been loaded and others not; the error of a Write says where.
//
// It may run beside a Save. It takes memory for the index and one shard, and reads every file twice.
func Load(ctx context.Context, dir string, tensors []Tensor) (meta map[string]string, err error) {
	meta, err = load(ctx, dir, tensors)
	if err != nil {
		return nil, fmt.Errorf("checkpoint: load from %s: %w", dir, err)
	}
	return meta, nil
}

func load(ctx context.Context, dir string, tensors []Tensor) (map[string]string, error) {
	if dir == "" {
		return nil, errors.New("the directory has no name")
	}
	layouts, err := checkAll(tensors)
	if err != nil {
		return nil, err
	}
	for _, t := range tensors {
		if t.Write == nil {
			return nil, fmt.Errorf("tensor %q: Write is nil", t.Name)
		}
	}
	c, err := openNewest(ctx, dir, tensors, openRegular)
	if err != nil {
		return nil, err
	}
	return c.load(ctx, tensors, layouts)
}

// load reads all, then writes all, and closes the files.
func (c *checkpoint) load(ctx context.Context, tensors []Tensor, layouts []layout) (_ map[string]string, err error) {
	defer func() { err = errors.Join(err, c.close()) }()
	buf := make([]byte, bufferBytes)
	for i := range c.index.tensors {
		s := c.stream(&c.index.tensors[i], buf)
		if err := s.skip(ctx); err != nil {
			return nil, err
		}
	}
	for i, t := range tensors {
		s := c.stream(c.named[t.Name], buf)
		if err := s.load(ctx, t, layouts[i]); err != nil {
			return nil, err
		}
	}
	return c.index.meta, nil
}

// openNewest opens the newest checkpoint. One that a Save removes meanwhile is no longer the newest.
func openNewest(ctx context.Context, dir string, tensors []Tensor, openFile opener) (*checkpoint, error) {
	before := entry{}
	for {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		e, err := newest(dir)
		if err != nil {
			return nil, err
		}
		c, err := open(e.path(dir), tensors, openFile)
		if err == nil || !errors.Is(err, fs.ErrNotExist) || e.number <= before.number {
			return c, err
		}
		before = e
	}
}

// checkpoint is one whose files are open, and agree with one another but for their data.
type checkpoint struct {
	index *index
	named map[string]*saved
	files []*file
}

// source is an open file.
type source interface {
	io.ReaderAt
	io.Closer
}

// opener opens a file and says how long it is.
type opener func(path string) (source, int64, error)

// file is a file with shards.
type file struct {
	path string
	f    source
	in   *safetensors.File
	sum  uint32 // crc32c of what has been read since it was set to 0
}

// ReadAt is how package safetensors reads.
func (f *file) ReadAt(b []byte, off int64) (int, error) {
	n, err := f.f.ReadAt(b, off)
	f.sum = crc32.Update(f.sum, castagnoli, b[:n])
	return n, err
}

func (c *checkpoint) close() error {
	var err error
	for _, f := range c.files {
		err = errors.Join(err, f.f.Close())
	}
	return err
}

// open opens a checkpoint, which has to have these tensors.
func open(dir string, tensors []Tensor, openFile opener) (_ *checkpoint, err error) {
	path := filepath.Join(dir, indexName)
	c := &checkpoint{named: map[string]*saved{}}
	if c.index, err = readIndex(path, openFile); err != nil {
		return nil, err
	}
	for i := range c.index.tensors {
		c.named[c.index.tensors[i].name] = &c.index.tensors[i]
	}
	if err := c.compare(tensors); err != nil {
		return nil, inFile(path, err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.close())
		}
	}()
	files := c.index.files()
	for k := range files {
		f, err := c.openShard(filepath.Join(dir, shardName(k, files)), k, openFile)
		if err != nil {
			return nil, fmt.Errorf("shard %d of %d, of %s: %w", k, files, c.index.with(k), err)
		}
		c.files = append(c.files, f)
	}
	return c, nil
}

// openRegular is the opener of files.
func openRegular(path string) (source, int64, error) {
	info, err := os.Stat(path) // for to open a pipe would wait for its other end
	if err != nil {
		return nil, 0, err
	}
	if !info.Mode().IsRegular() {
		return nil, 0, inFile(path, errors.New("it is not a regular file"))
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, 0, err
	}
	if info, err = f.Stat(); err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	return f, info.Size(), nil
}

func readIndex(path string, openFile opener) (x *index, err error) {
	f, size, err := openFile(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = inFile(path, errors.Join(err, f.Close())) }()
	if size > maxIndexBytes {
		return nil, fmt.Errorf("it has %d bytes, at most %d are allowed", size, maxIndexBytes)
	}
	data := make([]byte, size)
	if _, err := io.ReadFull(io.NewSectionReader(f, 0, size), data); err != nil {
		return nil, err
	}
	return parseIndex(data)
}

// compare is the error of an index that has not got the tensors that are wanted.
func (c *checkpoint) compare(tensors []Tensor) error {
	wanted := map[string]struct{}{}
	for _, t := range tensors {
		wanted[t.Name] = struct{}{}
		s := c.named[t.Name]
		if s == nil {
			return fmt.Errorf("tensor %q: the checkpoint has none of that name", t.Name)
		}
		if s.dtype != t.DType || !s.shape.Equal(t.Shape) {
			return fmt.Errorf("tensor %q: the checkpoint has %v of shape %v, wanted: %v of shape %v", t.Name, s.dtype, s.shape, t.DType, t.Shape)
		}
	}
	for _, s := range c.index.tensors {
		if _, ok := wanted[s.name]; !ok {
			return fmt.Errorf("tensor %q: the checkpoint has it, and nobody wants it", s.name)
		}
	}
	return nil
}

// openShard opens file k and compares what it says with the index.
func (c *checkpoint) openShard(path string, k int, openFile opener) (_ *file, err error) {
	f, size, err := openFile(path)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = inFile(path, errors.Join(err, f.Close()))
		}
	}()
	s := &file{path: path, f: f}
	if s.in, err = safetensors.Read(s, size); err != nil {
		return nil, err
	}
	for key, want := range c.index.fileMeta(k) {
		if got := s.in.Meta()[key]; got != want {
			return nil, fmt.Errorf("it is not of this checkpoint: its %s is %.100q, want %q", key, got, want)
		}
	}
	in := map[string]*saved{}
	for _, t := range c.index.inFile(k) {
		in[t.name] = t
	}
	for _, t := range s.in.Tensors() {
		want, ok := in[t.Name]
		if !ok {
			return nil, fmt.Errorf("tensor %q: the index has no shard %d of it", t.Name, k)
		}
		if t.DType != want.dtype || !t.Shape.Equal(want.shard().Shape) {
			return nil, fmt.Errorf("tensor %q: %v of shape %v, by the index it is %v of shape %v",
				t.Name, t.DType, t.Shape, want.dtype, want.shard().Shape)
		}
		delete(in, t.Name)
	}
	for _, t := range c.index.inFile(k) {
		if in[t.name] != nil {
			return nil, fmt.Errorf("tensor %q: it is not in the file", t.name)
		}
	}
	return s, nil
}

// stream reads the elements of a tensor from its first to its last, across shards, without the padding, and compares
// the checksum of each shard when it is through with it.
type stream struct {
	files []*file
	t     *saved
	buf   []byte // for what nobody wants
	k, at int    // the shard, and the element in it, that come next
}

func (c *checkpoint) stream(t *saved, buf []byte) *stream {
	s := &stream{files: c.files, t: t, buf: buf}
	s.files[0].sum = 0
	return s
}

// read reads elements, which there have to be.
func (s *stream) read(ctx context.Context, dst []byte) error {
	size := s.t.dtype.Size()
	for len(dst) > 0 {
		if held := s.t.held(s.k); s.at < held {
			n := min(len(dst), bufferBytes, (held-s.at)*size)
			if err := s.next(ctx, dst[:n]); err != nil {
				return err
			}
			dst = dst[n:]
			continue
		}
		if err := s.end(ctx); err != nil {
			return err
		}
	}
	return nil
}

// next reads elements of one shard.
func (s *stream) next(ctx context.Context, dst []byte) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	f := s.files[s.k]
	if err := f.in.ReadAt(s.t.shard(), s.at, dst); err != nil {
		return inFile(f.path, err)
	}
	s.at += len(dst) / s.t.dtype.Size()
	return nil
}

// end reads what is left of a shard, and goes to the next.
func (s *stream) end(ctx context.Context) error {
	for s.at < s.t.per {
		if err := s.next(ctx, s.buf[:min(bufferBytes, (s.t.per-s.at)*s.t.dtype.Size())]); err != nil {
			return err
		}
	}
	if f := s.files[s.k]; f.sum != s.t.sums[s.k] {
		return inFile(f.path, fmt.Errorf("tensor %q: it is damaged: checksum %08x, want %08x", s.t.name, f.sum, s.t.sums[s.k]))
	}
	s.k, s.at = s.k+1, 0
	if s.k < s.t.shards {
		s.files[s.k].sum = 0
	}
	return nil
}

// skip reads all that is left.
func (s *stream) skip(ctx context.Context) error {
	for s.k < s.t.shards {
		if err := s.end(ctx); err != nil {
			return err
		}
	}
	return nil
}

// load writes all of a tensor to t, shard by shard.
func (s *stream) load(ctx context.Context, t Tensor, l layout) error {
	shard, err := tensor.New(t.DType, l.per)
	if err != nil {
		return fmt.Errorf("tensor %q: %w", t.Name, err)
	}
	for k := range l.shards {
		held := l.held(k) * t.DType.Size()
		clear(shard.Bytes()[held:])
		if err := s.read(ctx, shard.Bytes()[:held]); err != nil {
			return err
		}
		if err := t.Write(k, shard); err != nil {
			return fmt.Errorf("tensor %q: shard %d of %d: %w", t.Name, k, t.Shards, err)
		}
	}
	return s.skip(ctx)
}
