package ir

import "testing"

// TestOfLibrary: whose a function is goes by its package, and that of a closure which the compiler has put into another
// package's function by its file.
func TestOfLibrary(t *testing.T) {
	for _, c := range []struct {
		pkg, file string
		want      bool
	}{
		{"main", "/home/me/main.go", false},
		{"main", ownFiles + "main.go", false}, // in a clone
		{"main", ownFiles + "ir/ops/binary.go", true},
		{"example.org/nets", ownFiles + "rts/unit.go", true},
		{ownModule + "examples/graphs", ownFiles + "examples/graphs/call.go", false},
		{ownModule + "examples/graphs", ownFiles + "ir/ops/binary.go", true},
		{ownModule + "ir/ops", ownFiles + "ir/ops/binary.go", true},
		{ownModule + "ir/ops_test", ownFiles + "ir/ops/binary_test.go", false},
		{ownModule + "internal/member", ownFiles + "internal/member/member.go", true},
	} {
		if got := ofLibrary(c.pkg, c.file); got != c.want {
			t.Errorf("%s of package %s: %v, want %v", c.file, c.pkg, got, c.want)
		}
	}
}
