package remote

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

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
//   - Room on the disk is reserved by Open and Grow, so that it is they that fail when there is too little, not a
//     Store.
//
// A file is open once at a time, in one process: the second Open is an error (on systems without file locks the user
// must see to it). A file that is not of this package, is truncated, has another version of the format, or holds
// something else than is wanted is left as it is, and the error names it. So does every error about a file.
//
// Windows has no way to make the name of a new file survive a loss of power.
type Dir string

// Open is Storage's. The file of buffer "w" on replica 0 is w.0.remote; capitals and other characters of a Spec's
// Buffer are escaped in it, so that no two names have one file on any file system.
func (d Dir) Open(spec Spec) (Entries, error) { return d.open(spec, native) }

func (d Dir) open(spec Spec, p platform) (Entries, error) {
	bytes, err := spec.entryBytes()
	if err == nil {
		_, err = header{spec: spec}.page() // long names
	}
	if err != nil {
		return nil, fmt.Errorf("remote: open %v in directory %s: %w", spec, string(d), err)
	}
	path := filepath.Join(string(d), fileName(spec))
	f, err := take(path)
	if err != nil {
		return nil, fmt.Errorf("remote: open %v: %w", spec, err)
	}
	k, err := openFile(f, p, spec, bytes)
	if err != nil {
		return nil, fmt.Errorf("remote: open %v: %w", spec, inFile(path, errors.Join(err, f.Close())))
	}
	return newGuarded(spec, bytes, k), nil
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

// take opens a file, makes an empty one if there is none, and locks it.
func take(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, err
	}
	taken, err := osfile.Lock(f)
	if taken {
		err = errors.New("it is open already, here or in another process")
	}
	if err != nil {
		return nil, inFile(path, errors.Join(err, f.Close()))
	}
	return f, nil
}
