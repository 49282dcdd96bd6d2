package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
)

func TestRunIsRepeatable(t *testing.T) {
	var first string
	for i := range 20 {
		var out strings.Builder
		if err := show(t.Context(), &out); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			first = out.String()
		} else if out.String() != first {
			t.Fatalf("run %d printed\n%s\nthe first\n%s", i, out.String(), first)
		}
	}
}

func TestRunCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := show(ctx, io.Discard); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want %v", err, context.Canceled)
	}
}

// Example is all that the program prints.
func Example() {
	if err := show(context.Background(), os.Stdout); err != nil {
		fmt.Println(err)
	}
	// Output:
	// all-reduce, Add: everyone gets the sum of all
	//   replica 0  [1 2 3 4]               ->  [1111 2222 3333 4444]
	//   replica 1  [10 20 30 40]           ->  [1111 2222 3333 4444]
	//   replica 2  [100 200 300 400]       ->  [1111 2222 3333 4444]
	//   replica 3  [1000 2000 3000 4000]   ->  [1111 2222 3333 4444]
	//
	// reduce-scatter, Add: replica i gets part i of the sum
	//   replica 0  [1 2 3 4]               ->  [1111]
	//   replica 1  [10 20 30 40]           ->  [2222]
	//   replica 2  [100 200 300 400]       ->  [3333]
	//   replica 3  [1000 2000 3000 4000]   ->  [4444]
	//
	// all-gather: everyone gets what everyone had, one after another
	//   replica 0  [1]                     ->  [1 10 100 1000]
	//   replica 1  [10]                    ->  [1 10 100 1000]
	//   replica 2  [100]                   ->  [1 10 100 1000]
	//   replica 3  [1000]                  ->  [1 10 100 1000]
	//
	// all-to-all: replica i gets part i of what everyone had
	//   replica 0  [1 2 3 4]               ->  [1 10 100 1000]
	//   replica 1  [10 20 30 40]           ->  [2 20 200 2000]
	//   replica 2  [100 200 300 400]       ->  [3 30 300 3000]
	//   replica 3  [1000 2000 3000 4000]   ->  [4 40 400 4000]
	//
	// broadcast from 2: everyone gets what replica 2 had
	//   replica 0  [1 2 3 4]               ->  [100 200 300 400]
	//   replica 1  [10 20 30 40]           ->  [100 200 300 400]
	//   replica 2  [100 200 300 400]       ->  [100 200 300 400]
	//   replica 3  [1000 2000 3000 4000]   ->  [100 200 300 400]
}
