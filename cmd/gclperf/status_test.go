package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestStatus: a measurement that takes long is named, and whatever comes next takes the place of the line.
func TestStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		s := &status{to: &out, live: true}
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

// TestStatusElsewhere: nothing but complaints are in a file, or on a terminal that has lines only.
func TestStatusElsewhere(t *testing.T) {
	if newStatus(&bytes.Buffer{}).live {
		t.Error("a buffer is a terminal")
	}
	file, err := os.Create(t.TempDir() + "/file")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if newStatus(file).live {
		t.Error("a file is a terminal")
	}
	device, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer device.Close()
	t.Setenv("TERM", "dumb")
	if newStatus(device).live {
		t.Error("TERM=dumb is a terminal that can go back")
	}
}
