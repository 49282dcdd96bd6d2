// Command gen writes the assembly of package kernel, its stubs, and the tables that say which loop serves which
// operator on which type:
//
//	go run . -out ..
//
// The code for amd64 is made by avo, that for arm64 by what is in the files neon*.go.
//
// The same input gives the same output to the byte; CI runs it and looks for a difference.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/pass"
	"github.com/mmcloughlin/avo/printer"
)

func main() {
	log.SetFlags(0)
	flags := flag.NewFlagSet("gen", flag.ExitOnError) // avo fills flag.CommandLine with its own
	out := flags.String("out", "", "the folder that the files are written to")
	flags.Parse(os.Args[1:])
	if *out == "" {
		log.Fatal("gen: -out is missing")
	}
	for _, isa := range isas {
		t := &table{isa: isa}
		for _, f := range []struct {
			name string
			emit func(*build.Context, *table)
		}{
			{"binary", emitBinary},
			{"fold", emitFolds},
			{"convert", emitConversions},
			{"matmul", emitMatMul},
			{"rows", emitRows},
			{"update", emitUpdates},
			{"function", emitFunctions},
			{"softmax", emitSoftmax},
		} {
			c := build.NewContext()
			c.ConstraintExpr("!noasm")
			f.emit(c, t)
			if err := write(c, filepath.Join(*out, f.name+"_"+isa.name+"_amd64")); err != nil {
				log.Fatalf("gen: %s of %s: %v", f.name, isa.name, err)
			}
		}
		if err := t.write(filepath.Join(*out, "table_"+isa.name+"_amd64.go")); err != nil {
			log.Fatalf("gen: %v", err)
		}
	}
	if err := emitNEON(*out); err != nil {
		log.Fatalf("gen: neon: %v", err)
	}
}

// write compiles what c holds and writes base.s and base.go.
func write(c *build.Context, base string) error {
	file, err := c.Result()
	if err != nil {
		return err
	}
	if err := pass.Compile.Execute(file); err != nil {
		return err
	}
	cfg := printer.Config{Name: "internal/kernel/gen", Pkg: "kernel"}
	for _, p := range []struct {
		ext string
		printer.Printer
	}{{".s", printer.NewGoAsm(cfg)}, {".go", printer.NewStubs(cfg)}} {
		text, err := p.Print(file)
		if err != nil {
			return err
		}
		if p.ext == ".go" {
			// avo leaves an empty line in the header only where it prints a constraint; gofmt wants none doubled.
			text = bytes.ReplaceAll(text, []byte("\n\n\n"), []byte("\n\n"))
		}
		if err := os.WriteFile(base+p.ext, text, 0o666); err != nil {
			return fmt.Errorf("write: %w", err)
		}
	}
	return nil
}
