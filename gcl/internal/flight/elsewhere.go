package flight

import (
	"fmt"
	"slices"
	"strings"
)

// Report is what Now says, cut after a line so that it has at most so many bytes, for other processes.
func (s *Recorders) Report(limit int) []byte {
	text := s.Now()
	if len(text) > limit {
		text = text[:strings.LastIndexByte(text[:limit], '\n')+1]
	}
	return []byte(text)
}

// Hear has Dump print what the replicas of other processes tell: reports returns that by replica.
func (s *Recorders) Hear(reports func() [][]byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.heard = append(s.heard, reports)
}

// Elsewhere prints what replicas of other processes have told of themselves.
func (s *Recorders) Elsewhere(b *strings.Builder) {
	s.mu.Lock()
	heard := slices.Clone(s.heard)
	here := map[int]bool{}
	for _, f := range s.all {
		here[f.Replica] = true
	}
	s.mu.Unlock()
	for _, reports := range heard {
		for replica, text := range reports() {
			if text == nil || here[replica] {
				continue
			}
			here[replica] = true // each replica once
			fmt.Fprintf(b, "replica %d, in another process, when it heard of the failure:\n", replica)
			for line := range strings.Lines(string(text)) {
				b.WriteString("  " + line)
			}
		}
	}
}
