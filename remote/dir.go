package remote

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"gogcl.dev/commgroup"
	"gogcl.dev/internal/osfile"
)

// Dir is the Storage that keeps entries in files of an existing directory, one file for each buffer and replica: what
// was stored is there for the next process. On Linux files are mapped into memory, so that entries may take more
// bytes than the machine has memory; elsewhere they are read and written. The format is the same, with everything in
// the host's byte order, and so are the guarantees:
//
//   - A process that is killed, or dies of itself, loses the entry it was storing and no other (one for each Store in
//     progress). Open finds it.
//   - A Store whose Sync or Close has returned survives a loss of power as well, if the disk keeps its promises. Of
//     later ones, an entry holds what was last stored, or what was before it, or is lost: again Open finds it, for it
//     compares the checksum of every entry of a file that was not closed. It reads all of the file for that, once.
//   - Load compares the checksum of what it loads each time.
//   - Grow gives all new entries or none, whenever it is cut short.
//   - Zeros where something was stored, or where it is noted that nothing ever was, are a loss: Lost lists what the
//     notes tell, and Load finds the rest. A file of no bytes is an error of Open.
//   - Room on the disk is reserved by Open and Grow, so that it is they that fail when there is too little, not a
//     Store. On Linux they look first and reserve nothing then; a session looks for all its buffers together.
//
// A file is named after its buffer, with the escapes of Open, and has the buffer's name in it, and a hash of the name
// of each variable that has an entry. Of sharded variables it says the shape of the whole and which shard. Variables
// may be made in another order than by the process that wrote it: each finds its value by name. Without names it is the
// number of the buffer that counts, which is its place in the order, and two of one type and shape that change places
// swap their values. A buffer that has another name than before begins anew: the files of the name before stay as they
// are, and nobody reads them.
//
// The files of a buffer on all replicas of a program belong together. A session makes none of them while another has
// stored entries, as after the loss of a file, or with more replicas than before: that is an error, and a checkpoint of
// package rts/checkpoint is loaded on any number of replicas.
//
// A Dir is no checkpoint of a program: a process that is killed in a run leaves entries that the run has stored beside
// others that it had still to store, each whole, and no error says so. One that is killed while first values are stored
// leaves the rest to the next, which is to make the same ones.
//
// In a job each process has the files of its replica, whose number they have in their names: the processes may share a
// directory or not. The sum of what they need on a disk that they share is not looked at beforehand.
//
// A file is open once at a time, in one process: the second Open is an error (on systems without file locks the user
// must see to it). So is a second process with the same replica, in a job or beside it. A file that is not of this
// package, is truncated, has another version of the format, or holds something else than is wanted (another type,
// shape, buffer, more entries, shards of another tensor, an entry of another variable) is left as it is, and the error
// names it. So does every error about a file. An older copy of a file is taken for the file: put back copies of all
// files together.
//
// Windows has no way to make the name of a new file survive a loss of power. A process that is
// killed as it makes a file may leave, elsewhere than on Linux, one whose name ends in .new, which nobody reads; on a
// file system without hard links it may leave the file empty, to be removed by hand.
type Dir string

// Open is Storage's. The file of buffer "w" on replica 0 is w.0.remote; capitals and other characters of a Spec's
// Buffer are escaped in it, so that no two names have one file on any file system.
func (d Dir) Open(spec Spec) (Entries, error) { return d.open(spec, native) }

func (d Dir) open(spec Spec, p platform) (Entries, error) {
	if d == "" {
		return nil, fmt.Errorf("remote: open %v: the directory has no name", spec)
	}
	bytes, err := spec.entryBytes()
	var size int64
	if err == nil {
		size, err = fileBytes(bytes, spec.Entries)
	}
	var page []byte
	if err == nil {
		_, page, err = firstHead(spec, bytes) // a shape of many dimensions is an error
	}
	if err != nil {
		return nil, fmt.Errorf("remote: open %v in directory %s: %w", spec, string(d), err)
	}
	path := d.path(spec)
	f, err := take(path, func() (*os.File, error) {
		if err := d.unnamed(spec); err != nil {
			return nil, err
		}
		if err := p.room(string(d), size); err != nil {
			return nil, err
		}
		if _, err := os.Stat(string(d)); errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("there is no directory %s, want an existing one: %w", string(d), fs.ErrNotExist)
		}
		return p.create(path, page)
	})
	if err != nil {
		return nil, fmt.Errorf("remote: open %v: %w", spec, inFile(path, err))
	}
	k, err := openFile(f, p, spec, bytes)
	if err != nil {
		return nil, fmt.Errorf("remote: open %v: %w", spec, inFile(path, errors.Join(err, f.Close())))
	}
	return newGuarded(spec, bytes, k), nil
}

func (d Dir) path(spec Spec) string { return filepath.Join(string(d), fileName(spec)) }

// unnamed is the error of a named buffer that has no file, when there is one of a buffer of its number that had no
// name: to begin anew beside that would look like the loss of what is in it.
func (d Dir) unnamed(spec Spec) error {
	before := spec
	before.Buffer = strconv.Itoa(spec.Number)
	if spec.Number == 0 || before.Buffer == spec.Buffer {
		return nil
	}
	path := d.path(before)
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	page := make([]byte, pageBytes)
	n, err := f.ReadAt(page, 0)
	if err != nil && err != io.EOF {
		return err
	}
	h, err := parsePage(page[:n])
	switch {
	case errors.Is(err, errOld):
		return inFile(path, err)
	case err != nil || h.spec.DType != spec.DType || !h.spec.Shape.Equal(spec.Shape):
		return nil // it is of something else
	}
	return inFile(path, fmt.Errorf("it may be of this buffer, from when it had no name: "+
		"give it the name %q to go on; %s", before.Buffer, anew))
}

// complete is the error of a buffer whose files some replicas have, with stored entries, and others have not: these
// would begin anew beside those. A process that is killed as it makes the files leaves none with stored entries. specs
// are by replica of this process and buffer. The processes of a job, whose directories may be several, tell each other.
func (d Dir) complete(specs [][]Spec, session sharer) error {
	missing, err := tell(specs, session, func(spec Spec) bool {
		_, err := os.Stat(d.path(spec))
		return errors.Is(err, fs.ErrNotExist)
	})
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(missing, func(by []bool) bool { return slices.Contains(by, true) }) {
		return nil
	}
	stored, err := tell(specs, session, func(spec Spec) bool { return anyStored(d.path(spec)) })
	if err != nil {
		return err
	}
	for b, spec := range specs[0] {
		lacks, has := slices.Index(missing[b], true), slices.Index(stored[b], true)
		if lacks < 0 || has < 0 {
			continue
		}
		there := spec
		spec.Replica, there.Replica = lacks, has
		return fmt.Errorf("remote: open %v: file %s is missing, and replica %d has stored entries in file %s: put the "+
			"file back, or if the number of replicas has changed load a checkpoint into a new directory; %s",
			spec, d.path(spec), has, d.path(there), anew)
	}
	return nil
}

// tell is what is true of each buffer on each replica, those of other processes too: by buffer and replica.
func tell(specs [][]Spec, session sharer, is func(Spec) bool) ([][]bool, error) {
	buffers := len(specs[0])
	bits := make([]byte, 0, len(specs)*buffers) // by replica and buffer
	for _, of := range specs {
		for _, spec := range of {
			bit := byte(0)
			if is(spec) {
				bit = 1
			}
			bits = append(bits, bit)
		}
	}
	if ctx, job := session.Job(); job != nil {
		all := make([]byte, job.Replicas()*buffers)
		if err := job.Gather(ctx, commgroup.Group{}, all, bits); err != nil {
			return nil, fmt.Errorf("remote: %w", err)
		}
		bits = all
	}
	by := make([][]bool, buffers)
	for i, bit := range bits {
		by[i%buffers] = append(by[i%buffers], bit != 0)
	}
	return by, nil
}

// anyStored reports whether an entry of a file has a value, or had one and is lost. What else is wrong Open says.
func anyStored(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return false
	}
	head := make([]byte, min(info.Size(), headBytes))
	if _, err := f.ReadAt(head, 0); err != nil {
		return false
	}
	k := &file{f: f, medium: plainMedium{f}}
	if k.head, err = parseHead(head, info.Size()); err != nil {
		return false
	}
	k.first = firstSum(k.head.spec)
	for entry, row := range k.rows() {
		if row.state != k.neverWord(entry) {
			return true
		}
	}
	return false
}

// room is the error of a disk that has not got what the files of all these will take, before the first of them takes
// anything. What else is wrong Open says.
func (d Dir) room(specs []Spec) error { return d.roomOn(specs, native) }

func (d Dir) roomOn(specs []Spec, p platform) error {
	var need int64
	for _, spec := range specs {
		bytes, err := spec.entryBytes()
		if err != nil {
			return nil
		}
		want, err := fileBytes(bytes, spec.Entries)
		if err != nil {
			return nil
		}
		if info, err := os.Stat(d.path(spec)); err == nil {
			want = max(want-info.Size(), 0)
		}
		if need > math.MaxInt64-want {
			return nil
		}
		need += want
	}
	if err := p.room(string(d), need); err != nil {
		return fmt.Errorf("remote: the %d files of the program's buffers in directory %s: %w",
			len(specs), string(d), err)
	}
	return nil
}

// reserved are the names that Windows takes for devices, whatever comes after a dot.
var reserved = regexp.MustCompile(`^(con|prn|aux|nul|(com|lpt)[0-9])(\.|$)`)

// mostFileName is how many bytes the first part of a file's name may have: with the longest number of a replica and
// all else it has no more than the 255 that file systems allow.
const mostFileName = 200

// fileName makes the name of a file out of the buffer's: different ones of different names, also where a file system
// makes no difference between upper and lower case, or between the ways to write an accent. Lower case letters,
// digits, -, _ and . stay. Any other byte becomes % and two hexadecimal digits. So does the first byte of a name that
// begins with a dot, which would be hidden, or with a device of Windows. What is longer than mostFileName is cut, and
// %% and 32 hexadecimal digits of the name's SHA-256 come after it.
func fileName(spec Spec) string {
	var b strings.Builder
	first := spec.Buffer[0] == '.' || reserved.MatchString(spec.Buffer)
	for i, c := range []byte(spec.Buffer) {
		switch {
		case i == 0 && first:
			fmt.Fprintf(&b, "%%%02x", c)
		case '0' <= c && c <= '9', 'a' <= c && c <= 'z', c == '-', c == '_', c == '.':
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "%%%02x", c)
		}
	}
	name := b.String()
	if len(name) > mostFileName {
		sum := sha256.Sum256([]byte(spec.Buffer))
		end := fmt.Sprintf("%%%%%x", sum[:16])
		name = name[:mostFileName-len(end)] + end
	}
	return name + "." + strconv.Itoa(spec.Replica) + ".remote"
}

// take opens a file and locks it, or has it made if there is none.
func take(path string, create func() (*os.File, error)) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		f, err = create()
		if !errors.Is(err, fs.ErrExist) {
			return f, err
		}
		f, err = os.OpenFile(path, os.O_RDWR, 0) // it was made meanwhile
	}
	if err != nil {
		return nil, err
	}
	if err := lock(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func lock(f *os.File) error {
	taken, err := osfile.Lock(f)
	if taken {
		err = errors.New("it is open already, here or in another process")
	}
	return err
}
