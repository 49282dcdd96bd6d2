package fabric

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// The flags of tests that run jobs in bubbles.
var (
	jobsFlag = flag.Int("jobs", 0, "how many `jobs` the tests with bubbles run; 0: as many as in CI")
	fromFlag = flag.Uint64("from", 1, "the `seed` of the first job that the tests with bubbles run")
	seedFlag = flag.Uint64("seed", 0, "the `seed` of the only job that the tests with bubbles run; 0: all")
)

// Each calls a function for the seed of each of so many jobs, each in a bubble of its own. An error names the seed.
func Each(t *testing.T, jobs int, job func(t *testing.T, seed uint64)) {
	t.Helper()
	if *jobsFlag > 0 {
		jobs = *jobsFlag
	}
	first, last := *fromFlag, *fromFlag+uint64(jobs)-1
	if *seedFlag > 0 {
		first, last = *seedFlag, *seedFlag
	}
	for seed := first; seed <= last; seed++ {
		one := func() {
			defer func() { // the bubble has found goroutines that wait for nothing
				if why := recover(); why != nil {
					panic(fmt.Sprintf("%v, with: -run '^%s$' -seed %d", why, t.Name(), seed))
				}
			}()
			defer func() { // Test ends this goroutine if it has failed
				if t.Failed() {
					t.Errorf("run this job alone with: -run '^%s$' -seed %d", t.Name(), seed)
				}
			}()
			synctest.Test(t, func(t *testing.T) { job(t, seed) })
		}
		if one(); t.Failed() {
			return
		}
	}
}

// Alone reports whether only one job runs, of which all is wanted to be known.
func Alone() bool { return *seedFlag > 0 }

// Trouble is a kind of harm that comes to a job.
type Trouble string

// The kinds of trouble.
const (
	None     Trouble = "none"
	Late     Trouble = "late"     // everything takes up to 300 ms
	Break    Trouble = "break"    // connections end in the middle of a write
	Reset    Trouble = "reset"    // the same, by ECONNRESET
	Refuse   Trouble = "refuse"   // dials are refused
	Shortly  Trouble = "shortly"  // the victim's Accept fails a few times
	Never    Trouble = "never"    // the victim's Accept fails for ever
	Few      Trouble = "few"      // the victim has few descriptors
	Absent   Trouble = "absent"   // the victim does not come
	Leave    Trouble = "leave"    // the victim leaves early
	Cut      Trouble = "cut"      // the victim's cable is drawn, at some time
	Stop     Trouble = "stop"     // the victim says nothing any more, from some time on
	Straggle Trouble = "straggle" // the victim comes much later than the others
)

// The kinds of trouble after which the others go on. They come when all have met: see Scene.Strike.
const (
	Die    Trouble = "die"    // the victim is killed
	Two    Trouble = "two"    // two are killed
	Most   Trouble = "most"   // all but one or two are killed
	Lowest Trouble = "lowest" // replica 0 is killed, and then the lowest that is left
	Amid   Trouble = "amid"   // one is killed, and another while the others agree or meet
	Host   Trouble = "host"   // a host loses its power
	Freeze Trouble = "freeze" // the victim is stopped, and goes on
	Halves Trouble = "halves" // the network parts in two, for a while or for ever
	Thirds Trouble = "thirds" // the network parts in three
	OneWay Trouble = "oneway" // nothing arrives from one at another, for a while or for ever
	GiveUp Trouble = "giveup" // the victim does not wait for the others to agree
	Snap   Trouble = "snap"   // the connections between some break, and both ends live
	Flaps  Trouble = "flaps"  // now nothing arrives from one at another, now it does, and one may be stopped or killed
	Both   Trouble = "both"   // one is killed, and another stopped, or parted from a third
)

// Scene is a job of a seed, and its trouble.
type Scene struct {
	Fabric    *Fabric
	Trouble   Trouble
	Chances   *rand.Rand
	Processes []*Process // by replica
	Victim    int
	Hosts     int  // how many hosts there are: 1, or one for each replica
	Blameable bool // the trouble is the victim's alone
	Began     time.Time
	At        time.Duration // when the trouble of Cut and Stop begins
	Delay     time.Duration // the longest time that a write takes to arrive

	plan
}

// NewScene draws a job and its trouble.
func NewScene(seed uint64, troubles ...Trouble) *Scene {
	chances := rand.New(rand.NewPCG(seed, 1))
	s := &Scene{Chances: chances, Trouble: troubles[chances.IntN(len(troubles))], Hosts: 1, Began: time.Now()}
	n := 2 + chances.IntN(4)
	if s.survives() {
		n = 2 + chances.IntN(6)
	}
	s.Victim = chances.IntN(n)
	faults := Faults{Delay: time.Duration(chances.Int64N(int64(3 * time.Millisecond)))}
	if chances.IntN(4) == 0 {
		faults.Delay = 0
	}
	s.At = time.Duration(chances.Int64N(int64(3 * time.Second)))
	if chances.IntN(2) == 0 { // while the job joins
		s.At = time.Duration(chances.Int64N(int64(1 + 10*faults.Delay)))
	}
	often := 3 << chances.IntN(9)
	switch s.Trouble {
	case Late:
		faults.Delay = 300 * time.Millisecond
	case Break:
		faults.Break = often
	case Reset:
		faults.Reset = often
	case Refuse:
		faults.Refuse = min(often, 30)
	}
	s.Delay = faults.Delay
	s.Fabric = New(seed, faults)
	if chances.IntN(2) == 0 {
		s.Hosts = n
		if s.survives() && chances.IntN(2) == 0 {
			s.Hosts = min(n, 2+chances.IntN(2))
		}
	}
	for r := range n {
		host, at := "node", netip.AddrFrom4([4]byte{127, 0, 0, 1})
		if s.Hosts > 1 {
			host, at = fmt.Sprint("node", r%s.Hosts), netip.AddrFrom4([4]byte{10, 0, 0, byte(r + 1)})
		}
		s.Processes = append(s.Processes, s.Fabric.Process(fmt.Sprint(r), host, at))
	}
	victim := s.Processes[s.Victim]
	s.Blameable = slices.Contains([]Trouble{Never, Few, Absent, Cut, Stop}, s.Trouble)
	switch s.Trouble {
	case Shortly:
		victim.FailAccept(1 + chances.IntN(6))
	case Never:
		victim.FailAccept(-1)
	case Few:
		victim.Limit(1 + chances.IntN(8))
	case Cut:
		time.AfterFunc(s.At, victim.Cut)
	case Stop:
		time.AfterFunc(s.At, victim.Mute)
	}
	if s.survives() {
		s.draw(rand.New(rand.NewPCG(seed, 2)))
	}
	return s
}

// Address is that of a replica's host.
func (s *Scene) Address(replica int) netip.Addr { return s.Processes[replica].address }

// Harmed reports whether something has been done to the job that it may fail by.
func (s *Scene) Harmed() bool {
	switch s.Trouble {
	case None, Late, Shortly, Straggle:
		return false
	case Absent, Leave:
		return true
	}
	return len(s.Fabric.Harm()) > 0
}

// Blames reports whether an error names the victim.
func (s *Scene) Blames(err error) bool {
	named := regexp.MustCompile(fmt.Sprintf(`replica %d\b|replicas \[[^]]*\b%[1]d\b`, s.Victim))
	return named.MatchString(err.Error())
}

func (s *Scene) String() string {
	return fmt.Sprintf("%d replicas on %d hosts, up to %v, trouble %q of %d at %v:\n\t%s", len(s.Processes), s.Hosts, s.Delay,
		s.Trouble, s.Victim, s.At, strings.Join(s.Fabric.Harm(), "\n\t"))
}

// Tally counts what has become of jobs, by trouble.
type Tally map[Trouble]*Outcomes

// Outcomes are those of jobs with one trouble.
type Outcomes struct {
	Jobs, Failed int
	Longest      time.Duration // on the bubble's clock
}

// Count adds a job.
func (y Tally) Count(trouble Trouble, failed bool, took time.Duration) {
	if y[trouble] == nil {
		y[trouble] = &Outcomes{}
	}
	o := y[trouble]
	o.Jobs++
	if failed {
		o.Failed++
	}
	o.Longest = max(o.Longest, took)
}

// Log prints the counts.
func (y Tally) Log(t *testing.T) {
	var troubles []Trouble
	for trouble := range y {
		troubles = append(troubles, trouble)
	}
	slices.Sort(troubles)
	for _, trouble := range troubles {
		o := y[trouble]
		t.Logf("%-9s %4d jobs, %4d end with an error, the longest after %v", trouble, o.Jobs, o.Failed, o.Longest)
	}
}
