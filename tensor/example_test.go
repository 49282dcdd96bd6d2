package tensor_test

import (
	"fmt"

	"gogcl.dev/tensor"
)

func ExampleFromSlice() {
	data := []float32{1, 2, 3, 4, 5, 6}
	x, err := tensor.FromSlice(data, 2, 3)
	if err != nil {
		fmt.Println(err)
		return
	}
	data[5] = 60 // the same memory
	fmt.Println(x)

	_, err = tensor.FromSlice(data, 2, 2)
	fmt.Println(err)
	// Output:
	// float32(2, 3)[[1 2 3] [4 5 60]]
	// tensor: shape (2, 2) has 4 elements, the slice has 6
}

func ExampleOf() {
	x, err := tensor.New(tensor.I32, 4)
	if err != nil {
		fmt.Println(err)
		return
	}
	elements, err := tensor.Of[int32](x)
	if err != nil {
		fmt.Println(err)
		return
	}
	for i := range elements {
		elements[i] = int32(i * i)
	}
	fmt.Println(x)

	_, err = tensor.Of[float32](x)
	fmt.Println(err)
	// Output:
	// int32(4,)[0 1 4 9]
	// tensor: elements are int32, not float32
}

func ExampleDTypeOf() {
	d := tensor.DTypeOf[tensor.BFloat16]()
	fmt.Println(d, d.Size(), d.IsFloat())
	// Output: bfloat16 2 true
}

func ExampleFloat16FromFloat32() {
	for _, f := range []float32{1, 0.1, 65519, 65520} {
		fmt.Println(f, tensor.Float16FromFloat32(f), tensor.BFloat16FromFloat32(f))
	}
	// Output:
	// 1 1 1
	// 0.1 0.099975586 0.100097656
	// 65519 65504 65536
	// 65520 +Inf 65536
}

func ExampleFromBytes() {
	b := tensor.Bytes([]uint16{1, 2, 3})
	fmt.Println(len(b))
	_, err := tensor.FromBytes[uint16](b[:5])
	fmt.Println(err)
	// Output:
	// 6
	// tensor: 5 bytes are not a whole number of uint16, 2 bytes each
}
