package readme

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// namedPackages are the packages whose names docs/design/gcl.md, docs/design/ir.md,
// docs/design/rts.md and docs/design/popops.md mention, by the name that they have there.
var namedPackages = map[string]string{
	"gcl": "gcl", "chunks": "chunks", "commgroup": "commgroup", "topology": "topology", "methods": "methods",
	"schedule": "methods/schedule", "cost": "methods/cost",
	"tensor": "tensor", "transport": "transport", "inproc": "transport/inproc",
	"ir": "ir", "ops": "ir/ops", "show": "ir/show", "collective": "ir/collective", "remote": "remote",
	"rts": "rts", "checkpoint": "rts/checkpoint", "popops": "popops",
}

// packageNames are the names that one package declares.
type packageNames struct {
	exported map[string]bool // as in "Comm", and fields and methods as in "Comm.Group"
	tests    map[string]bool // tests, examples and fuzz targets
}

// parsePackage reads the names declared in a directory.
func parsePackage(t *testing.T, dir string) packageNames {
	t.Helper()
	files, err := fs.Glob(os.DirFS(filepath.Join(root, dir)), "*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("package %s: %d files, %v", dir, len(files), err)
	}
	p := packageNames{exported: map[string]bool{}, tests: map[string]bool{}}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, dir, name), nil,
			parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		test := strings.HasSuffix(name, "_test.go")
		for _, decl := range file.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				if test && d.Recv == nil && testName.MatchString(d.Name.Name) {
					p.tests[d.Name.Name] = true
				}
				if !test {
					p.exported[methodName(d)] = true
				}
			case *ast.GenDecl:
				if !test {
					p.declare(d)
				}
			}
		}
	}
	maps.DeleteFunc(p.exported, func(name string, _ bool) bool {
		of, member, isMember := strings.Cut(name, ".")
		return !ast.IsExported(of) || isMember && !ast.IsExported(member)
	})
	return p
}

var testName = regexp.MustCompile(`^(Test|Example|Fuzz)([^a-z]|$)`)

// methodName is the name of a function, or of a method behind that of its type.
func methodName(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return d.Name.Name
	}
	of := d.Recv.List[0].Type
	if star, ok := of.(*ast.StarExpr); ok {
		of = star.X
	}
	if generic, ok := of.(*ast.IndexExpr); ok {
		of = generic.X
	}
	return of.(*ast.Ident).Name + "." + d.Name.Name
}

// declare notes types, their fields and methods, constants and variables.
func (p packageNames) declare(d *ast.GenDecl) {
	for _, spec := range d.Specs {
		switch s := spec.(type) {
		case *ast.ValueSpec:
			for _, name := range s.Names {
				p.exported[name.Name] = true
			}
		case *ast.TypeSpec:
			p.exported[s.Name.Name] = true
			var members *ast.FieldList
			switch of := s.Type.(type) {
			case *ast.StructType:
				members = of.Fields
			case *ast.InterfaceType:
				members = of.Methods
			default:
				continue
			}
			for _, field := range members.List {
				for _, name := range field.Names {
					p.exported[s.Name.Name+"."+name.Name] = true
				}
			}
		}
	}
}

// What a page may mention, in code: a test, with its package if that is not the one the page is about; and a name of a
// package.
var (
	mentionedCode = regexp.MustCompile("`[^`\n]+`")
	mentionedTest = regexp.MustCompile(`(?:\b([a-z]+)\.)?\b((?:Test|Example|Fuzz)(?:[^a-z\W]\w*)?)\b`)
	mentionedName = regexp.MustCompile(`\b([a-z]+)\.([A-Z]\w*(?:\.[A-Z]\w*)?)\b`)
)

// missing lists what a page about a package mentions that is not there, and counts what it mentions.
func missing(page, about string, packages map[string]packageNames) (lacking []string, tests, names int) {
	for _, code := range mentionedCode.FindAllString(page, -1) {
		for _, m := range mentionedTest.FindAllStringSubmatch(code, -1) {
			tests++
			of := m[1]
			if of == "" {
				of = about
			}
			if !packages[of].tests[m[2]] {
				lacking = append(lacking, "test "+of+"."+m[2])
			}
		}
		for _, m := range mentionedName.FindAllStringSubmatch(code, -1) {
			if p, known := packages[m[1]]; known && !testName.MatchString(m[2]) {
				names++
				if !p.exported[m[2]] {
					lacking = append(lacking, "name "+m[1]+"."+m[2])
				}
			}
		}
	}
	slices.Sort(lacking)
	return slices.Compact(lacking), tests, names
}

func parsePackages(t *testing.T) map[string]packageNames {
	packages := map[string]packageNames{}
	for name, dir := range namedPackages {
		if path.Base(dir) != name {
			t.Errorf("package %s in %s", name, dir)
		}
		packages[name] = parsePackage(t, dir)
	}
	return packages
}

// checkPage checks that every test and every Go name that a page mentions is in the tree, and returns the page.
func checkPage(t *testing.T, file, about string, fewestTests, fewestNames int) string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		t.Fatal(err)
	}
	lacking, tests, names := missing(string(page), about, parsePackages(t))
	for _, what := range lacking {
		t.Errorf("%s: no %s", file, what)
	}
	if tests < fewestTests || names < fewestNames {
		t.Errorf("%s: %d tests and %d names found on the page", file, tests, names)
	}
	return string(page)
}

// TestGCLPage checks docs/design/gcl.md.
func TestGCLPage(t *testing.T) {
	page := checkPage(t, "docs/design/gcl.md", "gcl", 90, 110)
	// Every collective is on it.
	for name := range parsePackages(t)["gcl"].exported {
		if regexp.MustCompile(`^((AllReduce|ReduceScatter|AllGather|AllToAll|Broadcast)(|Many|Tensors|WithinReplica|Mapped)|(Reduce|Gather|Scatter)(|To|InPlace|ManyTo|TensorsTo))$`).MatchString(name) && !strings.Contains(page, "`gcl."+name+"`") {
			t.Errorf("docs/design/gcl.md does not mention gcl.%s", name)
		}
	}
}

// TestIRPage checks docs/design/ir.md.
func TestIRPage(t *testing.T) {
	page := checkPage(t, "docs/design/ir.md", "ir", 100, 90)
	// What a program is built and run by, and all of package remote but what only a storage deals with, is on it.
	for of, names := range map[string]*regexp.Regexp{
		"ir":         regexp.MustCompile(`^(New|NewSession|Autodiff|IdenticalLosses|(Program|Graph|CallInfo|Session)\.\w+)$`),
		"collective": regexp.MustCompile(`^Comm\.\w+$`),
		"remote":     regexp.MustCompile(`^([A-Z]\w+|(Buffer|Variable|Pending)\.\w+)$`),
	} {
		found := 0
		for name := range parsePackages(t)[of].exported {
			if names.MatchString(name) {
				found++
				if !strings.Contains(page, "`"+of+"."+name+"`") {
					t.Errorf("docs/design/ir.md does not mention %s.%s", of, name)
				}
			}
		}
		if found < 10 {
			t.Errorf("only %d names of package %s", found, of)
		}
	}
}

// TestRTSPage checks docs/design/rts.md: all of package rts is on it.
func TestRTSPage(t *testing.T) {
	page := checkPage(t, "docs/design/rts.md", "rts", 40, 60)
	found := 0
	for name := range parsePackages(t)["rts"].exported {
		of, member, is := strings.Cut(name, ".")
		if of == "Adam" || of == "SGD" || of == "Memory" && is || of == "Optimizer" && is || member == "Sharding" ||
			of == "Layer" && is {
			continue
		}
		found++
		if !strings.Contains(page, "rts."+name) {
			t.Errorf("docs/design/rts.md does not mention rts.%s", name)
		}
	}
	if found < 20 {
		t.Errorf("only %d names of package rts", found)
	}
}

// TestPopopsPage checks docs/design/popops.md: all of package popops is on it but for what a struct holds.
func TestPopopsPage(t *testing.T) {
	page := checkPage(t, "docs/design/popops.md", "popops", 40, 50)
	found := 0
	for name := range parsePackages(t)["popops"].exported {
		if of, _, member := strings.Cut(name, "."); member && (of == "Mapped" || of == "Interval") {
			continue
		}
		found++
		if !strings.Contains(page, "`popops."+name+"`") {
			t.Errorf("docs/design/popops.md does not mention popops.%s", name)
		}
	}
	if found < 40 {
		t.Errorf("only %d names of package popops", found)
	}
}

// TestFromPages checks docs/from-*.md: every function of package gcl that carries out a collective across replicas on
// one slice is on one of them, and so are all operators but GCL's own. A name may stand behind one of its package.
func TestFromPages(t *testing.T) {
	var page strings.Builder
	for _, name := range []string{"nccl", "mpi", "torch", "popxl"} {
		page.WriteString(checkPage(t, "docs/from-"+name+".md", "gcl", 0, 20))
	}
	one := regexp.MustCompile(`^(AllReduce|ReduceScatter|AllGather|AllToAll|Broadcast|Reduce|Gather|Scatter)(|To|InPlace)$` +
		`|^(Add|Mean|Mul|Min|Max|LogicalAnd|LogicalOr)$`)
	found := 0
	for name := range parsePackages(t)["gcl"].exported {
		if !one.MatchString(name) {
			continue
		}
		found++
		if !regexp.MustCompile("`(gcl\\.)?" + name + "`").MatchString(page.String()) {
			t.Errorf("no page docs/from-*.md mentions gcl.%s", name)
		}
	}
	if found < 25 {
		t.Errorf("only %d names of package gcl", found)
	}
}

// TestGCLPageFinds: what is not in the tree is found.
func TestGCLPageFinds(t *testing.T) {
	packages := parsePackages(t)
	for text, want := range map[string]string{
		"`TestMatrix`, `chunks.Example`, `ExampleComm_Group`, `commgroup.FuzzParse`": "",
		"`gcl.AllReduce`, `gcl.Comm.Group`, `chunks.Chunks.Concat`, `chunks.Chunk.Data`, `gcl.NoBroadcast`, " +
			"`transport.Endpoint.Exchange`": "",
		"TestNothing and gcl.Nothing outside of code": "",
		"`TestMatrix2`":                 "test gcl.TestMatrix2",
		"`chunks.TestMatrix`":           "test chunks.TestMatrix", // which is in gcl
		"`nowhere.TestMatrix`":          "test nowhere.TestMatrix",
		"`chunks.ExampleNothing`":       "test chunks.ExampleNothing",
		"`gcl.Nothing`":                 "name gcl.Nothing",
		"`gcl.Options.Nothing`":         "name gcl.Options.Nothing",
		"`methods.Method.Nothing`":      "name methods.Method.Nothing",
		"`commgroup.Layout.Nothing(3)`": "name commgroup.Layout.Nothing",
		"`ir.Graph.Nothing`":            "name ir.Graph.Nothing",
		"`remote.TestNothing`":          "test remote.TestNothing",
	} {
		lacking, _, _ := missing(text, "gcl", packages)
		if got := strings.Join(lacking, ", "); got != want {
			t.Errorf("%s: lacking %q, want %q", text, got, want)
		}
	}
}
