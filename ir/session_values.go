package ir

import (
	"errors"
	"fmt"
	"slices"

	"gogcl.dev/commgroup"
	"gogcl.dev/tensor"
)

// Enter uploads the variables to the replicas, where they stay until Exit. It may be called again before Exit; then it
// does nothing but count.
func (s *Session) Enter() error {
	if err := s.begin(); err != nil {
		return err
	}
	defer s.end()
	if err := s.usable(); err != nil {
		return err
	}
	s.enter()
	return nil
}

func (s *Session) enter() {
	if s.entered == 0 {
		for _, v := range s.program.variables {
			s.upload(v)
		}
	}
	s.entered++
}

// Exit downloads the variables to the host, if it is the Exit of the first Enter. The first time takes memory for them.
// After a run that has failed, what the replicas have is not downloaded: the host keeps what it had at Enter, or was
// given by Write. A session that is closed may still be exited.
func (s *Session) Exit() error {
	if err := s.beginClosed(); err != nil {
		return err
	}
	defer s.end()
	if s.entered == 0 {
		return errors.New("ir: an exit from a session without an enter")
	}
	s.exit()
	return nil
}

func (s *Session) exit() {
	if s.entered == 1 && s.failed == nil {
		for _, v := range s.program.variables {
			s.download(v)
		}
	}
	s.entered--
}

// Within enters the session, calls f, and exits.
func (s *Session) Within(f func() error) (err error) {
	if f == nil {
		return errors.New("ir: no function to call within the session")
	}
	if err := s.Enter(); err != nil {
		return err
	}
	defer func() {
		if exit := s.Exit(); exit != nil {
			err = errors.Join(err, exit)
		}
	}()
	return f()
}

// copies says which values of a variable the host keeps: one for each replica of this process, or for each group that
// has one.
//
//	6 replicas in groups {0 1 2} {3 4 5}, of which this process has 4 and 5
//
//	                     with AllReplicas    without
//	copies               4, 5                group 1
//	of, by replica       0, 1                0, 0
//	first, by copy       0, 1                0            which replica it is read from
type copies struct {
	of    []int // by replica of this process: which copy is its value
	first []int // by copy: the first replica of this process that has it
	group []int // by replica of this process: its group
}

func (s *Session) newCopiesOf(v *Variable) copies {
	var c copies
	layout := s.groups(v)
	var keys []int
	for i, r := range s.own {
		group := layout.GroupOf(r)
		key := group
		if v.all {
			key = r
		}
		at := slices.Index(keys, key)
		if at < 0 {
			at = len(keys)
			keys = append(keys, key)
			c.first = append(c.first, i)
		}
		c.of, c.group = append(c.of, at), append(c.group, group)
	}
	return c.sorted(keys)
}

// sorted puts the copies into the order of their groups.
func (c copies) sorted(keys []int) copies {
	order := make([]int, len(keys)) // the copies as they are to come
	for k := range order {
		order[k] = k
	}
	slices.SortFunc(order, func(a, b int) int { return keys[a] - keys[b] })
	first, place := make([]int, len(keys)), make([]int, len(keys))
	for k, was := range order {
		first[k], place[was] = c.first[was], k
	}
	for i, was := range c.of {
		c.of[i] = place[was]
	}
	c.first = first
	return c
}

// groups are those of a variable.
func (s *Session) groups(v *Variable) commgroup.Layout {
	layout, _ := v.layout(s.program.replicas) // NewSession has looked
	return layout
}

// hostSpec is the spec of a variable's copies on the host.
func (s *Session) hostSpec(v *Variable) Spec {
	out := Spec{DType: v.sp.DType}
	if n := len(s.copies[v.index].first); n > 1 {
		out.Shape = append(out.Shape, n)
	}
	out.Shape = append(out.Shape, v.sp.Shape...)
	return out
}

// part is value k of a variable in a tensor of the host's that has several.
func (v *Variable) part(values *tensor.Tensor, k int) []byte {
	bytes := v.sp.Bytes()
	return values.Bytes()[k*bytes : (k+1)*bytes]
}

// hostValue is what the host has of a variable for replica i of this process.
func (s *Session) hostValue(v *Variable, i int) []byte {
	if t := s.values[v.index]; t != nil {
		return v.part(t, s.copies[v.index].of[i])
	}
	return v.part(v.value, s.copies[v.index].group[i])
}

// replicaValue is what replica i of this process has of a variable.
func (s *Session) replicaValue(v *Variable, i int) []byte {
	return s.replicas[i].variable(v)
}

// gather copies the values of replicas to a tensor of the host's: of each, or of the first of each group.
func (s *Session) gather(v *Variable, to *tensor.Tensor, value func(v *Variable, i int) []byte) {
	for k, i := range s.copies[v.index].first {
		copy(v.part(to, k), value(v, i))
	}
}

// newCopies makes a tensor for a variable's copies on the host.
func (s *Session) newCopies(v *Variable) *tensor.Tensor {
	host := s.hostSpec(v)
	out, _ := tensor.New(host.DType, host.Shape...) // NewSession has looked
	return out
}

// upload copies a variable from the host to the replicas.
func (s *Session) upload(v *Variable) {
	for i := range s.replicas {
		copy(s.replicaValue(v, i), s.hostValue(v, i))
	}
	s.stale[v.index] = false
}

// setValue gives the host copies of a variable.
func (s *Session) setValue(v *Variable, copies *tensor.Tensor) {
	s.mu.Lock()
	s.values[v.index] = copies
	s.mu.Unlock()
}

// download copies a variable from the replicas to the host.
func (s *Session) download(v *Variable) {
	if !s.stale[v.index] {
		return
	}
	if s.values[v.index] == nil {
		s.setValue(v, s.newCopies(v))
	}
	s.gather(v, s.values[v.index], s.replicaValue)
	s.stale[v.index] = false
}

// Read returns a copy, the caller's, of a variable's value: in the shape of the data that it was made with, or with
// AllReplicas of one value for each replica. Between Enter and Exit it is what the replicas have. In a job it is the
// value of this process's replica: see WithJob. Nothing is sent.
func (s *Session) Read(v *Variable) (*tensor.Tensor, error) {
	if err := s.begin(); err != nil {
		return nil, err
	}
	defer s.end()
	if err := s.owns(v); err != nil {
		return nil, err
	}
	out, value := s.newCopies(v), s.hostValue
	if s.entered > 0 {
		value = s.replicaValue
	}
	s.gather(v, out, value)
	return out, nil
}

// Write changes a variable's value, on the host and, between Enter and Exit, on the replicas. The tensor is copied; it
// must be of the shape and element type of the data that the variable was made with, or with AllReplicas or in a job of
// what Read returns.
func (s *Session) Write(v *Variable, value *tensor.Tensor) error {
	if err := s.begin(); err != nil {
		return err
	}
	defer s.end()
	if err := s.owns(v); err != nil {
		return err
	}
	want := SpecOf(v.value)
	switch {
	case value == nil:
		return fmt.Errorf("ir: %s is given no value, want %v", v.label(), want)
	case (v.all || s.job != nil) && SpecOf(value).Equal(s.hostSpec(v)):
		value = value.Clone()
	case !SpecOf(value).Equal(want):
		return fmt.Errorf("ir: %s is given %v, want %v", v.label(), SpecOf(value), want)
	default:
		given := value
		value = s.newCopies(v)
		s.gather(v, value, func(v *Variable, i int) []byte { return v.part(given, s.copies[v.index].group[i]) })
	}
	s.setValue(v, value)
	s.stale[v.index] = false
	if s.entered > 0 {
		s.upload(v)
	}
	return nil
}

// owns returns an error if a variable is not of the program.
func (s *Session) owns(v *Variable) error {
	switch {
	case v == nil:
		return errors.New("ir: no variable")
	case v.index >= len(s.program.variables) || s.program.variables[v.index] != v:
		return fmt.Errorf("ir: %s is of another program", v.label())
	}
	return nil
}
