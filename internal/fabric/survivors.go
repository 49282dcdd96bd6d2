package fabric

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"
)

// Survivors watches the replicas of a scene that go on without those that are gone, and judges what they have agreed
// on. What a process does that has been killed does not count.
type Survivors struct {
	NoKernel bool // of which a process can ask whether another one of its host has ended

	s     *Scene
	began time.Time

	mu    sync.Mutex // guards what follows
	jobs  map[string]*job
	at    []*job // by replica: the last that it has taken; nil: a newcomer has taken none
	ends  []*Ending
	met   []time.Duration // by replica: when a newcomer has taken its first job
	owns  map[int]int     // by place: the newcomer that has taken a job in it
	wrong []error
}

// job is what replicas have agreed on.
type job struct {
	key        string
	before     *job // nil: only a newcomer has told of it
	generation int
	members    []int // by number: places
	came       bool  // the last of them has
	committed  uint64
	states     map[uint64]uint64 // by step that is done: what every member makes of it
}

// Ending is how a replica has ended.
type Ending struct {
	Err     error
	How     How
	Left    []int // of How Minority, by their numbers in the last job, of which it had Of
	Of      int
	At      time.Duration // after the scene began
	members []int         // of its last job, as places
}

// How is a way to end.
type How string

// The ways to end.
const (
	Done     How = "done"     // all steps are
	Behind   How = "behind"   // the others have left it behind
	Minority How = "minority" // it may not go on
	GaveUp   How = "gave up"  // its context is done
	Failed   How = "failed"   // by another error
	Unmet    How = "unmet"    // it is a newcomer, and the job has not taken it in
	Orphan   How = "orphan"   // it is a newcomer, and nobody is left who has the job's state
)

// Agreed is what a replica has agreed on.
type Agreed struct {
	Generation int
	Replicas   []int    // in the job before, by number; not of a newcomer with its first job
	Notes      []uint64 // steps that each has seen done; 0 of one without the job's state
	Blank      []int    // who has none, as it has come
	Came       []int
	Gone       []int
	Rank       int // of the replica
	Size       int
	Places     []int // what replicas call each other for as long as the job lasts; nil: nobody comes
}

// TestSurvivors runs so many jobs of a test, or a tenth with -short, or as many as a flag says if that is not 0: run
// runs the job of a scene.
func TestSurvivors(t *testing.T, jobs, flag int, silence time.Duration, run func(*testing.T, *Scene) *Survivors) {
	if testing.Short() {
		jobs /= 10
	}
	if flag > 0 {
		jobs = flag
	}
	tally, ways, coming, came := Tally{}, map[How]int{}, 0, 0
	Each(t, jobs, func(t *testing.T, seed uint64) {
		s := NewScene(seed, Die, Two, Most, Lowest, Amid, Host, Freeze, Halves, Thirds, OneWay, GiveUp, Snap, Flaps,
			Both)
		hangs := time.AfterFunc(10*time.Minute, func() { // heartbeats go on for ever
			panic(fmt.Sprintf("-run '^%s$' -seed %d hangs: %v", t.Name(), seed, s))
		})
		v := run(t, s)
		hangs.Stop()
		counts := v.Judge(t, silence)
		for how, n := range counts {
			ways[how] += n
		}
		tally.Count(s.Trouble, len(counts) > 1 || counts[Done] == 0, v.last())
		coming, came = coming+len(s.Newcomers), came+len(v.owns)
		if left := s.Fabric.Open(); left > 0 {
			t.Errorf("%d ends of connections are open", left)
		}
	})
	tally.Log(t)
	t.Logf("replicas that were not killed: %v; of %d newcomers %d have come", ways, coming, came)
	if jobs >= 500 && !Alone() && coming > 0 && (ways[Unmet] == 0 || 2*came < coming) {
		t.Error("the seeds do not try what they are to try")
	}
}

// last is when the last replica has ended.
func (v *Survivors) last() (at time.Duration) {
	for _, e := range v.ends {
		if e != nil {
			at = max(at, e.At)
		}
	}
	return at
}

// NewSurvivors makes the observer of a scene.
func NewSurvivors(s *Scene) *Survivors {
	n := s.Parties()
	first := &job{key: "the first", states: map[uint64]uint64{}}
	v := &Survivors{s: s, began: time.Now(), jobs: map[string]*job{}, at: make([]*job, n), ends: make([]*Ending, n),
		met: make([]time.Duration, n), owns: map[int]int{}}
	for r := range s.Processes {
		first.members = append(first.members, r)
		v.at[r] = first
	}
	return v
}

// Begins says that all have met: the trouble begins.
func (v *Survivors) Begins() { v.began = time.Now() }

// Members are the places of those of the job that a replica is in, by number; nil: it is a newcomer, and was killed.
func (v *Survivors) Members(r int) []int {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.at[r] == nil {
		return nil
	}
	return v.at[r].members
}

func (v *Survivors) fail(format string, arguments ...any) {
	v.wrong = append(v.wrong, fmt.Errorf(format, arguments...))
}

// gone reports whether a replica counts no more. The caller holds mu.
func (v *Survivors) gone(r int) bool { return v.s.Process(r).Dead() || v.ends[r] != nil }

// of is the replica that has a place. false: a newcomer of which members know, and that knows of no job itself.
func (v *Survivors) of(place int) (int, bool) {
	if place < len(v.s.Processes) {
		return place, true
	}
	r, is := v.owns[place]
	return r, is
}

// Took is told that a replica, which has seen so many steps done, takes what it has agreed on.
func (v *Survivors) Took(r int, done uint64, a Agreed) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.gone(r) {
		return
	}
	before, place := v.at[r], r
	var members []int
	if before == nil { // a newcomer, which knows nothing of what was before
		members = a.Places
		if a.Rank != len(members)-1 || len(a.Came) != 1 || len(a.Replicas)+len(a.Gone) > 0 {
			v.fail("the newcomer %d takes %+v", r, a)
			return
		}
		place = members[a.Rank]
		v.owns[place], v.met[r] = r, time.Since(v.began)
	} else {
		place = before.members[v.rank(r)]
		for _, number := range a.Replicas {
			if number < 0 || number >= len(before.members) {
				v.fail("replica %d takes %+v after %v", r, a, before.members)
				return
			}
			members = append(members, before.members[number])
		}
		for number := range before.members {
			if slices.Contains(a.Replicas, number) == slices.Contains(a.Gone, number) {
				v.fail("replica %d takes %+v: number %d is left and gone, or neither", r, a, number)
			}
		}
		if left := len(members); a.Places != nil {
			if len(a.Places) < left || !slices.Equal(a.Places[:left], members) || len(a.Places)-left != len(a.Came) {
				v.fail("replica %d takes %+v, of %v are left %v", r, a, before.members, members)
				return
			}
			members = a.Places
		}
	}
	own, first, last := slices.Index(members, place), len(v.s.Processes), len(members)-1
	switch {
	case !slices.IsSorted(members) || own < 0 || own != a.Rank || len(members) != a.Size || len(a.Notes) != a.Size:
		v.fail("replica %d takes %+v, members %v", r, a, members)
		return
	case before != nil && a.Generation != before.generation+1:
		v.fail("replica %d takes generation %d after %d", r, a.Generation, before.generation)
	case a.Notes[own] != done:
		v.fail("replica %d takes %+v, and had told %d", r, a, done)
	case len(a.Came) > 1 || len(a.Came) == 1 && (a.Came[0] != last || members[last] < first || a.Notes[last] != 0 ||
		len(members) > v.s.Most || before != nil && slices.Contains(before.members, members[last])):
		v.fail("replica %d takes %+v of %v, and the job may have %d", r, a, members, v.s.Most)
	}
	committed := slices.Max(a.Notes)
	if committed > done+1 && !slices.Contains(a.Blank, own) {
		v.fail("replica %d, of %d steps, takes %+v", r, done, a)
	}
	key := fmt.Sprintf("generation %d of %v with %v, %v have come", a.Generation, members, a.Notes, a.Came)
	next := v.jobs[key]
	if next == nil {
		next = &job{key: key, generation: a.Generation, members: members, came: len(a.Came) > 0, committed: committed,
			states: map[uint64]uint64{}}
		v.jobs[key] = next
	}
	if next.before == nil {
		next.before = before
	}
	if before != nil && next.before != before {
		v.fail("%s comes after %s and after %s", key, before.key, next.before.key)
	}
	v.at[r] = next
}

// rank is the number of a replica in the job that it has taken last.
func (v *Survivors) rank(r int) int {
	return slices.IndexFunc(v.at[r].members, func(place int) bool {
		x, is := v.of(place)
		return is && x == r
	})
}

// Did is told that a replica has seen a step done, and what it makes of it.
func (v *Survivors) Did(r int, step, state uint64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.gone(r) {
		return
	}
	j := v.at[r]
	if other, known := j.states[step]; known && other != state {
		v.fail("step %d of %s is %x at replica %d, and %x at another", step, j.key, state, r, other)
	}
	j.states[step] = state
	for x, other := range v.at {
		if other != nil && !v.gone(x) && len(other.states) > 0 && !j.after(other) && !other.after(j) {
			v.fail("two jobs at a time: replica %d does step %d in %s, replica %d goes on in %s", r, step, j.key, x, other.key)
		}
	}
}

// after reports whether a job is another one or comes after it.
func (j *job) after(other *job) bool {
	for j != nil && j != other {
		j = j.before
	}
	return j != nil
}

// Ends is told how a replica has ended.
func (v *Survivors) Ends(r int, e Ending) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.gone(r) {
		e.At = time.Since(v.began)
		if v.at[r] != nil {
			e.members = v.at[r].members
		}
		v.ends[r] = &e
	}
}

// Judge says what is wrong, and returns how many have ended in which way. silence is that after which a replica is
// lost.
func (v *Survivors) Judge(t *testing.T, silence time.Duration) map[How]int {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, err := range v.wrong {
		t.Error(err)
	}
	s, counts := v.s, map[How]int{}
	limit := v.limit(silence)
	state, in := uint64(0), (*job)(nil)
	for r, e := range v.ends {
		switch {
		case s.Process(r).Dead():
			continue
		case e == nil:
			t.Errorf("replica %d has not ended", r)
			continue
		case r >= len(s.Processes) && s.Trouble == None && v.met[r]-s.Newcomers[r-len(s.Processes)].At >= 2*silence:
			t.Errorf("the newcomer %d has been taken in after %v, and nothing was in its way", r, v.met[r])
		case e.At > limit && e.How != Unmet:
			t.Errorf("replica %d has ended after %v, want at most %v: %v", r, e.At, limit, e.Err)
		}
		counts[e.How]++
		if err := v.allowed(r, e); err != nil {
			t.Errorf("replica %d has ended by %q, %v: %v", r, e.How, e.Err, err)
		}
		if e.How != Done {
			continue
		}
		if last, known := v.at[r].states[uint64(s.Steps)]; known {
			if in == v.at[r] && last != state {
				t.Errorf("replica %d has ended with %x, another with %x", r, last, state)
			}
			state, in = last, v.at[r]
		}
	}
	if t.Failed() || Alone() {
		for key, j := range v.jobs {
			before := "what nobody has told"
			if j.before != nil {
				before = j.before.key
			}
			t.Logf("%s, after %s, steps %v", key, before, j.states)
		}
		for r, e := range v.ends {
			if e != nil {
				in := "none"
				if v.at[r] != nil {
					in = v.at[r].key
				}
				t.Logf("replica %d, in %s, ends after %v by %q: %v", r, in, e.At, e.How, e.Err)
			}
		}
		for i, p := range s.Newcomers {
			t.Logf("%d comes after %v, to at most %d", len(s.Processes)+i, p.At, s.Most)
		}
		t.Logf("%d steps, %v before each, sides %v, heals %v, pair %v, victims %v\n%v", s.Steps, s.Pause, s.Sides, s.Heals,
			s.Pair, s.Victims, s)
	}
	return counts
}

// limit is when all is over.
func (v *Survivors) limit(silence time.Duration) time.Duration {
	s := v.s
	steps := time.Duration(s.Steps-s.Tail+len(s.Processes))*(s.Pause+20*s.Delay) +
		time.Duration(s.Tail)*(TailPause+20*s.Delay)
	return steps + max(s.last, s.Fabric.LastHarm().Sub(v.began)) +
		time.Duration(2+len(s.blows)+2*len(s.Newcomers))*silence + 5*time.Second
}

// allowed says why a replica may not end as it does.
func (v *Survivors) allowed(r int, e *Ending) error {
	s, n := v.s, len(v.s.Processes)
	dead, away := 0, 0
	for x := range s.Parties() {
		if s.Process(x).Dead() {
			dead++
		}
		if s.Process(x).Dead() || slices.Contains(s.Victims, x) {
			away++
		}
	}
	for _, j := range v.jobs { // a newcomer that members have taken in, and that has given up before it knew
		if _, is := v.of(j.members[len(j.members)-1]); !is && j.came {
			dead, away = dead+1, away+1
		}
	}
	victim := slices.Contains(s.Victims, r)
	// Nobody is held for gone that lives.
	honest := !slices.Contains([]Trouble{Freeze, Halves, Thirds, OneWay, Snap, Flaps, Both}, s.Trouble)
	switch e.How {
	case Failed:
		return errors.New("want another error")
	case Unmet:
		return v.unmet(r)
	case Orphan:
		for x := range s.Processes {
			if honest && !s.Processes[x].Dead() && (v.ends[x] == nil || v.ends[x].At > e.At) {
				return fmt.Errorf("replica %d has the state", x)
			}
		}
		return nil
	case GaveUp:
		if s.Trouble != GiveUp || !victim {
			return errors.New("the others do not come, and are not gone")
		}
		return nil
	case Behind:
		if honest {
			return errors.New("nobody has a reason to leave it behind")
		}
	case Minority:
		left := len(e.Left)
		switch {
		case e.Of != len(e.members) || left >= e.Of || 2*left > e.Of || 2*left == e.Of && e.Left[0] == 0:
			return fmt.Errorf("%v of %d may go on, of %v", e.Left, e.Of, e.members)
		case honest && s.Hosts == 1 && !v.NoKernel:
			return errors.New("the kernel says of all others that they have ended")
		}
		for number, place := range e.members {
			x, is := v.of(place)
			gone := !is || s.Process(x).Dead() || slices.Contains(s.Victims, x) ||
				v.ends[x] != nil && v.ends[x].At <= e.At
			if honest && !gone && !slices.Contains(e.Left, number) {
				return fmt.Errorf("replica %d lives", x)
			}
		}
	}
	if e.How == Done || victim || slices.ContainsFunc(v.ends, func(o *Ending) bool {
		return o != nil && o.How == Done && o.At <= e.At // it has left: fewer were there in the last step
	}) {
		return nil
	}
	must := false
	if s.Severs() && len(s.Newcomers) > 0 { // who comes may reach all sides: then sets are united, and few are left
		return nil
	}
	switch s.Trouble {
	case Freeze, GiveUp, Both:
		must = s.Trouble != Both && 2*away < n || s.Trouble == Both && 2*(away+1) < n && len(s.Victims) == 1
	case Halves, Thirds:
		if s.Heals {
			break
		}
		for _, side := range s.Sides {
			if slices.Contains(side, r) {
				must = 2*len(side) > n || 2*len(side) == n && side[0] == 0
			}
		}
	case Snap:
		lost := slices.Compact(slices.Sorted(slices.Values(s.Snapped)))
		must = !slices.Contains(lost, r) && 2*len(lost) < n
	case Flaps:
	case OneWay:
		must = !s.Heals && n > 2 && r != s.Pair[0]
	default:
		must = 2*dead < n || s.Trouble == Host && 2*dead == n && !s.Processes[0].Dead()
	}
	if must {
		return errors.New("it is one of those that are to go on")
	}
	return nil
}

// unmet says why a newcomer is to have been taken in: there was room, and the time to do it.
func (v *Survivors) unmet(r int) error {
	s := v.s
	if s.Tail == 0 || s.Severs() && s.Trouble != Snap && !s.Heals {
		return nil
	}
	quiet := max(s.last, s.Fabric.LastHarm().Sub(v.began))
	if v.ends[r].At-quiet < tailTime/2 { // it was not waiting for so long
		return nil
	}
	for x, e := range v.ends {
		if e == nil || e.How != Done || s.Process(x).Dead() || e.At-quiet < tailTime/2 || len(e.members) >= s.Most {
			continue
		}
		if keeper, is := v.of(e.members[0]); is && s.SameHost(keeper, 0) {
			return fmt.Errorf("replica %d ends in a job of %v, which has room for it, and replica %d keeps a desk", x,
				e.members, keeper)
		}
	}
	return nil
}
