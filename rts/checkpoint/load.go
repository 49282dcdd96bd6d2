package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

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
// It may run beside a Save, also another process's, and in a directory that cannot be written to. Where that Save
// removes the checkpoint that is being loaded, Load may begin again with the newer one, and Write is called again. It
// takes memory for the index and one shard, reads every file twice, and has at most 64 of them open at once, or fewer
// where the process has no more descriptors.
func Load(ctx context.Context, dir string, tensors []Tensor) (meta map[string]string, err error) {
	if meta, err = load(ctx, dir, tensors); err != nil {
		return nil, loadError(dir, err)
	}
	return meta, nil
}

func loadError(dir string, err error) error {
	return fmt.Errorf("checkpoint: load from %s: %w", dir, err)
}

func load(ctx context.Context, dir string, tensors []Tensor) (map[string]string, error) {
	layouts, err := checkLoad(ctx, dir, tensors)
	if err != nil {
		return nil, err
	}
	return loadNewest(ctx, dir, tensors, layouts, openRegular)
}

// checkLoad looks at what a Load is given.
func checkLoad(ctx context.Context, dir string, tensors []Tensor) ([]layout, error) {
	switch {
	case ctx == nil:
		return nil, errNoContext
	case dir == "":
		return nil, errNoName
	}
	layouts, err := checkAll(tensors)
	if err != nil {
		return nil, err
	}
	for _, t := range tensors {
		if t.Write == nil {
			return nil, fmt.Errorf("tensor %.100q: Write is nil", t.Name)
		}
	}
	return layouts, nil
}

// load reads all, then writes all, and closes the files.
func (c *checkpoint) load(ctx context.Context, tensors []Tensor, layouts []layout) (_ map[string]string, err error) {
	defer func() { err = errors.Join(err, c.open.close()) }()
	if err := c.verifyAll(ctx); err != nil {
		return nil, err
	}
	if err := c.write(ctx, tensors, layouts); err != nil {
		return nil, err
	}
	return c.index.meta, nil
}

// verifyAll reads all that is wanted and compares its checksums.
func (c *checkpoint) verifyAll(ctx context.Context) error {
	buf := make([]byte, bufferBytes)
	for k := range c.files {
		if err := c.verify(ctx, k, buf); err != nil {
			return err
		}
	}
	return nil
}

// write writes the tensors.
func (c *checkpoint) write(ctx context.Context, tensors []Tensor, layouts []layout) error {
	buf := make([]byte, bufferBytes)
	largest := 0 // bytes of a shard
	for i, t := range tensors {
		largest = max(largest, layouts[i].per*t.DType.Size())
	}
	one, err := tensor.New(tensor.U8, largest) // begins where any element type may
	if err != nil {
		return err
	}
	for i, t := range tensors {
		s := c.stream(c.named[t.Name], buf)
		if err := s.load(ctx, t, layouts[i], one.Bytes()); err != nil {
			return err
		}
	}
	return nil
}

// loadNewest loads the newest checkpoint. Where a Save has removed it before it was read, a newer one is loaded, over
// what has been written of it.
func loadNewest(ctx context.Context, dir string, tensors []Tensor, layouts []layout,
	openFile opener) (meta map[string]string, err error) {
	err = atNewest(ctx, dir, func(dir string) error {
		c, err := open(ctx, dir, tensors, openFile)
		if err == nil {
			meta, err = c.load(ctx, tensors, layouts)
		}
		return err
	})
	return meta, err
}

// atNewest does something with the newest checkpoint. One that a Save removes meanwhile is no longer the newest.
func atNewest(ctx context.Context, dir string, do func(dir string) error) error {
	before := entry{}
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		e, err := newest(dir)
		if err != nil {
			return err
		}
		err = do(e.path(dir))
		if err == nil || !errors.As(err, new(vanished)) || e.number <= before.number {
			return err
		}
		before = e
	}
}

// checkpoint is one whose files agree with one another but for their data.
type checkpoint struct {
	index *index
	named map[string]*saved
	wants map[string][]bool // by tensor and shard: it is to be read
	files []*file           // nil: nothing in it is to be read
	open  files
}

// open opens a checkpoint, which has to have these tensors.
func open(ctx context.Context, dir string, tensors []Tensor, openFile opener) (*checkpoint, error) {
	layouts, err := checkAll(tensors)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, indexName)
	x, err := readIndex(ctx, path, openFile)
	if err != nil {
		return nil, err
	}
	c, err := newCheckpoint(x, tensors, layouts, openFile)
	if err != nil {
		return nil, inFile(path, err)
	}
	if err := c.openShards(ctx, dir); err != nil {
		return nil, err
	}
	return c, nil
}

// newCheckpoint is the checkpoint of an index, which has to have these tensors, before its files are opened.
func newCheckpoint(x *index, tensors []Tensor, layouts []layout, openFile opener) (*checkpoint, error) {
	c := &checkpoint{index: x, named: map[string]*saved{}, wants: map[string][]bool{},
		open: files{opener: openFile, most: mostOpen}}
	for i := range x.tensors {
		c.named[x.tensors[i].name] = &x.tensors[i]
	}
	if err := c.compare(tensors); err != nil {
		return nil, err
	}
	for i, t := range tensors {
		c.wants[t.Name] = c.named[t.Name].wantedBy(&t, layouts[i])
	}
	return c, nil
}

// wantsOf reports whether something in file k is to be read.
func (c *checkpoint) wantsOf(k int) bool {
	return slices.ContainsFunc(c.index.inFile(k), func(s *saved) bool { return c.wants[s.name][k] })
}

// openShards opens the files that are to be read. After an error none is open.
func (c *checkpoint) openShards(ctx context.Context, dir string) (err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, c.open.close())
		}
	}()
	n := c.index.files()
	for k := range n {
		if !c.wantsOf(k) {
			c.files = append(c.files, nil)
			continue
		}
		f, err := c.openShard(ctx, filepath.Join(dir, shardName(k, n)), k)
		if err != nil {
			return fmt.Errorf("shard %d of %d, of %s: %w", k, n, c.index.with(k), err)
		}
		c.files = append(c.files, f)
	}
	return nil
}

// wantedBy says which shards are to be read for a tensor that lies otherwise: those with an element of a shard that
// this process has.
func (s *saved) wantedBy(t *Tensor, l layout) []bool {
	wants := make([]bool, s.shards)
	for k := range wants {
		wants[k] = t.Own == nil // the padding too
	}
	for k := range l.shards {
		if held := l.held(k); held > 0 && t.owns(k) {
			for i := k * l.per / s.per; i <= (k*l.per+held-1)/s.per; i++ {
				wants[i] = true
			}
		}
	}
	return wants
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

func readIndex(ctx context.Context, path string, openFile opener) (x *index, err error) {
	f, size, err := openFile.existing(path)
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
	return parseIndex(ctx, data)
}

// compare is the error of an index that has not got the tensors that are wanted.
func (c *checkpoint) compare(tensors []Tensor) error {
	wanted := map[string]struct{}{}
	for _, t := range tensors {
		wanted[t.Name] = struct{}{}
		s := c.named[t.Name]
		if s == nil {
			return fmt.Errorf("tensor %.100q: the checkpoint has none of that name", t.Name)
		}
		if s.dtype != t.DType || !s.shape.Equal(t.Shape) {
			return fmt.Errorf("tensor %.100q: the checkpoint has %v of shape %v, wanted: %v of shape %v",
				t.Name, s.dtype, s.shape, t.DType, t.Shape)
		}
	}
	for _, s := range c.index.tensors {
		if _, ok := wanted[s.name]; !ok {
			return fmt.Errorf("tensor %.100q: the checkpoint has it, and nobody wants it", s.name)
		}
	}
	return nil
}

// openShard opens file k and compares what it says with the index.
func (c *checkpoint) openShard(ctx context.Context, path string, k int) (_ *file, err error) {
	s := &file{among: &c.open, path: path}
	if err := c.open.use(s); err != nil {
		return nil, err
	}
	defer func() { err = inFile(path, err) }()
	if s.in, err = safetensors.Read(ctx, s, s.size); err != nil {
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
			return nil, fmt.Errorf("tensor %.100q: the index has no shard %d of it", t.Name, k)
		}
		if t.DType != want.dtype || !t.Shape.Equal(want.shard().Shape) {
			return nil, fmt.Errorf("tensor %.100q: %v of shape %v, by the index it is %v of shape %v",
				t.Name, t.DType, t.Shape, want.dtype, want.shard().Shape)
		}
		delete(in, t.Name)
	}
	for _, t := range c.index.inFile(k) {
		if in[t.name] != nil {
			return nil, fmt.Errorf("tensor %.100q: it is not in the file", t.name)
		}
	}
	return s, nil
}

// verify reads the shards of file k and compares their checksums.
func (c *checkpoint) verify(ctx context.Context, k int, buf []byte) error {
	for _, t := range c.index.inFile(k) {
		if !c.wants[t.name][k] {
			continue
		}
		s := &stream{files: c.files, t: t, buf: buf, k: k}
		s.files[k].sum = 0
		if err := s.end(ctx); err != nil {
			return err
		}
	}
	return nil
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
	s.begin(0)
	return s
}

// begin goes to the beginning of a shard.
func (s *stream) begin(k int) {
	s.k, s.at = k, 0
	if k < s.t.shards && s.files[k] != nil {
		s.files[k].sum = 0
	}
}

// seek goes to an element after those that have been read. Shards that are begun are read to their end.
func (s *stream) seek(ctx context.Context, element int) error {
	k, at := element/s.t.per, element%s.t.per
	if k != s.k {
		if s.at > 0 {
			if err := s.end(ctx); err != nil {
				return err
			}
		}
		s.begin(k)
	}
	for s.at < at {
		if err := s.next(ctx, s.buf[:min(bufferBytes, (at-s.at)*s.t.dtype.Size())]); err != nil {
			return err
		}
	}
	return nil
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
		return inFile(f.path, fmt.Errorf("tensor %.100q: it is damaged: checksum %08x, want %08x",
			s.t.name, f.sum, s.t.sums[s.k]))
	}
	s.begin(s.k + 1)
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

// load writes all of a tensor to t, shard by shard. There is room for one in memory.
func (s *stream) load(ctx context.Context, t Tensor, l layout, memory []byte) error {
	memory = memory[:l.per*t.DType.Size()]
	clear(memory) // bools are 0 or 1
	shard, err := tensor.View(t.DType, tensor.Shape{l.per}, memory)
	if err != nil {
		return fmt.Errorf("tensor %.100q: %w", t.Name, err)
	}
	for k := range l.shards {
		if !t.owns(k) {
			continue
		}
		held := l.held(k) * t.DType.Size()
		clear(shard.Bytes()[held:])
		if held > 0 {
			if err := s.seek(ctx, k*l.per); err != nil {
				return err
			}
		}
		if err := s.read(ctx, shard.Bytes()[:held]); err != nil {
			return err
		}
		if err := t.Write(k, shard); err != nil {
			return fmt.Errorf("tensor %.100q: shard %d of %d: %w", t.Name, k, t.Shards, err)
		}
	}
	if t.Own != nil {
		if s.at > 0 {
			return s.end(ctx)
		}
		return nil
	}
	return s.skip(ctx)
}
