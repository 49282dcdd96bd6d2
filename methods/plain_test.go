//go:build !race

package methods

// maxSize is the largest group whose schedules are proved.
const maxSize = 64
