package job

import (
	"gogcl.dev/gcl/internal/pack"
	"gogcl.dev/methods/schedule"
)

// Blocks reports whether a job is an all-to-all whose parts are of different lengths. Each goes straight to its rank in
// one message, so that both ends compare its length.
func (j *Job) Blocks() bool {
	return len(j.Parts) > 0 && j.Collective.Contract().Input == schedule.Blocks
}

// PartsOf are the parts of operand t.
func (j *Job) PartsOf(t int) pack.Parts {
	if len(j.Parts) == 0 {
		return pack.Parts{}
	}
	return j.Parts[t]
}
