//go:build mpi

package gcl_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"gogcl.dev/commgroup"
	"gogcl.dev/gcl"
	"gogcl.dev/internal/thinned"
	"gogcl.dev/methods"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
	"gogcl.dev/transport/mpi"
)

// The tests of this file start this binary by mpirun. Each process is a replica, which runs one of the programs below.

// mpiVariable is the environment variable that names the program of such a process.
const mpiVariable = "GCL_TEST_MPI"

// mpiPrograms are the programs, by test.
var mpiPrograms = map[string]func(ctx context.Context) error{
	"matrix": mpiJoined(mpiMatrix), "many": mpiJoined(mpiMany), "groups": mpiJoined(mpiGroups),
	"bits": mpiJoined(mpiBits), "mismatch": mpiMismatch, "options": mpiOptions, "twice": mpiTwice, "alone": mpiAlone,
	"hurried": mpiHurried,
}

func init() {
	asReplica = append(asReplica, func() bool {
		program, ok := mpiPrograms[os.Getenv(mpiVariable)]
		if !ok {
			return false
		}
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := program(ctx); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		return true
	})
}

// mpirun runs a program of n replicas, by the mpirun of the library that the test is built with, or by another command.
func mpirun(t *testing.T, program string, n int, command ...string) (output string, err error) {
	t.Helper()
	if command == nil {
		command = must(mpi.Mpirun(n))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, command[0], append(command[1:], must(os.Executable()))...)
	cmd.Env = append(os.Environ(), mpiVariable+"="+program, "OMPI_ALLOW_RUN_AS_ROOT=1",
		"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// TestMPI runs the programs under mpirun.
func TestMPI(t *testing.T) {
	sizes := []int{2, 4}
	if testing.Short() {
		sizes = sizes[:1]
	}
	for _, n := range sizes {
		for _, program := range []string{"matrix", "many", "groups", "bits", "mismatch", "options", "twice"} {
			t.Run(fmt.Sprintf("program=%s/n=%d", program, n), func(t *testing.T) {
				if out, err := mpirun(t, program, n); err != nil {
					t.Errorf("%v\n%s", err, out)
				}
			})
		}
	}
}

// mpiJoined is a program that joins, runs a body, and leaves.
func mpiJoined(body func(ctx context.Context, c *gcl.Comm) error) func(context.Context) error {
	return func(ctx context.Context) error { return gcl.RunProcess(ctx, gcl.JoinConfig{}, body) }
}

// mpiMatrix tries collectives, methods, operators and element types.
func mpiMatrix(ctx context.Context, c *gcl.Comm) error {
	n := c.Size()
	lengths := []int{0, 1, n + 1, 4099}
	var errs []error
	for _, o := range eachMethod() {
		errs = append(errs, mpiTry[float32](ctx, c, o, []gcl.Operator{gcl.Add}, append(lengths, 30_011)))
		o.Reproducible = true
		errs = append(errs, mpiTry[float32](ctx, c, o, []gcl.Operator{gcl.Mean}, lengths))
	}
	multiples := []int{0, n, 1500 * n}
	errs = append(errs, mpiTry[bool](ctx, c, native, builtins[bool](), multiples),
		mpiTry[int8](ctx, c, native, builtins[int8](), multiples),
		mpiTry[uint16](ctx, c, native, builtins[uint16](), multiples),
		mpiTry[uint32](ctx, c, native, builtins[uint32](), multiples),
		mpiTry[int64](ctx, c, native, builtins[int64](), multiples),
		mpiTry[float32](ctx, c, native, builtins[float32](), append(multiples, 50_000*n)),
		mpiTry[float64](ctx, c, native, builtins[float64](), multiples))
	for _, o := range fewWays()[:1] {
		errs = append(errs, mpiTry[tensor.BFloat16](ctx, c, o, operators[tensor.BFloat16](), lengths),
			mpiTry[uint8](ctx, c, o, operators[uint8](), lengths), mpiTry[bool](ctx, c, o, operators[bool](), lengths))
	}
	byCounts := newCountsCase[float32](gcl.Mean, 1, countsFor(n)[4])
	for _, o := range eachMethod() {
		errs = append(errs, byCounts.try(ctx, withOptions(c, o)))
	}
	e, err := c.Explain(schedule.AllReduce, 1<<20, tensor.F32)
	if err == nil && !strings.Contains(e.String(), fmt.Sprintf("clique of %d replicas", n)) {
		err = fmt.Errorf("Explain does not say how the replicas are linked:\n%v", e)
	}
	return errors.Join(append(errs, err)...)
}

// mpiTry tries all collectives, in place and not, by some options.
func mpiTry[T tensor.Element](ctx context.Context, c *gcl.Comm, o gcl.Options, ops []gcl.Operator,
	lengths []int) error {
	c, err := c.With(o)
	if err != nil {
		return err
	}
	for i, length := range lengths {
		for _, op := range ops {
			in := inputs[T](op, c.Size(), length)
			if err := errors.Join(newReduceCase(op, in).try(ctx, c),
				newRootedCase(op, i%c.Size(), in).try(ctx, c)); err != nil {
				return fmt.Errorf("%v by %+v of %d %v: %w", op, o, length, tensor.DTypeOf[T](), err)
			}
		}
		if o.Reproducible {
			continue
		}
		if err := newMoveCase(inputs[T](gcl.Local, c.Size(), length)).try(ctx, c); err != nil {
			return fmt.Errorf("by %+v of %d %v: %w", o, length, tensor.DTypeOf[T](), err)
		}
	}
	return nil
}

// mpiMany tries the forms on several tensors, and those of a Batch.
func mpiMany(ctx context.Context, c *gcl.Comm) error {
	n := c.Size()
	sizes := []int{4500 * n, 3, 1200*n + 11, 0, 16009, n}
	cases := []manyCase{newManyCase(gcl.Add, n, sizes), newManyCase(gcl.Max, n, []int{5}), newManyCase(gcl.Add, n, nil)}
	for _, o := range []gcl.Options{{}, {Method: methods.ClockwiseRing}, {Method: methods.Direct}} {
		c, err := c.With(o)
		if err != nil {
			return err
		}
		for _, x := range cases {
			if err := errors.Join(x.tryReductions(ctx, c), x.tryMoves(ctx, c)); err != nil {
				return fmt.Errorf("method=%v op=%v: %w", o.Method, x.op, err)
			}
		}
	}
	for _, lengths := range [][]int{{}, {7}, {3, 0, 900}, {20000, 1}} {
		for _, collective := range schedule.Collectives() {
			if err := tryBatch(ctx, c, collective, lengths); err != nil {
				return fmt.Errorf("batch: %v of %v: %w", collective, lengths, err)
			}
		}
	}
	return nil
}

// mpiGroups has groups at work on several connections at the same time, by messages and by the engine.
func mpiGroups(ctx context.Context, c *gcl.Comm) error {
	data := inputs[int64](gcl.Local, c.Replicas(), 1000*c.Replicas())
	groups := []commgroup.Group{{}, {Type: commgroup.Consecutive, Size: 2}}
	if c.Replicas() == 4 {
		groups = append(groups, commgroup.Group{Type: commgroup.Orthogonal, Size: 2},
			commgroup.Group{Type: commgroup.Consecutive, Size: 1})
	}
	var works []*gcl.Work
	for _, g := range groups {
		for _, o := range []gcl.Options{{}, native} {
			d, err := c.Dup(ctx)
			if err != nil {
				return err
			}
			d = withOptions(grouped(d, g), o)
			works = append(works, d.Start(ctx, func(ctx context.Context, c *gcl.Comm) error {
				var own [][]int64
				for _, m := range c.Members() {
					own = append(own, data[m])
				}
				sum, moved := newReduceCase(gcl.Add, own), newMoveCase(own)
				for range 5 {
					if err := errors.Join(sum.try(ctx, c), moved.try(ctx, c)); err != nil {
						return fmt.Errorf("group %v by %v: %w", g, o.Method, err)
					}
				}
				return nil
			}))
		}
	}
	var errs []error
	for _, w := range works {
		errs = append(errs, w.Wait())
	}
	return errors.Join(errs...)
}

// mpiBits: sums that are not exact have the bits of those among goroutines.
func mpiBits(ctx context.Context, c *gcl.Comm) error {
	n := c.Size()
	for _, m := range thinned.Methods(n) {
		for _, length := range []int{5, 4099, 200_003} {
			data := make([][]float32, n)
			random := rand.New(rand.NewPCG(uint64(length), 1))
			for r := range data {
				for range length {
					data[r] = append(data[r], float32(random.NormFloat64()))
				}
			}
			o := gcl.Options{Method: m, Implementation: gcl.Syncless}
			var want []float32
			if err := gcl.Run(ctx, n, func(ctx context.Context, c *gcl.Comm) error {
				out, err := gcl.AllReduce(ctx, withOptions(c, o), data[c.Rank()], gcl.Add)
				if c.Rank() == 0 {
					want = out
				}
				return err
			}); err != nil {
				return err
			}
			got, err := gcl.AllReduce(ctx, withOptions(c, o), data[c.Rank()], gcl.Add)
			if err != nil {
				return err
			}
			what := fmt.Sprintf("method=%v length=%d, and among goroutines", m, length)
			if err := check(what, got, want); err != nil {
				return err
			}
		}
	}
	return nil
}

// mpiMismatch: replicas in different calls all get ErrMismatch with both calls, a dump says how it was, and all leave.
func mpiMismatch(ctx context.Context) error {
	c, err := gcl.Join(ctx, gcl.JoinConfig{})
	if err != nil {
		return err
	}
	d := withOptions(c, native)
	if err := gcl.AllReduceInPlace(ctx, d, make([]float32, 100), gcl.Add); err != nil {
		return err
	}
	op := gcl.Add
	if c.Rank() == 1 {
		op = gcl.Max
	}
	err = gcl.AllReduceInPlace(ctx, d, make([]float32, 10_000), op)
	if !errors.Is(err, gcl.ErrMismatch) || !contains(err, "(ADD") || !contains(err, "(MAX") {
		return fmt.Errorf("no ErrMismatch with both calls in %w", err)
	}
	if dump := c.Dump(); !strings.Contains(dump, "native, engine") {
		return fmt.Errorf("the dump does not name method and path:\n%s", dump)
	}
	return c.Close()
}

// mpiOptions: options that differ are an error of Join on all.
func mpiOptions(ctx context.Context) error {
	o := gcl.Options{Method: methods.Direct}
	if rank, _, err := mpi.World(ctx); err != nil || rank == 1 {
		o.Method = methods.ClockwiseRing
	}
	_, err := gcl.Join(ctx, gcl.JoinConfig{}, gcl.WithOptions(o))
	if err == nil || !contains(err, "the options: method differs") {
		return fmt.Errorf("replicas of different options: %w", err)
	}
	return mpi.Finalize(ctx)
}

// mpiTwice: a second Join of a process is an error that says why.
func mpiTwice(ctx context.Context) error {
	c, err := gcl.Join(ctx, gcl.JoinConfig{Transport: "mpi"})
	if err != nil {
		return err
	}
	if err := c.Close(); err != nil {
		return err
	}
	_, err = gcl.Join(ctx, gcl.JoinConfig{})
	if err == nil || !contains(err, "MPI has been finalized in this process, and can be initialized only once") {
		return fmt.Errorf("the second Join: %w", err)
	}
	return nil
}

// mpiAlone joins by the wrong mpirun.
func mpiAlone(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	_, err := gcl.Join(ctx, gcl.JoinConfig{})
	if err == nil || !contains(err, "start the program by the mpirun of the library that it is linked with") {
		return fmt.Errorf("under the mpirun of another library: %w", err)
	}
	return mpi.Finalize(ctx)
}

// TestMPIWrongMpirun starts processes by the mpirun of the library that this binary is not built with.
func TestMPIWrongMpirun(t *testing.T) {
	other := []string{"mpirun.mpich", "-np", "2"}
	if own := must(mpi.Mpirun(2)); strings.Contains(own[0], "mpich") || strings.Contains(own[0], "hydra") {
		other = []string{"mpirun.openmpi", "--oversubscribe", "-np", "2"}
	}
	if _, err := exec.LookPath(other[0]); err != nil {
		t.Skip("there is no other mpirun: ", err)
	}
	if out, err := mpirun(t, "alone", 2, other...); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// mpiHurried joins within a time in which no MPI comes up.
func mpiHurried(ctx context.Context) error {
	_, err := gcl.Join(ctx, gcl.JoinConfig{Timeout: time.Microsecond})
	fmt.Println("HURRIED", err)
	return nil
}

// TestMPITimeout: the time for everybody to come begins when MPI has come up.
func TestMPITimeout(t *testing.T) {
	out, _ := mpirun(t, "hurried", 2) // an error: MPI is not finalized
	if !strings.Contains(out, "HURRIED") || strings.Contains(out, "MPI has not come up") {
		t.Error(out)
	}
}
