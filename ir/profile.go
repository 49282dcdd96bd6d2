package ir

import "time"

// Profile says where the time of a session's runs went, since [Session.SetProfiling].
type Profile struct {
	Runs     int
	Replicas []ReplicaProfile
}

// ReplicaProfile is the time of one replica by what it was in: the kinds of operations that say one ([Kinded]), such as
// "collective" and "remote"; "wait", in [Started.Wait]; "finish", to meet the other replicas at the end of a run if the
// program has a choice; and "compute", all else. Time in an operation includes what it waits for.
type ReplicaProfile struct {
	Time   map[string]time.Duration // of the replica: the sum is what its runs took
	Beside map[string]time.Duration // of what is started, while that runs; nil if nothing is
}

// Waiting returns the part of the replicas' time, from 0 to 1, that they have spent in collectives, in waiting for
// those that run beside them, and in waiting for each other at the end of a run: "collective", "wait" and "finish".
// That another replica has the processor is part of it. Of no time it is 0.
func (p Profile) Waiting() float64 {
	var all, waited time.Duration
	for _, r := range p.Replicas {
		for kind, took := range r.Time {
			all += took
			switch kind {
			case "collective", profileWait, profileFinish:
				waited += took
			}
		}
	}
	if all == 0 {
		return 0
	}
	return float64(waited) / float64(all)
}

const (
	profileCompute = "compute"
	profileWait    = "wait"
	profileFinish  = "finish"
)

// SetProfiling says whether runs from now on are timed, and forgets what was. A session begins without. Timing costs
// two readings of the clock for each operation that says its kind, and allocates nothing. It is an error, and changes
// nothing, while another method of the session is in progress, and after Close.
func (s *Session) SetProfiling(on bool) error {
	if err := s.begin(); err != nil {
		return err
	}
	defer s.end()
	s.profiling, s.profiled = on, 0
	for _, r := range s.replicas {
		r.clocks.reset()
		r.besideClocks.reset()
	}
	return nil
}

// Profile returns where the time went. While another method of the session is in progress, the result is the zero
// Profile, of no runs and no replicas.
func (s *Session) Profile() Profile {
	if s.beginClosed() != nil {
		return Profile{}
	}
	defer s.end()
	out := Profile{Runs: s.profiled}
	for _, r := range s.replicas {
		p := ReplicaProfile{Time: r.clocks.times()}
		if r.companion != nil {
			p.Beside = r.besideClocks.times()
		}
		out.Replicas = append(out.Replicas, p)
	}
	return out
}

// clocks are the times of a goroutine.
type clocks struct {
	total  time.Duration
	byKind map[string]*time.Duration // all but computing
}

// of is the time of a kind; nil of computing.
func (c *clocks) of(kind string) *time.Duration {
	if kind == "" || kind == profileCompute {
		return nil
	}
	if c.byKind == nil {
		c.byKind = map[string]*time.Duration{}
	}
	if c.byKind[kind] == nil {
		c.byKind[kind] = new(time.Duration)
	}
	return c.byKind[kind]
}

func (c *clocks) reset() {
	c.total = 0
	for _, d := range c.byKind {
		*d = 0
	}
}

func (c *clocks) times() map[string]time.Duration {
	out := map[string]time.Duration{}
	rest := c.total
	for kind, d := range c.byKind {
		out[kind] = *d
		rest -= *d
	}
	out[profileCompute] = rest
	return out
}

// clock is the time that a step counts for, or nil.
func (r *replica) clock(s *step, beside bool) *time.Duration {
	c := &r.clocks
	if beside {
		c = &r.besideClocks
	}
	if s.waits != nil {
		return c.of(profileWait)
	}
	if k, is := s.node.op.(Kinded); is && s.from == nil && !s.starts {
		return c.of(k.Kind())
	}
	return nil
}
