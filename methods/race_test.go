//go:build race

package methods

// maxSize is the largest group whose schedules are proved; nothing here is concurrent, so the race detector needs no
// more.
func maxSize() int { return 9 }
