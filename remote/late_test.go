package remote_test

import (
	"strings"
	"testing"

	"gogcl.dev/ir"
	"gogcl.dev/remote"
	"gogcl.dev/tensor"
)

// What is made or said when a session has the program's buffers open is an error, which sticks, and the session is none
// the worse for it.
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
		if got := run(t, s, nil)[out]; !got.Equal(tensor.Scalar(int32(0))) {
			t.Errorf("%s: the session gives %v", what, got)
		}
	}
}

// A load that is never waited for would go on in memory that is given to other tensors: there is no session of it.
func TestPrefetchWithoutWait(t *testing.T) {
	p := ir.New(1)
	remote.Prefetch(p.Main(), remote.NewBuffer(p, i32(), 1), 0)
	if s, err := ir.NewSession(p); err == nil || !strings.Contains(err.Error(), "prefetch built at late_test.go:") || !strings.Contains(err.Error(), "it is never waited for: Wait must be called") {
		t.Errorf("error %v", err)
		if s != nil {
			s.Close()
		}
	}
}
