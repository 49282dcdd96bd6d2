//go:build unix

package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"
)

// TestLines: a line that a replica writes in pieces stays whole, though another replica writes in between.
func TestLines(t *testing.T) {
	for _, c := range []struct {
		flags         []string
		first, second string // before lines of replicas 0 and 1
	}{
		{nil, "", ""},
		{[]string{"-prefix"}, "[0] ", "[1] "},
	} {
		t.Run(fmt.Sprint(c.flags), func(t *testing.T) {
			s := prepare(t, append(c.flags, "-n", "2")...).raise(2)
			s.puppets[0].do(`out "begun, "`)
			s.puppets[1].do(`out "between\n"`)
			if got, want := line(t, s.stdout), c.second+"between\n"; got != want {
				t.Errorf("%q, want %q", got, want)
			}
			s.puppets[0].do(`out "ended\n\nnext\n"`)
			got := line(t, s.stdout) + line(t, s.stdout) + line(t, s.stdout)
			if want := c.first + "begun, ended\n" + c.first + "\n" + c.first + "next\n"; got != want {
				t.Errorf("%q, want %q", got, want)
			}
			s.puppets[1].do(`err "an error\n"`)
			s.all("exit 0")
			s.ends(0, "", c.second+"an error\n")
		})
	}
}

// TestNoEnd: the last line of a replica passes as it is, and nothing joins it.
func TestNoEnd(t *testing.T) {
	for prefix, want := range map[string][2]string{
		"-prefix=false": {"foo", "\nbar"},
		"-prefix":       {"[0] foo", "\n[1] bar"},
	} {
		s := prepare(t, prefix, "-n", "2").raise(2)
		s.puppets[0].do(`out "foo"`)
		s.puppets[0].tell("exit 0")
		got := make([]byte, len(want[0]))
		if _, err := io.ReadFull(s.stdout, got); err != nil || string(got) != want[0] {
			t.Fatalf("%q, error %v", got, err)
		}
		s.puppets[1].do(`out "bar"`)
		s.puppets[1].tell("exit 0")
		s.ends(0, want[1], "")
	}
}

// TestOneFile: standard output and error are one file, and a line of one does not join one of the other.
func TestOneFile(t *testing.T) {
	s := prepare(t, "-n", "1")
	r, w, err := os.Pipe()
	must(t, err)
	defer r.Close()
	must(t, r.SetDeadline(time.Now().Add(patience)))
	s.gclrun.Stdout, s.gclrun.Stderr = w, w
	s.raise(1)
	w.Close()
	s.puppets[0].do(`out "foo"`)
	s.puppets[0].do("close")
	got := make([]byte, 3)
	if _, err := io.ReadFull(r, got); err != nil {
		t.Fatal(err)
	}
	s.puppets[0].do(`err "bar\n"`)
	s.puppets[0].tell("exit 0")
	rest, err := io.ReadAll(r)
	if string(got)+string(rest) != "foo\nbar\n" {
		t.Errorf("%q and %q, error %v", got, rest, err)
	}
	s.ends(0, "", "")
}

// pumped starts a pump; end ends its stream and waits for it.
func pumped(t *testing.T, to *sink, prefix string) (w *os.File, end func()) {
	t.Helper()
	r, w, err := os.Pipe()
	must(t, err)
	ended := make(chan struct{})
	go func() {
		to.pump(&stream{r, prefix})
		close(ended)
	}()
	return w, func() {
		w.Close()
		<-ended
	}
}

// TestLongLines: a line of 1 MiB stays whole, and is not begun before its end is there. A longer one is passed on
// before, so that memory is bounded; another line may come between.
func TestLongLines(t *testing.T) {
	r, w := io.Pipe()
	out := newSink(w)
	a, endA := pumped(t, out, "[0] ")
	b, endB := pumped(t, out, "[1] ")
	write := func(f *os.File, text string) {
		if _, err := f.WriteString(text); err != nil {
			t.Error(err)
		}
	}
	want := func(text string) {
		t.Helper()
		got := make([]byte, len(text))
		if _, err := io.ReadFull(r, got); err != nil || string(got) != text {
			i := 0
			for i < len(got) && got[i] == text[i] {
				i++
			}
			t.Fatalf("error %v; from byte %d of %d: %.60q", err, i, len(text), got[i:])
		}
	}
	full := strings.Repeat("x", maxLine)
	write(a, full)
	write(b, "between\n")
	want("[1] between\n")
	write(a, "\n")
	want("[0] " + full + "\n")

	// The pump holds maxLine+1 bytes at most: of 3 maxLine it passes 2 maxLine+2 on before the end of the line.
	long := strings.Repeat("y", 3*maxLine)
	go write(a, long)
	want("[0] " + long[:2*maxLine+2])
	go write(b, "between\n")
	want("\n[1] between\n")
	go write(a, "\nnext\n")
	want("[0] " + long[2*maxLine+2:] + "\n[0] next\n")
	endA()
	endB()
}

// TestManyLines: lines in pieces of all sizes, from many, into one output.
func TestManyLines(t *testing.T) {
	const streams, lines = 8, 300
	var got bytes.Buffer // the sink's lock guards it
	out := newSink(&got)
	var ends []func()
	for i := range streams {
		w, end := pumped(t, out, "")
		written := make(chan struct{})
		go func() {
			defer close(written)
			for k := range lines {
				text := strings.Repeat(string(rune('a'+i)), k*k%5000) + "\n"
				for len(text) > 0 {
					n := min(len(text), 1+k*7%1000)
					_, _ = w.WriteString(text[:n])
					text = text[n:]
				}
			}
		}()
		ends = append(ends, func() { <-written; end() })
	}
	for _, end := range ends {
		end()
	}
	count := map[byte]int{}
	for line := range strings.Lines(got.String()) {
		if strings.Trim(line, line[:1]) != "" && line != "\n" && strings.Trim(line, line[:1]) != "\n" {
			t.Errorf("bytes of two streams: %.60q", line)
		}
		k := count[line[0]]
		if line != "\n" && k < lines {
			for k*k%5000 == 0 { // an empty line says not whose it is
				k++
			}
			if len(line) != k*k%5000+1 {
				t.Errorf("line %d of stream %c has %d bytes", k, line[0], len(line)-1)
			}
		}
		count[line[0]] = k + 1
	}
	if total := strings.Count(got.String(), "\n"); total != streams*lines {
		t.Errorf("%d lines, want %d", total, streams*lines)
	}
}

// TestClosedOutput: nobody reads gclrun's output any more, and the replica notices as if it had written there itself.
func TestClosedOutput(t *testing.T) {
	s := prepare(t, "-n", "1").raise(1)
	s.out.Close()
	s.stdout = nil
	s.puppets[0].do(`out "lost\n"`)
	for range 1 << 20 { // ends with the replica: what it writes fits into the pipe until gclrun closes that
		if _, err := fmt.Fprintln(s.puppets[0].conn, `out "lost\n"`); err != nil {
			break
		}
		if _, err := s.puppets[0].from.ReadString('\n'); err != nil {
			break
		}
	}
	s.ends(128+13, "", blamed(s.puppets[0], "was ended by signal 13 (broken pipe)")+
		"gclrun: output: write /dev/stdout: broken pipe\n")
}

// TestFullOutput: all replicas succeed, and what they have written is lost.
func TestFullOutput(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("this system has no device that is always full: ", err)
	}
	defer full.Close()
	s := prepare(t, "-n", "1")
	s.gclrun.Stdout = full
	s.raise(1)
	s.puppets[0].do(`out "lost\n"`)
	s.puppets[0].tell("exit 0")
	s.ends(1, "", "gclrun: output: write /dev/stdout: no space left on device\n")
}
