//go:build unix

package gcl

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"gogcl.dev/gcl/internal/launch"
)

// TestSecretFile: a secret is in a regular file of a bounded size. What is no such file is refused at once.
func TestSecretFile(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ file, secret, want string }{
		{write("good", " the secret\n"), "the secret", ""},
		{write("largest", strings.Repeat("s", maxSecretFile)), strings.Repeat("s", maxSecretFile), ""},
		{write("too large", strings.Repeat("s", maxSecretFile+1)), "", "has more than 65536 bytes"},
		{write("empty", " \n"), "", "is empty"},
		{pipe, "", "is no regular file (prw-------)"},
		{"/dev/zero", "", "is no regular file (Dcrw"},
		{dir, "", "is no regular file (d"},
		{filepath.Join(dir, "none"), "", "no such file"},
	} {
		secret, exposed, err := JoinConfig{}.secret(&launch.Settings{SecretFile: test.file})
		switch {
		case string(secret) != test.secret || exposed != nil:
			t.Errorf("%s: %d bytes, want %d; %v", test.file, len(secret), len(test.secret), exposed)
		case (err == nil) != (test.want == "") ||
			err != nil && !strings.Contains(err.Error(), "GCL_SECRET_FILE: ") || !containsError(err, test.want):
			t.Errorf("%s: %v, want %q", test.file, err, test.want)
		}
	}
}

func containsError(err error, text string) bool {
	return err == nil || strings.Contains(err.Error(), text)
}

// TestSecretExposed: who else knows a secret, by the mode and the owner of its file.
func TestSecretExposed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte("the secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	own := os.Geteuid()
	try := func(owner int, mode os.FileMode, want string) {
		t.Helper()
		if owner != own && own != 0 {
			t.Logf("needs root, to give a file to user %d", owner)
			return
		}
		if err := os.Chown(file, owner, -1); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(file, mode); err != nil {
			t.Fatal(err)
		}
		secret, exposed, err := JoinConfig{}.secret(&launch.Settings{SecretFile: file})
		if err != nil || string(secret) != "the secret" {
			t.Fatalf("user %d, mode %o: %q, %v", owner, mode, secret, err)
		}
		if (exposed == nil) != (want == "") || !containsError(exposed, want) {
			t.Errorf("user %d, mode %o: %v, want %q", owner, mode, exposed, want)
		}
	}
	try(own, 0o600, "")
	try(own, 0o400, "")
	const readable = "GCL_SECRET_FILE: others may read or write "
	for _, mode := range []os.FileMode{0o640, 0o620, 0o604, 0o602, 0o644, 0o666} {
		try(own, mode, readable)
	}
	try(65432, 0o600, "is of user 65432, and this process of user 0")
	if own != 0 {
		return
	}
	// As a volume of Kubernetes has it: root's, and for a group.
	for mode, want := range map[os.FileMode]string{0o440: "", 0o640: "", 0o660: readable, 0o444: readable} {
		try(0, mode, map[bool]string{true: "", false: readable}[mode&0o077 == 0])
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := exposure(file, info, 65432); (err == nil) != (want == "") {
			t.Errorf("root's file of mode %o: %v, want %q", mode, err, want)
		}
	}
}
