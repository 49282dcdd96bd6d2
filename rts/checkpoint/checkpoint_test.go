package checkpoint

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"gogcl.dev/tensor"
)

// model is tensors in memory, each in shards.
type model struct {
	tensors []Tensor
	shards  map[string][]*tensor.Tensor
	writes  int
}

type spec struct {
	name   string
	dtype  tensor.DType
	shape  tensor.Shape
	shards int
}

// newModel is a model of zeros.
func newModel(t testing.TB, specs ...spec) *model {
	t.Helper()
	m := &model{shards: map[string][]*tensor.Tensor{}}
	for _, s := range specs {
		l, err := layoutOf(s.dtype, s.shape, s.shards)
		if err != nil {
			t.Fatal(err)
		}
		shards := make([]*tensor.Tensor, s.shards)
		for k := range shards {
			if shards[k], err = tensor.New(s.dtype, l.per); err != nil {
				t.Fatal(err)
			}
		}
		m.shards[s.name] = shards
		m.tensors = append(m.tensors, Tensor{s.name, s.dtype, s.shape, s.shards,
			func(k int) (*tensor.Tensor, error) { return shards[k], nil },
			func(k int, shard *tensor.Tensor) error {
				m.writes++
				if shard.DType() != s.dtype || !shard.Shape().Equal(tensor.Shape{l.per}) {
					return fmt.Errorf("shard %d is %v of shape %v", k, shard.DType(), shard.Shape())
				}
				copy(shards[k].Bytes(), shard.Bytes())
				return nil
			}, nil})
	}
	return m
}

// fill puts a value into every element that no other element, name and seed has, or few. Padding is not touched.
func (m *model) fill(seed int) *model {
	for _, x := range m.tensors {
		l, _ := layoutOf(x.DType, x.Shape, x.Shards)
		for k, shard := range m.shards[x.Name] {
			fill(shard.Bytes()[:l.held(k)*x.DType.Size()], x, k*l.per*x.DType.Size(), seed)
		}
	}
	return m
}

func fill(b []byte, x Tensor, at, seed int) {
	for i := range b {
		n := uint32(at+i)*2654435761 ^ uint32(seed+1)*40503 ^ uint32(len(x.Name))<<7
		b[i] = byte(n>>24 ^ n>>13)
		if x.DType == tensor.Bool {
			b[i] &= 1
		}
	}
}

// wantEqual compares with a model of the same specs, bit by bit, padding too.
func (m *model) wantEqual(t testing.TB, want *model) {
	t.Helper()
	for _, x := range m.tensors {
		for k, shard := range m.shards[x.Name] {
			if !shard.Equal(want.shards[x.Name][k]) {
				t.Fatalf("tensor %q, shard %d: %v, want %v", x.Name, k, shard, want.shards[x.Name][k])
			}
		}
	}
}

func saveIt(t testing.TB, dir string, m *model, meta map[string]string, options ...SaveOption) {
	t.Helper()
	if err := Save(context.Background(), dir, m.tensors, meta, options...); err != nil {
		t.Fatal(err)
	}
}

func loadIt(t testing.TB, dir string, m *model) map[string]string {
	t.Helper()
	meta, err := Load(context.Background(), dir, m.tensors)
	if err != nil {
		t.Fatal(err)
	}
	return meta
}

func wantError(t testing.TB, err error, want ...string) {
	t.Helper()
	for _, w := range want {
		if err == nil || !strings.Contains(err.Error(), w) {
			t.Errorf("error %v, want %q", err, w)
		}
	}
}

// names lists a directory and what is in its directories.
func names(t testing.TB, dir string) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if name, _ := filepath.Rel(dir, path); name != "." && name != lockName {
			all = append(all, filepath.ToSlash(name))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// small is two tensors, of which one has a shard in one file only.
func small(t testing.TB, shards int) *model {
	return newModel(t, spec{"w", tensor.F32, tensor.Shape{2, 3}, shards}, spec{"step", tensor.I64, nil, 1})
}

// TestReshard saves tensors of every type and many sizes in some numbers of shards and loads them in others.
func TestReshard(t *testing.T) {
	of := func(shards func(i int) int) *model {
		var specs []spec
		for i, d := range tensor.DTypes() {
			for j, n := range []int{0, 1, 2, 3, 4, 5, 7, 8, 9, 23} {
				specs = append(specs, spec{fmt.Sprintf("%v/%d", d, n), d, tensor.Shape{n}, shards(i + j)})
			}
		}
		specs = append(specs, spec{"scalar", tensor.F64, nil, shards(0)},
			spec{"none", tensor.U8, tensor.Shape{3, 0, 1 << 20}, shards(0)},
			spec{"large", tensor.F32, tensor.Shape{5, bufferBytes/4 + 1}, shards(0)},
			spec{"\"/ä\n<", tensor.F16, tensor.Shape{2, 3, 4}, shards(0)})
		return newModel(t, specs...)
	}
	counts := map[string]func(i int) int{
		"1": func(int) int { return 1 }, "2": func(int) int { return 2 }, "3": func(int) int { return 3 },
		"4": func(int) int { return 4 }, "8": func(int) int { return 8 }, "mixed": func(i int) int { return i%6 + 1 },
	}
	meta := map[string]string{"step": "17", "": "\"ä\u2028", "<": ""}
	for from, savedIn := range counts {
		dir := filepath.Join(t.TempDir(), "new")
		saveIt(t, dir, of(savedIn).fill(1), meta)
		for to, loadedIn := range counts {
			t.Run("from="+from+"/to="+to, func(t *testing.T) {
				got := of(loadedIn).fill(2)
				if loaded := loadIt(t, dir, got); !maps.Equal(loaded, meta) {
					t.Errorf("meta %q, want %q", loaded, meta)
				}
				got.wantEqual(t, of(loadedIn).fill(1))
			})
		}
	}
}

// TestPadding saves shards with something in their padding, which is loaded as zeros; what was there before is gone.
func TestPadding(t *testing.T) {
	dir := t.TempDir()
	m := small(t, 4) // 2, 2, 2 and 0 elements
	for _, shard := range m.shards["w"] {
		fill(shard.Bytes(), m.tensors[0], 0, 5)
	}
	saveIt(t, dir, m, nil)
	data, err := os.ReadFile(filepath.Join(dir, "checkpoint-00000001", "shard-00003-of-00004.safetensors"))
	if err != nil || !bytes.HasSuffix(data, make([]byte, 8)) {
		t.Errorf("the file ends in %q, error %v, want zeros", data[max(0, len(data)-8):], err)
	}
	loadIt(t, dir, m)
	if got := m.shards["w"][3]; !bytes.Equal(got.Bytes(), make([]byte, 8)) {
		t.Errorf("the padding is %v", got)
	}
}

// TestKeep saves five times and sees what stays.
func TestKeep(t *testing.T) {
	for keep, want := range map[int][]string{
		0: {"checkpoint-00000005"}, 1: {"checkpoint-00000005"},
		2: {"checkpoint-00000004", "checkpoint-00000005"},
		9: {"checkpoint-00000001", "checkpoint-00000002",
			"checkpoint-00000003", "checkpoint-00000004", "checkpoint-00000005"},
	} {
		dir := t.TempDir()
		var options []SaveOption
		if keep > 0 {
			options = append(options, Keep(keep))
		}
		for i := range 5 {
			saveIt(t, dir, small(t, 2).fill(i), map[string]string{"i": fmt.Sprint(i)}, options...)
		}
		got := slices.DeleteFunc(names(t, dir), func(name string) bool { return strings.Contains(name, "/") })
		if !slices.Equal(got, want) {
			t.Errorf("keep %d: %q, want %q", keep, got, want)
		}
		m := small(t, 3)
		if meta := loadIt(t, dir, m); meta["i"] != "4" {
			t.Errorf("meta %v is not the newest's", meta)
		}
		m.wantEqual(t, small(t, 3).fill(4))
	}
}

// TestFiles looks at the files of a checkpoint.
func TestFiles(t *testing.T) {
	dir := t.TempDir()
	saveIt(t, dir, small(t, 3), nil)
	want := []string{"checkpoint-00000001", "checkpoint-00000001/index.json",
		"checkpoint-00000001/shard-00000-of-00003.safetensors",
		"checkpoint-00000001/shard-00001-of-00003.safetensors", "checkpoint-00000001/shard-00002-of-00003.safetensors"}
	if got := names(t, dir); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	saveIt(t, dir, newModel(t), map[string]string{"a": "b"}) // no tensors
	if got := names(t, dir); !slices.Equal(got, []string{"checkpoint-00000002", "checkpoint-00000002/index.json"}) {
		t.Errorf("%q", got)
	}
	if meta := loadIt(t, dir, newModel(t)); meta["a"] != "b" {
		t.Error(meta)
	}
}

// TestNone loads where nothing was saved.
func TestNone(t *testing.T) {
	dir := t.TempDir()
	for _, d := range []string{dir, filepath.Join(dir, "none")} {
		_, err := Load(context.Background(), d, small(t, 2).tensors)
		if wantError(t, err, "checkpoint: load from "+d+": there is no checkpoint"); !errors.Is(err, ErrNone) {
			t.Errorf("error %v, want ErrNone", err)
		}
	}
	for _, name := range []string{"checkpoint-00000000",
		"checkpoint-1", "checkpoint-", "checkpoint-+0000001", "checkpoint-0000001a", ".saving-00000007"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"checkpoint-5", "w"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Load(context.Background(), dir, small(t, 2).tensors); !errors.Is(err, ErrNone) {
		t.Errorf("error %v, want ErrNone", err)
	}
	saveIt(t, dir, small(t, 2), nil)
	want := []string{"checkpoint-", "checkpoint-+0000001", "checkpoint-00000000",
		"checkpoint-00000001", "checkpoint-00000001/index.json", "checkpoint-00000001/shard-00000-of-00002.safetensors",
		"checkpoint-00000001/shard-00001-of-00002.safetensors",
		"checkpoint-0000001a", "checkpoint-1", "checkpoint-5", "w"}
	if got := names(t, dir); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	_, err := Load(context.Background(), filepath.Join(dir, "w"), small(t, 2).tensors)
	if wantError(t, err, filepath.Join(dir, "w")); errors.Is(err, ErrNone) {
		t.Error("a file is taken for an empty directory")
	}
}

// TestLeftovers saves where a crash has left directories behind, and where somebody has put files of his own into them.
func TestLeftovers(t *testing.T) {
	dir := t.TempDir()
	saveIt(t, dir, small(t, 2).fill(1), nil)
	put := func(names ...string) {
		t.Helper()
		for _, name := range names {
			path := filepath.Join(dir, filepath.FromSlash(name))
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o777),
				os.WriteFile(path, []byte("x"), 0o666)); err != nil {
				t.Fatal(err)
			}
		}
	}
	foreign := []string{".saving-00000004/index.json",
		".saving-00000004/notes", ".saving-00000005/shard-0-of-2.safetensors",
		".removing-00000006/index.json/x", "checkpoint-00000001/thesis.pdf"}
	put(foreign...)
	put(".saving-00000002/shard-00000-of-00002.safetensors", ".removing-00000003/index.json",
		".removing-00000003/shard-00001-of-00002.safetensors", ".removing-00000003/shard-12345-of-123456.safetensors")
	if err := os.Mkdir(filepath.Join(dir, ".saving-00000007"), 0o777); err != nil {
		t.Fatal(err)
	}
	m := small(t, 2)
	loadIt(t, dir, m) // which leaves all as it is
	m.wantEqual(t, small(t, 2).fill(1))
	saveIt(t, dir, small(t, 2).fill(2), nil)
	got := slices.DeleteFunc(names(t, dir), func(name string) bool {
		return strings.HasPrefix(name, "checkpoint-00000007/")
	})
	want := []string{".removing-00000006", ".removing-00000006/index.json", ".removing-00000006/index.json/x",
		".saving-00000004", ".saving-00000004/index.json", ".saving-00000004/notes",
		".saving-00000005", ".saving-00000005/shard-0-of-2.safetensors",
		"checkpoint-00000001", "checkpoint-00000001/index.json", "checkpoint-00000001/shard-00000-of-00002.safetensors",
		"checkpoint-00000001/shard-00001-of-00002.safetensors", "checkpoint-00000001/thesis.pdf", "checkpoint-00000007"}
	if !slices.Equal(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
	loadIt(t, dir, m)
	m.wantEqual(t, small(t, 2).fill(2))
	saveIt(t, dir, small(t, 2), nil)
	if got := names(t, dir); slices.Contains(got, "checkpoint-00000007") ||
		!slices.Contains(got, "checkpoint-00000001/index.json") {
		t.Errorf("%q", got)
	}
}

// TestHighestNumber leaves no number for the next checkpoint.
func TestHighestNumber(t *testing.T) {
	dir := t.TempDir()
	const highest = int(^uint(0) >> 1)
	if err := os.Mkdir(filepath.Join(dir, fmt.Sprint("checkpoint-", highest)), 0o777); err != nil {
		t.Fatal(err)
	}
	wantError(t, Save(context.Background(), dir, small(t, 1).tensors, nil), fmt.Sprint(highest),
		" has the highest number that there can be")
}

// TestTwoSaves saves while somebody saves.
func TestTwoSaves(t *testing.T) {
	dir := t.TempDir()
	m := small(t, 2).fill(1)
	inner := m.tensors[0].Read
	m.tensors[0].Read = func(k int) (*tensor.Tensor, error) {
		err := Save(context.Background(), dir, small(t, 2).tensors, nil)
		wantError(t, err, "checkpoint: save to "+dir+": file "+filepath.Join(dir,
			lockName)+": the directory is in use: somebody else has it open")
		return inner(k)
	}
	saveIt(t, dir, m, nil)
	got := small(t, 2)
	loadIt(t, dir, got)
	got.wantEqual(t, m)
}

// TestLoadBesideSave loads while checkpoints come and go.
func TestLoadBesideSave(t *testing.T) {
	dir := t.TempDir()
	saveIt(t, dir, small(t, 4).fill(0), map[string]string{"i": "0"})
	stop, done := make(chan struct{}), make(chan error, 1)
	go func() {
		var err error
		for i := 1; err == nil; i++ {
			select {
			case <-stop:
				done <- nil
				return
			default:
				err = Save(context.Background(), dir, small(t, 4).fill(i).tensors,
					map[string]string{"i": fmt.Sprint(i)})
			}
		}
		done <- err
	}()
	last := -1
	for range 100 {
		m := small(t, 3)
		var i int
		if _, err := fmt.Sscan(loadIt(t, dir, m)["i"], &i); err != nil || i < last {
			t.Fatalf("%d after %d, error %v", i, last, err)
		}
		last = i
		m.wantEqual(t, small(t, 3).fill(i))
	}
	close(stop)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// TestRemovedMeanwhile opens a checkpoint that a Save removes before all its files are open, again and again.
func TestRemovedMeanwhile(t *testing.T) {
	dir := t.TempDir()
	saveIt(t, dir, small(t, 4).fill(0), nil)
	m := small(t, 3)
	layouts, err := checkAll(m.tensors)
	if err != nil {
		t.Fatal(err)
	}
	saves := 0
	_, err = loadNewest(context.Background(), dir, m.tensors, layouts, func(path string) (source, int64, error) {
		if strings.HasSuffix(path, "shard-00001-of-00004.safetensors") && saves < 3 {
			saves++
			saveIt(t, dir, small(t, 4).fill(saves), nil)
		}
		return openRegular(path)
	})
	if err != nil {
		t.Fatal(err)
	}
	m.wantEqual(t, small(t, 3).fill(saves))
}

// TestBadTensors asks for what cannot be, which is refused before there is a directory.
func TestBadTensors(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	read := func(int) (*tensor.Tensor, error) { t.Error("it is read"); return nil, nil }
	write := func(int, *tensor.Tensor) error { t.Error("it is written"); return nil }
	good := Tensor{"w", tensor.F32, tensor.Shape{2}, 2, read, write, nil}
	const large = int(^uint(0)>>1) / 2
	for _, tt := range []struct {
		change func(x *Tensor)
		want   string
	}{
		{func(x *Tensor) { x.Name = "" }, `tensor "": it has no name`},
		{func(x *Tensor) { x.Name = "\xff" }, `tensor "\xff": "\xff" is not valid UTF-8`},
		{func(x *Tensor) { x.Name = "__metadata__" }, `tensor "__metadata__": the format wants the name for itself`},
		{func(x *Tensor) { x.Name = "v" }, `tensor "v": a second one of that name`},
		{func(x *Tensor) { x.DType = 0 }, `tensor "w": invalid element type DType(0)`},
		{func(x *Tensor) { x.Shape = tensor.Shape{-1} }, `tensor "w": tensor: `},
		{func(x *Tensor) { x.Shape = tensor.Shape{large} }, `in 2 shards has more bytes than an int can count`},
		{func(x *Tensor) { x.Shape = make(tensor.Shape, 65) }, `tensor "w": a shape of 65 dimensions, at most 64 are allowed`},
		{func(x *Tensor) { x.Shards = 0 }, `tensor "w": 0 shards, want 1 to 99999`},
		{func(x *Tensor) { x.Shards = -1 }, `tensor "w": -1 shards`},
		{func(x *Tensor) { x.Shards = 100_000 }, `tensor "w": 100000 shards`},
	} {
		first, second := good, good
		first.Name = "v"
		tt.change(&second)
		_, err := Load(context.Background(), dir, []Tensor{first, second})
		wantError(t, err, "checkpoint: load from "+dir, tt.want)
		wantError(t, Save(context.Background(), dir, []Tensor{first, second}, nil), "checkpoint: save to "+dir, tt.want)
	}
	good.Read = nil
	wantError(t, Save(context.Background(), dir, []Tensor{good}, nil), `tensor "w": Read is nil`)
	good.Write = nil
	_, err := Load(context.Background(), dir, []Tensor{good})
	wantError(t, err, `tensor "w": Write is nil`)
	for _, meta := range []map[string]string{{"\xff": ""}, {"": "\xff"}} {
		wantError(t, Save(context.Background(), dir, nil, meta), `meta: "\xff" is not valid UTF-8`)
	}
	tooMany := map[string]string{}
	for i := range 65_537 {
		tooMany[fmt.Sprint(i)] = ""
	}
	wantError(t, Save(context.Background(), dir, nil, tooMany), "meta: 65537 strings in the map, at most 65536 are "+
		"allowed")
	wantError(t, Save(context.Background(), dir, make([]Tensor, 1<<20+1), nil), "1048577 tensors, at most 1048576 "+
		"are allowed")
	wantError(t, Save(context.Background(), dir, nil, nil, Keep(0)), "Keep(0): want 1 or more")
	wantError(t, Save(context.Background(), "", nil, nil), "the directory has no name")
	_, err = Load(context.Background(), "", nil)
	wantError(t, err, "the directory has no name")
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v, want none: the directory was made", err)
	}
}

// TestReadAndWriteErrors reads and writes tensors that do not want to.
func TestReadAndWriteErrors(t *testing.T) {
	dir := t.TempDir()
	good := small(t, 2).fill(1)
	saveIt(t, dir, good, nil)
	before := names(t, dir)
	full := errors.New("out of luck")
	other := func(d tensor.DType, shape ...int) func(int) (*tensor.Tensor, error) {
		return func(k int) (*tensor.Tensor, error) {
			if k == 1 {
				return tensor.New(d, shape...)
			}
			return tensor.New(tensor.F32, 3)
		}
	}
	for _, tt := range []struct {
		read func(k int) (*tensor.Tensor, error)
		want string
	}{
		{func(int) (*tensor.Tensor, error) { return nil, full }, `tensor "w": shard 0 of 2: out of luck`},
		{func(int) (*tensor.Tensor, error) { return nil, nil }, `tensor "w": shard 0 of 2: what Read has returned is nil`},
		{other(tensor.F32, 4), `tensor "w": shard 1 of 2: what Read has returned is float32 of shape (4,), want float32 of shape (3,)`},
		{other(tensor.F32, 1, 3), `what Read has returned is float32 of shape (1, 3), want float32 of shape (3,)`},
		{other(tensor.I32, 3), `what Read has returned is int32 of shape (3,), want float32 of shape (3,)`},
	} {
		m := small(t, 2)
		m.tensors[0].Read = tt.read
		wantError(t, Save(context.Background(), dir, m.tensors, nil), tt.want, ".safetensors")
	}
	func() {
		defer func() {
			if recover() == nil {
				t.Error("no panic")
			}
		}()
		m := small(t, 2)
		m.tensors[1].Read = func(int) (*tensor.Tensor, error) { panic("out of luck") }
		Save(context.Background(), dir, m.tensors, nil)
	}()
	if after := names(t, dir); !slices.Equal(after, before) {
		t.Errorf("%q, want %q", after, before)
	}
	m := small(t, 3)
	loadIt(t, dir, m)
	m.wantEqual(t, small(t, 3).fill(1))
	m.tensors[0].Write = func(k int, _ *tensor.Tensor) error {
		if k == 2 {
			return full
		}
		return nil
	}
	_, err := Load(context.Background(), dir, m.tensors)
	if wantError(t, err, "checkpoint: load from "+dir+`: tensor "w": shard 2 of 3: out of luck`); !errors.Is(err,
		full) {
		t.Error("it is another error")
	}
}

// TestContext ends ctx before, and in the middle.
func TestContext(t *testing.T) {
	dir := t.TempDir()
	why := errors.New("Ctrl-C")
	ended, end := context.WithCancelCause(context.Background())
	end(why)
	none := filepath.Join(dir, "none")
	if err := Save(ended, none, small(t, 2).tensors, nil); !errors.Is(err, why) || len(names(t, dir)) > 0 {
		t.Errorf("error %v, %q", err, names(t, dir))
	}
	saveIt(t, dir, small(t, 2).fill(1), nil)
	before := names(t, dir)
	m := small(t, 2)
	if _, err := Load(ended, dir, m.tensors); !errors.Is(err, why) || m.writes > 0 {
		t.Errorf("error %v, %d writes", err, m.writes)
	}

	ctx, end := context.WithCancelCause(context.Background())
	m.tensors[0].Read = func(int) (*tensor.Tensor, error) { end(why); return tensor.New(tensor.F32, 3) }
	if err := Save(ctx, dir, m.tensors, nil); !errors.Is(err, why) || !slices.Equal(names(t, dir), before) {
		t.Errorf("error %v, %q", err, names(t, dir))
	}
	ctx, end = context.WithCancelCause(context.Background())
	m.tensors[0].Write = func(int, *tensor.Tensor) error { end(why); m.writes++; return nil }
	if _, err := Load(ctx, dir, m.tensors); !errors.Is(err, why) || m.writes != 1 {
		t.Errorf("error %v, %d writes", err, m.writes)
	}
}

// TestLoadMemory loads tensors of 4 MiB onto shards of a 16th, and counts what is allocated, all in all.
func TestLoadMemory(t *testing.T) {
	dir := t.TempDir()
	const n = 1 << 16
	shard, err := tensor.New(tensor.F32, n)
	if err != nil {
		t.Fatal(err)
	}
	var tensors []Tensor
	for i := range 4 {
		tensors = append(tensors, Tensor{fmt.Sprint(i), tensor.F32, tensor.Shape{16, n}, 16,
			func(int) (*tensor.Tensor, error) { return shard, nil },
			func(int, *tensor.Tensor) error { return nil }, nil})
	}
	if err := Save(context.Background(), dir, tensors, nil); err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := Load(context.Background(), dir, tensors); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if got, most := after.TotalAlloc-before.TotalAlloc, uint64(4*4*n+bufferBytes+1<<20); got > most {
		t.Errorf("Load takes %d bytes, want at most %d: a shard of each tensor, a buffer, and what files say",
			got, most)
	}
}
