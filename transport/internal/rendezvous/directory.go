package rendezvous

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"gogcl.dev/transport/internal/handshake"
	"gogcl.dev/transport/internal/user"
)

// board is the store of processes that share a directory. A process has one file in the job's directory below it. The
// file echoes the nonces of the processes whose files it has read. An entry is alive once it echoes the nonce of this
// process: a file that a killed process has left echoes nonces of its own time only.
type board struct {
	c       Config
	at      site
	dir     string
	mine    content         // of this process's file
	file    string          // its name; "" before the first
	seq     uint64          // sequence number of the next one
	known   map[id]*posted  // those that this process reads
	refused map[string]bool // names of files that are there and not believed
	pace    time.Duration   // until the next look
}

// content is what is in a file, as JSON between a head and an HMAC.
type content struct {
	Echoes []nonce // of the processes read
	Sheet  sheet
}

// id names a process.
type id struct {
	rank  int
	nonce nonce
}

// posted is what is known of a process that has a file.
type posted struct {
	entry
	next   uint64 // no file of a lesser sequence number is news
	alive  bool
	missed int // how many looks in a row have missed its file
}

const (
	boardMagic = "gogcl\x00\rd"
	boardLabel = "gogcl rendezvous file\x00"
	headSize   = len(boardMagic) + 2
)

// maxEchoes bounds how many processes a file echoes. Those read last stay.
const maxEchoes = 4 * MaxSize

// missedLooks is how many looks in a row may miss a file: one that is being replaced may be missed once.
const missedLooks = 3

// The pauses between two looks at a directory. News makes them short again.
const (
	minLook = time.Millisecond
	maxLook = 50 * time.Millisecond
)

// mostTries bounds how often a directory is made anew that others remove.
const mostTries = 1000

// errRemoved says that another process has removed this one's file, as the host does when the job has begun.
var errRemoved = errors.New("somebody has removed this process's file")

func openBoard(c Config, at place) (*board, error) {
	b := &board{
		c:     c,
		at:    site{where: at.text, guard: c.guard(at.kind)},
		dir:   filepath.Join(at.path, jobName(c.Job)),
		known: map[id]*posted{},
		pace:  minLook,
	}
	info, err := os.Stat(at.path)
	if err == nil && !info.IsDir() {
		err = errors.New("it is no directory")
	}
	if err == nil && b.at.guard == byUser {
		err = user.CheckParent(at.path)
	}
	if err != nil {
		return nil, fmt.Errorf("the replicas cannot meet in %q: make a directory there that all hosts share: %w",
			at.path, err)
	}
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
	return fmt.Sprintf("%d.%s.%d", of.rank, of.nonce, seq)
}

// parseFileName is the inverse. It takes no other spelling.
func parseFileName(name string) (of id, seq uint64, ok bool) {
	parts := strings.Split(name, ".")
	if len(parts) != 3 {
		return id{}, 0, false
	}
	rank, err1 := strconv.ParseUint(parts[0], 10, 31)
	seq, err2 := strconv.ParseUint(parts[2], 10, 63)
	of = id{rank: int(rank), nonce: nonce(parts[1])}
	return of, seq, err1 == nil && err2 == nil && len(of.nonce) == nonceSize && fileName(of, seq) == name
}

func (b *board) put(s sheet) error {
	b.mine.Sheet, b.pace = s, minLook
	return b.post()
}

// post replaces this process's file by one of what there is now.
func (b *board) post() error {
	name := fileName(id{b.c.Rank, b.c.nonce}, b.seq)
	file := b.seal(name, b.mine)
	path := filepath.Join(b.dir, name)
	temporary := path + ".tmp"
	if b.file != "" && !b.isPosted() {
		return nil // the next look finds it out
	}
	for tries := 0; ; tries++ {
		// The last one of an earlier job may be removing the directory.
		if err := os.Mkdir(b.dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		info, err := os.Lstat(b.dir)
		if err == nil && !info.IsDir() {
			return fmt.Errorf("%s is no directory but %v: remove it", b.dir, info.Mode().Type())
		}
		if err == nil && b.at.guard == byUser {
			err = user.CheckDir(b.dir)
		}
		if err == nil {
			err = os.WriteFile(temporary, file, 0o600)
		}
		if err == nil {
			err = os.Rename(temporary, path)
		}
		if err == nil {
			break
		}
		os.Remove(temporary)
		if !errors.Is(err, fs.ErrNotExist) || tries == mostTries {
			return err
		}
		if b.file != "" {
			return nil
		}
	}
	if b.file != "" {
		os.Remove(filepath.Join(b.dir, b.file))
	}
	b.file = name
	b.seq++
	return nil
}

// isPosted reports whether this process's file is still there.
func (b *board) isPosted() bool {
	_, err := os.Lstat(filepath.Join(b.dir, b.file))
	return !errors.Is(err, fs.ErrNotExist)
}

// list looks at the directory. A file that is being replaced may be missed, once.
func (b *board) list() (fresh []*entry, err error) {
	files, err := os.ReadDir(b.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if b.file != "" && !b.isPosted() {
		return nil, errRemoved
	}
	refused, echoed := map[string]bool{}, len(b.mine.Echoes)
	for _, file := range files {
		name := file.Name()
		of, seq, ok := parseFileName(name)
		isRead := b.c.Rank == b.c.host || of.rank == b.c.host // visitors do not read each other
		if !ok || !isRead || of == (id{b.c.Rank, b.c.nonce}) || !file.Type().IsRegular() {
			continue
		}
		p := b.known[of]
		switch {
		case b.refused[name]:
			refused[name] = true
			continue
		case p != nil && seq < p.next:
			p.missed = 0
			continue
		}
		has, err := b.read(name, of)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			refused[name] = true
			fresh = append(fresh, &entry{rank: nobody, from: "file " + name, ended: err})
			continue
		case p == nil:
			p = &posted{entry: entry{rank: of.rank}}
			b.known[of] = p
			b.mine.Echoes = append(b.mine.Echoes, of.nonce)
		}
		if was := p.alive; !was || has.Sheet.Step != p.sheet.Step {
			p.alive = was || slices.Contains(has.Echoes, b.c.nonce)
			p.sheet = has.Sheet
			if p.alive {
				fresh = append(fresh, &p.entry)
			}
		}
		p.next, p.missed = seq+1, 0
	}
	b.refused = refused
	for _, p := range b.known {
		if p.missed++; p.missed > missedLooks && p.ended == nil {
			p.ended = errors.New("it has removed its file")
			if p.alive || b.mine.Sheet.Step == stepFailed { // it may have read that and left before it was alive here
				fresh = append(fresh, &p.entry)
			}
		}
	}
	if len(fresh) > 0 || len(b.mine.Echoes) > echoed {
		b.pace = minLook
	}
	if len(b.mine.Echoes) == echoed || b.file == "" {
		return fresh, nil
	}
	b.mine.Echoes = b.mine.Echoes[max(0, len(b.mine.Echoes)-maxEchoes):]
	return fresh, b.post()
}

func (b *board) get(e *entry) (sheet, error) { return e.sheet, e.ended }

func (b *board) wait(ctx context.Context, most time.Duration) bool {
	most = min(most, b.pace)
	b.pace = min(b.pace*3/2, maxLook)
	return pause(ctx, most, nil)
}

// leave removes this process's file, and the directory when it is the last one's. A host whose job has begun removes
// all files: those that are left are of dead jobs, or of processes that are late.
func (b *board) leave(ctx context.Context) {
	if b.c.Rank == b.c.host {
		for b.living() > 0 && b.wait(ctx, maxLook) {
			if _, err := b.list(); err != nil {
				break
			}
		}
	}
	if b.mine.Sheet.Step == stepBegin {
		files, _ := os.ReadDir(b.dir)
		for _, file := range files {
			os.Remove(filepath.Join(b.dir, file.Name()))
		}
	}
	if b.file != "" {
		os.Remove(filepath.Join(b.dir, b.file))
	}
	os.Remove(b.dir)
}

// living is how many processes are alive and have a file, without hosts that have failed themselves.
func (b *board) living() int {
	living := 0
	for _, p := range b.known {
		if p.alive && p.ended == nil && (p.rank != b.c.host || p.sheet.Step != stepFailed) {
			living++
		}
	}
	return living
}

// again implements store: there is no connection.
func (b *board) again(context.Context) bool { return false }

func (b *board) site() site { return b.at }

func (b *board) unmet() string {
	stale := 0
	for _, p := range b.known {
		if !p.alive {
			stale++
		}
	}
	switch {
	case b.c.Rank == b.c.host && stale == 0:
		return ""
	case b.c.Rank == b.c.host:
		return fmt.Sprintf("; %d files are there of processes that do not answer", stale)
	case stale < len(b.known):
		return fmt.Sprintf("; replica %d had taken it in and does not go on: see why its process ended, or another one",
			b.c.host)
	}
	return fmt.Sprintf(" (%d files of replica %d were there, which did not answer): start replica %[2]d with the same "+
		"directory and job; if the others run, the job has begun without you", stale, b.c.host)
}

// seal is a file with a content: magic and version, JSON, an HMAC.
func (b *board) seal(name string, c content) []byte {
	file := binary.BigEndian.AppendUint16([]byte(boardMagic), handshake.Version)
	file = append(file, encode(c)...)
	return append(file, b.prove(name, file)...)
}

// prove is the HMAC that ends a file.
func (b *board) prove(name string, content []byte) []byte {
	mac := hmac.New(sha256.New, b.c.Secret)
	job := sha256.Sum256([]byte(b.c.Job))
	mac.Write([]byte(boardLabel))
	mac.Write(job[:])
	mac.Write([]byte(name + "\x00"))
	mac.Write(content)
	return mac.Sum(nil)
}

// read opens a file of a process and checks it. It does not read on beyond what such a file may have.
func (b *board) read(name string, of id) (c content, err error) {
	file, err := os.Open(filepath.Join(b.dir, name))
	if err != nil {
		return content{}, err
	}
	defer file.Close()
	byHost := of.rank == b.c.host
	most := headSize + 32 + maxEchoes*(nonceSize+3) + maxSheet(byHost, b.c.Size) + sha256.Size
	sealed, err := io.ReadAll(io.LimitReader(file, int64(most)+1))
	if err != nil {
		return content{}, err
	}
	text, err := b.unseal(name, sealed, most)
	if err != nil {
		return content{}, err
	}
	if err := json.Unmarshal(text, &c); err != nil {
		return content{}, errMalformed(err.Error())
	}
	return c, c.Sheet.check(byHost, b.c.Size)
}

// unseal returns the JSON in a file.
func (b *board) unseal(name string, file []byte, most int) ([]byte, error) {
	switch begins := file[:min(len(file), len(boardMagic))]; {
	case string(begins) != boardMagic:
		return nil, &handshake.ProtocolError{Begins: bytes.Clone(begins)}
	case len(file) < headSize+sha256.Size || len(file) > most:
		return nil, errMalformed(fmt.Sprintf("a file of %d bytes or more", len(file)))
	}
	if v := binary.BigEndian.Uint16(file[len(boardMagic):]); v != handshake.Version {
		return nil, &handshake.VersionError{Mine: handshake.Version, Theirs: v}
	}
	end := len(file) - sha256.Size
	if !hmac.Equal(b.prove(name, file[:end]), file[end:]) {
		return nil, &handshake.SecretError{}
	}
	return file[headSize:end], nil
}
