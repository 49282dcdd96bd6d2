package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"gogcl.dev/internal/command"
	"gogcl.dev/internal/spawn"
)

// settings are the flags, parsed and checked, and the program.
type settings struct {
	n         int
	bind      bool
	transport string
	prefix    bool
	grace     time.Duration
	survive   bool     // replicas go on when others fail
	min       int      // how many must be left, or have ended well
	restarts  int      // how many processes may be started in place of those that have failed
	program   []string // name and arguments

	// Of start, for those that come later.
	path  string
	env   *spawn.Environment
	cores []int
}

// maxReplicas bounds -n. Each replica takes three descriptors and a thread of gclrun.
const maxReplicas = 1024

// maxRestarts bounds -max-restarts.
const maxRestarts = 1 << 20

// transports are the values of -transport.
var transports = []string{"auto", "tcp", "unix", "shm"}

// parse reads the command line. After -h it has written the usage to stdout and returns flag.ErrHelp. Any other error
// is a mistake in args, in one line.
func parse(args []string, stdout io.Writer) (*settings, error) {
	s := &settings{}
	flags := flag.NewFlagSet("gclrun", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // the package's own messages take many lines
	flags.IntVar(&s.n, "n", 0, fmt.Sprintf("number of `replicas`, 1 to %d; must be given", maxReplicas))
	flags.BoolVar(&s.bind, "bind", false, "give each replica a core of its own, of those that gclrun may use (Linux only)")
	flags.StringVar(&s.transport, "transport", transports[0], "`transport` between the replicas: "+
		strings.Join(transports, ", "))
	flags.BoolVar(&s.prefix, "prefix", false, `begin each line of output with the rank of its replica, as in "[3] "`)
	flags.DurationVar(&s.grace, "grace", 5*time.Second, "how long the others may go on after one has failed, before "+
		"SIGTERM; and after that, before SIGKILL")
	flags.BoolVar(&s.survive, "survive", false, "let the others go on when one fails, for programs that do (gcl.Rejoin)")
	flags.IntVar(&s.min, "min", 1, "with -survive, end the others when fewer `replicas` than that are left")
	flags.IntVar(&s.restarts, "max-restarts", 0, "with -survive, start a process in place of one that has failed, so many "+
		"`times` in all, for programs that take newcomers (gcl.Elastic)")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			fmt.Fprint(stdout, usage)
			command.PrintFlags(flags, stdout)
		}
		return nil, err
	}
	s.program = flags.Args()
	given := map[string]bool{}
	flags.Visit(func(f *flag.Flag) { given[f.Name] = true })
	switch {
	case !given["n"]:
		return nil, errors.New("-n is missing, want the number of replicas")
	case s.n < 1 || s.n > maxReplicas:
		return nil, fmt.Errorf("-n %d, want 1 to %d", s.n, maxReplicas)
	case !slices.Contains(transports, s.transport):
		return nil, fmt.Errorf("-transport %q, want one of %s", s.transport, strings.Join(transports, ", "))
	case s.grace < 0:
		return nil, fmt.Errorf("-grace %v, want 0 or more", s.grace)
	case given["min"] && !s.survive:
		return nil, errors.New("-min without -survive: the others end when one fails")
	case given["max-restarts"] && !s.survive:
		return nil, errors.New("-max-restarts without -survive: the others end when one fails")
	case s.restarts < 0 || s.restarts > maxRestarts:
		return nil, fmt.Errorf("-max-restarts %d, want 0 to %d", s.restarts, maxRestarts)
	case s.min < 1 || s.min > s.n:
		return nil, fmt.Errorf("-min %d, want 1 to -n, %d", s.min, s.n)
	case len(s.program) == 0:
		return nil, errors.New("the program is missing")
	}
	return s, nil
}

// usage is what -h prints above the flags.
const usage = `usage: gclrun -n replicas [flags] [--] program [arguments]
       gclrun status [-json] [-watch] [-job name]
       gclrun explain directory

Starts a program once for each replica of a job on this machine, and ends when all have ended.

  gclrun -n 4 -bind ./train -epochs 10

"gclrun status -h" and "gclrun explain -h" say what those do.

Each replica finds in its environment:

  RANK, LOCAL_RANK               its rank: 0 to 3 here
  WORLD_SIZE, LOCAL_WORLD_SIZE   the number of replicas: 4 here
  GCL_JOB                        a random name of this job
  GCL_RENDEZVOUS                 where replicas meet: unix:@NAME on Linux, else 127.0.0.1:PORT
  GCL_SECRET                     64 random hexadecimal digits, by which replicas know each other
  GCL_TRANSPORT                  the transport: auto, tcp, unix or shm

Variables of other launchers are removed. Who runs as the same user can read the environment, and with it the secret.

Replica 0 reads standard input; the others find it empty. Lines of output stay whole. Signals INT, TERM, HUP, QUIT, USR1
and USR2 are passed on; a second INT kills. When one replica fails, the others are ended. The last line says which
replica is to blame, and the exit code is that of the replica: 128 + n after signal n. It is 2 when the flags are wrong,
127 when there is no such program, 126 when it cannot be started, and 1 when gclrun itself fails.

With -survive a line says which replica has failed, the others go on as long as -min of them have not, and the exit
code is 0 if so many end well. With -max-restarts too, a process is started in the place of one that has failed, with
its rank and GCL_NEWCOMER=1, and the others take it in: see gcl.Elastic. It finds standard input empty. None is started
when one has ended with 0, or after a signal.

`
