package remote_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gogcl.dev/ir"
	"gogcl.dev/remote"
	"gogcl.dev/tensor"
)

// Variables of one shape find their values again in whatever order they are made: files are named after them.
func TestOrderOfVariables(t *testing.T) {
	dir := t.TempDir()
	first := map[string]int32{"x": 1, "y": 2, "z": 3}
	for turn, names := range [][]string{{"x", "y", "z"}, {"z", "x", "y"}, {"y", "x"}} {
		p := ir.New(2)
		remote.UseStorage(p, remote.Dir(dir))
		var variables []*remote.Variable
		for _, name := range names {
			b := remote.NewBuffer(p, i32())
			if name == "y" { // the buffer's own name comes first
				b.Named("the y")
			}
			// After the first turn what they begin with counts for nothing.
			begin := tensor.Scalar(first[name] * int32(1-min(turn, 1)))
			variables = append(variables, remote.NewVariable(p, begin, b, 0, remote.Name(name)))
		}
		s, err := ir.NewSession(p)
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range variables {
			if got, err := v.Read(s); err != nil || !got.Equal(tensor.Scalar(first[names[i]])) {
				t.Errorf("turn %d: %s is %v, %v, want %d", turn, names[i], got, err, first[names[i]])
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	for i := range files {
		files[i] = filepath.Base(files[i])
	}
	want := []string{"the%20y.0.remote", "the%20y.1.remote", "x.0.remote", "x.1.remote", "z.0.remote", "z.1.remote"}
	if err != nil || !slices.Equal(files, want) {
		t.Errorf("files %v, %v, want %v", files, err, want)
	}
}

// A variable whose file has another shape or element type is an error that names the file.
func TestFileOfAnotherSpec(t *testing.T) {
	dir := t.TempDir()
	make := func(data *tensor.Tensor) error {
		p := ir.New(1)
		remote.UseStorage(p, remote.Dir(dir))
		v := remote.NewVariable(p, data, remote.NewBuffer(p, ir.SpecOf(data)), 0, remote.Name("x"))
		s, err := ir.NewSession(p)
		if err != nil {
			return err
		}
		if _, err := v.Read(s); err != nil {
			s.Close()
			return err
		}
		return s.Close()
	}
	if err := make(ints(t, []int32{1, 2}, 2)); err != nil {
		t.Fatal(err)
	}
	for _, data := range []*tensor.Tensor{ints(t, []int32{1, 2}, 2, 1), ints(t, []int32{1, 2, 3}, 3),
		tensor.Scalar(float32(1))} {
		err := make(data)
		if err == nil || !strings.Contains(err.Error(), filepath.Join(dir, "x.0.remote")+": it holds entries 1, "+
			"dtype int32, shape (2,); wanted: ") {
			t.Errorf("error %v", err)
		}
	}
}

// A buffer has the name of the variable at its lowest entry that has one.
func TestBufferNames(t *testing.T) {
	p := ir.New(1)
	b, c := remote.NewBuffer(p, i32(), 3), remote.NewBuffer(p, i32()).Named("c")
	if b.Name() != "" || c.Name() != "c" {
		t.Errorf("names %q and %q", b.Name(), c.Name())
	}
	names := []string{"", "x", "y"}
	for _, i := range []int{2, 0, 1} {
		remote.NewVariable(p, tensor.Scalar(int32(1)), b, i, remote.Name(names[i]))
	}
	d := remote.NewBuffer(p, i32())
	remote.NewVariable(p, tensor.Scalar(int32(1)), d, 0, remote.Name("w"))
	if d.Name() != "w" || d.Named("d").Name() != "d" {
		t.Errorf("name %q", d.Name())
	}
	remote.NewVariable(p, tensor.Scalar(int32(1)), c, 0, remote.Name("z"))
	if b.Name() != "x" || c.Name() != "c" || p.Err() != nil {
		t.Errorf("names %q and %q, error %v", b.Name(), c.Name(), p.Err())
	}
}

// Names that a storage could not keep apart, or in one directory, are errors where they are given.
func TestBufferNameErrors(t *testing.T) {
	for _, c := range []struct {
		build func(p *ir.Program, b *remote.Buffer)
		want  string
	}{
		{func(p *ir.Program, _ *remote.Buffer) { remote.NewBuffer(p, i32()).Named("b") },
			`remote buffer at named_test.go:*: buffers 1 and 2 both have the name "b"`},
		{func(p *ir.Program, _ *remote.Buffer) {
			remote.NewVariable(p, tensor.Scalar(int32(1)), remote.NewBuffer(p, i32()), 0, remote.Name("b"))
		}, `remote variable at named_test.go:*: "b": buffers 1 and 2 both have the name "b": a storage cannot tell them apart`},
		{func(_ *ir.Program, b *remote.Buffer) { b.Named("c") }, `buffer 1 has the name "b", and cannot have "c"`},
		{func(p *ir.Program, _ *remote.Buffer) { remote.NewBuffer(p, i32()).Named("") }, `the buffer has no name`},
		{func(p *ir.Program, _ *remote.Buffer) { remote.NewBuffer(p, i32()).Named("../b") }, `"../b" has "/" at byte 2`},
		{func(p *ir.Program, _ *remote.Buffer) {
			remote.NewVariable(p, tensor.Scalar(int32(1)), remote.NewBuffer(p, i32()), 0, remote.Name("b/c"))
		}, `"b/c" has "/" at byte 1`},
		{func(p *ir.Program, _ *remote.Buffer) { remote.NewBuffer(p, i32()).Named("b\n") }, `has a control character at byte 1`},
		{func(p *ir.Program, _ *remote.Buffer) {
			remote.NewBuffer(p, i32())
			remote.Load(p.Main(), remote.NewBuffer(p, i32()).Named("2"), 0)
		}, `buffer 2 without a name and buffer 3 are both known as "2" to a storage: name both`},
		{func(p *ir.Program, b *remote.Buffer) {
			remote.Load(p.Main(), b, 0)
			session(t, p)
			remote.NewBuffer(p, i32()).Named("c")
		}, `a session of the program has its buffers open`},
	} {
		p := ir.New(1)
		c.build(p, remote.NewBuffer(p, i32()).Named("b"))
		err := p.Err()
		if err == nil {
			var s *ir.Session
			if s, err = ir.NewSession(p); err == nil {
				s.Close()
			}
		}
		before, after, _ := strings.Cut(c.want, "*")
		if err == nil || !strings.Contains(err.Error(), before) || !strings.Contains(err.Error(), after) {
			t.Errorf("error %v, want %q", err, c.want)
		}
	}
}

// A variable whose closed file has been zeroed behind its header, or cut to nothing, does not begin anew.
func TestZeroedVariable(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "x.0.remote")
	begin := func() (*remote.Variable, *ir.Session, error) {
		p := ir.New(1)
		remote.UseStorage(p, remote.Dir(dir))
		x := remote.NewVariable(p, tensor.Scalar(int32(1)), remote.NewBuffer(p, i32()), 0, remote.Name("x"))
		x.Store(x.Load(p.Main()))
		s, err := ir.NewSession(p)
		return x, s, err
	}
	x, s, err := begin()
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(x.Write(s, tensor.Scalar(int32(7))), s.Close()); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	clear(data[8192:])
	if err := os.WriteFile(file, data, 0o666); err != nil {
		t.Fatal(err)
	}
	if x, s, err = begin(); err != nil {
		t.Fatal(err)
	}
	got, readErr := x.Read(s)
	if _, runErr := s.Run(t.Context(), nil); !errors.Is(readErr, remote.ErrLost) || !errors.Is(runErr, remote.ErrLost) {
		t.Errorf("read %v, error %v; run: error %v, want ErrLost", got, readErr, runErr)
	}
	if err := errors.Join(s.Close(), os.Truncate(file, 0)); err != nil {
		t.Fatal(err)
	}
	if _, s, err = begin(); err == nil || !strings.Contains(err.Error(), file+": it is empty") {
		t.Errorf("error %v", err)
		if err == nil {
			s.Close()
		}
	}
}

// A file that is missing beside those of other replicas, in which something is stored, does not begin anew: nor does
// that of a replica more. What has stored nothing, as a process that was killed as it made the files, does.
func TestFileMissing(t *testing.T) {
	dir := t.TempDir()
	begin := func(replicas int, option remote.VariableOption) (*remote.Variable, error) {
		p := ir.New(replicas)
		remote.UseStorage(p, remote.Dir(dir))
		b := remote.NewBuffer(p, i32(), 300)
		x := remote.NewVariable(p, nil, b, 299, remote.Name("x"), option, remote.AllReplicas())
		x.Load(p.Main())
		s, err := ir.NewSession(p)
		if err != nil {
			return x, err
		}
		return x, s.Close()
	}
	fill := func(first int, dst *tensor.Tensor) error { return nil }
	stores, storesNothing := remote.FirstValue(i32(), fill), remote.FirstValue(i32(), nil)
	remove := func(name string) {
		t.Helper()
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"x.0.remote", "x.1.remote"} {
		if _, err := begin(2, storesNothing); err != nil {
			t.Fatal(err)
		}
		remove(name)
	}
	if _, err := begin(2, stores); err != nil {
		t.Fatal(err)
	}
	refused := func(replicas int, missing, other string) {
		t.Helper()
		_, err := begin(replicas, stores)
		for _, want := range []string{"file " + filepath.Join(dir, missing) + " is missing",
			"stored entries in file " + filepath.Join(dir, other)} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("error %v, want %q in it", err, want)
			}
		}
		if _, err := os.Stat(filepath.Join(dir, missing)); err == nil {
			t.Errorf("%s was made", missing)
		}
	}
	refused(3, "x.2.remote", "x.0.remote")
	remove("x.0.remote")
	refused(2, "x.0.remote", "x.1.remote")
	remove("x.1.remote")
	if _, err := begin(3, stores); err != nil {
		t.Error(err)
	}
	if _, err := begin(2, stores); err != nil { // files of more replicas are left alone
		t.Error(err)
	}
}
