package rts_test

import (
	"context"
	"strings"
	"testing"

	"gogcl.dev/ir"
	"gogcl.dev/ir/ops"
	"gogcl.dev/remote"
	"gogcl.dev/rts"
	"gogcl.dev/rts/checkpoint"
	"gogcl.dev/tensor"
)

// counted is a program without a Trainer: a sharded variable and a counter, each of which grows in every run.
type counted struct {
	session *ir.Session
	weight  *rts.Variable
	counter *ir.Variable
}

func newCounted(t *testing.T, replicas int) counted {
	t.Helper()
	p := ir.New(replicas)
	var c counted
	var shard *ir.Tensor
	c.weight, shard = rts.NewVariable(p, floats(t, []float32{1, 2, 3, 4, 5}, 5), rts.Sharding{}, remote.Name("weight"))
	c.counter = p.Variable(tensor.Scalar(int32(0)), ir.VariableName("counter"))
	ops.Accumulate(shard, ops.MulScalar(shard, 1))
	ops.Accumulate(c.counter.Tensor, p.Main().Constant(tensor.Scalar(int32(1))))
	c.session = newSession(t, p)
	return c
}

func (c counted) run(t *testing.T) {
	t.Helper()
	if _, err := c.session.Run(context.Background(), nil); err != nil {
		t.Fatal(err)
	}
}

// is compares the variables with what they are after so many runs.
func (c counted) is(t *testing.T, runs int) {
	t.Helper()
	weight, err := c.weight.Read(c.session)
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range values(t, weight) {
		if want := float32((i + 1) << runs); v != want {
			t.Errorf("after %d runs weight %d is %v, want %v", runs, i, v, want)
		}
	}
	counter, err := c.session.Read(c.counter)
	if err != nil {
		t.Fatal(err)
	}
	if !counter.Equal(tensor.Scalar(int32(runs))) {
		t.Errorf("the counter is %v, want %d", counter, runs)
	}
}

// TestCheckpointOfVariables saves the variables of a program without a Trainer on two replicas, and goes on with them
// on two and on four.
func TestCheckpointOfVariables(t *testing.T) {
	dir := t.TempDir()
	c := newCounted(t, 2)
	for range 3 {
		c.run(t)
	}
	tensors, err := rts.Checkpoint(c.session, c.weight, rts.Plain(c.counter))
	if err != nil {
		t.Fatal(err)
	}
	if err := checkpoint.Save(t.Context(), dir, tensors, nil); err != nil {
		t.Fatal(err)
	}
	for _, replicas := range []int{2, 4} {
		c := newCounted(t, replicas)
		c.run(t)
		tensors, err := rts.Checkpoint(c.session, c.weight, rts.Plain(c.counter))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := checkpoint.Load(t.Context(), dir, tensors); err != nil {
			t.Fatal(err)
		}
		c.is(t, 3)
		c.run(t)
		c.is(t, 4)
	}
}

// TestCheckpointOfVariablesErrors has what cannot be in a checkpoint.
func TestCheckpointOfVariablesErrors(t *testing.T) {
	c, other := newCounted(t, 2), newCounted(t, 2)
	p := ir.New(2)
	unnamed := p.Variable(tensor.Scalar(int32(0)))
	shards, _ := rts.NewVariable(p, floats(t, []float32{1, 2}, 2), rts.Sharding{})
	s := newSession(t, p)
	for _, e := range []struct {
		session *ir.Session
		of      []rts.Checkpointed
		want    string
	}{
		{c.session, []rts.Checkpointed{c.weight, c.weight}, `two tensors have the name "weight"`},
		{c.session, []rts.Checkpointed{nil}, "argument 0 to checkpoint is nil"},
		{c.session, []rts.Checkpointed{(*rts.Variable)(nil)}, "a variable that no program has"},
		{c.session, []rts.Checkpointed{rts.Plain(nil)}, "a variable that no program has"},
		{c.session, []rts.Checkpointed{other.weight}, `another program than variable "weight"`},
		{c.session, []rts.Checkpointed{rts.Plain(other.counter)}, `another program than variable "counter"`},
		{nil, []rts.Checkpointed{c.weight}, "the session is of another program"},
		{s, []rts.Checkpointed{rts.Plain(unnamed)}, "a variable of int32 () has no name"},
		{s, []rts.Checkpointed{shards}, "a variable of float32 (2,) has no name"},
	} {
		if _, err := rts.Checkpoint(e.session, e.of...); err == nil || !strings.Contains(err.Error(), e.want) {
			t.Errorf("%v, want %q in it", err, e.want)
		}
	}
}
