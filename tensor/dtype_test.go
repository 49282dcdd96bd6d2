package tensor

import (
	"encoding/json"
	"strings"
	"testing"

	"gogcl.dev/internal/kernel"
)

// TestKernelNumbers: gcl and others convert kernel.Type(dtype); the numbers, names and sizes must agree.
func TestKernelNumbers(t *testing.T) {
	t.Parallel()
	kernels := []kernel.Type{
		kernel.Bool, kernel.Int8, kernel.Int16, kernel.Int32, kernel.Int64,
		kernel.Uint8, kernel.Uint16, kernel.Uint32, kernel.Uint64,
		kernel.Float16, kernel.BFloat16, kernel.Float32, kernel.Float64,
	}
	names := strings.Fields("bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 bfloat16 float32 float64")
	sizes := []int{1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 2, 4, 8}
	dtypes := []DType{Bool, I8, I16, I32, I64, U8, U16, U32, U64, F16, BF16, F32, F64}
	if got := len(DTypes()); got != len(dtypes) {
		t.Fatalf("%d dtypes, want %d", got, len(dtypes))
	}
	for i, d := range DTypes() {
		if d != dtypes[i] || kernel.Type(d) != kernels[i] || d.String() != names[i] || d.Size() != sizes[i] ||
			kernels[i].Size() != sizes[i] {
			t.Errorf("%d: dtype %d %v of %d bytes, kernel type %d %v of %d; want %s of %d", i, d, d, d.Size(),
				kernels[i], kernels[i], kernels[i].Size(), names[i], sizes[i])
		}
		if want := i != 0; d.IsNumber() != want || d.IsNumber() != (d.IsInteger() != d.IsFloat()) {
			t.Errorf("%v: number %v, integer %v, float %v", d, d.IsNumber(), d.IsInteger(), d.IsFloat())
		}
		if want := strings.Contains(names[i], "float"); d.IsFloat() != want {
			t.Errorf("%v: IsFloat %v", d, !want)
		}
		if want := i > 0 && !strings.HasPrefix(names[i], "uint"); d.IsSigned() != want {
			t.Errorf("%v: IsSigned %v", d, !want)
		}
	}
	for _, d := range []DType{0, F64 + 1, 255} {
		if d.Valid() || d.Size() != 0 || d.IsNumber() || d.IsSigned() {
			t.Errorf("%v passes for a dtype", d)
		}
	}
}

func TestDTypeText(t *testing.T) {
	t.Parallel()
	for _, d := range DTypes() {
		text, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		var back DType
		if err := json.Unmarshal(text, &back); err != nil || back != d {
			t.Errorf("%s reads back as %v, %v", text, back, err)
		}
	}
	if text, err := DType(0).MarshalText(); err == nil {
		t.Errorf("the zero dtype prints as %q", text)
	}
	for _, name := range []string{"", "Float32", "float", "float32 ", "int", "DType(0)", "DType(3)"} {
		d := F64
		err := d.UnmarshalText([]byte(name))
		if err == nil || d != F64 {
			t.Errorf("%q: %v, %v", name, d, err)
			continue
		}
		if !strings.Contains(err.Error(), "bfloat16") {
			t.Errorf("%q: %v does not say what there is", name, err)
		}
	}
	if got := DType(0).String(); got != "DType(0)" {
		t.Errorf("the zero dtype is %q", got)
	}
}

func FuzzParseDType(f *testing.F) {
	for _, d := range DTypes() {
		f.Add(d.String())
	}
	f.Add("")
	f.Add("Float32")
	f.Add("DType(1)")
	f.Fuzz(func(t *testing.T, name string) {
		d, err := ParseDType(name)
		if err != nil {
			if d != 0 {
				t.Errorf("%q: %v with an error", name, d)
			}
			return
		}
		if !d.Valid() || d.String() != name {
			t.Errorf("%q is %v", name, d)
		}
	})
}
