package checkpoint

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"gogcl.dev/commgroup"
	"gogcl.dev/internal/osfile"
	"gogcl.dev/ir"
)

// OpenTogether is Open for the processes of a job, all of which call it: see collective.Job. It opens one Directory,
// and that of replica 0 keeps others from saving. All must call its methods but Close, in the same order and with
// tensors of the same names, types, shapes and shards, and the same strings. An error of one is an error on all, and
// says which replica on which host it is of.
//
//	            replica 0                     the others
//	Save        makes the directory beside
//	            writes its shards             write their shards: see Tensor.Own
//	                 └── all say that theirs are on the disk ──┘
//	            writes the index, renames
//	                 └────────── all return ───────────────────┘
//	Load        reads its shards              read theirs
//
// A shard that several processes have is written by the lowest replica. The index becomes valid last, so a
// checkpoint that a crash of any process has cut short is none.
//
// A directory that is not the same on all hosts is an error that says on which host what is missing.
func OpenTogether(ctx context.Context, dir string, job ir.Job) (*Directory, error) {
	if ctx == nil || job == nil {
		return nil, fmt.Errorf("checkpoint: open %s: no context or no Job, want one of collective.Job", dir)
	}
	if err := checkJob(job); err != nil {
		return nil, fmt.Errorf("checkpoint: open %s: %w", dir, err)
	}
	var own *Directory
	var path string // what replica 0 leaves in the directory until all have seen it
	var err error
	if job.Replica() == 0 {
		own, path, err = openShowing(dir, osfile.SyncDir)
	} else if dir == "" {
		err = errNoName
	}
	all, err := tell(ctx, job, path, err)
	if err == nil {
		_, err = tell(ctx, job, "", sees(all[0].Body, all[0].Host))
	}
	if own != nil {
		if path != "" {
			err = errors.Join(err, os.Remove(path))
		}
		if err != nil {
			err = errors.Join(err, own.lock.Close())
		}
	}
	if err != nil {
		return nil, fmt.Errorf("checkpoint: open %s: %w", dir, err)
	}
	d := &Directory{dir: dir, job: job}
	if own != nil {
		d.lock = own.lock
	}
	return d, nil
}

// sees returns an error unless this process sees the directory that replica 0 has made on a host.
func sees(path, host string) error {
	info, err := os.Stat(path)
	if err == nil && !info.IsDir() {
		err = errors.New("it is not a directory")
	}
	if err != nil {
		return fmt.Errorf("there is no directory %s here, which replica 0 has made on host %s: all processes must share "+
			"the directory of checkpoints: %w", path, host, err)
	}
	return nil
}

// said is what a process tells the others.
type said[T any] struct {
	Host  string
	Err   string // "": all is well
	Known int    // of Err: its number in knownErrors, from 1
	Body  T
}

// knownErrors are what an error of another process may be, for errors.Is.
var knownErrors = []error{ErrNone, ErrInUse, context.Canceled, context.DeadlineExceeded}

// peerError is the error of another process.
type peerError struct {
	replica int
	host    string
	text    string
	known   error // or nil
}

func (e *peerError) Error() string {
	return fmt.Sprintf("replica %d on host %s: %s", e.replica, e.host, e.text)
}
func (e *peerError) Unwrap() error { return e.known }

// checkJob says that a Job makes no sense.
func checkJob(job ir.Job) error {
	if r, n := job.Replica(), job.Replicas(); n < 1 || r < 0 || r >= n {
		return fmt.Errorf("the Job is of replica %d of %d, want 0 to Replicas-1", r, n)
	}
	return nil
}

// tell gives all processes what each says. The error is the first by replica that a process has failed with.
func tell[T any](ctx context.Context, job ir.Job, body T, failed error) ([]said[T], error) {
	host, err := os.Hostname()
	if err != nil {
		host = "of unknown name"
	}
	own := said[T]{Host: host, Body: body}
	if failed != nil {
		own.Err = failed.Error()
		own.Known = 1 + slices.IndexFunc(knownErrors, func(e error) bool { return errors.Is(failed, e) })
	}
	data, err := json.Marshal(own)
	if err != nil {
		return nil, errors.Join(failed, err)
	}
	texts, err := gather(ctx, job, data)
	if err != nil {
		return nil, errors.Join(failed, err)
	}
	all := make([]said[T], len(texts))
	for replica, text := range texts {
		if err := json.Unmarshal(text, &all[replica]); err != nil {
			return nil, fmt.Errorf("what replica %d says: %w", replica, err)
		}
	}
	for replica, s := range all {
		switch {
		case s.Err == "":
		case replica == job.Replica():
			return nil, failed
		default:
			e := &peerError{replica: replica, host: s.Host, text: s.Err}
			if s.Known > 0 && s.Known <= len(knownErrors) {
				e.known = knownErrors[s.Known-1]
			}
			return nil, e
		}
	}
	return all, nil
}

// gather gives all processes what each gives, by replica: first the lengths, and then all padded to the greatest.
func gather(ctx context.Context, job ir.Job, own []byte) ([][]byte, error) {
	n, me, everyone := job.Replicas(), job.Replica(), commgroup.Group{}
	lengths := make([]byte, 8*n)
	err := job.Gather(ctx, everyone, lengths, binary.LittleEndian.AppendUint64(nil, uint64(len(own))))
	if err != nil {
		return nil, err
	}
	length := func(r int) uint64 { return binary.LittleEndian.Uint64(lengths[8*r:]) }
	most := 0
	for r := range n {
		if length(r) > maxSaid {
			return nil, fmt.Errorf("replica %d has %d bytes to say, want at most %d", r, length(r), maxSaid)
		}
		most = max(most, int(length(r)))
	}
	if most < len(own) {
		return nil, errGather
	}
	texts := make([]byte, most*n)
	if err := job.Gather(ctx, everyone, texts, append(own, make([]byte, most-len(own))...)); err != nil {
		return nil, err
	}
	all := make([][]byte, n)
	for r := range n {
		all[r] = texts[r*most:][:length(r)]
	}
	if !bytes.Equal(all[me], own) {
		return nil, errGather
	}
	return all, nil
}

// maxSaid is the greatest length of what one process tells: it grows with the number of tensors and of shards.
const maxSaid = 1 << 30

var errGather = errors.New("the Job's Gather has given other bytes for this process than it was given")

// plan is what a process tells of what it is to save.
type plan struct {
	Path   string // of replica 0: the directory beside
	ID     string // of replica 0
	Digest string // of what is saved
	Has    []bool // by file: the process has its shards
}

// written is what a process has written.
type written struct {
	Bytes map[int]int64    // by file
	Sums  map[int][]uint32 // by file: of the tensors in it, in the order of inFile
}

// saveTogether is save with the other processes.
func (d *Directory) saveTogether(ctx context.Context, tensors []Tensor, meta map[string]string,
	options []SaveOption) (err error) {
	var mine plan
	var number int
	first := d.job.Replica() == 0
	p, err := prepare(ctx, d.dir, tensors, meta, options)
	if err == nil {
		mine.Digest, mine.Has, err = p.plan()
	}
	if err == nil {
		if err = d.begin(true); err == nil {
			defer d.endSave()
		}
	}
	if err == nil && first {
		mine.ID = p.index.id
		number, mine.Path, err = d.beside()
	}
	done := false
	defer func() { // also when a Read panics
		if mine.Path != "" && !done {
			err = errors.Join(err, remove(mine.Path))
		}
	}()
	plans, err := tell(ctx, d.job, mine, err)
	if err != nil {
		return err
	}
	owners, err := ownersOf(plans, p.index)
	if err != nil { // which all find
		return err
	}
	beside := plans[0].Body.Path
	p.index.id = plans[0].Body.ID
	own, err := p.writeOwn(ctx, beside, d.job.Replica(), owners, plans[0].Host)
	parts, err := tell(ctx, d.job, own, err)
	if err != nil {
		return err
	}
	if first {
		if err = p.collect(beside, owners, parts); err == nil {
			err = d.finish(p, beside, number, &done)
		}
	}
	_, err = tell(ctx, d.job, "", err)
	return err
}

// plan says what is saved, and which files this process has the shards of.
func (p prepared) plan() (digest string, has []bool, err error) {
	sum := sha256.New()
	for _, t := range p.tensors {
		fmt.Fprintf(sum, "%q %v %v %d\n", t.Name, t.DType, t.Shape, t.Shards)
	}
	text, err := json.Marshal(p.index.meta)
	if err != nil {
		return "", nil, err
	}
	sum.Write(text)
	has = make([]bool, p.index.files())
	for k := range has {
		var with, without *Tensor
		for i := range p.tensors {
			switch t := &p.tensors[i]; {
			case t.Shards <= k:
			case t.owns(k):
				with = t
			default:
				without = t
			}
		}
		if with != nil && without != nil {
			return "", nil, fmt.Errorf("this process has shard %d of tensor %.100q, and not of tensor %.100q: those of "+
				"one number are to be together", k, with.Name, without.Name)
		}
		has[k] = with != nil
	}
	return hex.EncodeToString(sum.Sum(nil)), has, nil
}

// ownersOf says which replica writes each file.
func ownersOf(plans []said[plan], x *index) ([]int, error) {
	owners := make([]int, x.files())
	for replica, p := range plans {
		if p.Body.Digest != plans[0].Body.Digest {
			return nil, fmt.Errorf("replica %d saves other tensors or strings than replica 0", replica)
		}
	}
	for k := range owners {
		owners[k] = slices.IndexFunc(plans, func(p said[plan]) bool { return p.Body.Has[k] })
		if owners[k] < 0 {
			return nil, fmt.Errorf("no process has shard %d of %s", k, x.with(k))
		}
	}
	return owners, nil
}

// writeOwn writes the files of a replica, and waits until they are on the disk.
func (p prepared) writeOwn(ctx context.Context, dir string, replica int, owners []int, host string) (written, error) {
	out := written{Bytes: map[int]int64{}, Sums: map[int][]uint32{}}
	if err := sees(dir, host); err != nil {
		return out, err
	}
	for k, owner := range owners {
		if owner != replica {
			continue
		}
		path := filepath.Join(dir, shardName(k, len(owners)))
		if err := p.index.createShard(ctx, path, k, p.tensors); err != nil {
			return out, err
		}
		info, err := os.Stat(path)
		if err != nil {
			return out, err
		}
		out.Bytes[k] = info.Size()
		for _, t := range p.index.inFile(k) {
			out.Sums[k] = append(out.Sums[k], t.sums[k])
		}
	}
	return out, osfile.SyncDir(dir)
}

// collect puts the checksums of all files into the index, and looks whether the files are there.
func (p prepared) collect(dir string, owners []int, parts []said[written]) error {
	for k, replica := range owners {
		part, in := parts[replica], p.index.inFile(k)
		sums := part.Body.Sums[k]
		if len(sums) != len(in) {
			return fmt.Errorf("replica %d says %d checksums of shard %d, want %d", replica, len(sums), k, len(in))
		}
		for i, t := range in {
			t.sums[k] = sums[i]
		}
		path := filepath.Join(dir, shardName(k, len(owners)))
		info, err := os.Stat(path)
		if err == nil && info.Size() != part.Body.Bytes[k] {
			err = fmt.Errorf("it has %d bytes, want %d", info.Size(), part.Body.Bytes[k])
		}
		if err != nil {
			return fmt.Errorf("there is no such file %s here as replica %d has written on host %s: all processes must share "+
				"the directory of checkpoints: %w", path, replica, part.Host, err)
		}
	}
	return nil
}

// found is the newest checkpoint that a process sees.
type found struct{ ID, Path string }

// sameNewest reads the index of the newest checkpoint, which has to be one checkpoint on all processes.
func (d *Directory) sameNewest(ctx context.Context) (dir string, x *index, err error) {
	var mine found
	if err = d.begin(false); err == nil {
		var e entry
		if e, err = newest(d.dir); err == nil {
			mine.Path = e.path(d.dir)
			x, err = readIndex(ctx, filepath.Join(mine.Path, indexName), openRegular)
		}
	}
	if err == nil {
		mine.ID = x.id
	}
	none := errors.Is(err, ErrNone)
	if none { // where only some have none, that is another error
		err = nil
	}
	all, err := tell(ctx, d.job, mine, err)
	if err != nil {
		return "", nil, err
	}
	for replica, s := range all {
		if s.Body.ID != all[0].Body.ID {
			return "", nil, fmt.Errorf("replica %d has %s in %s on host %s, and replica 0 %s on host %s: all processes must "+
				"share the directory of checkpoints", replica, s.Body, d.dir, s.Host, all[0].Body, all[0].Host)
		}
	}
	if none {
		return "", nil, ErrNone
	}
	return mine.Path, x, nil
}

func (f found) String() string {
	if f.ID == "" {
		return "no checkpoint"
	}
	return fmt.Sprintf("checkpoint %.8s of directory %s", f.ID, filepath.Base(f.Path))
}

// loadTogether is load with the other processes: each loads its shards.
func (d *Directory) loadTogether(ctx context.Context, tensors []Tensor) (map[string]string, error) {
	layouts, err := checkLoad(ctx, d.dir, tensors)
	if _, err = tell(ctx, d.job, "", err); err != nil {
		return nil, err
	}
	path, _, err := d.sameNewest(ctx)
	if err != nil {
		return nil, err
	}
	c, err := open(ctx, path, tensors, openRegular)
	if err == nil {
		defer c.open.close()
		err = c.verifyAll(ctx)
	}
	if _, err = tell(ctx, d.job, "", err); err != nil { // nothing is written before all is found to be whole
		return nil, err
	}
	err = c.write(ctx, tensors, layouts)
	if _, err = tell(ctx, d.job, "", err); err != nil {
		return nil, err
	}
	return c.index.meta, nil
}
