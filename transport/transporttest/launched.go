package transporttest

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// wrapper is the shell script around each process of a set. Its arguments are the command line of the process. It keeps
// three files in the set's directory: process123.output, process123.pid and process123.status, where 123 is the
// shell's own pid.
//
// The launcher learns of a failure a second late. mpirun kills the other processes as soon as it knows of one, and they
// are about to write why they fail as well.
const wrapper = `export ` + envFiles + `=process$$
files=$` + envDir + `/process$$
"$@" >"$files.output" 2>&1 &
echo $! >"$files.pid"
wait $!
status=$?
echo $status >"$files.status"
test $status = 0 || sleep 1
exit $status`

// shellLauncher is the script of RunProcesses. Its arguments are the number of processes and their command line.
const shellLauncher = `n=$1 rank=0
shift
while test $rank -lt $n; do
	` + envRank + `=$rank "$@" &
	rank=$((rank+1))
done
wait`

// processFiles names the files that wrapper keeps for a process.
type processFiles struct{ dir, name string }

// launched returns the files of all processes of a set that have been started by now.
func launched(dir string) []processFiles {
	pids, _ := filepath.Glob(filepath.Join(dir, "process*.pid")) // the pattern is a good one
	all := make([]processFiles, len(pids))
	for i, pid := range pids {
		all[i] = processFiles{dir, strings.TrimSuffix(filepath.Base(pid), ".pid")}
	}
	return all
}

// number reads a file of one number. There is none before it is written.
func (f processFiles) number(kind string) (number int, ok bool) {
	text, err := os.ReadFile(filepath.Join(f.dir, f.name+kind))
	if err != nil {
		return 0, false
	}
	number, err = strconv.Atoi(strings.TrimSpace(string(text)))
	return number, err == nil
}

// status returns the exit status by the rules of the shell: from 128 on it is 128 and a signal. A process that runs
// has none, and neither has one that was killed together with its shell.
func (f processFiles) status() (status int, ok bool) { return f.number(".status") }

// signal sends a signal to the process if it runs.
func (f processFiles) signal(s os.Signal) {
	if _, ended := f.status(); ended {
		return
	}
	if pid, ok := f.number(".pid"); ok {
		if p, err := os.FindProcess(pid); err == nil {
			p.Signal(s) // an error is that of a process that has just ended
			p.Release()
		}
	}
}

// output returns the lines that the process has written, each after a prefix.
func (f processFiles) output(prefix string) string {
	text, err := os.ReadFile(filepath.Join(f.dir, f.name+".output"))
	if err != nil {
		text = fmt.Append(text, err)
	}
	return prefixed(prefix, string(text))
}

// prefixed puts a prefix before each line of a text.
func prefixed(prefix, text string) string {
	return prefix + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n"+prefix)
}
