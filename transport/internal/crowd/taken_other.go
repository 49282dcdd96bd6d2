//go:build !unix

package crowd

// Taken is not known here: processors never count as crowded.
func Taken() int64 { return 0 }
