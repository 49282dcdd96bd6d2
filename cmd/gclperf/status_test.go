package main

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestStatus: a measurement that takes long is named, and whatever comes next takes the place of the line.
func TestStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		s := &status{to: &out, columns: func() int { return 80 }}
		s.begin("short")
		time.Sleep(quiet / 2)
		s.end()
		time.Sleep(quiet)
		if out.Len() > 0 {
			t.Errorf("%q", out.String())
		}
		s.begin("long")
		time.Sleep(quiet + 1)
		synctest.Wait()
		if _, err := s.Write([]byte("wrong\n")); err != nil {
			t.Error(err)
		}
		s.end()
		s.begin(strings.Repeat("x", 100))
		time.Sleep(quiet + 1)
		synctest.Wait()
		s.end()
		s.end()
		s.show() // as when it had begun before end
		const want = "long\r    \rwrong\n"
		if line := strings.Repeat("x", 79); out.String() != want+line+"\r"+strings.Repeat(" ", 79)+"\r" {
			t.Errorf("%q", out.String())
		}
	})
}

// TestStatusElsewhere: nothing but complaints are where a line cannot be redrawn.
func TestStatusElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		s := newStatus(&out)
		s.begin("long")
		time.Sleep(quiet + 1)
		synctest.Wait()
		s.end()
		if _, err := s.Write([]byte("wrong\n")); err != nil || out.String() != "wrong\n" {
			t.Errorf("%q, %v", out.String(), err)
		}
	})
}
