//go:build unix

package main

import (
	"errors"
	"strings"
	"syscall"
	"testing"
)

func TestInput(t *testing.T) {
	s := prepare(t, "-n", "3").raise(3)
	for _, p := range s.puppets[1:] {
		if got := p.ask("read"); got != `"" EOF` {
			t.Errorf("replica %s reads %s", p.rank, got)
		}
	}
	_, err := s.stdin.WriteString("hello\n")
	must(t, err)
	if got := s.puppets[0].ask("read"); got != `"hello\n" <nil>` {
		t.Errorf("replica 0 reads %s", got)
	}
	s.stdin.Close()
	if got := s.puppets[0].ask("read"); got != `"" EOF` {
		t.Errorf("replica 0 reads %s at the end", got)
	}
	s.all("exit 0")
	s.ends(0, "", "")
}

// TestInputUnread: a writer does not wait for ever when replica 0 has ended and the others go on.
func TestInputUnread(t *testing.T) {
	s := prepare(t, "-n", "2").raise(2)
	s.puppets[0].tell("exit 0")
	_, err := s.stdin.WriteString(strings.Repeat("x", 1<<21)) // more than a pipe holds
	if !errors.Is(err, syscall.EPIPE) {
		t.Errorf("error %v", err)
	}
	s.puppets[1].tell("exit 0")
	s.ends(0, "", "")
}
