package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"time"

	"gogcl.dev/rts/checkpoint"
)

const mebi = 1 << 20

// shower trains and prints.
type shower struct {
	cfg   config
	dir   string
	w     io.Writer
	model *model // nil between sessions
	sums  []uint32
	most  peak
}

// show makes, resumes and compares.
func show(ctx context.Context, cfg config, dir string, w io.Writer) (err error) {
	s := &shower{cfg: cfg, dir: dir, w: w}
	defer func() { err = errors.Join(err, s.close()) }()
	parameters := cfg.layers() * cfg.layerBytes()
	fmt.Fprintf(w, "%d replicas, %d layers of %d by %d: %d MiB of parameters and %d of Adam's states, in files\n\n",
		cfg.replicas, cfg.layers(), cfg.width, cfg.width, parameters/mebi, 2*parameters/mebi)
	fmt.Fprintf(w, "%-28s %8s %10s %10s\n", "", "seconds", "heap MiB", "Go MiB")
	for _, phase := range []struct {
		name string
		do   func(ctx context.Context) (string, error)
	}{
		{"created", s.create("one", false)},
		{"step 1", s.train(1)},
		{"checkpoint saved", s.save},
		{"resumed in the same files", s.create("one", false)},
		{"step 2", s.train(2)},
		{"resumed from the checkpoint", s.load},
		{"step 2", s.train(2)},
	} {
		began, says := time.Now(), ""
		p, err := watch(func() (err error) {
			says, err = phase.do(ctx)
			return err
		})
		if err != nil {
			return fmt.Errorf("%s: %w", phase.name, err)
		}
		s.most.add(p)
		fmt.Fprintf(w, "%-28s %8.1f %10.1f %10.1f  %s\n",
			phase.name, time.Since(began).Seconds(), float64(p.heap)/mebi, float64(p.all)/mebi, says)
	}
	return s.compare()
}

// create ends the session there is, and makes one in the files of a directory.
func (s *shower) create(name string, fromCheckpoint bool) func(context.Context) (string, error) {
	return func(context.Context) (string, error) {
		if err := s.close(); err != nil {
			return "", err
		}
		dir := filepath.Join(s.dir, name)
		if err := os.MkdirAll(dir, 0o777); err != nil {
			return "", err
		}
		var err error
		if s.model, err = newModel(s.cfg, dir, fromCheckpoint); err != nil {
			return "", err
		}
		return s.sum()
	}
}

// sum reads all parameters and remembers their checksum.
func (s *shower) sum() (string, error) {
	sum, err := s.model.sum()
	s.sums = append(s.sums, sum)
	return fmt.Sprintf("parameters %08x", sum), err
}

// train makes a step.
func (s *shower) train(number int32) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		loss, err := s.model.train(ctx, number)
		if err != nil {
			return "", err
		}
		sum, err := s.sum()
		return fmt.Sprintf("%s, loss before it %.6f", sum, loss), err
	}
}

// save saves a checkpoint.
func (s *shower) save(ctx context.Context) (string, error) {
	tensors, err := s.model.step.Checkpoint(s.model.session)
	if err != nil {
		return "", err
	}
	return "", checkpoint.Save(ctx, filepath.Join(s.dir, "checkpoint"), tensors, nil)
}

// load goes on from the checkpoint in new files. Those there were go.
func (s *shower) load(ctx context.Context) (string, error) {
	if err := errors.Join(s.close(), os.RemoveAll(filepath.Join(s.dir, "one"))); err != nil {
		return "", err
	}
	if _, err := s.create("two", true)(ctx); err != nil {
		return "", err
	}
	s.sums = s.sums[:len(s.sums)-1] // of zeros
	tensors, err := s.model.step.Checkpoint(s.model.session)
	if err != nil {
		return "", err
	}
	if _, err := checkpoint.Load(ctx, filepath.Join(s.dir, "checkpoint"), tensors); err != nil {
		return "", err
	}
	return s.sum()
}

// close ends the session, if there is one. Its files are then complete.
func (s *shower) close() error {
	if s.model == nil {
		return nil
	}
	err := s.model.session.Close()
	s.model = nil
	runtime.GC() // who resumes in another process begins without it
	return err
}

// compare compares what was resumed with what it was, and the heap with its limit. The sums are of the first
// parameters, after step 1, resumed, after step 2, and the last two again.
func (s *shower) compare() error {
	if a := s.sums; a[2] != a[1] || a[4] != a[1] || a[5] != a[3] || a[0] == a[1] || a[1] == a[3] {
		return errors.New("the parameters that were resumed are others than they were, or did not change in a step")
	}
	parameters := s.cfg.layers() * s.cfg.layerBytes()
	fmt.Fprintf(s.w, "\nat most %.1f MiB of heap and %.1f of all of Go's memory, for %d MiB in files; resumed with "+
		"the same bits\n",
		float64(s.most.heap)/mebi, float64(s.most.all)/mebi, 3*parameters/mebi)
	if most := debug.SetMemoryLimit(-1); s.most.heap > uint64(most) {
		return fmt.Errorf("the heap came to %.1f MiB, want at most %.1f", float64(s.most.heap)/mebi, float64(most)/mebi)
	}
	return nil
}
