package rendezvous

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"gogcl.dev/transport/internal/handshake"
	"gogcl.dev/transport/internal/user"
)

// board is a job's directory, as one process uses it: its own file, and those of others that it reads.
type board struct {
	dir    string
	job    string
	secret []byte
	own    bool // nothing but its user tells the job's directory from others
	id     id
	next   uint64            // sequence number of its next file
	mine   string            // name of its file; "" before the first
	read   map[string]sheet  // by name; a name always means the same bytes
	latest map[id]*postedSeq // of each process
}

// id names a process: its rank, and a nonce that it has drawn.
type id struct {
	rank  int
	nonce nonce
}

type nonce [16]byte

// sheet is what was read from a file: its body, or why it is not believed.
type sheet struct {
	body []byte
	err  error
}

// postedSeq is the latest file of a process.
type postedSeq struct {
	seq  uint64
	body []byte
}

const (
	boardMagic = "gogcl\x00\rd"
	boardLabel = "gogcl rendezvous file\x00"
	headSize   = len(boardMagic) + 2
)

func newBoard(path string, c Config) (*board, error) {
	info, err := os.Stat(path)
	if err == nil && !info.IsDir() {
		err = errors.New("it is no directory")
	}
	if err == nil && c.ownUser() {
		err = user.CheckParent(path)
	}
	if err != nil {
		return nil, fmt.Errorf("the replicas cannot meet in %q: make a directory there that all hosts share: %w",
			path, err)
	}
	b := &board{
		dir:    filepath.Join(path, jobName(c.Job)),
		job:    c.Job,
		secret: c.Secret,
		own:    c.ownUser(),
		id:     id{rank: c.Rank},
		read:   map[string]sheet{},
		latest: map[id]*postedSeq{},
	}
	rand.Read(b.id.nonce[:])
	return b, nil
}

// jobName is the name of a job's directory: what can be read of the job's name, and a hash.
func jobName(job string) string {
	readable := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' {
			return r
		}
		return '_'
	}, job)
	hash := sha256.Sum256([]byte(job))
	return "gogcl-" + readable[:min(len(readable), 32)] + "-" + hex.EncodeToString(hash[:8])
}

// fileName is the name of a process's file.
func fileName(of id, seq uint64) string {
	return fmt.Sprintf("%d.%x.%d", of.rank, of.nonce[:], seq)
}

// parseFileName is the inverse. It takes no other spelling.
func parseFileName(name string) (of id, seq uint64, ok bool) {
	parts := strings.Split(name, ".")
	if len(parts) != 3 {
		return id{}, 0, false
	}
	rank, err1 := strconv.ParseUint(parts[0], 10, 31)
	n, err2 := hex.DecodeString(parts[1])
	seq, err3 := strconv.ParseUint(parts[2], 10, 63)
	if err1 != nil || err2 != nil || err3 != nil || len(n) != len(of.nonce) {
		return id{}, 0, false
	}
	of = id{rank: int(rank), nonce: nonce(n)}
	return of, seq, fileName(of, seq) == name
}

// prove is the HMAC that ends a file.
func (b *board) prove(name string, content []byte) []byte {
	mac := hmac.New(sha256.New, b.secret)
	job := sha256.Sum256([]byte(b.job))
	mac.Write([]byte(boardLabel))
	mac.Write(job[:])
	mac.Write([]byte(name + "\x00"))
	mac.Write(content)
	return mac.Sum(nil)
}

// post replaces the process's file by one with a new body.
func (b *board) post(body []byte) error {
	name := fileName(b.id, b.next)
	content := binary.BigEndian.AppendUint16([]byte(boardMagic), handshake.Version)
	content = append(content, body...)
	content = append(content, b.prove(name, content)...)
	path := filepath.Join(b.dir, name)
	temporary := path + ".tmp"
	if b.mine != "" && !b.isPosted() {
		return nil // removed by replica 0, as the next look finds
	}
	for {
		// The last one of an earlier job may be removing the directory.
		if err := os.Mkdir(b.dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		var err error
		if b.own {
			err = user.CheckDir(b.dir)
		}
		if err == nil {
			err = os.WriteFile(temporary, content, 0o600)
		}
		if err == nil {
			err = os.Rename(temporary, path)
		}
		if err == nil {
			break
		}
		os.Remove(temporary)
		if !errors.Is(err, fs.ErrNotExist) {
			b.leave()
			return err
		}
		if b.mine != "" {
			return nil
		}
	}
	if b.mine != "" {
		os.Remove(filepath.Join(b.dir, b.mine))
	}
	b.mine = name
	b.next++
	return nil
}

// isPosted reports whether the process's file is still there.
func (b *board) isPosted() bool {
	_, err := os.Lstat(filepath.Join(b.dir, b.mine))
	return !errors.Is(err, fs.ErrNotExist)
}

// leave removes the process's file, and the directory when it is the last one's.
func (b *board) leave() {
	if b.mine != "" {
		os.Remove(filepath.Join(b.dir, b.mine))
	}
	os.Remove(b.dir)
}

// clear removes all files.
func (b *board) clear() {
	entries, _ := os.ReadDir(b.dir)
	for _, entry := range entries {
		os.Remove(filepath.Join(b.dir, entry.Name()))
	}
}

// look lists the processes of the wanted ranks that have a file, with the latest of each, and why others were not
// believed. A body is limited to limit bytes. A file that is being replaced may be missed, once.
func (b *board) look(wanted func(rank int) bool, limit int) (
	posted map[id][]byte, refused map[string]error, err error,
) {
	entries, err := os.ReadDir(b.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, err
	}
	posted, refused = map[id][]byte{}, map[string]error{}
	listed := map[string]bool{}
	for _, entry := range entries {
		name := entry.Name()
		of, seq, ok := parseFileName(name)
		if !ok || of == b.id || !wanted(of.rank) || !entry.Type().IsRegular() {
			continue
		}
		listed[name] = true
		s, ok := b.read[name]
		if !ok {
			s = b.open(name, limit)
			if errors.Is(s.err, fs.ErrNotExist) {
				continue
			}
			b.read[name] = sheet{err: s.err} // the body is kept once, in latest
		}
		if s.err != nil {
			refused[name] = s.err
			continue
		}
		if have := b.latest[of]; have == nil || have.seq < seq {
			b.latest[of] = &postedSeq{seq, s.body}
		}
		posted[of] = b.latest[of].body
	}
	for name := range b.read {
		if !listed[name] {
			delete(b.read, name)
		}
	}
	return posted, refused, nil
}

// open reads one file and checks it.
func (b *board) open(name string, limit int) sheet {
	file, err := os.Open(filepath.Join(b.dir, name))
	if err != nil {
		return sheet{err: err}
	}
	defer file.Close()
	most := int64(headSize) + int64(limit) + sha256.Size
	content, err := io.ReadAll(io.LimitReader(file, most+1))
	if err != nil {
		return sheet{err: err}
	}
	body, err := b.check(name, content, most)
	return sheet{body, err}
}

// check takes a file apart.
func (b *board) check(name string, content []byte, most int64) ([]byte, error) {
	switch begins := content[:min(len(content), len(boardMagic))]; {
	case string(begins) != boardMagic:
		return nil, &handshake.ProtocolError{Begins: bytes.Clone(begins)}
	case len(content) < headSize+sha256.Size || int64(len(content)) > most:
		return nil, errMalformed(fmt.Sprintf("a file of %d bytes or more", len(content)))
	}
	if v := binary.BigEndian.Uint16(content[len(boardMagic):]); v != handshake.Version {
		return nil, &handshake.VersionError{Mine: handshake.Version, Theirs: v}
	}
	end := len(content) - sha256.Size
	if !hmac.Equal(b.prove(name, content[:end]), content[end:]) {
		return nil, &handshake.SecretError{}
	}
	return content[headSize:end], nil
}
