//go:build unix

package command_test

import (
	"archive/zip"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestInstall installs the commands as a user does, by go install with a version, from a proxy of files. The module
// must have no replace, and all files that its commands need.
func TestInstall(t *testing.T) {
	if testing.Short() {
		t.Skip("all that the commands import is compiled anew, since it lies in another place")
	}
	const version = "v0.1.0"
	root, proxy, bin := moduleRoot(t), t.TempDir(), t.TempDir()
	dir := filepath.Join(proxy, "gogcl.dev", "@v")
	if err := os.MkdirAll(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	gomod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"list": version + "\n", version + ".mod": string(gomod), version + ".info": `{"Version":"` + version + `"}`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	zipModule(t, filepath.Join(dir, version+".zip"), root, "gogcl.dev@"+version)

	cache, err := exec.Command("go", "env", "GOMODCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	others := "file://" + filepath.ToSlash(filepath.Join(strings.TrimSpace(string(cache)), "cache", "download"))
	commands, err := filepath.Glob(filepath.Join(root, "cmd", "*"))
	if err != nil || len(commands) == 0 {
		t.Fatal("no commands: ", err)
	}
	arguments := []string{"install"}
	for _, c := range commands {
		arguments = append(arguments, "gogcl.dev/cmd/"+filepath.Base(c)+"@"+version)
	}
	install := exec.CommandContext(t.Context(), "go", arguments...)
	install.Dir = bin // which is in no module
	// With -trimpath what is compiled for one place of the module serves for another: TestImport of internal/readme.
	install.Env = append(os.Environ(), "GOBIN="+bin, "GOMODCACHE="+t.TempDir(),
		"GOFLAGS=-mod=readonly -modcacherw -trimpath",
		"GOPROXY=file://"+filepath.ToSlash(proxy)+","+others, "GOSUMDB=off", "GOWORK=off", "CGO_ENABLED=0")
	if out, err := install.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(arguments, " "), err, out)
	}
	for _, c := range commands {
		program := filepath.Join(bin, filepath.Base(c))
		out, err := exec.CommandContext(t.Context(), "go", "version", "-m", program).CombinedOutput()
		if err != nil || !strings.Contains(string(out), "\tgogcl.dev\t"+version) {
			t.Errorf("%s is not of %s: %v\n%s", program, version, err, out)
		}
	}
}

// moduleRoot is the folder of the module.
func moduleRoot(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// zipModule writes the module in root as proxies have it: without modules of their own, and here without tests.
func zipModule(t *testing.T, name, root, prefix string) {
	t.Helper()
	file, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	w := zip.NewWriter(file)
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		switch own := filepath.Join(path, "go.mod"); {
		case d.IsDir() && path != root && (strings.HasPrefix(d.Name(), ".") || exists(own)):
			return fs.SkipDir
		case !d.Type().IsRegular(), strings.HasSuffix(path, "_test.go"):
			return nil
		case filepath.Dir(path) == root && filepath.Ext(path) == "" && d.Name() != "LICENSE":
			return nil // a program that somebody has built
		}
		below, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		to, err := w.Create(prefix + "/" + filepath.ToSlash(below))
		if err != nil {
			return err
		}
		from, err := os.Open(path)
		if err != nil {
			return err
		}
		defer from.Close()
		_, err = io.Copy(to, from)
		return err
	})
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
