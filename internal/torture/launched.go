package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"
)

// startTime is the time for a job to begin its work, on a machine with other things to do.
const startTime = time.Minute

// launched is a job that a launcher has started, such as gclrun, which is the parent of its replicas.
type launched struct {
	cmd   *exec.Cmd
	begun chan struct{} // closed when a line of standard output has begun as it was to
	ended chan struct{}

	stderr lastBytes // valid once ended is closed
}

// lastBytes keeps the last bytes that are written to it, and is for one writer.
type lastBytes struct{ text []byte }

func (l *lastBytes) Write(b []byte) (int, error) {
	l.text = append(l.text, b...)
	if extra := len(l.text) - maxTail; extra > maxTail {
		l.text = append(l.text[:0], l.text[extra:]...)
	}
	return len(b), nil
}

// launch starts a launcher. begin is how the line of standard output begins after which the job is at work. The job is
// killed when ctx is done. Who calls it waits for the end.
func launch(ctx context.Context, command []string, begin string) (*launched, error) {
	l := &launched{cmd: exec.CommandContext(ctx, command[0], command[1:]...), begun: make(chan struct{}),
		ended: make(chan struct{})}
	l.cmd.SysProcAttr, l.cmd.Stderr = attributes(), &l.stderr
	out, err := l.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := l.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(l.ended)
		begun := false
		lines := bufio.NewReader(out)
		for {
			line, err := lines.ReadSlice('\n')
			if !begun && bytes.HasPrefix(line, []byte(begin)) {
				begun = true
				close(l.begun)
			}
			if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
				break
			}
		}
		_, _ = io.Copy(io.Discard, out) // nothing is left
		_ = l.cmd.Wait()                // the state says it
	}()
	return l, nil
}

// await waits until the job is at work, and returns its replicas.
func (l *launched) await(ctx context.Context) ([]child, error) {
	limit := time.NewTimer(startTime)
	defer limit.Stop()
	select {
	case <-l.begun:
		return children(l.cmd.Process.Pid)
	case <-l.ended:
		return nil, fmt.Errorf("%v has ended before its work: %v\n%s", l.cmd, l.cmd.ProcessState,
			strings.TrimSpace(string(l.stderr.text)))
	case <-limit.C:
		return nil, fmt.Errorf("%v is not at work after %v (-begin says how the line begins that shows it)", l.cmd,
			startTime)
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// child is a replica of a launcher's job.
type child struct{ rank, pid int }
