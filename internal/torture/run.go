package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// process is one replica of a run, as torture sees it.
type process struct {
	cmd    *exec.Cmd
	rank   int
	stdin  io.Closer
	out    chan struct{} // closed when its program has ended, or its process
	ended  chan struct{}
	stderr tail

	// Valid once ended is closed.
	report *report // nil: it has not made one
	state  string  // as in "exit status 2"

	mu    sync.Mutex // guards what follows
	begun int        // the last step that it has begun, or -1
	goods []int64    // of its goodLines
}

// tail keeps the first bytes that are written to it, and is for one writer.
type tail struct{ text []byte }

const maxTail = 64 << 10

func (t *tail) Write(b []byte) (int, error) {
	t.text = append(t.text, b[:min(len(b), maxTail-len(t.text))]...)
	return len(b), nil
}

// start starts a replica. The process is killed when ctx is done.
func start(ctx context.Context, o order, dir string) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	command := []string{self}
	if o.host != "" { // nsenter becomes the program
		command = []string{"nsenter", "--net=" + o.host, self}
	}
	p := &process{cmd: exec.CommandContext(ctx, command[0], command[1:]...), rank: o.Rank, out: make(chan struct{}),
		ended: make(chan struct{}), begun: -1}
	p.cmd.Dir, p.cmd.SysProcAttr = dir, attributes()
	p.cmd.Env = append(os.Environ(), orderVariable+"="+string(text), "TMPDIR="+dir, "XDG_RUNTIME_DIR="+dir,
		"GCL_OPTIONS=", "GOMAXPROCS=2", "GOTRACEBACK=all")
	p.cmd.Stderr = &p.stderr
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	return p, p.follow(out)
}

// follow reads what a replica writes until it ends, on a goroutine of its own.
func (p *process) follow(out io.Reader) error {
	var once sync.Once
	isOut := func() { once.Do(func() { close(p.out) }) }
	newPlanLine := func(line string) {
		switch {
		case strings.HasPrefix(line, outLine):
			isOut()
		case strings.HasPrefix(line, atLine):
			if k, err := strconv.Atoi(strings.TrimSpace(line[len(atLine):])); err == nil {
				p.mu.Lock()
				p.begun = k
				p.mu.Unlock()
			}
		case strings.HasPrefix(line, goodLine):
			if at, err := strconv.ParseInt(strings.TrimSpace(line[len(goodLine):]), 10, 64); err == nil {
				p.mu.Lock()
				p.goods = append(p.goods, at)
				p.mu.Unlock()
			}
		case strings.HasPrefix(line, endLine):
			r := new(report)
			if json.Unmarshal([]byte(line[len(endLine):]), r) == nil {
				p.report = r
			}
		}
	}
	go func() {
		defer close(p.ended)
		defer isOut()
		lines := bufio.NewScanner(out)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			newPlanLine(lines.Text())
		}
		_ = p.cmd.Wait() // the state says it
		p.state = p.cmd.ProcessState.String()
	}()
	return nil
}

// reached is the last step that the replica has begun, or -1.
func (p *process) reached() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.begun
}

// carryOut starts the processes of a plan and waits for them. It returns how the run ended, and what is wrong with
// that, or "". The error is that of ctx, or of the operating system.
func carryOut(ctx context.Context, p *plan, processes int, network string, corrupt int) (how ending, wrong string,
	err error) {
	dir, err := os.MkdirTemp("", "torture-")
	if err != nil {
		return 0, "", err
	}
	defer os.RemoveAll(dir)
	name := fmt.Sprintf("@torture-%d-%d", os.Getpid(), p.seed)
	running, stop := context.WithCancel(ctx)
	defer stop()
	var all []*process
	defer func() {
		stop()
		for _, r := range all {
			<-r.ended
		}
	}()
	for rank := range p.n {
		o := order{Seed: p.seed, Processes: processes, Network: network, Rank: rank, Where: "unix:" + name, Corrupt: -1}
		if rank == p.victim {
			o.Corrupt = corrupt
		}
		r, err := start(running, o, dir)
		if err != nil {
			return 0, "", err
		}
		all = append(all, r)
	}
	late := p.wait(ctx, all)
	if ctx.Err() != nil {
		return 0, "", context.Cause(ctx)
	}
	how, wrong = p.judge(all)
	if late != "" {
		wrong = late
	}
	if left := socketsNamed(name); wrong == "" && len(left) > 0 {
		wrong = fmt.Sprintf("sockets are left: %v", left)
	}
	if left := leftIn(dir, all); wrong == "" && len(left) > 0 {
		wrong = fmt.Sprintf("files are left: %v", left)
	}
	if left := sharedFiles(); wrong == "" && len(left) > 0 {
		wrong = fmt.Sprintf("files are left in /dev/shm: %v", left)
	}
	if wrong != "" {
		wrong += "\n" + p.describe(all)
	}
	return how, wrong, nil
}

// wait waits until all processes have ended. It lets a victim that has stopped itself go on. After patience it has them
// write their goroutines, kills them, and says so.
func (p *plan) wait(ctx context.Context, all []*process) (late string) {
	victim := all[p.victim]
	others := make(chan struct{}) // closed when the programs of all but the victim have ended
	go func() {
		defer close(others)
		for _, r := range all {
			if r != victim {
				<-r.out
			}
		}
	}()
	done := make(chan struct{})
	go func() {
		defer close(done)
		<-others
		<-victim.ended
		for _, r := range all { // they look once more at what they have
			r.stdin.Close()
			<-r.ended
		}
	}()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	again := time.NewTicker(max(p.length, 5*time.Millisecond))
	defer again.Stop()
	for {
		select {
		case <-done:
			return late
		case <-again.C: // whether it has stopped already or not
			over := p.event == pause
			select {
			case <-others:
				over = true
			default:
			}
			if over && (p.event == pause || p.event == silence) {
				proceed(victim.cmd.Process)
			}
		case <-limit.C:
			late = fmt.Sprintf("it has not ended after %v", patience)
			var which []string
			for _, r := range all {
				select {
				case <-r.ended:
				default:
					which = append(which, strconv.Itoa(r.rank))
					askStacks(r.cmd.Process)
				}
			}
			late += ", replicas " + strings.Join(which, ", ")
			time.AfterFunc(time.Second, func() {
				for _, r := range all {
					_ = r.cmd.Process.Kill() // of one that has ended: nothing
				}
			})
		case <-ctx.Done():
			<-done // they are killed
			return late
		}
	}
}

// describe is what each replica says of its end.
func (p *plan) describe(all []*process) string {
	var b strings.Builder
	b.WriteString(p.listing())
	for _, r := range all {
		fmt.Fprintf(&b, "replica %d: %s", r.rank, r.state)
		switch {
		case r.report == nil:
			b.WriteString(", no report")
		case r.report.Error == "":
			b.WriteString(", right results")
		default:
			fmt.Fprintf(&b, ": %s", r.report.Error)
		}
		b.WriteByte('\n')
		if text := strings.TrimSpace(string(r.stderr.text)); text != "" {
			fmt.Fprintf(&b, "    %s\n", strings.ReplaceAll(text, "\n", "\n    "))
		}
	}
	return b.String()
}

// leftIn is what is left in the directory of a run. The sockets at which processes answer gclrun status are there too:
// those of processes that ended in no order stay, and the next job removes them.
func leftIn(dir string, all []*process) (left []string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	for _, e := range entries {
		if e.Name() != "gcl" {
			left = append(left, e.Name())
		}
	}
	sockets, _ := os.ReadDir(filepath.Join(dir, "gcl")) // there may be none
	for _, e := range sockets {
		for _, p := range all {
			if p.report != nil && strings.Contains(e.Name(), fmt.Sprintf("-%d-", p.cmd.Process.Pid)) {
				left = append(left, e.Name())
			}
		}
	}
	return left
}
