package layering

import (
	"fmt"
	"go/ast"
	"slices"
)

// impureImports lists packages of the standard library that pure packages may not import. They may import time for its
// Duration; [impuritiesOf] sees to the clock.
func impureImports() []string {
	return []string{"crypto/rand", "math/rand", "math/rand/v2", "net", "os", "runtime", "syscall"}
}

// clocks lists what of package time tells the time or waits for it.
func clocks() []string {
	return []string{"After", "AfterFunc", "NewTicker", "NewTimer", "Now", "Since", "Sleep", "Tick", "Until"}
}

// impuritiesOf lists the clocks and goroutines that file uses. Map iteration it cannot see, which takes types.
func impuritiesOf(file *ast.File) []string {
	var found []string
	ast.Inspect(file, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.GoStmt:
			found = append(found, "go statement")
		case *ast.SelectorExpr:
			if pkg, ok := node.X.(*ast.Ident); ok && pkg.Name == "time" && slices.Contains(clocks(), node.Sel.Name) {
				found = append(found, fmt.Sprintf("time.%s", node.Sel.Name))
			}
		}
		return true
	})
	return found
}
