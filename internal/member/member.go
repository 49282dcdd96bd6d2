// Package member is an example program's part in a job: what the program does where a launcher has started it once for
// each replica, as gclrun and mpirun do. Started by hand the program is in no job, and all is as if the package were
// not there.
//
//	             in no job             in a job
//	Replicas     what the flag says    the job's size, which a flag has to agree with
//	Output       all                   that of replica 0
//	Agree        what is given         what replica 0 gives; stop if any replica has been told to
//	Run          the exit code says how it has ended, and the error is one for the others of the job too
package member

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime/debug"

	"gogcl.dev/gcl"
	"gogcl.dev/ir"
	"gogcl.dev/ir/collective"
)

// Member is this process in a job. A nil Member is in none. Its methods that send are collectives.
type Member struct {
	comm   *gcl.Comm
	values [2]float64 // of Agree
	ways   ways
}

// ErrInterrupted is the error of a program that has been told to stop, on this replica or another.
var ErrInterrupted = errors.New("interrupted")

// Join joins the job in which a launcher has started the process. It returns nil if there is none.
func Join(ctx context.Context, options ...gcl.CommOption) (*Member, error) {
	c, err := gcl.Join(ctx, gcl.JoinConfig{}, options...)
	switch {
	case errors.Is(err, gcl.ErrNoJob):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return &Member{comm: c}, nil
}

// Leave leaves the job. An error of the program, which may be nil, is then one on all, but for ErrInterrupted.
func (m *Member) Leave(failed error) error {
	if m == nil {
		return nil
	}
	if failed != nil && !errors.Is(failed, ErrInterrupted) { // all know of that
		m.comm.Abort(failed)
		_ = m.comm.Close() // failed is what went wrong
		return nil
	}
	return m.comm.Close()
}

// Comm is this process's replica, or nil in no job.
func (m *Member) Comm() *gcl.Comm {
	if m == nil {
		return nil
	}
	return m.comm
}

// InJob reports whether there is a job.
func (m *Member) InJob() bool { return m != nil }

// First reports whether this process speaks for all.
func (m *Member) First() bool { return m == nil || m.comm.Replica() == 0 }

// Output is where the process writes to: nowhere, unless it speaks for all.
func (m *Member) Output(w io.Writer) io.Writer {
	if m.First() {
		return w
	}
	return io.Discard
}

// came reports whether the process has come to a job that ran.
func (m *Member) came() bool {
	if m == nil {
		return false
	}
	_, came := m.comm.Change()
	return came
}

// Replicas is how many there are, given the value of a flag and whether the command line has the flag. In a job another
// number than the job's is an error, but for a newcomer, which others may have left before.
func (m *Member) Replicas(flag int, given bool) (int, error) {
	switch {
	case m == nil:
		return flag, nil
	case given && flag != m.comm.Replicas() && !m.came():
		return 0, fmt.Errorf("-n %d: the launcher has started %d replicas", flag, m.comm.Replicas())
	}
	return m.comm.Replicas(), nil
}

// Own are the replicas of this process, of so many.
func (m *Member) Own(replicas int) []int {
	if m != nil {
		return []int{m.comm.Replica()}
	}
	return All(replicas)
}

// All are the numbers of so many replicas.
func All(replicas int) []int {
	all := make([]int, replicas)
	for r := range all {
		all[r] = r
	}
	return all
}

// Session is an option that puts a session into the job.
func (m *Member) Session(ctx context.Context) ir.SessionOption {
	if m == nil {
		return nil
	}
	return collective.WithComm(ctx, m.comm)
}

// Agree returns the same on all replicas: whether any of them has been told to stop, and the value of replica 0.
func (m *Member) Agree(ctx context.Context, told bool, value float64) (stop bool, of float64, err error) {
	if m == nil {
		return told, value, nil
	}
	m.values = [2]float64{0, math.Inf(-1)}
	if told {
		m.values[0] = 1
	}
	if m.First() {
		m.values[1] = value
	}
	if err := gcl.AllReduceInPlace(ctx, m.comm, m.values[:], gcl.Max); err != nil {
		return false, 0, err
	}
	return m.values[0] > 0, m.values[1], nil
}

// Gather returns the numbers of all replicas, by rank, given that of this process's. In no job it returns own.
func (m *Member) Gather(ctx context.Context, own []float32) ([]float32, error) {
	if m == nil {
		return own, nil
	}
	return gcl.AllGather(ctx, m.comm, own)
}

// Resident is a line about the resident memory of the job's processes, as the operating system has it now; "" where it
// does not say. Garbage is collected before.
func (m *Member) Resident(ctx context.Context) (string, error) {
	debug.FreeOSMemory()
	own := []int64{resident()}
	if m != nil {
		var err error
		if own, err = gcl.AllGather(ctx, m.comm, own); err != nil {
			return "", err
		}
	}
	var sum, greatest int64
	for _, bytes := range own {
		if bytes == 0 {
			return "", nil
		}
		sum, greatest = sum+bytes, max(greatest, bytes)
	}
	const mega = 1e6
	return fmt.Sprintf("resident memory: %.1f MB in %d processes, the greatest %.1f MB",
		float64(sum)/mega, len(own), float64(greatest)/mega), nil
}
