// Gen runs random programs of collectives against an oracle of its own.
//
//	go run ./internal/gen [-seed N] [-progs N] [-t DURATION] [-n N]
//	go run ./internal/gen -jobs N [-domains N] [-transport tcp|unix|shm] [-mode job|jobdisagree] [-n N]
//
// A program is drawn from its seed, and a seed that failed replays: machine, groups, options, then steps, each a call
// of a random collective, form, type and operator. The oracle is a second one beside internal/oracle: it works in
// int64, uint64 and float64, and takes from the library no more than the names of types, operators and collectives. So
// no mistake is in both.
//
//	mode         what runs                                        what fails
//	run          programs, each in a Run of its own               an error; a bit or a border that differs
//	job          one replica of a job (under gclrun, or -jobs)    the same
//	goroutines   the programs of such a job, in one Run           the same
//	disagree     one call that differs, in this process           a member without ErrMismatch; a text without both calls
//	jobdisagree  the same by one replica of a job                 a member without ErrMismatch
//	numerics     sums whose bits depend on their order            bits that are not those of docs/design/determinism.md
//
// With -jobs it builds gclrun and starts the jobs one after the other. Job k has the seeds after those of job k-1. The
// last line counts the jobs that failed, by the name of the failure:
//
//	mismatch  ErrMismatch in a program that is valid
//	wrong     a result that is not the oracle's
//	hang      the time of -hang was over
//	panic     a panic
//	error     another error
//	silence   a disagreement that a member does not hear of
//	other     a disagreement with another error than ErrMismatch
//	unsaid    a job that ended without a line of its own
//
// The exit code is 1 if anything failed.
//
// Operands lie in memory from gcl.Alloc at all ranks of a call, at none or at some. So over shared memory calls have
// peer memory in one part of the programs, and transport.ErrNotShared in the other.
//
// The order in which a program draws its random numbers is fixed: a change of it changes what each seed means. So do
// changes of the lists that it draws from: methods, operators, types.
package main
