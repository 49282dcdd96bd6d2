package remote_test

import (
	"fmt"
	"log"
	"os"

	"gogcl.dev/remote"
	"gogcl.dev/tensor"
)

// A value is stored in a file, and loaded when the file has been closed and opened again, as by the next process.
func ExampleDir() {
	dir, err := os.MkdirTemp("", "remote")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	spec := remote.Spec{Buffer: "w", Replica: 0, DType: tensor.F32, Shape: tensor.Shape{2}, Entries: 3}

	entries, err := remote.Dir(dir).Open(spec)
	if err != nil {
		log.Fatal(err)
	}
	if err := entries.Store(1, tensor.Bytes([]float32{3, 4})); err != nil {
		log.Fatal(err)
	}
	if err := entries.Close(); err != nil {
		log.Fatal(err)
	}

	entries, err = remote.Dir(dir).Open(spec)
	if err != nil {
		log.Fatal(err)
	}
	defer entries.Close()
	x := make([]float32, 2)
	for i := range spec.Entries {
		if err := entries.Load(i, tensor.Bytes(x)); err != nil {
			log.Fatal(err)
		}
		fmt.Println("entry", i, x)
	}
	fmt.Println("lost", entries.Lost())
	// Output:
	// entry 0 [0 0]
	// entry 1 [3 4]
	// entry 2 [0 0]
	// lost []
}
