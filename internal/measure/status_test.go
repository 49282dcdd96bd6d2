package measure

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
		s := &Status{to: &out, columns: func() int { return 80 }}
		s.Begin("short")
		time.Sleep(quiet / 2)
		s.End()
		time.Sleep(quiet)
		if out.Len() > 0 {
			t.Errorf("%q", out.String())
		}
		s.Begin("long")
		time.Sleep(quiet + 1)
		synctest.Wait()
		if _, err := s.Write([]byte("wrong\n")); err != nil {
			t.Error(err)
		}
		s.End()
		s.Begin(strings.Repeat("x", 100))
		time.Sleep(quiet + 1)
		synctest.Wait()
		s.End()
		s.End()
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
		s := NewStatus(&out)
		s.Begin("long")
		time.Sleep(quiet + 1)
		synctest.Wait()
		s.End()
		if _, err := s.Write([]byte("wrong\n")); err != nil || out.String() != "wrong\n" {
			t.Errorf("%q, %v", out.String(), err)
		}
	})
}
