package handshake

import (
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestErrorTexts: each text says what is different.
func TestErrorTexts(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want string
	}{
		{&ProtocolError{Begins: []byte("HTTP")}, `it begins with "HTTP"; another program has this port`},
		{&ProtocolError{Begins: []byte(dialerMagic)}, "leads back to the side that dialed it"},
		{&VersionError{Mine: 1, Theirs: 2}, "version 1 here, 2 on the other side"},
		{&SecretError{}, "another secret: give all"},
		{&SecretError{OtherJob: true}, "another secret and is of another job"},
		{&JobError{Job: "x"}, `this side is of job "x", the other of another`},
		{&WrongPeerError{Wanted: 2, Reached: 3}, "wanted replica 2 and reached replica 3"},
		{&RefusedError{Reason: "two of them"}, "refused: two of them"},
		{failure("the hello", io.EOF), "the hello is missing: unexpected EOF"},
		{failure("the hello", os.ErrDeadlineExceeded), "not done after 2s: the hello is missing"},
	} {
		if text := tt.err.Error(); !strings.Contains(text, tt.want) {
			t.Errorf("%q does not say %q", text, tt.want)
		}
	}
	if cause := errors.New("x"); !errors.Is(&RefusedError{Err: cause}, cause) {
		t.Error("RefusedError hides the check's error")
	}
	if !errors.Is(failure("", os.ErrDeadlineExceeded), os.ErrDeadlineExceeded) {
		t.Error("TimeoutError hides its cause")
	}
	for role, want := range map[Role]string{Rendezvous: "rendezvous", Control: "control", Data: "data", 9: "role 9"} {
		if role.String() != want {
			t.Errorf("%q, want %q", role, want)
		}
	}
}

func TestBounded(t *testing.T) {
	for n := range 30 {
		for _, text := range []string{strings.Repeat("a", n), strings.Repeat("€", n), strings.Repeat("\xff", n)} {
			have := Bounded(text, 10)
			if len(have) > 10 || !utf8.ValidString(have) || len(text) <= 3 && text == "aaa" && have != text {
				t.Errorf("%q: %q", text, have)
			}
		}
	}
}
