package main

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"gogcl.dev/internal/command"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestPriceAll compares the prices of all methods with files in testdata.
func TestPriceAll(t *testing.T) {
	for name, line := range map[string]string{
		// 300 ns at each end of a message of 50 ns make 650 ns of the one round of broadcast.
		"overhead_price.golden": "price -method all -n 2 -bytes 8,1M -overhead 300ns",
		// Of a pipeline it is the number of pieces that is best.
		"pieces_price.golden": "price -method all -collective broadcast -root 1 -bytes 8,1M -network open-ladder:3",
		"switch_price.golden": "price -method all -n 4 -bytes 4K -network testdata/switch.txt",
		"torus_price.golden":  "price -method all -bytes 1K,64M -network torus:4x4",
		"one_price.golden":    "price -method all -n 1 -bytes 8",
		"torus_auto.golden":   "auto -network torus:2x2x2 -collective all-reduce,all-to-all -bytes 1K,1M,1G -overhead 500ns",
		"simulated_auto.golden": "auto -simulate -network fattree:3x2:25e9,1us:12.5e9,500ns -collective all-gather -bytes 8,1G " +
			"-overhead 500ns",
		"csv_auto.golden": "auto -csv -network open-ladder:4 -collective broadcast -bytes 1500,1G",
	} {
		code, stdout, stderr := gclsched(t, line)
		if code != command.OK || stderr != "" {
			t.Errorf("gclsched %s: exit code %d, %s", line, code, stderr)
			continue
		}
		path := filepath.Join("testdata", name)
		if *update {
			if err := os.WriteFile(path, []byte(stdout), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if stdout != string(want) {
			t.Errorf("%s differs; run with -update and look at it. gclsched %s printed\n%s", path, line, stdout)
		}
	}
}
