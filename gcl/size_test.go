//go:build !race

package gcl_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"unsafe"

	"gogcl.dev/chunks"
	"gogcl.dev/gcl"
	"gogcl.dev/tensor"
)

// huge is a slice that says it has n bytes, in memory that nobody reads. (Under the race detector
// Go would look whether they are there.)
func huge(n int) []uint8 { return unsafe.Slice(new(uint8), n) }

// TestTooLarge: results that Go could not make are refused before anything is sent, in every form.
func TestTooLarge(t *testing.T) {
	const n = min(1<<44, math.MaxInt)/8 + 1
	replicas(t, 8, func(ctx context.Context, c *gcl.Comm) error {
		data := huge(n)
		whole, err := tensor.View(tensor.U8, tensor.Shape{n}, data)
		if err != nil {
			return err
		}
		for name, call := range map[string]func() error{
			"AllGather":     func() error { _, err := gcl.AllGather(ctx, c, data); return err },
			"AllGatherTo":   func() error { return gcl.AllGatherTo(ctx, c, nil, data) },
			"AllGatherMany": func() error { _, err := gcl.AllGatherMany(ctx, c, [][]uint8{data}); return err },
			"AllGatherTensors": func() error {
				_, err := gcl.AllGatherTensors(ctx, c, []*tensor.Tensor{whole})
				return err
			},
			"AllGatherMapped": func() error {
				_, err := gcl.AllGatherMapped(ctx, c, data, chunks.Mapping{n, math.MaxInt - n})
				return err
			},
		} {
			switch err := call(); {
			case err == nil:
				return fmt.Errorf("%s: no error", name)
			case strings.Contains(err.Error(), "panic"), strings.Contains(err.Error(), "makeslice"):
				return fmt.Errorf("%s: %w", name, err)
			case name != "AllGatherMapped" && !strings.Contains(err.Error(), fmt.Sprintf("%d elements of uint8 for "+
				"each of 8 ranks take more than ", n)):
				return fmt.Errorf("%s: %w", name, err)
			}
		}
		// An element less for each would be the most that a buffer may have.
		if err := gcl.AllGatherTo(ctx, c, nil, huge(n-1)); err == nil ||
			!strings.Contains(err.Error(), "the destination has 0 elements") {
			return fmt.Errorf("with as much as a buffer may have: %w", err)
		}
		return nil
	})
}
