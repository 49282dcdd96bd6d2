package perfetto

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// entry is an event of the Trace Event Format, which both programs read. Phase says what it is:
//
//	X   slice, with a duration         s   begin of an arrow, in the slice that is open on the thread then
//	i   mark                           f   end of an arrow, in the slice around it (bp "e")
//	M   name of a process or thread
type entry struct {
	Name     string          `json:"name"`
	Category string          `json:"cat,omitempty"` // of arrows: they are told apart by name, category and id
	Phase    string          `json:"ph"`
	Time     float64         `json:"ts"` // microseconds, as is Duration
	Duration float64         `json:"dur,omitempty"`
	PID      int             `json:"pid"`
	TID      int             `json:"tid"`
	ID       string          `json:"id,omitempty"` // hexadecimal
	Bind     string          `json:"bp,omitempty"`
	Scope    string          `json:"s,omitempty"`
	Args     json.RawMessage `json:"args,omitempty"`
}

// header is the first entry's args, by which Join knows a file. Viewers skip names of phase M that they do not know.
type header struct {
	Epoch    int64  `json:"epoch,string"` // of the file's times: nanoseconds since 1970 by the host's wall clock
	Replicas []int  `json:"replicas"`
	Host     string `json:"host,omitempty"`
	Dropped  int    `json:"dropped"`
}

// headerName is the name of the first entry.
const headerName = "gogcl timeline"

// microseconds are the times of the format.
func microseconds(ns int64) float64 { return float64(ns) / 1e3 }

// encoder writes a file, an entry a line.
type encoder struct {
	w       io.Writer
	buf     bytes.Buffer
	begun   bool
	written int64
}

// add puts an entry into the buffer.
func (e *encoder) add(x entry, args any) error {
	if args != nil {
		text, err := json.Marshal(args)
		if err != nil {
			return err
		}
		x.Args = text
	}
	text, err := json.Marshal(x)
	if err != nil {
		return err
	}
	separator := ",\n"
	if !e.begun {
		e.begun, separator = true, "{\"traceEvents\":[\n"
	}
	e.buf.WriteString(separator)
	e.buf.Write(text)
	return nil
}

// flush writes the buffer out if it is longer than size.
func (e *encoder) flush(size int) error {
	if e.buf.Len() <= size {
		return nil
	}
	n, err := e.buf.WriteTo(e.w)
	e.written += n
	return err
}

// close writes the end of the file.
func (e *encoder) close() error {
	e.buf.WriteString("\n]}\n")
	return e.flush(0)
}

// bufferBytes is how much is encoded before it is written.
const bufferBytes = 64 << 10

// WriteTo writes the file to w, about 64 KiB at a time. Calls may go on meanwhile. Calls and rounds that are not over
// end now in the file, and are marked "unfinished". A second WriteTo writes everything again.
func (t *Timeline) WriteTo(w io.Writer) (int64, error) {
	t.begin()
	e := &encoder{w: w}
	err := t.encode(e)
	if err != nil {
		err = fmt.Errorf("perfetto: %w", err)
	}
	return e.written, err
}

// WriteFile writes a file as WriteTo does. A file of that name is overwritten.
func (t *Timeline) WriteFile(name string) error {
	f, err := os.Create(name)
	if err != nil {
		return fmt.Errorf("perfetto: %w", err)
	}
	_, err = t.WriteTo(f)
	return errors.Join(err, f.Close())
}

// FileName is the name of the file of one replica: of "trace.json" and 3 it is "trace-3.json".
func FileName(name string, replica int) string {
	extension := filepath.Ext(name)
	return fmt.Sprintf("%s-%d%s", strings.TrimSuffix(name, extension), replica, extension)
}

func (t *Timeline) encode(e *encoder) error {
	host, _ := os.Hostname() // without it the name is left out
	places, replicas := t.places(), t.Replicas()
	first := entry{Name: headerName, Phase: "M"}
	if len(replicas) > 0 {
		first.PID = replicas[0] // another number would be a process more
	}
	err := e.add(first, header{Epoch: t.start.UnixNano(), Replicas: replicas, Host: host, Dropped: t.Dropped()})
	if err != nil {
		return err
	}
	known := none // the replica that has its name
	for _, p := range places {
		if p.replica != known {
			known = p.replica
			if err := e.nameProcess(p.replica, host); err != nil {
				return err
			}
		}
		x := entry{Name: "thread_name", Phase: "M", PID: p.replica, TID: p.connection}
		if err := e.add(x, name{fmt.Sprintf("connection %d", p.connection)}); err != nil {
			return err
		}
		if err := t.row(p).encode(e, p); err != nil {
			return err
		}
	}
	return e.close()
}

// name is the args of an entry that gives a name.
type name struct {
	Name string `json:"name"`
}

// nameProcess names a replica and gives it its place.
func (e *encoder) nameProcess(replica int, host string) error {
	text := fmt.Sprintf("replica %d", replica)
	if host != "" {
		text += " on " + host
	}
	if err := e.add(entry{Name: "process_name", Phase: "M", PID: replica}, name{text}); err != nil {
		return err
	}
	return e.add(entry{Name: "process_sort_index", Phase: "M", PID: replica},
		map[string]int{"sort_index": replica})
}

// batch is how many events are encoded under a row's lock, which is not held while they are written.
const batch = 256

// encode writes the row as it is when encode begins.
func (r *row) encode(e *encoder, p place) error {
	r.mu.Lock()
	count, now := len(r.events), r.now()
	r.mu.Unlock()
	for at := 0; at < count; at += batch {
		if err := r.encodeBatch(e, p, at, min(at+batch, count), now); err != nil {
			return err
		}
		if err := e.flush(bufferBytes); err != nil {
			return err
		}
	}
	return nil
}

// encodeBatch encodes events from one to another as they were at a time.
func (r *row) encodeBatch(e *encoder, p place, from, to int, now int64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := from; i < to; i++ {
		if err := e.addEvent(p, &r.events[i], now); err != nil {
			return err
		}
	}
	return nil
}

func (e *encoder) addEvent(p place, v *event, now int64) error {
	x := entry{Time: microseconds(v.began), PID: p.replica, TID: p.connection}
	unfinished := false
	if v.kind == whole || v.kind == round {
		ended := v.ended
		if unfinished = ended == 0 || ended > now; unfinished {
			ended = now
		}
		x.Phase, x.Duration = "X", microseconds(ended-v.began)
	}
	switch v.kind {
	case whole:
		x.Name = v.call.String()
		return e.add(x, v.call.args(unfinished))
	case round:
		x.Name = fmt.Sprintf("round %d", v.number)
		if v.phase > 0 {
			x.Name = fmt.Sprintf("phase %d, round %d", v.phase, v.number)
		}
		return e.add(x, roundArgs{v.sent, v.received, unfinished})
	case refused:
		x.Name, x.Phase, x.Scope = v.call.String(), "i", "t"
		return e.add(x, v.call.args(false))
	case received:
		if v.began == 0 || v.began > now {
			return nil // it had not come
		}
		x.Phase, x.Bind = "f", "e"
	case sent:
		x.Phase = "s"
	}
	x.Name, x.Category, x.ID = "message", "gcl", "0x"+strconv.FormatUint(v.flow, 16)
	return e.add(x, nil)
}

// callArgs is what a viewer shows of a call.
type callArgs struct {
	DType          string `json:"dtype"`
	Elements       int    `json:"elements"`
	Bytes          int    `json:"bytes"`
	Tensors        int    `json:"tensors,omitempty"`
	IPUs           int    `json:"ipus,omitempty"`
	ByCounts       bool   `json:"byCounts,omitempty"`
	Rank           int    `json:"rank"`
	Size           int    `json:"size"`
	Group          string `json:"group"`
	Method         string `json:"method"`
	Implementation string `json:"implementation"`
	Path           string `json:"path"`
	Error          string `json:"error,omitempty"`
	Unfinished     bool   `json:"unfinished,omitempty"`
}

func (c *call) args(unfinished bool) callArgs {
	return callArgs{
		DType: c.DType.String(), Elements: c.Elements, Bytes: c.Bytes, Tensors: c.Tensors, IPUs: c.IPUs,
		ByCounts: c.ByCounts,
		Rank:     c.Rank, Size: c.Size, Group: strconv.FormatUint(c.Group, 16), Method: c.Method.String(),
		Implementation: c.Implementation.String(), Path: c.Path.String(), Error: c.err, Unfinished: unfinished,
	}
}

// roundArgs is what a viewer shows of a round.
type roundArgs struct {
	Sent       int  `json:"bytes sent"`
	Received   int  `json:"bytes received"`
	Unfinished bool `json:"unfinished,omitempty"`
}
