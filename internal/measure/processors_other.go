//go:build !unix

package measure

// CPUSeconds is not known here.
func CPUSeconds() float64 { return -1 }
