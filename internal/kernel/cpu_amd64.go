//go:build !noasm

package kernel

import "golang.org/x/sys/cpu"

// init registers what this processor, and the system that saves its registers, can run.
func init() {
	x := &cpu.X86
	if x.HasAVX2 && x.HasF16C {
		register(avx2Table().version())
		if x.HasAVX512F && x.HasAVX512BW && x.HasAVX512DQ && x.HasAVX512VL && x.HasBMI2 {
			register(avx512Table().version())
		}
	}
}
