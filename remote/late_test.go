package remote_test

import (
	"context"
	"regexp"
	"strings"
	"testing"

	"gogcl.dev/ir"
	"gogcl.dev/remote"
	"gogcl.dev/tensor"
)

// What is made or said when a session has the program's buffers open is an error, which sticks, and which every further
// run of the session returns.
func TestAfterSession(t *testing.T) {
	for what, do := range map[string]func(p *ir.Program, s *ir.Session, early *remote.Buffer) error{
		"remote buffer at late_test.go": func(p *ir.Program, _ *ir.Session, _ *remote.Buffer) error {
			return remote.NewBuffer(p, i32(), 1).SetEntries(2)
		},
		"remote variable at late_test.go": func(p *ir.Program, s *ir.Session, early *remote.Buffer) error {
			_, err := remote.NewVariable(p, tensor.Scalar(int32(1)), early, 0).Read(s)
			return err
		},
		"use storage at late_test.go": func(p *ir.Program, _ *ir.Session, _ *remote.Buffer) error {
			remote.UseStorage(p, remote.Memory{})
			return p.Err()
		},
	} {
		p := ir.New(1)
		b := remote.NewBuffer(p, i32(), 1)
		out := p.DeviceToHost("out", i32())
		p.Main().HostStore(out, remote.Load(p.Main(), b, 0))
		s := session(t, p)
		const want = "a session of the program has its buffers open"
		if err := do(p, s, b); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q in it", what, err, want)
		}
		if err := p.Err(); err == nil || !strings.Contains(err.Error(), what) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v sticks", what, err)
		}
		if _, err := s.Run(context.Background(), nil); err == nil || !strings.Contains(err.Error(), what) ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: a run returns %v", what, err)
		}
	}
}

// A load that is never waited for would go on in memory that is given to other tensors: there is no session of it.
func TestPrefetchWithoutWait(t *testing.T) {
	p := ir.New(1)
	remote.Prefetch(p.Main(), remote.NewBuffer(p, i32(), 1), 0)
	if s, err := ir.NewSession(p); err == nil || !strings.Contains(err.Error(), "start at late_test.go:") ||
		!strings.Contains(err.Error(), "graph Prefetch is never waited for: Wait must be called") {
		t.Errorf("error %v", err)
		if s != nil {
			s.Close()
		}
	}
}

// Errors of a prefetch name the line that calls it: those of building stick, and those of the load are of the run.
func TestPrefetchFails(t *testing.T) {
	for what, build := range map[string]func(p *ir.Program, b *remote.Buffer){
		"remote load at late_test.go:# in graph main: no buffer": func(p *ir.Program, _ *remote.Buffer) {
			remote.Prefetch(p.Main(), nil, 0).Wait()
		},
		"remote load at late_test.go:# in graph main: buffer 1 is of another program": func(p *ir.Program,
			_ *remote.Buffer) {
			remote.Prefetch(p.Main(), remote.NewBuffer(ir.New(1), i32()), 0).Wait()
		},
		"remote load at late_test.go:# in graph main: neither a graph nor a tensor of one": func(_ *ir.Program,
			b *remote.Buffer) {
			remote.Prefetch(nil, b, 0).Wait()
		},
		"remote load at late_test.go:# in graph main: neither a graph": func(_ *ir.Program, b *remote.Buffer) {
			remote.PrefetchAt(b, nil).Wait()
		},
		"remote load at late_test.go:# in graph Prefetch: buffer 1 has entries 0 to 1, and the offset is 2": func(p *ir.Program, b *remote.Buffer) {
			remote.Prefetch(p.Main(), b, 2).Wait()
		},
		"remote load at late_test.go:# in graph PrefetchAt of float32 (): the offset must be": func(p *ir.Program,
			b *remote.Buffer) {
			remote.PrefetchAt(b, p.Main().Constant(tensor.Scalar(float32(1)))).Wait()
		},
		"wait at late_test.go:# in graph main: graph Prefetch, started at late_test.go:#, is waited for at " +
			"late_test.go:# already": func(p *ir.Program, b *remote.Buffer) {
			next := remote.Prefetch(p.Main(), b, 1)
			next.Wait()
			next.Wait()
		},
		"ir: replica 0: remote load built at late_test.go:# in graph PrefetchAt: buffer 1 has entries 0 to 1, and " +
			"the offset is 2": func(p *ir.Program, b *remote.Buffer) {
			remote.PrefetchAt(b, p.Main().Constant(tensor.Scalar(int32(2)))).Wait()
		},
	} {
		p := ir.New(1)
		build(p, remote.NewBuffer(p, i32(), 2))
		s, err := ir.NewSession(p)
		if err == nil {
			_, err = s.Run(context.Background(), nil)
			s.Close()
		}
		if err == nil || !strings.Contains(regexp.MustCompile(`(_test\.go):\d+`).ReplaceAllString(err.Error(), "$1:#"),
			what) {
			t.Errorf("error %v, want %q in it", err, what)
		}
	}
}
