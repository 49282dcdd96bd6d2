package flight

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"gogcl.dev/internal/watch"
)

// maxReached bounds the groups of which others are told how many calls there were, and pairs of replicas that messages
// went between.
const maxReached = 16

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

// told calls yield for the reports of replicas of other processes, which ask returns, each once; and then for the
// replicas without a report, with a nil text.
func (s *Recorders) told(ask func(Reports) [][]byte, yield func(replica int, at watch.Process, text []byte)) {
	s.mu.Lock()
	heard := slices.Clone(s.heard)
	here := map[int]bool{}
	for _, f := range s.all {
		here[f.Replica] = true
	}
	s.mu.Unlock()
	size := 0
	for _, reports := range heard {
		all := ask(reports)
		size = max(size, len(all))
		for replica, report := range all {
			if report == nil || here[replica] {
				continue
			}
			here[replica] = true
			line, text, found := bytes.Cut(report, []byte("\n"))
			var at watch.Process
			switch {
			case len(report) == 0:
				at.Replicas = []watch.Replica{{Replica: replica, Left: true}}
				text = []byte("it is gone\n")
			case !found || json.Unmarshal(line, &at) != nil:
				at, text = watch.Process{}, report
			}
			at.Replicas = slices.DeleteFunc(at.Replicas, func(r watch.Replica) bool { return r.Replica != replica })
			yield(replica, at, text)
		}
	}
	for replica := range size {
		if !here[replica] {
			yield(replica, watch.Process{}, nil)
		}
	}
}

// Elsewhere prints what replicas of other processes have told of themselves.
func (s *Recorders) Elsewhere(b *strings.Builder) {
	s.told(Reports.Reports, func(replica int, _ watch.Process, text []byte) {
		if text != nil {
			writeReport(b, replica, "when it heard of the failure", text)
		}
	})
}

// ask prints what replicas of other processes say of themselves now, and of those that do not answer in inquiryTime
// what they have told after an abort, or that they are silent.
func (s *Recorders) ask(b *strings.Builder) {
	silent := map[int]bool{}
	s.told(func(r Reports) [][]byte { return r.Inquire(inquiryTime) }, func(replica int, _ watch.Process, text []byte) {
		if silent[replica] = text == nil; text != nil {
			writeReport(b, replica, "which was asked", text)
		}
	})
	s.told(Reports.Reports, func(replica int, _ watch.Process, text []byte) {
		switch {
		case !silent[replica]:
		case text != nil:
			writeReport(b, replica, "when it heard of the failure", text)
		default:
			fmt.Fprintf(b, "replica %d, in another process, is silent: it does not answer\n", replica)
		}
	})
}

// writeReport prints what a replica of another process has told.
func writeReport(b *strings.Builder, replica int, when string, text []byte) {
	fmt.Fprintf(b, "replica %d, in another process, %s:\n", replica, when)
	for line := range strings.Lines(string(text)) {
		b.WriteString("  " + line)
	}
}

// Heard has the whereabouts go by what other processes have told after an abort, too. It waits for that, as the reports
// do.
func (w *Whereabouts) Heard(s *Recorders) *Whereabouts {
	if s != nil && s.hears() {
		w.hear(s, Reports.Reports)
	}
	return w
}

// hear has the whereabouts go by what other processes tell, and returns that.
func (w *Whereabouts) hear(s *Recorders, ask func(Reports) [][]byte) (all []watch.Process) {
	w.heard = true
	s.told(ask, func(replica int, at watch.Process, text []byte) {
		if text != nil {
			all = append(all, at)
		}
		for _, r := range at.Replicas {
			if r.Replica == replica && len(r.Connections) > 0 { // else there was no room
				w.replicas[replica] = &r
				w.several = w.several || len(r.Connections) > 1
			}
		}
	})
	return all
}
