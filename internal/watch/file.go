package watch

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// fileFormat is in every file, and says what it is.
const fileFormat = "gcl process 1"

// maxFile bounds a file that is read, in bytes.
const maxFile = 16 << 20

// file is a Process in a file.
type file struct {
	Format string `json:"format"`
	Process
}

// WriteFile writes what a process says into a directory, in a file that is named by run, replica and process, in place
// of the one that it has written before. It returns the path.
func WriteFile(dir string, p Process) (string, error) {
	text, err := json.MarshalIndent(file{fileFormat, p}, "", "\t")
	if err != nil { // there is nothing in it that cannot be marshalled
		panic(err)
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return "", err
	}
	path := filepath.Join(dir, fmt.Sprintf("gcl-%08x-%d-%d.json", short(p.Run), p.first(), p.PID))
	f, err := os.CreateTemp(dir, ".gcl-*")
	if err != nil {
		return "", err
	}
	_, err = f.Write(append(text, '\n'))
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // of the two errors the first says more
		return "", err
	}
	return path, nil
}

// ReadDir reads the files of a directory that WriteFile has written, of the run that has written last. There is a
// complaint for each file whose name is like theirs and that is none, or is cut, and for each other run.
func ReadDir(dir string) (job Job, complaints []string, err error) {
	names, err := fs.Glob(os.DirFS(dir), "gcl-*.json")
	if err != nil {
		return job, nil, err
	}
	if _, err := os.Stat(dir); err != nil {
		return job, nil, err
	}
	byRun, last := map[string][]Process{}, Process{}
	for _, name := range names {
		p, err := readFile(filepath.Join(dir, name))
		if err != nil {
			complaints = append(complaints, fmt.Sprintf("%s: %v", name, err))
			continue
		}
		byRun[p.Run] = append(byRun[p.Run], p)
		if len(byRun) == 1 && len(byRun[p.Run]) == 1 || p.At.After(last.At) {
			last = p
		}
	}
	job = Job{Name: last.Job, Run: last.Run, Size: last.Size, Transport: last.Transport}
	job.add(byRun[last.Run])
	for run, all := range byRun {
		if run != last.Run {
			complaints = append(complaints, fmt.Sprintf("%s of another run, of job %q at %s", plural(len(all), "file"),
				all[0].Job, all[0].At.Format(time.DateTime)))
		}
	}
	slices.Sort(complaints)
	var heard []Process
	for _, p := range job.Processes {
		heard = append(heard, p.Heard...)
	}
	job.add(heard)
	job.fill("has no file")
	return job, complaints, nil
}

func readFile(path string) (p Process, err error) {
	info, err := os.Lstat(path)
	switch {
	case err != nil:
		return p, err
	case !info.Mode().IsRegular():
		return p, errors.New("it is no regular file")
	case info.Size() > maxFile:
		return p, fmt.Errorf("it has %d bytes, and may have %d", info.Size(), maxFile)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return p, err
	}
	var f file
	switch err := json.Unmarshal(text, &f); {
	case err != nil && strings.Contains(string(text), fileFormat):
		return p, fmt.Errorf("it is cut or damaged (%w)", err)
	case err != nil || f.Format != fileFormat:
		return p, fmt.Errorf("it is no file of a process of gcl")
	case f.Size < 1 || f.Size > maxSize:
		return p, fmt.Errorf("a job of %d replicas", f.Size)
	}
	if len(f.Heard) > f.Size {
		return p, fmt.Errorf("it has heard of %d processes, in a job of %d", len(f.Heard), f.Size)
	}
	for _, p := range append(f.Heard, f.Process) {
		for _, r := range p.Replicas {
			if r.Replica < 0 || r.Replica >= f.Size {
				return p, fmt.Errorf("replica %d of %d", r.Replica, f.Size)
			}
		}
	}
	return f.Process, nil
}
