// Command gclrun starts a program once for each replica of a job, on this machine.
//
//	gclrun -n 4 ./train -epochs 10
//	gclrun -n 4 -bind -prefix -transport unix -- ./train -epochs 10
//
//	gclrun status -watch
//	gclrun explain dump
//
// Flags after the program's name are the program's. The program joins the job with gcl.Join, whose zero configuration
// reads the environment:
//
//	RANK, LOCAL_RANK                0 to n-1
//	WORLD_SIZE, LOCAL_WORLD_SIZE    n
//	GCL_JOB                         a random name of the job
//	GCL_RENDEZVOUS                  unix:@gclrun-<uid>-<random> on Linux; elsewhere a port of 127.0.0.1 that was free
//	GCL_SECRET                      32 random bytes, in hexadecimal digits
//	GCL_TRANSPORT                   auto, tcp, unix or shm, by -transport
//
// Variables of other launchers are removed: OMPI_*, PMIX_*, PMI_*, SLURM_*, all of torchrun's, those by which MPICH and
// Kubernetes number processes, GCL_SECRET_FILE and GCL_NEWCOMER. MASTER_ADDR and MASTER_PORT are not set.
//
// The secret keeps other users out. It does not keep out processes of the same user (or root), who can read it in
// /proc/PID/environ, and could also stop the replicas or change their memory. A program that starts others that it
// does not trust should remove GCL_SECRET from their environment.
//
// # Status and explain
//
// "gclrun status" says what the replicas of this user's running jobs do, and for whom each job waits in the end; the
// jobs need not have been started by gclrun. It asks the processes of this host by their unix sockets, in gcl in
// $XDG_RUNTIME_DIR or gcl-<uid> in $TMPDIR, and one process of each job asks those of other hosts. "gclrun explain"
// says from the files that processes have written to the directory GCL_DUMP_DIR what became of a job. -h of each has
// more.
//
// # Output and input
//
// Standard output and standard error of the replicas go to those of gclrun, by whole lines: a line has bytes of one
// replica only. With -prefix each begins with the rank of its replica, as in "[3] ". A line of more than 1 MiB goes in
// pieces, so that memory is bounded; where a line of another replica comes between, it begins on a line of its own, and
// so does the rest. Where the last line of a replica has no end, the line that follows begins on a line of its own too.
//
// Replica 0 has the standard input of gclrun, the others an empty one.
//
// # The end
//
// Each replica leads a process group, and a signal to a replica goes to its group. INT, TERM, HUP, QUIT, USR1 and USR2
// are passed on. Ctrl-C on the terminal reaches gclrun only, and each replica once, from gclrun. A second INT kills.
// Ctrl-Z stops gclrun only: replicas go on until their output finds no room.
//
// When a replica ends with an exit code other than 0, or by a signal, the others have the time of -grace to end by
// themselves, as they do when their communicator aborts; then they get TERM, and after the same time again KILL. A
// process that a replica has started and that outlives the replica in its group may write to the output for as long. It
// is killed when the job ends.
//
// With -survive they have longer: as long as -min replicas (1) run or have ended with 0, nobody is ended, and the exit
// code of gclrun is 0. Each replica that fails is named in a line at once. When fewer are left the others are ended as
// above. It is for programs that go on without those that are gone, by gcl.Rejoin.
//
// With -max-restarts too, a process is started in the place of one that has failed, so many times in all, also in place
// of one that was started so. It has the rank, the environment and the core of the one before, and GCL_NEWCOMER=1, by
// which gcl.Join takes it for a newcomer; its standard input is empty. None is started when no other replica runs, when
// one has ended with 0, since the job is about to end then, and after a signal but USR1 and USR2. A line at the end
// says
//
//	gclrun: 4 of 5 processes ended well; restarts: 1 of 3
//
// If the exit code is not 0, the last line on standard error says which replica is to blame:
//
//	gclrun: replica 2 (pid 4711 on node1) was ended by signal 9 (killed)
//	gclrun: replica 2 (pid 4711 on node1) ended with exit code 3, one of 4 that failed
//
// The first end that gclrun hears of may be that of a replica that has lost another one. So all that end within 100 ms
// of it, or were ending then (on Linux), are compared, and the likeliest cause is blamed, of equals the first:
//
//	a signal that gclrun has not sent
//	a signal that gclrun got and passed on, or exit code 128 + n after it: " from gclrun"
//	an exit code, such as 2 after a panic
//	exit codes 1 and 130, with which programs end whose peer has failed or was told to end
//
// Replicas that gclrun has ended itself are not blamed.
//
// When gclrun itself is killed, the kernel kills the replicas on Linux, but not processes that they have started: with
// "gclrun go run ." the program would stay. Build it first.
//
//	exit code   0    all replicas have returned 0
//	            1    gclrun failed, or could not write output
//	            2    the command line is wrong; also: more replicas with -bind than cores
//	            126  the program cannot be started
//	            127  there is no such program
//	            130  Ctrl-C when only output was left, which nobody read
//	            143  SIGTERM then
//	            else the exit code of the replica that is blamed, 128 + n after signal n
//
// # Systems
//
// All of this is so on Linux. On other Unixes there is no -bind, and replicas outlive a gclrun that is killed. On
// Windows there are no process groups. The only signal there is Ctrl-C, which the console sends to all, and replicas
// that are left after the grace are killed without TERM.
package main
