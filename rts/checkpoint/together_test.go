package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"gogcl.dev/commgroup"
	"gogcl.dev/tensor"
)

// party are processes that meet in memory.
type party struct {
	size int

	mu    sync.Mutex // guards what follows
	turns []*turn
}

// turn is one Gather of all.
type turn struct {
	said  [][]byte
	count int
	all   chan struct{}
}

// guest is one of a party.
type guest struct {
	*party
	replica int
	made    int // calls
}

func (g *guest) Replica() int          { return g.replica }
func (g *guest) Replicas() int         { return g.size }
func (g *guest) Done() <-chan struct{} { return nil }
func (g *guest) Err() error            { return nil }
func (g *guest) Abort(error)           {}

func (g *guest) Alloc(bytes int) ([]byte, error) { return make([]byte, bytes), nil }

// Gather implements ir.Job, of one group.
func (g *guest) Gather(ctx context.Context, _ commgroup.Group, dst, src []byte) error {
	g.mu.Lock()
	if g.made == len(g.turns) {
		g.turns = append(g.turns, &turn{said: make([][]byte, g.size), all: make(chan struct{})})
	}
	t := g.turns[g.made]
	g.made++
	t.said[g.replica] = slices.Clone(src)
	if t.count++; t.count == g.size {
		close(t.all)
	}
	g.mu.Unlock()
	select {
	case <-t.all:
		copy(dst, slices.Concat(t.said...))
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// together calls do for each of so many processes, and returns their errors.
func together(n int, do func(g *guest) error) []error {
	p := &party{size: n}
	errs := make([]error, n)
	var all sync.WaitGroup
	for replica := range n {
		all.Go(func() { errs[replica] = do(&guest{party: p, replica: replica}) })
	}
	all.Wait()
	return errs
}

// writing is held by a process of a test that writes to a model.
var writing sync.Mutex

// of is the tensors of a model as one of several processes has them: shard k is of process k mod n.
func (m *model) of(replica, n int) []Tensor {
	tensors := slices.Clone(m.tensors)
	for i := range tensors {
		t := &tensors[i]
		own := func(k int) bool { return k%n == replica }
		read, write := t.Read, t.Write
		t.Own = own
		t.Read = func(k int) (*tensor.Tensor, error) {
			if !own(k) {
				return nil, fmt.Errorf("process %d is asked for shard %d", replica, k)
			}
			return read(k)
		}
		t.Write = func(k int, shard *tensor.Tensor) error {
			if !own(k) {
				return fmt.Errorf("process %d is given shard %d", replica, k)
			}
			writing.Lock()
			defer writing.Unlock()
			return write(k, shard)
		}
	}
	return tensors
}

// saveTogether saves a model as n processes, and loads what there is into another.
func saveTogether(dir string, n int, saves *model, loads *model, meta map[string]string) []error {
	return together(n, func(g *guest) (err error) {
		d, err := OpenTogether(context.Background(), dir, g)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, d.Close()) }()
		if saves != nil {
			if err := d.Save(context.Background(), saves.of(g.replica, n), meta); err != nil {
				return err
			}
		}
		if loads == nil {
			return nil
		}
		// Each process has a model of its own, as if it had nothing else.
		got, err := d.Load(context.Background(), loads.of(g.replica, n))
		if err == nil && !maps.Equal(got, meta) {
			err = fmt.Errorf("meta %v, want %v", got, meta)
		}
		if again, failed := d.Meta(context.Background()); err == nil && (failed != nil || !maps.Equal(again, meta)) {
			err = fmt.Errorf("Meta returns %v, error %v", again, failed)
		}
		return err
	})
}

// TestTogether: what several processes save, each its shards, is what one saves, and any number loads it.
func TestTogether(t *testing.T) {
	meta := map[string]string{"step": "7"}
	for _, shards := range []int{1, 2, 3, 4, 8} {
		dir := t.TempDir()
		saves := small(t, shards).fill(shards)
		n := min(shards, 3)
		for replica, err := range saveTogether(dir, n, saves, nil, meta) {
			if err != nil {
				t.Fatalf("shards %d: replica %d: %v", shards, replica, err)
			}
		}
		for _, other := range []int{1, 2, 3, 5, 8} {
			want := small(t, other).fill(shards)
			loads := small(t, other)
			if got := loadIt(t, dir, loads); !maps.Equal(got, meta) {
				t.Errorf("meta %v", got)
			}
			loads.wantEqual(t, want)
			loads = small(t, other)
			loads.writes = -1 << 20 // not counted: several write
			for replica, err := range saveTogether(dir, min(other, 4), nil, loads, meta) {
				if err != nil {
					t.Fatalf("shards %d to %d: replica %d: %v", shards, other, replica, err)
				}
			}
			loads.wantEqual(t, want)
		}
	}
}

// TestTogetherReadsItsOwn: a process opens the files that it needs, and no others.
func TestTogetherReadsItsOwn(t *testing.T) {
	dir := t.TempDir()
	saveIt(t, dir, small(t, 4).fill(1), nil)
	files, err := filepath.Glob(filepath.Join(dir, "*", "shard-00003-*"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	tensors := small(t, 4).of(0, 4) // shard 0 of each
	x, err := open(t.Context(), filepath.Dir(files[0]), tensors, openRegular)
	if err != nil {
		t.Fatal(err)
	}
	defer x.open.close()
	for k, f := range x.files {
		if (f != nil) != (k == 0) {
			t.Errorf("file %d: open %v", k, f != nil)
		}
	}
}

// TestTogetherErrors: an error of one is one on all, and leaves what there was.
func TestTogetherErrors(t *testing.T) {
	boom := errors.New("boom")
	for _, tt := range []struct {
		name string
		odd  func(tensors []Tensor, meta map[string]string) // on replica 1
		want string
	}{
		{"read", func(tensors []Tensor, _ map[string]string) {
			tensors[0].Read = func(int) (*tensor.Tensor, error) { return nil, boom }
		}, "boom"},
		{"no read", func(tensors []Tensor, _ map[string]string) { tensors[0].Read = nil }, "Read is nil"},
		{"strings", func(_ []Tensor, meta map[string]string) { meta["step"] = "8" },
			"replica 1 saves other tensors or strings than replica 0"},
		{"nobody", func(tensors []Tensor, _ map[string]string) {
			for i := range tensors {
				tensors[i].Own = func(int) bool { return false }
			}
		}, "no process has shard 1 of tensor"},
		{"mixed", func(tensors []Tensor, _ map[string]string) {
			for i := range tensors {
				tensors[i].Own = func(int) bool { return i%2 == 0 }
			}
		}, "those of one number are to be together"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			before := small(t, 3).fill(1)
			saveIt(t, dir, before, nil)
			was := names(t, dir)
			saves := small(t, 3).fill(2)
			for replica, err := range together(3, func(g *guest) (err error) {
				d, err := OpenTogether(context.Background(), dir, g)
				if err != nil {
					return err
				}
				defer func() { err = errors.Join(err, d.Close()) }()
				tensors, meta := saves.of(g.replica, 3), map[string]string{"step": "7"}
				if g.replica == 1 {
					tt.odd(tensors, meta)
				}
				return d.Save(context.Background(), tensors, meta)
			}) {
				wantError(t, err, "checkpoint: save to "+dir+": ", tt.want)
				if tt.name == "read" && errors.Is(err, boom) != (replica == 1) {
					t.Errorf("replica %d: %v", replica, err)
				}
				if tt.name == "read" && replica != 1 {
					wantError(t, err, "replica 1 on host ")
				}
			}
			if now := names(t, dir); !slices.Equal(now, was) {
				t.Errorf("there are %q, and were %q", now, was)
			}
		})
	}
}

// TestTogetherNotShared: a directory of the same name that is another on another host is an error that says where what
// is missing. Here each process has a directory of its own.
func TestTogetherNotShared(t *testing.T) {
	host, err := os.Hostname()
	if err != nil {
		t.Skip(err)
	}
	dirs := []string{t.TempDir(), t.TempDir()}
	for _, err := range together(2, func(g *guest) error {
		// What replica 0 leaves for the others to see.
		path := filepath.Join(dirs[g.replica], "beside")
		if g.replica == 0 {
			if err := os.Mkdir(path, 0o777); err != nil {
				return err
			}
		}
		all, err := tell(context.Background(), g, path, nil)
		if err == nil {
			_, err = tell(context.Background(), g, "", sees(path, all[0].Host)) // each looks in its own
		}
		return err
	}) {
		wantError(t, err, "there is no directory "+filepath.Join(dirs[1], "beside")+" here, which replica 0 has made "+
			"on host "+host, "all processes must share the directory of checkpoints")
	}
	// A checkpoint that only one has, and two checkpoints.
	for range 2 {
		for replica, err := range together(2, func(g *guest) error {
			d := &Directory{dir: dirs[g.replica], job: g}
			if g.replica == 0 {
				if err := Save(context.Background(), d.dir, small(t, 2).fill(1).tensors, nil); err != nil {
					return err
				}
			}
			_, err := d.Load(context.Background(), small(t, 2).of(g.replica, 2))
			return err
		}) {
			wantError(t, err, "checkpoint: load from "+dirs[replica], "on host "+host,
				"all processes must share the directory")
		}
		saveIt(t, dirs[1], small(t, 2).fill(1), nil)
	}
}

// TestTogetherFileMissing: replica 0 looks for the files that the others say they have written.
func TestTogetherFileMissing(t *testing.T) {
	dir := t.TempDir()
	saves := small(t, 2).fill(1)
	for _, err := range together(2, func(g *guest) error {
		d, err := OpenTogether(context.Background(), dir, g)
		if err != nil {
			return err
		}
		defer d.Close()
		return d.Save(context.Background(), saves.of(g.replica, 2), nil)
	}) {
		if err != nil {
			t.Fatal(err)
		}
	}
	p, err := prepare(t.Context(), dir, saves.tensors, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	e, err := newest(dir)
	if err != nil {
		t.Fatal(err)
	}
	var part written
	part.Bytes, part.Sums = map[int]int64{}, map[int][]uint32{}
	for k := range 2 {
		info, err := os.Stat(filepath.Join(e.path(dir), shardName(k, 2)))
		if err != nil {
			t.Fatal(err)
		}
		part.Bytes[k], part.Sums[k] = info.Size(), make([]uint32, len(p.index.inFile(k)))
	}
	parts := []said[written]{{Host: "a", Body: part}, {Host: "b", Body: part}}
	if err := p.collect(e.path(dir), []int{0, 1}, parts); err != nil {
		t.Error(err)
	}
	path := filepath.Join(e.path(dir), shardName(1, 2))
	if err := os.Truncate(path, 3); err != nil {
		t.Fatal(err)
	}
	wantError(t, p.collect(e.path(dir), []int{0, 1}, parts), "as replica 1 has written on host b", "it has 3 bytes")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	wantError(t, p.collect(e.path(dir), []int{0, 1}, parts), "there is no such file "+path)
}

// TestTogetherInUse: nobody else opens the directory, and after Close another may.
func TestTogetherInUse(t *testing.T) {
	dir := t.TempDir()
	for _, err := range together(3, func(g *guest) error {
		d, err := OpenTogether(context.Background(), dir, g)
		if err != nil {
			return err
		}
		if _, err := d.Load(context.Background(), nil); !errors.Is(err, ErrNone) {
			return fmt.Errorf("load of none: %w", err)
		}
		if _, err := OpenTogether(context.Background(), dir, g); !errors.Is(err, ErrInUse) {
			return fmt.Errorf("a second time: %w", err)
		}
		return d.Close()
	}) {
		if err != nil {
			t.Error(err)
		}
	}
	d, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	if left := names(t, dir); len(left) > 0 {
		t.Errorf("there are %q", left)
	}
	for _, err := range together(2, func(g *guest) error {
		_, err := OpenTogether(context.Background(), "", g)
		return err
	}) {
		wantError(t, err, "the directory has no name")
	}
	_, err = OpenTogether(context.Context(nil), dir, nil)
	wantError(t, err, "no context or no Job")
}

// TestTogetherDamaged: what one process finds damaged is not loaded by any.
func TestTogetherDamaged(t *testing.T) {
	dir := t.TempDir()
	saveIt(t, dir, small(t, 4).fill(1), nil)
	files, err := filepath.Glob(filepath.Join(dir, "*", "shard-00001-*"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	f, err := os.OpenFile(files[0], os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	last := []byte{0}
	if _, err := f.Seek(-1, io.SeekEnd); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Read(last); err != nil {
		t.Fatal(err)
	}
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte{last[0] ^ 1}, info.Size()-1); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	loads := small(t, 4)
	for replica, err := range saveTogether(dir, 4, nil, loads, nil) {
		wantError(t, err, "shard-00001-of-00004.safetensors", "it is damaged")
		if strings.Contains(err.Error(), "replica 1 on host") != (replica != 1) {
			t.Errorf("replica %d: %v", replica, err)
		}
	}
	if loads.writes != 0 {
		t.Errorf("%d writes", loads.writes)
	}
}
