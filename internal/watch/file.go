package watch

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
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

// WriteFile writes what a process says into a directory, in a file that is named by job, replica and process, in place
// of the one that it has written before. It returns the path.
func WriteFile(dir string, p Process) (string, error) {
	text, err := json.MarshalIndent(file{fileFormat, p}, "", "\t")
	if err != nil { // there is nothing in it that cannot be marshalled
		panic(err)
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return "", err
	}
	path := filepath.Join(dir, fmt.Sprintf("gcl-%08x-%d-%d.json", jobNumber(p.Job), p.first(), p.PID))
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

// ReadDir reads the files of a directory that WriteFile has written. There is a complaint for each file whose name is
// like theirs and that is none, is cut, or is of another job than most.
func ReadDir(dir string) (job Job, complaints []string, err error) {
	names, err := fs.Glob(os.DirFS(dir), "gcl-*.json")
	if err != nil {
		return job, nil, err
	}
	if _, err := os.Stat(dir); err != nil {
		return job, nil, err
	}
	byJob := map[string][]Process{}
	for _, name := range names {
		p, err := readFile(filepath.Join(dir, name))
		if err != nil {
			complaints = append(complaints, fmt.Sprintf("%s: %v", name, err))
			continue
		}
		byJob[p.Job] = append(byJob[p.Job], p)
	}
	for name, all := range byJob {
		if len(all) > len(job.Processes) || len(all) == len(job.Processes) && name < job.Name {
			job = Job{Name: name, Size: all[0].Size, Transport: all[0].Transport, Processes: all}
		}
	}
	for name, all := range byJob {
		if name != job.Name {
			complaints = append(complaints, fmt.Sprintf("%s of another job, %q", plural(len(all), "file"), name))
		}
	}
	slices.Sort(complaints)
	job.newest()
	for _, p := range slices.Clone(job.Processes) {
		job.add(p.Heard)
	}
	job.fill("has no file")
	return job, complaints, nil
}

func readFile(path string) (p Process, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return p, err
	}
	if info.Size() > maxFile {
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
	for _, r := range f.Replicas {
		if r.Replica < 0 || r.Replica >= f.Size {
			return p, fmt.Errorf("replica %d of %d", r.Replica, f.Size)
		}
	}
	return f.Process, nil
}

// newest leaves of several processes of a replica the last, as of a job that was run again.
func (j *Job) newest() {
	slices.SortStableFunc(j.Processes, func(a, b Process) int { return b.At.Compare(a.At) })
	seen := map[int]bool{}
	j.Processes = slices.DeleteFunc(j.Processes, func(p Process) bool {
		old := seen[p.first()]
		seen[p.first()] = true
		return old
	})
}
