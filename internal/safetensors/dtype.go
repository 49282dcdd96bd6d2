package safetensors

import (
	"fmt"
	"slices"
	"strings"

	"gogcl.dev/tensor"
)

// names are those of the format, from Dtype in its reference implementation (safetensors/src/tensor.rs), in the order
// of gogcl's types. The format has all of these.
func names() map[string]tensor.DType {
	return map[string]tensor.DType{
		"BOOL": tensor.Bool,
		"I8":   tensor.I8, "I16": tensor.I16, "I32": tensor.I32, "I64": tensor.I64,
		"U8": tensor.U8, "U16": tensor.U16, "U32": tensor.U32, "U64": tensor.U64,
		"F16": tensor.F16, "BF16": tensor.BF16, "F32": tensor.F32, "F64": tensor.F64,
	}
}

// others lists the format's types that gogcl has not got.
func others() []string {
	return []string{"F4", "F6_E2M3", "F6_E3M2", "F8_E5M2", "F8_E4M3", "F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ", "C64"}
}

var (
	dtypeOf = names()
	nameOf  = func() map[tensor.DType]string {
		m := map[tensor.DType]string{}
		for name, d := range names() {
			m[d] = name
		}
		return m
	}()
)

// parseDType is the element type of a name in the format.
func parseDType(name string) (tensor.DType, error) {
	if d, ok := dtypeOf[name]; ok {
		return d, nil
	}
	if slices.Contains(others(), name) {
		return 0, fmt.Errorf("dtype %s is none of gogcl's element types", name)
	}
	var known []string
	for _, d := range tensor.DTypes() {
		known = append(known, nameOf[d])
	}
	return 0, fmt.Errorf("dtype %.100q is none of the format's; gogcl reads %s", name, strings.Join(known, ", "))
}
