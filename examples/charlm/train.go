package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"gogcl.dev/gcl"
	"gogcl.dev/internal/member"
	"gogcl.dev/ir"
	"gogcl.dev/methods"
	"gogcl.dev/remote"
	"gogcl.dev/rts"
	"gogcl.dev/tensor"
)

// way is how a model is trained. None of it but the number of replicas changes what is computed.
type way struct {
	me       *member.Member // nil: in no job
	replicas int
	method   methods.Method
	whole    bool // every replica has all parameters
	overlap  bool
	bucket   int // bytes; 0: what the parameters of a block take
	clip     float64
	finite   bool // look for NaN and infinity
}

// sharding says over which replicas parameters are split: all, unless there is one, which has nobody to share with.
func (w way) sharding() rts.Sharding {
	// Reproducible, so that replicas that are processes have the bits of replicas that are goroutines.
	s := rts.Sharding{Options: w.me.Counted(gcl.Options{Method: w.method, Reproducible: true})}
	if w.whole || w.replicas == 1 {
		s.Over = 1
	}
	return s
}

// trainer is a session of a program that makes a step of training on all replicas.
type trainer struct {
	size    size
	session *ir.Session
	made    *rts.Step
	params  [][]*rts.Variable // by layer
	in, out map[*ir.Stream]*tensor.Tensor
	me      *member.Member
	chars   []int32 // windows of all replicas
	targets []int32
	own     [2][]int32 // of in, in a job: chars and targets of this process's replica
	loss    []float32  // of out, by replica

	rate, step *ir.Stream // the same for all replicas
}

// adamBeta2 is less than what is usual: a training of minutes has steps in thousands, and what gradients were a
// thousand steps ago says little.
const adamBeta2 = 0.99

// newTrainer builds the program for batches of so many windows on each replica, and enters a session of it.
func newTrainer(w way, s size, windows int, seed uint64) (*trainer, error) {
	p := ir.New(w.replicas)
	main := p.Main()
	spec := ir.Spec{DType: tensor.I32, Shape: tensor.Shape{windows, s.window}}
	chars, targets := p.HostToDevice("characters", spec), p.HostToDevice("targets", spec)
	loss := p.DeviceToHost("loss", ir.Spec{DType: tensor.F32})

	m := newModel(p, s, windows, meanLoss)
	begin, err := m.begin(rand.New(rand.NewPCG(seed, weightStream)))
	if err != nil {
		return nil, err
	}
	t := &trainer{size: s, me: w.me, in: map[*ir.Stream]*tensor.Tensor{}, out: map[*ir.Stream]*tensor.Tensor{},
		rate: p.HostToAll("rate", ir.Spec{DType: tensor.F32}), step: p.HostToAll("step", ir.Spec{DType: tensor.I32})}
	layers := make([]rts.Layer, len(m.layers))
	for i, l := range m.layers {
		layers[i].Graph = l.graph
	}
	layers[0].Inputs = []*ir.Tensor{main.HostLoad(chars)}
	layers[len(layers)-1].Inputs = []*ir.Tensor{main.HostLoad(targets)}
	if err := t.variables(p, w, m, begin, layers); err != nil {
		return nil, err
	}
	bucket := w.bucket
	if bucket == 0 {
		bucket = 4 * count(s.blockParams())
	}
	t.made = rts.Trainer{
		Optimizer: rts.Adam{Beta2: adamBeta2}, ClipNorm: w.clip, BucketBytes: bucket, Overlap: w.overlap,
		CheckFinite: w.finite,
	}.Step(layers, main.HostLoad(t.rate), main.HostLoad(t.step))
	main.HostStore(loss, t.made.Outputs[0])

	if t.session, err = ir.NewSession(p, w.me.Session(context.Background())); err != nil {
		return nil, err
	}
	if err := t.enter(chars, targets, loss); err != nil {
		return nil, errors.Join(err, t.close())
	}
	return t, nil
}

// variables makes those of the layers. Parameters that blocks have alike are entries of one buffer.
func (t *trainer) variables(p *ir.Program, w way, m *model, begin values, layers []rts.Layer) error {
	sharding := w.sharding()
	type kind struct {
		graph *ir.Graph
		name  string
	}
	buffers := map[kind]*remote.Buffer{}
	for i, l := range m.layers {
		for k, param := range l.params {
			of := kind{l.graph, param.name}
			b, entry := buffers[of], 0
			if b == nil {
				shard, err := sharding.ShardShape(param.shape, w.replicas)
				if err != nil {
					return err
				}
				b = remote.NewBuffer(p, ir.Spec{DType: tensor.F32, Shape: shard})
				buffers[of] = b
			} else {
				entry = b.Entries()
				if err := b.SetEntries(entry + 1); err != nil {
					return err
				}
			}
			name := fmt.Sprintf("%s %s", l.name, param.name)
			layers[i].Params = append(layers[i].Params,
				rts.RemoteVariable(p, begin[i][k], b, entry, sharding, remote.Name(name)))
		}
		t.params = append(t.params, layers[i].Params)
	}
	return nil
}

// enter makes the tensors on the host's side of the streams and enters the session.
func (t *trainer) enter(chars, targets, loss *ir.Stream) error {
	err := errors.Join(room(t.session, t.in, chars), room(t.session, t.in, targets), room(t.session, t.out, loss))
	if err != nil {
		return err
	}
	var errs [3]error
	t.chars, errs[0] = tensor.Of[int32](t.in[chars])
	t.targets, errs[1] = tensor.Of[int32](t.in[targets])
	t.loss, errs[2] = tensor.Of[float32](t.out[loss])
	if t.me.InJob() {
		t.own = [2][]int32{t.chars, t.targets}
		all := len(t.chars) * t.session.Program().Replicas()
		t.chars, t.targets = make([]int32, all), make([]int32, all)
	}
	return errors.Join(errors.Join(errs[:]...), t.session.Enter())
}

// run makes a step with what is in chars and targets, and returns the mean loss before it.
func (t *trainer) run(ctx context.Context, step int, rate float64) (loss float64, err error) {
	t.in[t.rate], t.in[t.step] = tensor.Scalar(float32(rate)), tensor.Scalar(int32(step))
	if t.me.InJob() {
		n := len(t.own[0])
		from := t.me.Comm().Replica() * n
		copy(t.own[0], t.chars[from:from+n])
		copy(t.own[1], t.targets[from:from+n])
	}
	if err := t.session.RunTo(ctx, t.out, t.in); err != nil {
		return 0, err
	}
	losses, err := t.me.Gather(ctx, t.loss)
	if err != nil {
		return 0, err
	}
	for _, v := range losses {
		loss += float64(v) / float64(len(losses))
	}
	return loss, nil
}

// values reads the parameters, whole.
func (t *trainer) values() (values, error) {
	all := make(values, len(t.params))
	for i, layer := range t.params {
		for _, v := range layer {
			data, err := v.Read(t.session)
			if err != nil {
				return nil, err
			}
			all[i] = append(all[i], data)
		}
	}
	return all, nil
}

// memory is what a step takes on each replica.
func (t *trainer) memory() (rts.Memory, error) { return t.made.Memory(t.session) }

// close ends the session.
func (t *trainer) close() error { return t.session.Close() }

// waiting is ir.Profile.Waiting since profiling was set.
func (t *trainer) waiting() float64 { return t.session.Profile().Waiting() }
