package flight

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Report is what this process tells others after an abort, at most so many bytes: a line for programs, and what Now
// says, cut after a line.
func (s *Recorders) Report(limit int) []byte {
	line := s.standings(limit / 2)
	text := s.Now()
	if len(line)+len(text) > limit {
		text = text[:strings.LastIndexByte(text[:limit-len(line)], '\n')+1]
	}
	return append(line, text...)
}

// standing is how far a replica of another process has come on one connection.
type standing struct {
	Lane       uint64
	Connection int               `json:",omitempty"`
	Call       string            `json:",omitempty"` // the last, and its group; "": there is none
	Inside     bool              `json:",omitempty"` // it is in progress, or was when the communicator was aborted
	Ago        time.Duration     `json:",omitempty"` // it began; if it is over, that it was
	Reached    map[uint64]uint64 `json:",omitempty"` // by group: the number of the last call
	More       bool              `json:",omitempty"` // there may be calls of groups that Reached has not
	Cut        bool              `json:",omitempty"` // there was no room for further connections
}

// maxReached bounds the groups of a standing, and pairs of replicas that messages went between.
const maxReached = 16

// standings is a line with the standings of the connections, in at most so many bytes.
func (s *Recorders) standings(limit int) []byte {
	w := s.Look()
	var all []standing
	for _, f := range s.list() {
		if f.Connection > 0 && f.IsClosed() {
			continue
		}
		at := standing{Lane: f.lane, Connection: f.Connection, Reached: map[uint64]uint64{}}
		seen := 0
		f.newest(func(r *record) bool {
			seen++
			if at.Call == "" {
				at.Call, at.Inside, at.Ago = r.name()+r.whose(), r.inside(), w.ago(r)
			}
			for l := r.label; l != nil; l = l.Also {
				seq, _ := r.in(l.Group)
				if _, ok := at.Reached[l.Group]; ok || seq == 0 {
					continue
				}
				if len(at.Reached) == maxReached {
					at.More = true
					return false
				}
				at.Reached[l.Group] = seq
			}
			return true
		})
		at.More = at.More || seen == flightLength
		all = append(all, at)
	}
	slices.SortStableFunc(all, func(a, b standing) int { // those in a call first: they are waited for
		switch {
		case a.Inside == b.Inside:
			return 0
		case a.Inside:
			return -1
		}
		return 1
	})
	for {
		line, err := json.Marshal(all)
		if err != nil { // there is nothing in a standing that cannot be marshalled
			panic(err)
		}
		if line = append(line, '\n'); len(line) <= limit || len(all) == 0 {
			return line
		}
		if all = all[:len(all)-1]; len(all) > 0 {
			all[len(all)-1].Cut = true
		}
	}
}

// Reports are what the replicas of other processes tell, by replica: a transport.Reporter.
type Reports interface {
	Reports() [][]byte
	Inquire(limit time.Duration) [][]byte
}

// Hear has Dump print, and WaitingFor go by, what the replicas of other processes tell.
func (s *Recorders) Hear(reports Reports) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.heard = append(s.heard, reports)
}

// hears reports whether replicas of other processes tell anything.
func (s *Recorders) hears() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.heard) > 0
}

// told calls yield for the reports of replicas of other processes, which ask returns, each once.
func (s *Recorders) told(ask func(Reports) [][]byte, yield func(replica int, at []standing, text []byte)) {
	s.mu.Lock()
	heard := slices.Clone(s.heard)
	here := map[int]bool{}
	for _, f := range s.all {
		here[f.Replica] = true
	}
	s.mu.Unlock()
	for _, reports := range heard {
		for replica, report := range ask(reports) {
			if report == nil || here[replica] {
				continue
			}
			here[replica] = true
			line, text, _ := bytes.Cut(report, []byte("\n"))
			var at []standing
			if json.Unmarshal(line, &at) != nil {
				at, text = nil, report
			}
			yield(replica, at, text)
		}
	}
}

// Elsewhere prints what replicas of other processes have told of themselves.
func (s *Recorders) Elsewhere(b *strings.Builder) {
	s.told(Reports.Reports, func(replica int, _ []standing, text []byte) {
		fmt.Fprintf(b, "replica %d, in another process, when it heard of the failure:\n", replica)
		for line := range strings.Lines(string(text)) {
			b.WriteString("  " + line)
		}
	})
}

// Heard has the whereabouts go by what other processes have told after an abort, too. It waits for that, as the reports
// do.
func (w *Whereabouts) Heard(s *Recorders) *Whereabouts { return w.hear(s, Reports.Reports) }

// Asked has the whereabouts go by what other processes say now, who are waited for so long at most.
func (w *Whereabouts) Asked(s *Recorders, limit time.Duration) *Whereabouts {
	return w.hear(s, func(r Reports) [][]byte { return r.Inquire(limit) })
}

func (w *Whereabouts) hear(s *Recorders, ask func(Reports) [][]byte) *Whereabouts {
	if s == nil || !s.hears() {
		return w
	}
	w.elsewhere = map[int][]standing{}
	s.told(ask, func(replica int, at []standing, _ []byte) {
		if len(at) > 0 { // else there was no room
			w.elsewhere[replica] = at
		}
	})
	return w
}

// doingElsewhere says whether a replica of another process has come to a call of a connection, and what it was doing if
// not. Both are unknown where it had no room to tell.
func (w *Whereabouts) doingElsewhere(all []standing, own *Recorder, group, seq uint64) (known, come bool,
	doing string) {
	here := ""
	if w.several || len(all) > 1 {
		here = fmt.Sprintf(" on connection %d", own.Connection)
	}
	var aside []string
	what := "has not opened" + strings.TrimPrefix(here, " on")
	known = !all[len(all)-1].Cut
	for _, at := range all {
		if at.Lane != own.lane {
			if at.Inside {
				aside = append(aside, fmt.Sprintf("is in %s on connection %d", at.Call, at.Connection))
			}
			continue
		}
		reached, told := at.Reached[group]
		known = told || !at.More
		switch {
		case reached >= seq:
			come = true
		case at.Call == "":
			what = "has made no call" + here
		case at.Inside:
			what = "is in " + at.Call + here
		default:
			what = fmt.Sprintf("has made no call%s for %v, since %s", here, at.Ago, at.Call)
		}
	}
	return known, come, strings.Join(append(aside, what), " and ")
}
