package ir

import (
	"errors"
	"fmt"

	"gogcl.dev/commgroup"
	"gogcl.dev/tensor"
)

// Variable is a tensor of the main graph that keeps its value from run to run. Each replica has its own. It is a
// Tensor: its Tensor field is what operations take.
type Variable struct {
	*Tensor
	index  int // in the program
	layout func(replicas int) (commgroup.Layout, error)
	all    bool // read from all replicas
	value  *tensor.Tensor
}

// VariableOption says something about a variable.
type VariableOption func(*Variable)

// VariableName gives a variable a name, which errors have.
func VariableName(name string) VariableOption { return func(v *Variable) { v.name = name } }

// VariableGroups says which replicas begin with the same value: those of one group. The data of a variable has a
// leading dimension of the number of groups, if there is more than one. Without it all replicas are one group.
func VariableGroups(g commgroup.Group) VariableOption {
	return func(v *Variable) { v.layout = g.Resolve }
}

// AllReplicas has a variable read from all replicas: what is read has a leading dimension of their number, if there is
// more than one. Without it, it is read from the first replica of each group.
func AllReplicas() VariableOption { return func(v *Variable) { v.all = true } }

// Variable makes a variable of the main graph. data is what it begins with, in the host's shape: that of one replica,
// or with a leading dimension of the number of groups. It is copied. Errors, which stick: no data, groups that the
// number of replicas does not allow, data without the leading dimension.
func (p *Program) Variable(data *tensor.Tensor, options ...VariableOption) *Variable {
	p = p.orNone()
	v := &Variable{Tensor: p.main.broken(), index: len(p.variables), layout: commgroup.Group{}.Resolve}
	for _, o := range options {
		if o != nil {
			o(v)
		}
	}
	name := v.name
	s, err := v.replicaSpec(data, p.replicas)
	if err == nil && p.sessions {
		err = errSession
	}
	if err != nil {
		p.main.refuse("variable", caller(""), named(name, err))
		return v
	}
	v.value = data.Clone()
	v.Tensor = p.main.place(&variableOp{variable: v, sp: s}, caller(""), nil, []Spec{s})[0].Named(name)
	p.variables = append(p.variables, v)
	return v
}

// replicaSpec is the spec that one replica has of data in the host's shape.
func (v *Variable) replicaSpec(data *tensor.Tensor, replicas int) (Spec, error) {
	if !data.DType().Valid() {
		return Spec{}, errors.New("no data")
	}
	layout, err := v.layout(max(replicas, 1))
	if err != nil {
		return Spec{}, err
	}
	s := SpecOf(data)
	if groups := layout.Groups(); groups > 1 {
		if len(s.Shape) == 0 || s.Shape[0] != groups {
			return Spec{}, fmt.Errorf("data of shape %v for %d groups, which must be its first dimension",
				s.Shape, groups)
		}
		s.Shape = s.Shape[1:]
	}
	return s, nil
}

// label names the variable in an error: by its name, else by its tensor and the line that made it.
func (v *Variable) label() string {
	switch {
	case v.Tensor == nil:
		return "a variable that no program has made"
	case v.name != "":
		return fmt.Sprintf("variable %q", v.name)
	case v.node == nil:
		return "a variable without a name"
	}
	return fmt.Sprintf("variable %v (made at %v without ir.VariableName)", v.Tensor, v.node.pos)
}

// named puts a name before an error, if there is one.
func named(name string, err error) error {
	if name == "" {
		return err
	}
	return fmt.Errorf("%q: %w", name, err)
}

// variableOp is where a variable is in the main graph.
type variableOp struct {
	replaced
	variable *Variable
	sp       Spec
}

func (o *variableOp) Name() string                 { return "variable" }
func (o *variableOp) Infer([]Spec) ([]Spec, error) { return []Spec{o.sp}, nil }
func (o *variableOp) runs() []*Graph               { return nil }
func (o *variableOp) goBack(*back, *node) error    { return nil }

func (o *variableOp) lower(l *lowering, n *node, _ []*location, where map[*Tensor]*location) ([]*step, error) {
	x := l.at(n.out[0])
	x.kind, x.variable = ofVariable, o.variable
	where[n.out[0]] = x
	return nil, nil
}

func (o *variableOp) begins(*node) (data *tensor.Tensor, wrong string) {
	return o.variable.value, o.variable.label() + " begins with other data"
}

// String has the name, if there is one.
func (o *variableOp) String() string {
	if o.variable.name == "" {
		return o.Name()
	}
	return fmt.Sprintf("%s %q", o.Name(), o.variable.name)
}
