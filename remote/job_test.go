package remote_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gogcl.dev/commgroup"
	"gogcl.dev/gcl"
	"gogcl.dev/ir"
	"gogcl.dev/ir/collective"
	"gogcl.dev/remote"
	"gogcl.dev/tensor"
)

// jobProgram has variables that are sharded over all, sharded over pairs of replicas with a value each, and whole.
func jobProgram(t testing.TB, replicas int, storage remote.Storage) (*ir.Program, []*remote.Variable) {
	p := ir.New(replicas)
	remote.UseStorage(p, storage)
	var all []*remote.Variable
	add := func(name string, data *tensor.Tensor, spec ir.Spec, options ...remote.VariableOption) {
		v := remote.NewVariable(p, data, remote.NewBuffer(p, spec), 0, append(options, remote.Name(name))...)
		x := v.Load(p.Main())
		v.Store(ir.Apply1(addOp{}, nil, x, p.Main().Constant(ints(t, []int32{100}, 1))))
		all = append(all, v)
	}
	add("all", counted(t, 5), i32(2), remote.Sharded(commgroup.Group{}))
	add("pairs", counted(t, 2, 3), i32(2), remote.Groups(consecutive(2)), remote.Sharded(consecutive(2)))
	add("whole", counted(t, 3), i32(3))
	add("groups", counted(t, 2, 2), i32(2), remote.Groups(orthogonal(2)))
	return p, all
}

// TestJob: each process of a job has the entries of its replica, in a directory of all or of its own. A read is what
// one process reads, for the replica. Another job goes on from there, and so does one process if the directory is one.
func TestJob(t *testing.T) {
	const n = 4
	// What replica 0 reads of each variable, and replica 3, after one run.
	first := [][]int32{{101, 102, 103, 104, 105}, {101, 102, 103}, {101, 102, 103}, {101, 102}}
	last := [][]int32{{101, 102, 103, 104, 105}, {104, 105, 106}, {101, 102, 103}, {103, 104}}
	for _, shared := range []bool{true, false} {
		t.Run(fmt.Sprint("shared=", shared), func(t *testing.T) {
			dirs := slices.Repeat([]string{t.TempDir()}, n)
			for r := 1; r < n && !shared; r++ {
				dirs[r] = t.TempDir()
			}
			job := func(body func(s *ir.Session, v []*remote.Variable, r int) error) error {
				return gcl.Run(t.Context(), n, func(ctx context.Context, c *gcl.Comm) error {
					p, v := jobProgram(t, n, remote.Dir(dirs[c.Replica()]))
					s, err := ir.NewSession(p, collective.WithComm(ctx, c))
					if err != nil {
						return err
					}
					return errors.Join(body(s, v, c.Replica()), s.Close())
				})
			}
			check := func(s *ir.Session, v []*remote.Variable, r int) error {
				for k, v := range v {
					got, err := v.Read(s)
					if err != nil {
						return err
					}
					want := first[k]
					if r == n-1 {
						want = last[k]
					}
					if values := must(tensor.Of[int32](got)); !slices.Equal(values, want) && (r == 0 || r == n-1) {
						return fmt.Errorf("replica %d: variable %s is %d, want %d", r, v.Name(), values, want)
					}
				}
				return nil
			}
			if err := job(func(s *ir.Session, v []*remote.Variable, r int) error {
				b, _ := v[0].Buffer()
				if _, err := b.Read(s, (r+1)%n, 0); err == nil || !strings.Contains(err.Error(), "of another process") {
					return fmt.Errorf("reading another replica's entry: %v", err)
				}
				if _, err := b.Read(s, r, 0); err != nil {
					return err
				}
				return errors.Join(s.RunTo(t.Context(), nil, nil), check(s, v, r))
			}); err != nil {
				t.Fatal(err)
			}
			for r, dir := range dirs {
				files, err := filepath.Glob(filepath.Join(dir, fmt.Sprintf("*.%d.remote", r)))
				if err != nil || len(files) != 4 {
					t.Errorf("replica %d has the files %q, error %v", r, files, err)
				}
			}
			again := func(s *ir.Session, v []*remote.Variable, r int) error {
				if err := check(s, v, r); err != nil {
					return err
				}
				// A value as Read gives it, and as the variable was made with.
				for _, shape := range [][]int{{3}, {2, 3}} {
					value := counted(t, shape...)
					if err := v[1].Write(s, value); err != nil {
						return err
					}
					got, err := v[1].Read(s)
					if err != nil {
						return err
					}
					all := must(tensor.Of[int32](value))
					if want := all[(len(all)/3-1)*(r/2)*3:][:3]; !slices.Equal(must(tensor.Of[int32](got)), want) {
						return fmt.Errorf("replica %d reads %v after a write, want %d", r, got, want)
					}
				}
				if err := v[1].Write(s, counted(t, 4)); err == nil {
					return errors.New("a value of another shape is written")
				}
				if b, _ := v[0].Buffer(); !shared { // nobody goes on from there
					return b.SetEntries(3)
				}
				return nil
			}
			if err := job(func(s *ir.Session, v []*remote.Variable, r int) error {
				if r == 1 {
					// A second process with the replica.
					_, err := remote.Dir(dirs[r]).Open(remote.Spec{Buffer: "whole", Replica: r, DType: tensor.I32,
						Shape: tensor.Shape{3}, Entries: 1})
					if err == nil || !strings.Contains(err.Error(), "it is open already, here or in another process") {
						return fmt.Errorf("the replica's file is opened a second time: %v", err)
					}
				}
				return again(s, v, r)
			}); err != nil {
				t.Fatal(err)
			}
			if shared {
				p, v := jobProgram(t, n, remote.Dir(dirs[0]))
				if got := must(v[0].Read(session(t, p))); !slices.Equal(must(tensor.Of[int32](got)), first[0]) {
					t.Errorf("one process reads %v", got)
				}
			}
		})
	}
}

// TestJobFileMissing: a file that one replica lacks is an error on all.
func TestJobFileMissing(t *testing.T) {
	const n = 4
	dirs := []string{t.TempDir(), t.TempDir(), t.TempDir(), t.TempDir()}
	job := func() error {
		return gcl.Run(t.Context(), n, func(ctx context.Context, c *gcl.Comm) error {
			p, _ := jobProgram(t, n, remote.Dir(dirs[c.Replica()]))
			s, err := ir.NewSession(p, collective.WithComm(ctx, c))
			if err != nil {
				if want := "whole.2.remote is missing, and replica 0 has stored"; !strings.Contains(err.Error(), want) {
					return fmt.Errorf("replica %d: %w does not say %q", c.Replica(), err, want)
				}
				return nil
			}
			return s.Close()
		})
	}
	if err := job(); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dirs[2], "whole.2.remote")); err != nil {
		t.Fatal(err)
	}
	if err := job(); err != nil {
		t.Error(err)
	}
}

// TestJobData: data of a variable that differs in one process is an error on all, which names the variable.
func TestJobData(t *testing.T) {
	const n = 4
	err := gcl.Run(t.Context(), n, func(ctx context.Context, c *gcl.Comm) error {
		p, _ := jobProgram(t, n, remote.Memory{})
		data := counted(t, 100)
		if c.Replica() == 2 {
			must(tensor.Of[int32](data))[99]++
		}
		remote.NewVariable(p, data, remote.NewBuffer(p, i32(100)), 0, remote.Name("odd"))
		_, err := ir.NewSession(p, collective.WithComm(ctx, c))
		want := `remote variable "odd" begins with other data on replica 2 than on replica 0`
		if err == nil || !strings.Contains(err.Error(), want) {
			return fmt.Errorf("replica %d: error %v, want %q", c.Replica(), err, want)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
