package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

const (
	// firstRead is the size of a stream's buffer, which grows with the lines: that of a pipe on Linux.
	firstRead = 64 << 10
	// maxLine is the length in bytes, without its end, up to which a line is kept until it is whole.
	maxLine = 1 << 20
	// lastRead is how long a read may take once the replicas have ended. What they have written is in the pipe by
	// then, and only somebody who has left its process group keeps the pipe open.
	lastRead = time.Second
)

// sink is an output of gclrun, to which many streams write whole lines.
//
// Bytes of two streams never meet in a line: where a stream writes while another's line has no end yet, since it was
// the last of its replica or is longer than maxLine, that line is ended first.
type sink struct {
	mu   sync.Mutex // guards what follows
	w    *bufio.Writer
	open *stream // its line has no end yet; nil: none has
	err  error   // the first of a write
}

func newSink(to io.Writer) *sink { return &sink{w: bufio.NewWriterSize(to, firstRead)} }

// stream is what one replica writes to one output.
type stream struct {
	from   *os.File
	prefix string // of each line
}

// pump passes on all that the stream brings. It returns at the end of the stream, or when the sink fails. It closes the
// pipe: after a failure the replica's next write fails too, as if the broken output were the replica's own.
func (s *sink) pump(in *stream) {
	defer in.from.Close()
	buf := make([]byte, 0, firstRead)
	for last := false; ; {
		if len(buf) == cap(buf) {
			buf = append(make([]byte, 0, min(2*cap(buf), maxLine+1)), buf...)
		}
		n, err := in.from.Read(buf[len(buf):cap(buf)])
		if errors.Is(err, os.ErrDeadlineExceeded) && !last {
			last = true
			err = in.from.SetReadDeadline(time.Now().Add(lastRead))
		} else {
			last = false
		}
		whole := bytes.LastIndexByte(buf[len(buf):len(buf)+n], '\n') + 1
		if whole > 0 {
			whole += len(buf)
		}
		buf = buf[:len(buf)+n]
		if err != nil || whole == 0 && len(buf) > maxLine {
			whole = len(buf)
		}
		if whole > 0 && s.write(in, buf[:whole]) != nil || err != nil {
			return
		}
		buf = buf[:copy(buf, buf[whole:])]
	}
}

// write writes lines of a stream, the last of which may lack its end.
func (s *sink) write(in *stream, lines []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open != nil && s.open != in {
		s.w.WriteByte('\n') // the writer keeps its error for Flush, as below
		s.open = nil
	}
	if in.prefix == "" {
		s.w.Write(lines)
	} else {
		for line := range bytes.Lines(lines) {
			if s.open == nil {
				s.w.WriteString(in.prefix)
			}
			s.w.Write(line)
			s.open = nil
		}
	}
	s.open = nil
	if lines[len(lines)-1] != '\n' {
		s.open = in
	}
	s.err = s.w.Flush()
	return s.err
}

// say writes a line of gclrun itself.
func (s *sink) say(line string) { _ = s.write(&stream{}, []byte("gclrun: "+line+"\n")) }

// failure is the first error of a write.
func (s *sink) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// pumps pass on the output of replicas.
type pumps struct {
	stdout, stderr *sink
	prefix         bool
	running        sync.WaitGroup // and one for those that may be added
}

// pumpAll passes on the output of all replicas.
func pumpAll(replicas []*replica, stdout, stderr *sink, prefix bool) *pumps {
	p := &pumps{stdout: stdout, stderr: stderr, prefix: prefix}
	p.running.Add(1)
	for _, r := range replicas {
		p.add(r)
	}
	return p
}

// complete says that none is added any more.
func (p *pumps) complete() { p.running.Done() }

// add passes on the output of one more.
func (p *pumps) add(r *replica) {
	begin := ""
	if p.prefix {
		begin = fmt.Sprintf("[%d] ", r.rank)
	}
	p.running.Go(func() { p.stdout.pump(&stream{r.stdout, begin}) })
	p.running.Go(func() { p.stderr.pump(&stream{r.stderr, begin}) })
}

// drained is closed when all output has been written.
func (p *pumps) drained() <-chan struct{} {
	drained := make(chan struct{})
	go func() {
		p.running.Wait()
		close(drained)
	}()
	return drained
}

// sameFile tells whether two descriptors are one file, as after 2>&1 and on a terminal. One sink then serves both, or a
// line of one could end in the middle of a line of the other.
func sameFile(a, b *os.File) bool {
	x, errX := a.Stat()
	y, errY := b.Stat()
	return errX == nil && errY == nil && os.SameFile(x, y)
}
