package ir

import (
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strings"
)

// BuildError is an error in how a program is built.
type BuildError struct {
	Op       string // the name of the operation
	Graph    string
	Inputs   []Spec
	Names    []string // of the tensors and variables that Inputs are the specs of; "" of one without a name
	Position Position // of the call in the user's code
	// Frames are all calls in the user's code that have led to the operation, the innermost first, which is Position:
	// a package of layers, then the line that called it. An error that is found later than the call has one frame if a
	// gradient finds it, and none if a session does.
	Frames []Position
	Err    error
}

// mostFrames is of how many calls around the innermost the text of a BuildError has the lines.
const mostFrames = 8

// Error says which operation, where it is called, what its inputs are, what is wrong, and which calls led there.
func (e *BuildError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "ir: %s at %v in graph %s", e.Op, e.Position, e.Graph)
	for i, s := range e.Inputs {
		if i == 0 {
			b.WriteString(" of ")
		} else {
			b.WriteString(", ")
		}
		if i < len(e.Names) && e.Names[i] != "" {
			fmt.Fprintf(&b, "%q ", e.Names[i])
		}
		b.WriteString(s.String())
	}
	fmt.Fprintf(&b, ": %v", e.Err)
	for i, at := range e.Frames {
		switch {
		case i == 1:
			fmt.Fprintf(&b, "; called at %v", at)
		case i > mostFrames:
			fmt.Fprintf(&b, " and %d more", len(e.Frames)-i)
			return b.String()
		case i > 1:
			fmt.Fprintf(&b, ", %v", at)
		}
	}
	return b.String()
}

// Unwrap returns what is wrong.
func (e *BuildError) Unwrap() error { return e.Err }

// refusal is an error in how something is built in the graph, of an operation on some inputs.
func (g *Graph) refusal(op string, pos Position, err error, in ...*Tensor) *BuildError {
	e := &BuildError{Op: op, Graph: g.name, Position: pos, Err: err}
	for _, t := range in {
		e.Inputs, e.Names = append(e.Inputs, t.spec()), append(e.Names, t.Name())
	}
	return e
}

// refuse makes a refusal stick, if it is the first.
func (g *Graph) refuse(op string, pos Position, err error, in ...*Tensor) {
	g.program.fail(g.refusal(op, pos, err, in...))
}

// RunError is an error of an operation while a session runs.
type RunError struct {
	Op       string
	Tensor   string // the name of its first output, or else input, that has one; or ""
	Graph    string
	Replica  int
	Position Position // of the call that built the operation
	Err      error
}

// Error says which operation of which replica failed, on what, where it was built, and how.
func (e *RunError) Error() string {
	of := ""
	if e.Tensor != "" {
		of = fmt.Sprintf(", of %q", e.Tensor)
	}
	return fmt.Sprintf("ir: replica %d: %s built at %v in graph %s%s: %v",
		e.Replica, e.Op, e.Position, e.Graph, of, e.Err)
}

// Unwrap returns the operation's error.
func (e *RunError) Unwrap() error { return e.Err }

// Position is a place in a program's source.
type Position struct {
	File string
	Line int
}

// String returns the file's name without its directory, and the line, as in "train.go:42".
func (p Position) String() string {
	if p.Line == 0 {
		return "?"
	}
	return fmt.Sprintf("%s:%d", p.File[strings.LastIndexByte(p.File, '/')+1:], p.Line)
}

// caller is the innermost call of the user's: it is made from outside this module's libraries and the package of the
// given path, which has functions that add its operations. A program or a test may have operations of its own.
func caller(pkg string) Position {
	if pkg == "main" || strings.HasSuffix(pkg, "_test") {
		pkg = ""
	}
	var counters [64]uintptr
	frames := runtime.CallersFrames(counters[:runtime.Callers(2, counters[:])])
	for {
		f, more := frames.Next()
		if in := packageOf(f.Function); in != pkg && !ofLibrary(in, f.File) {
			return Position{f.File, f.Line}
		}
		if !more {
			return Position{}
		}
	}
}

// framesFrom are the calls in the user's code from a position on outward. If the call in progress does not come from
// there, it is the position alone.
func framesFrom(pos Position) []Position {
	out := []Position{pos}
	var counters [64]uintptr
	frames := runtime.CallersFrames(counters[:runtime.Callers(2, counters[:])])
	for found := false; ; {
		f, more := frames.Next()
		switch in := packageOf(f.Function); {
		case !found:
			found = Position{f.File, f.Line} == pos
		case in == "runtime" || in == "testing": // has started the goroutine
			return out
		case f.Function != "" && !ofLibrary(in, f.File):
			out = append(out, Position{f.File, f.Line})
		}
		if !more {
			return out
		}
	}
}

// callerOf is the innermost call of the user's, where a package that adds operations, of this module or another, is
// not the user.
func callerOf() Position {
	var counters [16]uintptr
	frames := runtime.CallersFrames(counters[:runtime.Callers(2, counters[:])])
	for {
		f, more := frames.Next()
		if in := packageOf(f.Function); in != ownPackage {
			return caller(in)
		}
		if !more {
			return Position{}
		}
	}
}

// ofLibrary reports whether a function is of a library: of this module, and not of a test or an example of it, or of an
// iterator of the standard library, which calls the body of a loop. A closure of a library's function that has been
// inlined is named after the function that it was inlined into, and has its own file.
func ofLibrary(pkg, file string) bool {
	if slices.Contains(iterators, pkg) {
		return true
	}
	if rest, own := strings.CutPrefix(file, ownFiles); own && !strings.HasSuffix(file, "_test.go") {
		for _, dir := range adding {
			if strings.HasPrefix(rest, dir) {
				return true
			}
		}
	}
	in, is := strings.CutPrefix(pkg, ownModule)
	return is && !strings.HasPrefix(in, "examples/") && !strings.HasSuffix(file, "_test.go")
}

var (
	ownPackage = reflect.TypeFor[Graph]().PkgPath()
	ownModule  = strings.TrimSuffix(ownPackage, "ir")
	ownFiles   = directoryOfModule()
)

// iterators are the packages of the standard library over whose functions this module and its users range.
var iterators = []string{"iter", "maps", "slices", "strings", "bytes"}

// adding are the directories of this module whose packages add operations. A program that lies elsewhere in a clone of
// it is its user's own.
var adding = []string{"ir/", "remote/", "rts/"}

// directoryOfModule is where the files of this module are, as the compiler has them, with a slash at the end.
func directoryOfModule() string {
	_, file, _, _ := runtime.Caller(0)
	return strings.TrimSuffix(file, "ir/errors.go")
}

// packageOf is the path of a function's package: "a.b/c" of "a.b/c.D.func1".
func packageOf(function string) string {
	slash := strings.LastIndexByte(function, '/') + 1
	if dot := strings.IndexByte(function[slash:], '.'); dot >= 0 {
		return function[:slash+dot]
	}
	return function
}
