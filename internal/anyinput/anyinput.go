// Package anyinput calls what a package exports with zero, nil and odd values, and reports the calls that panic: a
// caller's mistake is an error, or does nothing.
//
// In a test of the package, in its own directory:
//
//	anyinput.Check(t, anyinput.API{
//		Functions: map[string]any{"New": widget.New, "Sum": widget.Sum[int]},
//		Types:     []any{widget.Widget{}, widget.Option(nil)},
//		Values:    []any{someWidget},
//	})
//
// Check fails if an exported function or type of the directory is in neither list, so that what is added later is
// called too. Generic ones are given as instances.
package anyinput

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"
)

// API is what a package exports.
type API struct {
	Functions map[string]any // by name
	Types     []any          // a value of each exported type that is no interface; of generic ones an instance

	// Values are valid ones, which arguments and receivers are taken from too, beside zeros, nils and odd numbers.
	// Every call may use and change them.
	Values []any

	// Skip has what is not called, as "Type.Method" or "Function", with the reason. "Type" is for all methods.
	Skip map[string]string

	// Scratch has the calls run in an empty directory, for functions that make files.
	Scratch bool

	// Rounds is how often each is called with arguments drawn by chance; 0 stands for 200, with -short 40.
	Rounds int
}

// Check calls everything. Arguments drawn by chance are the same in every run.
func Check(t *testing.T, api API) {
	t.Helper()
	for _, name := range missing(t, api) {
		t.Errorf("%s is exported and not given to anyinput.Check", name)
	}
	if api.Scratch { // deep enough for names such as "../x"
		dir := filepath.Join(t.TempDir(), "a", "b")
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		t.Chdir(dir)
	}
	rounds := api.Rounds
	if rounds == 0 {
		rounds = 200
		if testing.Short() {
			rounds = 40
		}
	}
	c := &caller{t: t, api: api, random: rand.New(rand.NewPCG(1, 2)), failed: map[string]bool{}, rounds: rounds}
	for _, v := range api.Values {
		c.values = append(c.values, reflect.ValueOf(v))
	}
	for _, name := range sorted(api.Functions) {
		if api.Skip[name] == "" {
			c.callAll(name, func() (reflect.Value, bool) { return reflect.ValueOf(api.Functions[name]), true })
		}
	}
	for _, v := range api.Types {
		c.methods(reflect.TypeOf(v))
	}
	if c.calls == 0 {
		t.Error("nothing was called")
	}
}

// caller calls the functions and methods of one package.
type caller struct {
	t      *testing.T
	api    API
	random *rand.Rand
	rounds int
	values []reflect.Value
	failed map[string]bool // by name: one report is enough
	calls  int
}

// methods calls the methods of a type: on its zero value, on a nil pointer, and on values.
func (c *caller) methods(t reflect.Type) {
	name, _, _ := strings.Cut(t.Name(), "[")
	if c.api.Skip[name] != "" {
		return
	}
	p := reflect.PointerTo(t)
	for m := range p.Methods() {
		method := m.Name
		_, ofValue := t.MethodByName(method)
		full := name + "." + method
		if c.api.Skip[full] != "" {
			continue
		}
		receivers := []func() reflect.Value{func() reflect.Value { return reflect.New(t) }}
		if !ofValue && !p.Implements(reflect.TypeFor[error]()) { // a nil error is none
			receivers = append(receivers, func() reflect.Value { return reflect.Zero(p) })
		}
		turn := 0
		c.callAll(full, func() (reflect.Value, bool) {
			if turn < len(receivers) { // zero and nil first
				turn++
				return receivers[turn-1]().MethodByName(method), turn == len(receivers)
			}
			r := c.value(p, 0)
			if r.IsNil() && len(receivers) == 1 {
				r = receivers[0]()
			}
			return r.MethodByName(method), true
		})
	}
}

// callAll calls a function with zeros and then with arguments drawn by chance. next returns false if it has more
// receivers that are to be called with zeros.
func (c *caller) callAll(name string, next func() (f reflect.Value, last bool)) {
	for last := false; !last; {
		var f reflect.Value
		f, last = next()
		c.call(name, f, func(t reflect.Type) reflect.Value { return reflect.Zero(t) })
	}
	for range c.rounds {
		f, _ := next()
		if f.Type().NumIn() == 0 && len(c.values) == 0 {
			return
		}
		c.call(name, f, func(t reflect.Type) reflect.Value { return c.value(t, 0) })
	}
}

// call calls a function, and reports a panic.
func (c *caller) call(name string, f reflect.Value, argument func(reflect.Type) reflect.Value) {
	if c.failed[name] {
		return
	}
	t := f.Type()
	in := make([]reflect.Value, t.NumIn())
	for i := range in {
		in[i] = argument(t.In(i))
	}
	c.calls++
	panicked := make(chan string, 1)
	go func() {
		report := ""
		defer func() {
			if v := recover(); v != nil {
				report = fmt.Sprintf("panics: %v\n%s", v, place(debug.Stack()))
			}
			panicked <- report
		}()
		if t.IsVariadic() {
			f.CallSlice(in)
		} else {
			f.Call(in)
		}
	}()
	report := "does not return"
	select {
	case report = <-panicked:
	case <-time.After(patience):
	}
	if report != "" {
		c.failed[name] = true
		texts := make([]string, len(in))
		for i, x := range in {
			texts[i] = text(x)
		}
		c.t.Errorf("%s(%s) %s", name, strings.Join(texts, ", "), report)
	}
}

// patience is how long a call may take. Only one that hangs takes as long.
const patience = 20 * time.Second

// text is an argument for a report.
func text(v reflect.Value) (s string) {
	defer func() {
		if recover() != nil {
			s = v.Type().String()
		}
	}()
	return fmt.Sprintf("%.100s", fmt.Sprintf("%T %+v", v.Interface(), v.Interface()))
}

// place is the part of a stack that is the library's: from the panic on to reflection.
func place(stack []byte) string {
	s := string(stack)
	if _, after, found := strings.Cut(s, "panic("); found {
		s = after
	}
	s, _, _ = strings.Cut(s, "reflect.Value.call")
	return s
}

var (
	odd   = []int64{0, 1, -1, 2, 3, 7, 64, math.MaxInt64, math.MinInt64}
	reals = []float64{0, 1, -1, 0.5, math.MaxFloat64, math.Inf(1), math.Inf(-1), math.NaN()}
	words = []string{"", "x", "float32", "../x", "a/b", "\x00", "ä", "size=2", strings.Repeat("long", 100)}
)

// value draws a value of a type. Deep ones end in zeros.
func (c *caller) value(t reflect.Type, depth int) reflect.Value {
	if t == reflect.TypeFor[context.Context]() && c.random.IntN(3) > 0 {
		ctx, cancel := context.WithCancel(context.Background())
		if c.random.IntN(2) == 0 {
			cancel()
		}
		_ = cancel // the context ends with the test
		return reflect.ValueOf(&ctx).Elem()
	}
	if c.random.IntN(2) == 0 {
		if v, found := c.given(t); found {
			return v
		}
	}
	v := reflect.New(t).Elem()
	if depth > 4 || c.random.IntN(6) == 0 {
		return v
	}
	switch t.Kind() {
	case reflect.Bool:
		v.SetBool(c.random.IntN(2) == 0)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(odd[c.random.IntN(len(odd))]) // cut to its width
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		v.SetUint(uint64(odd[c.random.IntN(len(odd))]))
	case reflect.Float32, reflect.Float64:
		v.SetFloat(reals[c.random.IntN(len(reals))])
	case reflect.String:
		v.SetString(words[c.random.IntN(len(words))])
	case reflect.Slice:
		n := c.random.IntN(4)
		v.Set(reflect.MakeSlice(t, n, n))
		for i := range n {
			v.Index(i).Set(c.value(t.Elem(), depth+1))
		}
	case reflect.Array:
		for i := range t.Len() {
			v.Index(i).Set(c.value(t.Elem(), depth+1))
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(t))
		for range c.random.IntN(3) {
			if key := c.value(t.Key(), depth+1); key.Comparable() {
				v.SetMapIndex(key, c.value(t.Elem(), depth+1))
			}
		}
	case reflect.Pointer:
		v.Set(reflect.New(t.Elem()))
		v.Elem().Set(c.value(t.Elem(), depth+1))
	case reflect.Struct:
		for i := range t.NumField() {
			if t.Field(i).IsExported() {
				v.Field(i).Set(c.value(t.Field(i).Type, depth+1))
			}
		}
	case reflect.Func:
		v.Set(reflect.MakeFunc(t, func([]reflect.Value) []reflect.Value { // on any goroutine
			out := make([]reflect.Value, t.NumOut())
			for i := range out {
				out[i] = reflect.Zero(t.Out(i))
			}
			return out
		}))
	}
	return v
}

// given draws one of the valid values that a type can hold.
func (c *caller) given(t reflect.Type) (reflect.Value, bool) {
	var fit []reflect.Value
	for _, v := range c.values {
		switch {
		case v.Type().AssignableTo(t):
			fit = append(fit, v)
		case t.Kind() == reflect.Pointer && v.Type() == t.Elem():
			p := reflect.New(t.Elem())
			p.Elem().Set(v)
			fit = append(fit, p)
		}
	}
	if len(fit) == 0 {
		return reflect.Value{}, false
	}
	out := reflect.New(t).Elem()
	out.Set(fit[c.random.IntN(len(fit))])
	return out, true
}

// missing are the exported functions and types of the test's directory that the API lacks.
func missing(t *testing.T, api API) []string {
	t.Helper()
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	given := map[string]bool{}
	for name := range api.Functions {
		given[name] = true
	}
	for _, v := range api.Types {
		name, _, _ := strings.Cut(reflect.TypeOf(v).Name(), "[")
		given[name] = true
	}
	var out []string
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".go") || strings.HasSuffix(f.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), f.Name(), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			for _, name := range exported(d) {
				if !given[name] && !slices.Contains(out, name) {
					out = append(out, name)
				}
			}
		}
	}
	slices.Sort(out)
	return out
}

// exported are the names of the functions and of the types with methods of their own that a declaration makes.
func exported(d ast.Decl) []string {
	var out []string
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil && d.Name.IsExported() {
			out = append(out, d.Name.Name)
		}
	case *ast.GenDecl:
		for _, s := range d.Specs {
			if s, is := s.(*ast.TypeSpec); is && s.Name.IsExported() {
				if _, is := s.Type.(*ast.InterfaceType); !is {
					out = append(out, s.Name.Name)
				}
			}
		}
	}
	return out
}

func sorted(m map[string]any) []string {
	var out []string
	for name := range m {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}
