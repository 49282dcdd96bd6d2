//go:build !race

package methods

import "testing"

// maxSize is the largest group whose schedules are proved.
func maxSize() int {
	if testing.Short() {
		return 12
	}
	return 64
}
