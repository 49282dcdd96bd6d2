//go:build amd64 && !noasm

package ticks

// counter reads the time stamp counter.
func counter() int64

// invariant reports whether the time stamp counter ticks at one rate whatever the processor does (CPUID 80000007H, EDX
// bit 8: Intel's manual, volume 3, section 18.17.1).
func invariant() bool

// Now returns the number of ticks since some moment.
func Now() int64 {
	if useCounter.Load() {
		return counter()
	}
	return sinceStart()
}
