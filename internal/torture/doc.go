// Command torture runs jobs of processes in which something happens, and looks at how they end.
//
//	go run ./internal/torture -runs 2000 -seed 1
//	go run ./internal/torture -runs 1 -seed 1234 -v     run 1234 again, and say what it was
//	go run ./internal/torture -runs 300 -transport shm  over shared memory
//
// Run k of a command has the seed -seed + k. The seed of a run decides on its plan:
//
//	processes    2 to 5, or -n
//	transport    TCP or unix sockets, or -transport
//	program      5 to 20 collectives: methods, operators, element types, lengths, roots, groups, several tensors at
//	             once; on one to three connections (Dup), some of them at the same time; at the end a barrier
//	event        one of the table below
//	victim       the replica that it happens to
//	moment       in which step of the program, and how many microseconds later
//
// Over shared memory it decides on more:
//
//	tensors      in memory of gcl.Alloc at all replicas of a step, at none or at some
//	moment       of a signal (pause, kill, silence) also in an operator of the program, which the library calls for one
//	             piece of the data, while the replica joins, and while it closes
//
// torture starts the processes, which are itself. Each replica compares every byte of every result with what package
// oracle says. A run is right when all of its replicas end as the event demands, within 10 seconds:
//
//	event      what happens                              the victim             every other replica
//	nothing                                              right results          right results
//	delay      it comes late to a step                   right results          right results
//	pause      SIGSTOP, and SIGCONT soon                 right results          right results
//	kill       SIGKILL                                   is gone                *gcl.PeerError that names the victim
//	exit       os.Exit(0)                                is gone                *gcl.PeerError that names the victim
//	crash      a panic outside of RunProcess             is gone                *gcl.PeerError that names the victim
//	silence    SIGSTOP, and SIGCONT when all have ended  an error with a type,  *gcl.PeerError that names the victim
//	                                                     that blames no other
//	reset      one of its connections ends               an error with a type   an error with a type
//	abort      Comm.Abort                                gcl.ErrAborted         gcl.ErrAborted with the cause
//	cancel     its context is cancelled                  the cause              gcl.ErrAborted with the cause
//	error      the function of RunProcess returns one    its error              gcl.ErrAborted with the cause
//	panic      the function of RunProcess panics         *gcl.PanicError        gcl.ErrAborted with the cause
//	garbage      it writes garbage over headers,             any result, or an error with a type
//	             directories, rings and seats
//
// Garbage is of shared memory only, and may hit what is on its way: a wrong result is right then, but no fault, no
// panic and no hang. A replica that is gone before all have joined is named by the errors of joining.
//
// An error with a type is gcl.ErrAborted, gcl.ErrClosed or a *gcl.PeerError. Where the event comes too late to matter,
// as after the last barrier, and where a connection is reset that nobody uses any more, right results are right too.
// Before a victim has come to the last barrier nobody can have all results, but after a reset.
//
// After a silence the buffers of calls that have failed stay as they are, whatever the victim does when it goes on.
//
// A replica that ends by itself has no goroutine and no descriptor more than before, and no segment of shared memory.
// When a run is over no process of it is left, no socket with its name, and no file.
//
// At the end torture prints how many runs ended in which way. After the first run that is wrong it starts no other,
// says what was wrong, and how to repeat that run.
//
// # Modes
//
// The first argument may be the name of a mode, which has flags of its own:
//
//	go run ./internal/torture blame -runs 100 ./gclrun -n 4 ./rts -epochs 1000000
//
// Mode blame has a launcher start a job, again and again. When the job is at work one replica gets a signal, at a
// moment that the seed decides on. The launcher's last line is to name that replica, with the number of its process and
// the signal, no other line is to name one, and the exit code is to be 128 and the signal (or -code). It prints how
// many jobs ended otherwise, and in which way.
//
//	go run ./internal/torture detect -harm silence -runs 300
//	go run ./internal/torture detect -harm reset -runs 100
//
// Mode detect does harm to the data connection between two replicas, while their control connection lives, and prints
// the distribution of the time until both have an error that names the other one.
//
//	go run ./internal/torture stand -n 8 -load 40 -pause 4s -silence 5s -for 20m
//
// Mode stand runs one job on a machine that it keeps busy, and stops replicas for a while, one at a time. No replica is
// to count as lost.
//
//	go run ./internal/torture survive -runs 300
//	go run ./internal/torture survive -runs 200 -single -grow -n 8
//
// Mode survive runs jobs that commit steps. It kills one or more of their processes, or stops one for longer than
// JoinConfig.Silence and lets it go on when the others have ended. These are to end in the same generation, of all but
// the victims, with the same steps done to the same state; one that was stopped is left behind. In some jobs a process
// is started in place of each that is killed, and comes with the state of a member. It prints how long it took from a
// kill to the first step of all others, and of all with the process in its place, by the clock of the host.
//
//	go run ./internal/torture soak -pprof soak ./gclrun -n 8 -transport unix ./rts -epochs 10000000 -batch 8 -pprof soak
//
// Mode soak has a launcher run one job for 30 minutes (-for). After a while for warming up it takes 60 samples of the
// open descriptors, the goroutines, the heap after garbage is collected, and the resident memory of each replica. It
// prints the slope of each by the hour, with the interval in which it lies. A slope is an error whose interval lies
// above the bound in the table. Profiles of a heap at the first and at the last sample say what grew there.
//
// # The end
//
//	exit code   0    all runs are right
//	            1    a run is wrong, blames wrongly, or grows
//	            2    the command line is wrong
//	            130  Ctrl-C; the processes have been killed
//	            143  SIGTERM; the same
//
// It needs Linux.
package main
