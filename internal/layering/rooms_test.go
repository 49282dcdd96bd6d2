package layering

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// house is a package whose files lie in rooms. What a room declares is used by itself and by those after it.
type house struct {
	pkg   string
	rooms []room
}

// room is the files of a house that may use each other, by their names without ".go".
type room struct{ name, files string }

// houses lists them. A package of one room has no row.
func houses() []house {
	return []house{{
		pkg: "cmd/gclperf",
		rooms: []room{
			{"what is asked for", "doc flags floor load complaints settings ownmethod"},
			{"what comes out", "measurement table compare output reader files picture"},
			{"measuring", "bench measure taken"},
			{"the program", "run transports main"},
		},
	}, {
		pkg: "methods",
		rooms: []room{
			{"what a method is", "doc method spec pieces dims step table generator prover examine"},
			{"the constants", "anticlockwise_ring barrier bidirectional_ring_pair chain clockwise_ring constants gather " +
				"lane lane_move lane_reduce meet_in_middle_ring quad_directional_ring recursive_doubling reduce rooted " +
				"scatter straight traffic"},
			{"gallery", "gallery bruck circulant double_binary_tree halving_doubling hierarchical knomial_tree pat sweep " +
				"swing torus_rings"},
			{"names", "register"},
			{"tuning", "rule rules rulestext rulecase tables auto links why"},
		},
	}, {
		pkg: "methods/schedule",
		rooms: []room{
			{"what a schedule is", "doc collective custom custom_kinds schedule span words limits header digest"},
			{"text", "draw custom_text parse custom_parse"},
			{"build", "builder holder ports compact"},
			{"proof", "check agenda bounds budget custom_proof flight mail outcome report run single sum tally terms way " +
				"way_text"},
			{"pictures", "refusal shape shape_svg shape_text spacetime_svg traffic"},
		},
	}, {
		pkg: "transport/internal/stream",
		rooms: []room{
			{"words", "doc frame link message yield_linux yield_other"},
			{"state", "node lane notice probe report"},
			{"rounds", "push pull aside fail silence chase"},
			{"waiting and the end", "wait settle await engage exchange close"},
			{"what comes", "handle"},
		},
	}}
}

func TestRooms(t *testing.T) {
	for _, h := range houses() {
		problems, err := checkRooms(os.DirFS("../.."), h)
		if err != nil {
			t.Fatal(err)
		}
		for _, problem := range problems {
			t.Error(problem)
		}
	}
}

// TestRoomsAreChecked runs the checker on a made-up package.
func TestRoomsAreChecked(t *testing.T) {
	tree := fstest.MapFS{
		"p/low.go":      {Data: []byte("package p\n\nfunc Low() { High() }\n\ntype T struct{}\n")},
		"p/high.go":     {Data: []byte("package p\n\nfunc High() { var t T; t.lift() }\n")},
		"p/method.go":   {Data: []byte("package p\n\nfunc (T) lift() {}\n")},
		"p/new.go":      {Data: []byte("package p\n")},
		"p/low_test.go": {Data: []byte("package p\n\nvar _ = High\n")},
	}
	got, err := checkRooms(tree, house{"p", []room{{"cellar", "low gone"}, {"attic", "high"}, {"roof", "method"}}})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"p/gone.go: it is not there: take it out of the rooms of p",
		"p/high.go: attic uses lift of p/method.go, which is in roof, above it",
		"p/low.go: cellar uses High of p/high.go, which is in attic, above it",
		"p/new.go: it is in no room of p: add it",
	}
	if !slices.Equal(got, want) {
		t.Errorf("problems\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// checkRooms lists what runs up in a house, whatever the build tags of its files. Tests are exempt. Other packages are
// not looked at: of a value that comes from one, the methods are unknown.
func checkRooms(root fs.FS, h house) (problems []string, err error) {
	floor := map[string]int{}
	for i, r := range h.rooms {
		for name := range strings.FieldsSeq(r.files) {
			floor[path.Join(h.pkg, name+".go")] = i
		}
	}
	names, err := fs.Glob(root, h.pkg+"/*.go")
	if err != nil {
		return nil, err
	}
	var files []*ast.File
	parsed, missing := token.NewFileSet(), maps.Clone(floor)
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		if _, known := floor[name]; !known {
			problems = append(problems, fmt.Sprintf("%s: it is in no room of %s: add it", name, h.pkg))
		}
		delete(missing, name)
		file, err := parseInto(parsed, root, name)
		if err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	for name := range missing {
		problems = append(problems, fmt.Sprintf("%s: it is not there: take it out of the rooms of %s", name, h.pkg))
	}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	config := types.Config{Importer: strangers{}, FakeImportC: true, Error: func(error) {}}
	pkg, _ := config.Check(h.pkg, parsed, files, info) // what other packages have is an error each
	for use, object := range info.Uses {
		_, function := object.(*types.Func) // methods among them
		if object.Pkg() != pkg || object.Parent() != pkg.Scope() && !function {
			continue
		}
		from, to := parsed.Position(use.Pos()).Filename, parsed.Position(object.Pos()).Filename
		if floor[to] > floor[from] {
			problems = append(problems, fmt.Sprintf("%s: %s uses %s of %s, which is in %s, above it", from,
				h.rooms[floor[from]].name, object.Name(), to, h.rooms[floor[to]].name))
		}
	}
	slices.Sort(problems)
	return slices.Compact(problems), nil
}

// strangers imports packages of which nothing is known.
type strangers struct{}

func (strangers) Import(name string) (*types.Package, error) {
	pkg := types.NewPackage(name, path.Base(name))
	pkg.MarkComplete()
	return pkg, nil
}
