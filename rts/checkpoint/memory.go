package checkpoint

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"

	"gogcl.dev/ir"
)

// Memory is checkpoints that the processes of a job hold in memory, so that those that are left when some are gone go
// on. The zero value holds none. Each process has a Memory, and all call its methods in the same order.
//
// Each process keeps a copy of its own files, as Save would write them, and of those of one other process: see Copy.
// Another process keeps its. A file that several processes have anyway is not sent.
//
//	process   0        1        2
//	own       file 0   file 1   file 2
//	kept      file 2   file 0   file 1       on another host where there is one
//
// A copy is used when all its files are there. Copy begins a second one, and Complete gives up the one before. So a
// process holds four files: two copies of its own and two of another's.
type Memory struct {
	tensors []Tensor
	index   *index // of the copy that was made last
	epoch   int    // counts calls of Restore
	number  int    // of the copy that was made last, from the Restore on
	replica int    // of this process
	ring    ring

	copies []*held // oldest first
	spare  *held   // whose memory the next copy takes
}

// serial is the number of a copy: a later one has a greater one. ID tells it from copies of a process that the others
// have gone on without meanwhile.
type serial struct {
	Epoch, Number int
	ID            string
}

// held is what a process holds of a copy.
type held struct {
	serial
	index    *index
	parts    map[int][]byte // by file: the checksums of what is in it, of 4 bytes each, and the file
	received bool           // the files of the other process are complete
	whole    bool           // all processes have received theirs
	ring     ring
	replica  int // of this process in the ring
}

// Message is bytes that this process sends to a replica, or receives from one, or both at once. Send or Recv is nil if
// there is nothing of the kind.
type Message struct {
	To, From   int
	Send, Recv []byte
}

// Carry sends and receives messages, one after the other.
type Carry func(ctx context.Context, messages []Message) error

// LostError says that no process has some files of a copy any more. Then the last checkpoint on a disk is what is left.
type LostError struct {
	Files    []int
	Replicas []int // that have had them, by their numbers when the copy was made
}

func (e *LostError) Error() string {
	return fmt.Sprintf("replicas %d are gone, and nobody else has had shards %d of the copy in memory: load the last "+
		"checkpoint", e.Replicas, e.Files)
}

// Restore writes the newest copy that the processes have between them into tensors, in any number of shards, and
// returns the strings that were kept with it. Where nobody has a copy it writes nothing and returns nil: the state is
// what the tensors have. Then it makes a copy of the state, with the strings that it returns or, if nobody had a copy,
// those of meta, which is called by Copy too and returns the same on all processes.
//
// A process that has no copy, since it is new, takes part like the others. Each gets the files that it needs, by carry.
//
// An error of one process is an error on all. After a *LostError no process has a copy, so that Restore goes on with
// the state of a checkpoint that has been loaded. After any other error what was held is held still, and some tensors
// may have been written: Restore again, on a job of those that are left.
func (m *Memory) Restore(ctx context.Context, job ir.Job, carry Carry, tensors []Tensor,
	meta func() (map[string]string, error)) (map[string]string, error) {
	out, err := m.restore(ctx, job, carry, tensors, meta)
	if err != nil {
		return nil, fmt.Errorf("checkpoint: restore from memory: %w", err)
	}
	return out, nil
}

func (m *Memory) restore(ctx context.Context, job ir.Job, carry Carry, tensors []Tensor,
	meta func() (map[string]string, error)) (map[string]string, error) {
	if m == nil || ctx == nil || job == nil || carry == nil || meta == nil {
		return nil, errors.New("it needs a Memory, a context, a Job, a Carry and a function for the strings")
	}
	if err := checkJob(job); err != nil {
		return nil, err
	}
	layouts, err := checkLoad(ctx, "memory", tensors)
	if err != nil {
		return nil, err
	}
	x, err := newIndex(tensors, nil)
	if err != nil {
		return nil, err
	}
	mine := m.holding(x.id)
	mine.Digest, mine.Has, err = prepared{tensors: tensors, index: x}.plan()
	all, err := tell(ctx, job, mine, err)
	if err != nil {
		return nil, err
	}
	plans, hosts, epoch := make([]said[plan], len(all)), make([]string, len(all)), 0
	for r, s := range all {
		plans[r].Body, hosts[r], epoch = s.Body.plan, s.Host, max(epoch, s.Body.Epoch)
	}
	if _, err := ownersOf(plans, x); err != nil {
		return nil, err
	}
	var out map[string]string
	newest, lost := choose(all)
	switch {
	case newest != nil:
		if out, err = m.load(ctx, job, carry, tensors, layouts, newest); err != nil {
			return nil, err
		}
	case lost != nil:
		err := m.whoHad(ctx, job, lost)
		if errors.As(err, new(*LostError)) {
			m.copies = nil
		}
		return nil, err
	}
	// Copies of a Restore that has failed are given up, unless this is the one that was loaded.
	m.copies = slices.DeleteFunc(m.copies, func(h *held) bool {
		return h.Number == 1 && !h.whole && (newest == nil || h.serial != newest.serial)
	})
	x.id = all[0].Body.ID
	m.tensors, m.index, m.epoch, m.number, m.spare, m.replica = tensors, x, epoch+1, 0, nil, job.Replica()
	m.ring = newRing(plans, hosts)
	if newest != nil {
		meta = func() (map[string]string, error) { return out, nil } // the caller is not there yet
	}
	if err := m.first(ctx, job, carry, meta); err != nil {
		return nil, err
	}
	return out, nil
}

// first makes the first copy of a Restore, which is complete on all processes then.
func (m *Memory) first(ctx context.Context, job ir.Job, carry Carry, meta func() (map[string]string, error)) error {
	err := m.Copy(ctx, meta)
	lengths := map[int]int{}
	if err == nil {
		for k, part := range m.last().parts {
			lengths[k] = len(part)
		}
	}
	all, err := tell(ctx, job, lengths, err)
	if err != nil {
		return err
	}
	from := m.from()
	for _, k := range m.ring.sent[from] {
		m.ring.lengths[k] = all[from].Body[k]
	}
	err = m.Send(ctx, carry)
	if _, err = tell(ctx, job, "", err); err != nil {
		return err
	}
	m.Complete()
	return nil
}

// Copy begins a copy: it copies the files of this process, each of whose shards it reads once. Send is what comes next,
// and Complete after that. Errors: no Restore has been made, what meta and Read return.
func (m *Memory) Copy(ctx context.Context, meta func() (map[string]string, error)) error {
	if m == nil || ctx == nil || meta == nil || m.index == nil {
		return errors.New("checkpoint: a copy in memory needs a context, a function for the strings, and a Restore " +
			"before it")
	}
	text, err := meta()
	if err == nil {
		err = checkMeta(text)
	}
	if err != nil {
		return fmt.Errorf("checkpoint: a copy in memory: %w", err)
	}
	m.number++
	x := *m.index
	x.meta = maps.Clone(text)
	x.id = fmt.Sprintf("%s%08x", m.index.id[:2*idBytes-8], uint32(m.number))
	x.tensors = slices.Clone(x.tensors)
	for i := range x.tensors {
		x.tensors[i].sums = slices.Clone(x.tensors[i].sums)
	}
	h := m.spare
	if m.spare = nil; h == nil {
		h = &held{parts: map[int][]byte{}}
	}
	h.serial, h.index, h.received, h.whole, h.ring = serial{m.epoch, m.number, m.index.id}, &x, false, false, m.ring
	h.replica = m.replica
	for _, k := range m.ring.own[m.replica] {
		if h.parts[k], err = x.encodeShard(ctx, h.parts[k], k, m.tensors); err != nil {
			return fmt.Errorf("checkpoint: a copy in memory: %w", err)
		}
	}
	m.copies = append(m.copies, h)
	return nil
}

// Send sends the files of the last copy to the process that keeps them, and receives those that this process keeps. It
// may run beside anything but other methods of the Memory.
func (m *Memory) Send(ctx context.Context, carry Carry) error {
	h := m.last()
	if h == nil || ctx == nil || carry == nil {
		return errors.New("checkpoint: to send a copy in memory needs a context, a Carry, and a Copy before it")
	}
	to, from := m.ring.keeper[m.replica], m.from()
	var send, recv [][]byte
	for _, k := range m.ring.sent[m.replica] {
		send = append(send, h.parts[k])
	}
	for _, k := range m.ring.sent[from] {
		if len(h.parts[k]) != m.ring.lengths[k] {
			h.parts[k] = make([]byte, m.ring.lengths[k])
		}
		recv = append(recv, h.parts[k])
	}
	if err := carry(ctx, messages(nil, to, send, from, recv)); err != nil {
		return fmt.Errorf("checkpoint: a copy in memory: %w", err)
	}
	h.received = true
	return nil
}

// Complete says that the last copy is complete on all processes, and gives up those before.
func (m *Memory) Complete() {
	h := m.last()
	if h == nil || !h.received {
		return
	}
	h.whole = true
	if before := m.copies[:len(m.copies)-1]; len(before) > 0 && before[len(before)-1].Epoch == h.Epoch {
		m.spare = before[len(before)-1]
	}
	m.copies = []*held{h}
}

// Bytes is how much memory the copies take.
func (m *Memory) Bytes() int {
	if m == nil {
		return 0
	}
	sum := 0
	for _, h := range append(slices.Clone(m.copies), m.spare) {
		if h != nil {
			for _, part := range h.parts {
				sum += len(part)
			}
		}
	}
	return sum
}

// last is the copy that was made last, or nil.
func (m *Memory) last() *held {
	if m == nil || len(m.copies) == 0 {
		return nil
	}
	return m.copies[len(m.copies)-1]
}

// from is the replica whose files this process keeps.
func (m *Memory) from() int { return slices.Index(m.ring.keeper, m.replica) }

// has lists the files that are complete.
func (h *held) has() []int {
	if !h.received {
		return h.ring.own[h.replica]
	}
	return slices.Sorted(maps.Keys(h.parts))
}

// messages adds those to one replica and from one.
func messages(list []Message, to int, send [][]byte, from int, recv [][]byte) []Message {
	for i := range max(len(send), len(recv)) {
		m := Message{To: to, From: from}
		if i < len(send) {
			m.Send = send[i]
		}
		if i < len(recv) {
			m.Recv = recv[i]
		}
		list = append(list, m)
	}
	return list
}

// holding is what a process tells of its copies.
type holding struct {
	plan
	Epoch  int
	Copies []holdingOf
}

// holdingOf is what a process tells of a copy.
type holdingOf struct {
	serial
	Whole bool
	Of    int   // files
	Has   []int // files
}

func (m *Memory) holding(id string) holding {
	out := holding{Epoch: m.epoch}
	out.ID = id
	for _, h := range m.copies {
		out.Copies = append(out.Copies, holdingOf{h.serial, h.whole, h.index.files(), h.has()})
	}
	return out
}

// available is a copy, and who has its files.
type available struct {
	serial
	whole bool
	by    [][]int // by file: replicas
	any   []int   // replicas that hold something of it
}

// choose returns the newest copy all of whose files are there; or else the newest that has been complete.
func choose(all []said[holding]) (newest, lost *available) {
	copies := map[serial]*available{}
	for r, s := range all {
		for _, c := range s.Body.Copies {
			a := copies[c.serial]
			if a == nil {
				a = &available{serial: c.serial, by: make([][]int, c.Of)}
				copies[c.serial] = a
			}
			a.whole = a.whole || c.Whole
			a.any = append(a.any, r)
			for _, k := range c.Has {
				if k >= 0 && k < len(a.by) {
					a.by[k] = append(a.by[k], r)
				}
			}
		}
	}
	for _, a := range copies {
		missing := slices.ContainsFunc(a.by, func(r []int) bool { return len(r) == 0 })
		switch {
		case !missing && (newest == nil || newest.before(a.serial)):
			newest = a
		case missing && (lost == nil || a.whole && !lost.whole || a.whole == lost.whole && lost.before(a.serial)):
			lost = a
		}
	}
	return newest, lost
}

func (v serial) before(w serial) bool {
	return cmp.Or(cmp.Compare(v.Epoch, w.Epoch), cmp.Compare(v.Number, w.Number), cmp.Compare(v.ID, w.ID)) < 0
}

// copyOf is what this process holds of a copy, or nil.
func (m *Memory) copyOf(v serial) *held {
	for _, h := range m.copies {
		if h.serial == v {
			return h
		}
	}
	return nil
}

// whoHad is the error that a copy has lost files.
func (m *Memory) whoHad(ctx context.Context, job ir.Job, lost *available) error {
	var holders [][]int // by file
	if h := m.copyOf(lost.serial); h != nil && job.Replica() == lost.any[0] {
		holders = make([][]int, len(lost.by))
		for r, own := range h.ring.own {
			for _, k := range own {
				holders[k] = append(holders[k], r)
				if slices.Contains(h.ring.sent[r], k) {
					holders[k] = append(holders[k], h.ring.keeper[r])
				}
			}
		}
	}
	all, err := tell(ctx, job, holders, nil)
	if err != nil {
		return err
	}
	e := &LostError{}
	for k, who := range lost.by {
		if len(who) == 0 && k < len(all[lost.any[0]].Body) {
			e.Files = append(e.Files, k)
			e.Replicas = append(e.Replicas, all[lost.any[0]].Body[k]...)
		}
	}
	slices.Sort(e.Replicas)
	e.Replicas = slices.Compact(e.Replicas)
	return e
}

// given is what a process tells of a copy that is loaded.
type given struct {
	Index []byte // of the first process that holds something of it
	Bytes map[int]int
	Sums  map[int][]uint32 // by file that it gives
}

// load loads a copy, and returns its strings.
func (m *Memory) load(ctx context.Context, job ir.Job, carry Carry, tensors []Tensor, layouts []layout,
	a *available) (map[string]string, error) {
	me, own := job.Replica(), m.copyOf(a.serial)
	mine := given{Bytes: map[int]int{}, Sums: map[int][]uint32{}}
	var err error
	if me == a.any[0] {
		mine.Index, err = own.index.encode(math.MaxInt)
	}
	for k, who := range a.by {
		if who[0] == me {
			file, sums := own.file(k)
			mine.Bytes[k], mine.Sums[k] = len(file), sums
		}
	}
	all, err := tell(ctx, job, mine, err)
	if err != nil {
		return nil, err
	}
	c, err := memoryCheckpoint(ctx, a, all, tensors, layouts)
	var wants []int // files that this process has not got
	files := map[string][]byte{}
	if err == nil {
		for k, who := range a.by {
			switch {
			case slices.Contains(who, me):
				files[shardName(k, len(a.by))], _ = own.file(k)
			case c.wantsOf(k):
				wants = append(wants, k)
			}
		}
	}
	wanted, err := tell(ctx, job, wants, err)
	if err != nil {
		return nil, err
	}
	var list []Message
	for shift := 1; shift < len(all); shift++ {
		to, from := (me+shift)%len(all), (me+len(all)-shift)%len(all)
		var send, recv [][]byte
		for _, k := range wanted[to].Body {
			if k >= 0 && k < len(a.by) && a.by[k][0] == me {
				file, _ := own.file(k)
				send = append(send, file)
			}
		}
		for _, k := range wants {
			if a.by[k][0] == from {
				files[shardName(k, len(a.by))] = make([]byte, all[from].Body.Bytes[k])
				recv = append(recv, files[shardName(k, len(a.by))])
			}
		}
		list = messages(list, to, send, from, recv)
	}
	if err := carry(ctx, list); err != nil {
		return nil, err
	}
	c.open.opener = func(path string) (source, int64, error) {
		data, ok := files[filepath.Base(path)]
		if !ok {
			return nil, 0, fmt.Errorf("there is no file %s in memory", path)
		}
		return memoryFile{bytes.NewReader(data)}, int64(len(data)), nil
	}
	defer c.open.close()
	if err = c.openShards(ctx, "memory"); err == nil {
		err = c.verifyAll(ctx)
	}
	if _, err = tell(ctx, job, "", err); err != nil { // nothing is written before all is found to be whole
		return nil, err
	}
	err = c.write(ctx, tensors, layouts)
	if _, err = tell(ctx, job, "", err); err != nil {
		return nil, err
	}
	return c.index.meta, nil
}

// memoryCheckpoint is the checkpoint that a copy is, by what all have told of it.
func memoryCheckpoint(ctx context.Context, a *available, all []said[given], tensors []Tensor,
	layouts []layout) (*checkpoint, error) {
	x, err := parseIndex(ctx, all[a.any[0]].Body.Index)
	if err != nil {
		return nil, err
	}
	for k, who := range a.by {
		in, sums := x.inFile(k), all[who[0]].Body.Sums[k]
		if len(sums) != len(in) {
			return nil, fmt.Errorf("replica %d says %d checksums of shard %d, want %d", who[0], len(sums), k, len(in))
		}
		for i, t := range in {
			t.sums[k] = sums[i]
		}
	}
	return newCheckpoint(x, tensors, layouts, nil)
}

// memoryFile is a file in memory.
type memoryFile struct{ *bytes.Reader }

func (memoryFile) Close() error { return nil }

// file is a file of a copy, and the checksums of what is in it.
func (h *held) file(k int) (file []byte, sums []uint32) {
	part := h.parts[k]
	for range h.index.inFile(k) {
		sums = append(sums, binary.LittleEndian.Uint32(part))
		part = part[4:]
	}
	return part, sums
}

// appended is an io.Writer to memory.
type appended []byte

func (a *appended) Write(b []byte) (int, error) {
	*a = append(*a, b...)
	return len(b), nil
}

// encodeShard is the checksums of what is in file k, and the file, in memory of before if that is enough.
func (x *index) encodeShard(ctx context.Context, memory []byte, k int, tensors []Tensor) ([]byte, error) {
	out := appended(append(memory[:0], make([]byte, 4*len(x.inFile(k)))...))
	if err := x.writeShard(ctx, &out, k, readers(tensors)); err != nil {
		return nil, err
	}
	for i, t := range x.inFile(k) {
		binary.LittleEndian.PutUint32(out[4*i:], t.sums[k])
	}
	return out, nil
}
