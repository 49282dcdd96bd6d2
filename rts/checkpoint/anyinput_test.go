package checkpoint_test

import (
	"context"
	"encoding/binary"
	"strings"
	"testing"

	"gogcl.dev/commgroup"
	"gogcl.dev/internal/anyinput"
	"gogcl.dev/rts/checkpoint"
	"gogcl.dev/tensor"
)

// oddJob is a job whose numbers are wrong, or whose Gather gives something else than it was given: zeros, or so many
// bytes to come.
type oddJob struct {
	replica, replicas int
	first             uint64
}

func (j oddJob) Replica() int          { return j.replica }
func (j oddJob) Replicas() int         { return j.replicas }
func (j oddJob) Done() <-chan struct{} { return nil }
func (j oddJob) Err() error            { return nil }
func (j oddJob) Abort(error)           {}

func (j oddJob) Alloc(bytes int) ([]byte, error) { return make([]byte, bytes), nil }

func (j oddJob) Gather(_ context.Context, _ commgroup.Group, dst, _ []byte) error {
	if len(dst) >= 8 {
		binary.LittleEndian.PutUint64(dst, j.first)
	}
	return nil
}

// TestOddJobs: a job whose numbers or whose Gather are wrong is an error, and leaves no lock behind.
func TestOddJobs(t *testing.T) {
	for _, c := range []struct {
		job  oddJob
		want string
	}{
		{oddJob{0, 0, 0}, "the Job is of replica 0 of 0, want 0 to Replicas-1"},
		{oddJob{1, 1, 0}, "the Job is of replica 1 of 1"},
		{oddJob{-1, 1, 0}, "the Job is of replica -1 of 1"},
		{oddJob{0, 1, 0}, "the Job's Gather has given other bytes"},
		{oddJob{0, 1, 1 << 62}, "replica 0 has 4611686018427387904 bytes to say"},
		{oddJob{0, 1, 1000}, "the Job's Gather has given other bytes"},
	} {
		dir := t.TempDir()
		_, err := checkpoint.OpenTogether(t.Context(), dir, c.job)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: error %v, want %q", c.job, err, c.want)
		}
		d, err := checkpoint.Open(dir)
		if err != nil {
			t.Errorf("%v: then %v", c.job, err)
			continue
		}
		d.Close()
	}
}

// TestAnyInput: no call panics.
func TestAnyInput(t *testing.T) {
	data, err := tensor.FromSlice([]float32{1, 2, 3, 4, 5, 6}, 2, 3)
	if err != nil {
		t.Fatal(err)
	}
	d, err := checkpoint.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	anyinput.Check(t, anyinput.API{
		Functions: map[string]any{
			"Load": checkpoint.Load, "Open": checkpoint.Open, "Save": checkpoint.Save, "Keep": checkpoint.Keep,
			"OpenTogether": checkpoint.OpenTogether,
		},
		Types: []any{
			checkpoint.Carry(nil), checkpoint.Directory{}, checkpoint.LostError{}, checkpoint.Memory{},
			checkpoint.Message{}, checkpoint.SaveOption(nil), checkpoint.Tensor{},
		},
		Values: []any{
			oddJob{0, 0, 0}, oddJob{-1, 1, 0}, oddJob{0, -1, 0}, oddJob{0, 1, 0}, oddJob{0, 1, 1},
			oddJob{0, 1, 1 << 62}, data, d, &checkpoint.Memory{},
			checkpoint.Keep(2), &checkpoint.Directory{}, map[string]string{"a": "b"},
		},
		Scratch: true,
		Skip:    map[string]string{"Directory.Close": "other calls are to find it open"},
	})
}
