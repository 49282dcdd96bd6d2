package ir

// HasFound reports whether the run in progress has come to a number that is not finite.
func HasFound(s *Session) bool { return s.check.bound.Load() != never }

// SumOf is sumOf.
var SumOf = sumOf

// MostKept is the option that sets differ.mostKept.
func MostKept(n int) AutodiffOption { return func(d *differ) { d.mostKept = n } }

// RandomProgram is a program of newRandomProgram, with choices or without.
func RandomProgram(seed uint64, ifs bool) *Program { return newRandomProgram(seed, ifs).Program }
