package fabric

import (
	"regexp"
	"strings"
	"testing"
	"time"
)

// Jobs is whole jobs through trouble of all kinds, and how their ends are judged: docs/design/seeds.md.
type Jobs struct {
	Run func(t *testing.T, s *Scene) []Parting // runs the job of a scene

	Join, Silence time.Duration  // how long the job joins, and after which silence a replica is lost
	Limit         time.Duration  // after which all is over, whatever has happened
	Wrong         string         // is in the error of a replica that got wrong data
	Never         *regexp.Regexp // is in no error that the network is the reason of
}

// Parting is how one replica of a job has ended.
type Parting struct {
	Err         error         // of the whole, Close included
	Met         bool          // it has joined
	Joining, At time.Duration // how long it took to join, and when all was over
}

// Test runs 500 jobs, or 50 with -short, or as many as the flags say.
func (j *Jobs) Test(t *testing.T) {
	jobs := 500
	if testing.Short() {
		jobs = 50
	}
	tally := Tally{}
	Each(t, jobs, func(t *testing.T, seed uint64) {
		s := NewScene(seed, None, Late, Break, Reset, Refuse, Shortly, Never, Few, Absent, Leave, Cut, Stop, Straggle)
		ends := j.Run(t, s)
		failed, last := false, time.Duration(0)
		for _, e := range ends {
			failed, last = failed || e.Err != nil, max(last, e.At)
		}
		tally.Count(s.Trouble, failed, last)
		j.judge(t, s, ends)
		if left := s.Fabric.Open(); left > 0 {
			t.Errorf("%d ends of connections are open", left)
		}
		if t.Failed() || Alone() {
			for r, e := range ends {
				t.Logf("replica %d, met %v, joins for %v, ends after %v: %v", r, e.Met, e.Joining, e.At, e.Err)
			}
			t.Logf("%v", s)
		}
	})
	tally.Log(t)
}

// judge says what is wrong with how the replicas of a scene have ended.
func (j *Jobs) judge(t *testing.T, s *Scene, ends []Parting) {
	harmed, met := s.Harmed(), true
	for _, e := range ends {
		met = met && e.Met
	}
	failing := j.Limit // for those that get an error; others may not have noticed
	switch s.Trouble {
	case Break, Reset, Refuse, Cut, Stop:
		if met && harmed {
			failing = s.Fabric.LastHarm().Sub(s.Began) + 2*j.Silence
		}
	}
	for r, e := range ends {
		limit := j.Limit
		if e.Err != nil {
			limit = failing
		}
		if e.At > limit || e.Joining > j.Join+500*time.Millisecond {
			t.Errorf("replica %d has joined for %v and ended after %v, want at most %v", r, e.Joining, e.At, limit)
		}
		if e.Err == nil {
			if s.Trouble == Absent && r != s.Victim {
				t.Errorf("replica %d has no error, though replica %d is absent", r, s.Victim)
			}
			continue
		}
		switch text := e.Err.Error(); {
		case strings.Contains(text, j.Wrong):
			t.Errorf("replica %d: %v", r, e.Err)
		case !harmed:
			t.Errorf("replica %d fails without a reason: %v", r, e.Err)
		case !strings.Contains(text, "replica"):
			t.Errorf("the error of replica %d names none: %v", r, e.Err)
		case s.Blameable && r != s.Victim && !s.Blames(e.Err):
			t.Errorf("the error of replica %d does not name replica %d: %v", r, s.Victim, e.Err)
		case j.Never.MatchString(text):
			t.Errorf("replica %d: an error of another kind: %v", r, e.Err)
		}
	}
}
