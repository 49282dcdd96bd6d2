package agree

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

var (
	oneSeed   = flag.Uint64("seed", 0, "run this seed alone, and with -v say what happens step by step")
	firstSeed = flag.Uint64("from", 1, "first seed")
	seeds     = flag.Int("seeds", 2000, "how many seeds")
)

// TestSeeds runs processes that die, are stopped, are cut off from each other or hold each other for gone by mistake,
// at any moment of several agreements, and looks at what they have agreed on.
func TestSeeds(t *testing.T) {
	if *oneSeed != 0 {
		if err := run(*oneSeed, t.Logf); err != nil {
			t.Error(err)
		}
		return
	}
	decisions, behind, minorities, came, again := 0, 0, 0, 0, 0
	for seed := *firstSeed; seed < *firstSeed+uint64(*seeds); seed++ {
		w := newWorld(seed, nil)
		if err := w.play(); err != nil {
			t.Fatalf("seed %d: %v: go test ./transport/internal/agree -run Seeds -seed %[1]d -v", seed, err)
		}
		decisions += len(w.takers)
		for _, p := range w.all {
			if p.newcomer != nil && p.Member != nil {
				came++
			}
			switch {
			case p.Member == nil && p.end != nil:
				again++
			case errors.Is(p.end, ErrLeftBehind):
				behind++
			case p.end != nil:
				minorities++
			}
		}
	}
	t.Logf("%d decisions; %d processes left behind, %d in a minority; %d newcomers, and %d that have to come again",
		decisions, behind, minorities, came, again)
	if *seeds >= 1000 && (decisions < *seeds || behind == 0 || minorities == 0 || came < *seeds/8 || again == 0) {
		t.Error("the seeds do not try what they are to try")
	}
}

func run(seed uint64, say func(string, ...any)) error { return newWorld(seed, say).play() }

// world is the processes of a job, and what is on its way between them.
type world struct {
	random  *rand.Rand
	say     func(string, ...any) // nil: nobody reads it
	all     []*process           // by number
	first   int                  // how many began the job
	most    int                  // members of a generation
	kernel  bool                 // all are on one host, whose kernel says who has ended
	resting bool                 // nothing happens any more but what has begun
	honest  bool                 // nobody is held for gone that has not ended

	way    map[[2]int][][]byte // from one to another, in order; a nil message: the connection has ended
	cut    map[[2]int]bool     // what is on the way waits
	takers map[string][]int    // of each decision
	parent map[string]string
	wrong  error
}

// process is the Host of its Member.
type process struct {
	*Member               // nil: it is a newcomer that has not been taken in
	newcomer *Newcomer    // nil: it began the job
	knows    map[int]bool // members that the newcomer has dialled
	id       int
	world    *world
	at       string // the decision that it has taken last
	dead     bool   // it has ended, or has left the job
	paused   bool   // it has been stopped: others may hold it for gone, and have gone on
	stopped  bool
	end      error // why it has left
	lives    int   // messages that it still tells before it dies; -1: it does not
}

func newWorld(seed uint64, say func(string, ...any)) *world {
	r := rand.New(rand.NewPCG(seed, 1))
	w := &world{random: r, say: say, way: map[[2]int][][]byte{}, cut: map[[2]int]bool{}, takers: map[string][]int{},
		parent: map[string]string{}, kernel: r.IntN(2) == 0, honest: r.IntN(3) == 0}
	n := 2 + r.IntN(6)
	ids := make([]int, n)
	for i := range ids {
		ids[i] = i
	}
	w.first, w.most = n, n-1+r.IntN(4)
	for i := range ids {
		p := &process{id: i, world: w, at: "the first", lives: -1}
		p.Member = New(i, ids, w.most, p)
		w.all = append(w.all, p)
	}
	w.note("%d processes, on one host %v, honest %v, %d at most", n, w.kernel, w.honest, w.most)
	return w
}

func (w *world) note(format string, arguments ...any) {
	if w.say != nil {
		w.say(format, arguments...)
	}
}

func (p *process) Tell(to int, message []byte) {
	if p.dead || p.lives == 0 {
		return
	}
	if p.lives > 0 {
		p.lives--
	}
	w := p.world
	w.way[[2]int{p.id, to}] = append(w.way[[2]int{p.id, to}], message)
}

func (p *process) May(members, gone []int) error {
	left := len(members) - len(gone)
	ended := !slices.ContainsFunc(gone, func(id int) bool { return !p.world.all[id].dead })
	if ended && p.world.kernel && !p.world.resting && p.world.random.IntN(4) == 0 { // the kernel is late
		return ErrNotYet
	}
	if p.world.kernel && ended && !p.paused || 2*left > len(members) ||
		2*left == len(members) && !has(gone, members[0]) {
		return nil
	}
	if p.world.kernel && !p.world.resting && p.world.random.IntN(2) == 0 {
		return ErrNotYet
	}
	return fmt.Errorf("%d of %d are left", left, len(members))
}

func (p *process) Decided(d Decision) error {
	w := p.world
	key := fmt.Sprintf("generation %d of %v with %v", d.Generation, d.Members, d.Notes)
	w.note("%d takes %s, after %s", p.id, key, p.at)
	w.takers[key] = append(w.takers[key], p.id)
	if before, known := w.parent[key]; known && before != p.at && p.at != "" {
		w.fail("%s comes after %s and after %s", key, before, p.at)
	}
	if p.at != "" {
		w.parent[key] = p.at
	}
	p.at = key
	if d.Came && len(d.Members) > w.most {
		w.fail("%s has more than %d members", key, w.most)
	}
	if !slices.IsSorted(d.Members) || d.Came && d.Members[len(d.Members)-1] < w.first {
		w.fail("%s is out of order", key)
	}
	if !has(d.Members, p.id) {
		w.fail("%d takes %s, without itself", p.id, key)
	}
	for _, other := range w.all {
		if other.at != key && other.at != "" && w.whole(key) && w.whole(other.at) {
			w.fail("two jobs at a time: %s and %s", key, other.at)
		}
	}
	return nil
}

// whole reports whether all members of a decision live and have taken it last.
func (w *world) whole(key string) bool {
	if key == "the first" {
		return !slices.ContainsFunc(w.all[:w.first], func(p *process) bool { return p.dead || p.at != key })
	}
	n := 0
	for _, p := range w.all {
		if !p.dead && p.at == key {
			n++
		}
	}
	return n > 0 && n == membersOf(key)
}

// membersOf is how many members a decision leaves.
func membersOf(key string) int {
	return len(strings.Fields(key[strings.IndexByte(key, '['):strings.IndexByte(key, ']')]))
}

func (p *process) Ended(err error) {
	p.world.note("%d has to leave: %v", p.id, err)
	p.end = err
}

func (w *world) fail(format string, arguments ...any) {
	if w.wrong == nil {
		w.wrong = fmt.Errorf(format, arguments...)
	}
}

// close has a process end: what it has told arrives, or a part of it, and then the end of its connections.
func (w *world) close(p *process, torn bool) {
	if p.dead {
		return
	}
	w.note("%d ends", p.id)
	p.dead = true
	if p.Member != nil {
		p.Member.End()
	}
	for to := range w.all {
		link := [2]int{p.id, to}
		if torn {
			w.way[link] = w.way[link][:w.random.IntN(len(w.way[link])+1)]
		}
		w.way[link] = append(w.way[link], nil)
	}
}

// deliver delivers the next message of a link, if there is one that can arrive.
func (w *world) deliver(from, to int) bool {
	link := [2]int{from, to}
	p := w.all[to]
	if len(w.way[link]) == 0 || w.cut[link] || p.stopped {
		return false
	}
	message := w.way[link][0]
	if p.Member == nil && !p.dead && (p.newcomer.TakenBy(from) || string(message) == hello) { // it waits
		return false
	}
	w.way[link] = w.way[link][1:]
	switch {
	case p.dead:
	case p.Member == nil:
		w.hearNewcomer(p, from, message)
	case message == nil:
		w.note("%d sees the end of %d", to, from)
		p.Lose(from)
	case string(message) == hello:
		w.note("%d is connected with the newcomer %d", to, from)
		p.Wait(from)
	default:
		w.note("%d hears %d: %x", to, from, message)
		if err := p.Hear(from, message); err != nil {
			w.fail("%d hears of %d: %v", to, from, err)
		}
	}
	w.settle(p)
	return true
}

// hello is what a newcomer tells first over a connection.
const hello = "\xff"

// arrive has a newcomer come, which has heard of the members that a process knows.
func (w *world) arrive(by *process) {
	if by.dead || by.Member == nil || len(w.all) > w.first+4 {
		return
	}
	p := &process{id: len(w.all), world: w, lives: -1, knows: map[int]bool{}}
	p.newcomer = NewNewcomer(p.id)
	w.all = append(w.all, p)
	w.note("%d comes, by %d", p.id, by.id)
	w.dial(p, by.members)
}

// dial connects a newcomer with members that it knows nothing of.
func (w *world) dial(p *process, members []int) {
	for _, id := range members {
		switch {
		case p.knows[id] || p.newcomer.lost[id]:
			continue
		case w.all[id].dead:
			p.leave(p.newcomer.Lose(id))
		default:
			w.way[[2]int{p.id, id}] = append(w.way[[2]int{p.id, id}], []byte(hello))
		}
		p.knows[id] = true
	}
}

// hasHeard reports whether a process has a connection with another one.
func (p *process) hasHeard(of *process) bool {
	if p.Member == nil {
		_, heard := p.newcomer.told[of.id]
		return heard
	}
	return has(p.members, of.id) || has(p.waiting, of.id)
}

// leave notes why a newcomer has to come again.
func (p *process) leave(err error) {
	if err != nil && p.end == nil {
		p.Ended(err)
	}
}

// hearNewcomer has a newcomer hear a message.
func (w *world) hearNewcomer(p *process, from int, message []byte) {
	if message == nil {
		w.note("the newcomer %d sees the end of %d", p.id, from)
		p.leave(p.newcomer.Lose(from))
		return
	}
	w.note("the newcomer %d hears %d: %x", p.id, from, message)
	d, members, err := p.newcomer.Hear(from, message)
	switch {
	case err == ErrAgain:
		p.leave(err)
	case err != nil:
		w.fail("the newcomer %d hears of %d: %v", p.id, from, err)
	case d != nil:
		p.Member = p.newcomer.Member(d, w.most, p)
		p.Decided(*d)
	default:
		w.dial(p, members)
	}
}

// settle has a process end that has to, or that has told as much as it lives to.
func (w *world) settle(p *process) {
	if p.end != nil {
		w.close(p, false)
	}
	if p.lives == 0 {
		w.close(p, true)
	}
}

func (w *world) join(p *process) {
	if p.Member != nil && !p.dead && !p.stopped && !p.Joined() {
		w.note("%d joins", p.id)
		p.Join(uint64(p.id%2 + 10*p.generation))
		w.settle(p)
	}
}

// step does something at random.
func (w *world) step() {
	n := len(w.all)
	a, b := w.all[w.random.IntN(n)], w.all[w.random.IntN(n)]
	link := [2]int{b.id, a.id}
	switch k := w.random.IntN(100); {
	case k < 72:
		w.deliver(b.id, a.id)
	case k < 86:
		w.join(a)
	case k < 87 && !a.dead && !a.stopped && a.Member != nil:
		a.Retry()
		w.settle(a)
	case k < 88:
		w.arrive(a)
	case k < 90 && !a.dead && a.lives < 0:
		if a.lives = w.random.IntN(2 * n); a.lives == 0 {
			w.settle(a)
		}
	case w.honest:
	case k < 93:
		a.stopped, a.paused = !a.stopped, true
		w.note("%d is stopped: %v", a.id, a.stopped)
	case k < 96:
		w.cut[link] = !w.cut[link]
		w.note("from %d to %d is cut: %v", b.id, a.id, w.cut[link])
	case !a.dead && !a.stopped && a != b && (b.stopped || w.cut[link] && !w.kernel) && a.hasHeard(b):
		w.note("%d holds %d for gone", a.id, b.id)
		newcomers := a.Member == nil || b.Member == nil && !has(a.members, b.id)
		if a.Member == nil {
			a.leave(a.newcomer.Lose(b.id))
		} else {
			a.Lose(b.id)
		}
		if newcomers { // between others the connection stays, to tell the one that it has been left behind
			w.way[[2]int{a.id, b.id}] = append(w.way[[2]int{a.id, b.id}], nil)
		}
		w.settle(a)
	}
}

// play lets things happen, then everything come to rest, and judges.
func (w *world) play() error {
	for range w.random.IntN(300) {
		w.step()
	}
	clear(w.cut)
	w.resting = true
	for _, p := range w.all {
		if p.stopped = false; p.lives > 0 {
			p.lives = -1
		}
	}
	for round := 0; ; round++ {
		if round > 100*len(w.all) {
			return errors.New("it comes to no rest")
		}
		for w.deliverAny() {
		}
		if w.wrong != nil {
			return w.wrong
		}
		done := true
		for _, p := range w.all {
			if p.Member != nil && !p.dead && !w.established(p.at) {
				done = false
				w.join(p)
				p.Retry()
				w.settle(p)
			}
		}
		if done {
			return w.judge()
		}
	}
}

// deliverAny delivers one message of those that are on their way.
func (w *world) deliverAny() bool {
	n := len(w.all)
	start := w.random.IntN(n * n)
	for i := range n * n {
		k := (start + i) % (n * n)
		if w.deliver(k/n, k%n) {
			return true
		}
	}
	return false
}

// established reports whether the members of a decision can work, and none wants to go on without another.
func (w *world) established(key string) bool {
	return w.whole(key) && !slices.ContainsFunc(w.all, func(p *process) bool {
		return p.Member != nil && !p.dead && p.Joined()
	})
}

// judge says what is wrong in the end.
func (w *world) judge() error {
	at := ""
	for _, p := range w.all {
		switch {
		case p.Member == nil:
			// Who has lost one that lives, or all that it knows, comes again after a while.
			lives := func(id int) bool { return !w.all[id].dead }
			if p.dead || !slices.ContainsFunc(slices.Collect(maps.Keys(p.newcomer.told)), lives) ||
				slices.ContainsFunc(slices.Collect(maps.Keys(p.newcomer.lost)), lives) {
				break
			}
			for _, q := range w.all {
				if !q.dead && q.Member != nil && !has(q.waiting, p.id) {
					return fmt.Errorf("the newcomer %d waits, and %d knows nothing of it", p.id, q.id)
				}
			}
			for from := range p.newcomer.told {
				if !p.dead && p.newcomer.TakenBy(from) {
					return fmt.Errorf("the newcomer %d waits for members that do not come", p.id)
				}
			}
		case p.dead && w.honest && w.kernel && p.end != nil:
			return fmt.Errorf("%d has left, and nobody was held for gone who lived: %w", p.id, p.end)
		case p.dead:
		case at != "" && p.at != at:
			return fmt.Errorf("two jobs: %s and %s", at, p.at)
		default:
			at = p.at
		}
	}
	// What all members of a decision have taken may have worked. Of two such decisions one comes after the other.
	var worked []string
	for key, takers := range w.takers {
		if len(takers) == membersOf(key) {
			worked = append(worked, key)
		}
	}
	for _, a := range worked {
		for _, b := range worked {
			if a != b && !w.after(a, b) && !w.after(b, a) {
				return fmt.Errorf("two jobs at some time: %s and %s", a, b)
			}
		}
	}
	return nil
}

// after reports whether a comes after b.
func (w *world) after(a, b string) bool {
	for a != "" && a != b {
		a = w.parent[a]
	}
	return a == b
}
