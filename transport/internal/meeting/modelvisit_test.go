package meeting

import "slices"

// The models of Gather, Share and Broadcast: seat.go, visit.go, gather.go, share.go, broadcast.go, and fail of
// transport/inproc. The host of transport/tcp is in modelhost_test.go. wrong names what a model does otherwise than the
// code.

// seatWords are the words of a table.
type seatWords struct {
	number, call, board   [][]word // Seat.notices and boards, by place and turn
	synced, inside, shown []word   // shown is what a Host keeps for Show
	aborted               word

	count, done, next, left word // of the Hall
	decided, combined       []word

	in  []word   // buffers, by place
	out [][]word // by place and piece
}

// modelled is a member's Visit.
type modelled struct {
	*member
	*seatWords
	n          int
	wrong      string
	number     int
	counted    int
	operations int
	base       int
	spacious   bool
	spread     bool
	nextSpread bool
	announcing bool
	hidden     bool
	combines   bool
	seen       int
	sharing    bool
	may        mays
	cancelled  bool
	aborts     bool // there are aborts in this model
}

// mays is what a model's members may do.
type mays struct {
	spacious bool // every member can have a processor
	apart    bool // the table is one of NewTableApart: members meet at the hall first

	// Member 0 may find the processors crowded, have a context that ends, have memory that is not laid open.
	crowd, cancel, hide bool

	check bool // members look with Visit.Check while they wait
}

// visits is a model of n members that carry out operations one after the other: g is a Gather, s a Share of one round,
// r a Share of two.
func visits(n int, operations string, may mays) func(wrong string) *model {
	return func(wrong string) *model {
		m := &model{}
		t := &seatWords{number: m.grid(n, 2, "number"), call: m.grid(n, 2, "call"), synced: m.row(n, "synced"),
			count: m.word("count"), done: m.word("done"), next: m.word("next"), left: m.word("left"),
			decided: m.row(2, "decided"), combined: m.row(2, "combined")}
		for _, o := range operations {
			switch {
			case o == 'g' && t.board == nil:
				t.board = m.grid(n, 2, "board")
			case o != 'g' && t.in == nil:
				t.in, t.out, t.shown = m.row(n, "in"), m.grid(n, n, "out"), m.row(n, "shown")
				t.inside, t.aborted = m.row(n, "inside"), m.word("aborted")
			}
		}
		for range n {
			m.members = append(m.members, func(m *member) {
				v := &modelled{member: m, seatWords: t, n: n, wrong: wrong, spacious: may.spacious,
					nextSpread: may.spacious && !may.apart, may: may, aborts: may.cancel}
				if m.me != 0 {
					v.may.crowd, v.may.cancel, v.may.hide = false, false, false
				}
				for k, o := range operations {
					v.mark("operation", k, v.nextSpread, v.number, v.counted, v.seen, v.cancelled)
					if o == 'g' {
						v.gather()
					} else if !v.user(o) {
						return
					}
				}
			})
		}
		return m
	}
}

// turn is which notice and board an operation takes.
func (v *modelled) turn() int {
	if v.wrong == "one notice instead of two" {
		return 0
	}
	return v.operations % 2
}

// hallTurn is the same for the results in the Hall.
func (v *modelled) hallTurn() int {
	if v.wrong == "a hall without turns" {
		return 0
	}
	return v.turn()
}

// message is what a member publishes in an operation.
func message(operation, place int) int { return 10*operation + place + 1 }

// begin is the beginning of Visit.Gather and Visit.Share.
func (v *modelled) begin() {
	v.operations++
	v.base = 8 * v.operations // baseOf
	if v.wrong == "one base for all operations" {
		v.base = 8
	}
}

// gather is Visit.Gather, and a caller that reads the results.
func (v *modelled) gather() {
	v.begin()
	turn := v.turn()
	board := turn
	if v.wrong == "one board instead of two" {
		board = 0
	}
	v.write(v.board[v.me][board], message(v.operations, v.me))
	v.announce(true, 0, 0)
	if !v.spread && v.combines {
		v.want(v.combined[v.hallTurn()], v.operations, "the result")
		return
	}
	for i := range v.n {
		v.want(v.board[i][board], message(v.operations, i), "the message")
	}
}

// bits is by what the numbers in the model's stamps and decisions are multiplied, to have room for bits behind them.
const bits = 8

// stamp is stamp, with bits that are 0 or 1.
func (v *modelled) stamp(crowded, hidden int) int { return bits*v.number + crowded + 2*hidden }

// flag is a bool as a word.
func flag(on bool) int {
	if on {
		return 1
	}
	return 0
}

// announce is Visit.announce; hidden is 1 where the member's memory is not laid open. It reports whether the call goes
// on.
func (v *modelled) announce(combines bool, pieces, hidden int) bool {
	v.announcing, v.sharing = true, false
	v.number++
	turn := v.turn()
	if v.wrong != "the number before the call" {
		v.write(v.call[v.me][turn], v.operations)
	}
	v.spread = v.nextSpread
	crowded := 0
	if v.may.crowd {
		crowded = v.choose(2)
	}
	v.store(v.seatWords.number[v.me][turn], v.stamp(crowded, hidden))
	if v.wrong == "the number before the call" {
		v.write(v.call[v.me][turn], v.operations)
	}
	if v.spread {
		return v.meetSpread()
	}
	last, ok := v.count()
	switch {
	case !ok:
		return false
	case !last:
		found := v.load(v.decided[v.hallTurn()])
		v.claim(found/bits == v.number, "the decision is that of barrier %d, want %d", found/bits, v.number)
		v.combines, v.nextSpread, v.hidden = found&4 != 0, found&1 != 0, found&2 != 0
		return true
	}
	v.compare()
	v.combines = combines
	steps := []struct {
		what string
		do   func()
	}{
		{"the result", v.combine},
		{"the decision", func() { v.store(v.decided[v.hallTurn()], v.decision()) }},
		{"the pieces", func() { v.setOut(pieces) }},
		{"done", v.release},
	}
	for _, late := range []bool{false, true} {
		for _, s := range steps {
			if late == (v.wrong == "done before "+s.what) {
				s.do()
			}
		}
	}
	return true
}

// combine has a Combiner, where there is one, put its result into the hall.
func (v *modelled) combine() {
	if !v.combines {
		return
	}
	for i := range v.n {
		v.want(v.board[i][v.turn()], message(v.operations, i), "the message")
	}
	v.write(v.combined[v.hallTurn()], v.operations)
}

// decision is decision.
func (v *modelled) decision() int {
	decision := bits*v.number + flag(v.nextSpread) + 4*flag(v.combines)
	if v.wrong != "the last does not say that memory is hidden" {
		decision += 2 * flag(v.hidden)
	}
	return decision
}

// setOut sets out the pieces of a Share.
func (v *modelled) setOut(pieces int) {
	if v.wrong != "pieces not set out again" {
		v.store(v.next, v.base)
	}
	v.store(v.left, v.base+pieces)
}

// count is Visit.count. It reports whether the member is the last, and whether the call goes on.
func (v *modelled) count() (last, ok bool) {
	v.counted++
	before := (v.counted - 1) * v.n
	if v.wrong == "barriers apart count as well" {
		before = (v.number - 1) * v.n
	}
	count := v.add(v.seatWords.count, 1)
	v.claim(before < count && count <= before+v.n, "%d have arrived, want %d to %d", count, before+1, before+v.n)
	if count == before+v.n {
		return true, true
	}
	if v.wrong == "no wait for the word of the last" {
		return false, true
	}
	ok = v.wait(condition{v.done, v.number, v.number})
	v.seen = v.number
	return false, ok
}

// synchronise is Visit.synchronise, with Arrive.
func (v *modelled) synchronise() bool {
	if v.interruption() {
		return v.fail()
	}
	v.announcing, v.sharing = false, false
	v.number++
	v.store(v.synced[v.me], v.number)
	if v.spread {
		return v.meetSpread()
	}
	last, ok := v.count()
	if last {
		v.release()
	}
	return ok
}

// release is Visit.release.
func (v *modelled) release() {
	v.seen = v.number
	v.store(v.done, v.number)
}

// meetSpread is Visit.meetSpread. Who waits looks at one seat after the other.
func (v *modelled) meetSpread() bool {
	for i := range v.n {
		c := condition{v.synced[i], v.number, v.number + 1}
		if v.wrong == "met at the very number only" {
			c.most = v.number
		}
		if v.announcing {
			c = condition{v.seatWords.number[i][v.turn()], v.stamp(0, 0), v.stamp(1, 1)}
		}
		if v.wrong == "no wait for the last member" && i == v.n-1 {
			continue
		}
		if !v.wait(c) {
			return false
		}
	}
	if v.announcing {
		v.compare()
	}
	return true
}

// compare is Visit.compare.
func (v *modelled) compare() {
	crowded := false
	v.hidden = false
	for i := range v.n {
		if i != v.me {
			v.want(v.call[i][v.turn()], v.operations, "the call")
		}
		if v.wrong == "crowded as the member itself finds" && i != v.me {
			continue
		}
		stamp := v.load(v.seatWords.number[i][v.turn()])
		crowded = stamp&1 != 0 || crowded
		if v.wrong != "hidden as the member itself finds" || i == v.me {
			v.hidden = stamp&2 != 0 || v.hidden
		}
	}
	v.nextSpread = v.spacious && !crowded
}

// interruption is Host.Interruption.
func (v *modelled) interruption() bool {
	v.cancelled = v.cancelled || v.may.cancel && v.choose(2) != 0
	return v.cancelled || v.aborts && v.load(v.aborted) != 0
}

// check is Visit.Check of a member that waits at a barrier or for pieces. What the member alone writes is left out.
func (v *modelled) check() {
	done := v.load(v.done)
	v.claim(v.seen <= done && done <= v.number, "done is %d, want %d to %d", done, v.seen, v.number)
	ahead := v.number + 1
	if v.wrong == "the next barrier is held for overwritten" {
		ahead = v.number
	}
	for i := range v.n {
		if i == v.me {
			continue
		}
		number := v.load(v.seatWords.number[i][v.turn()]) / bits
		v.claim(number <= ahead, "a notice is of barrier %d, want at most %d", number, ahead)
		synced := v.load(v.synced[i])
		v.claim(synced <= ahead, "a member is at barrier %d, want at most %d", synced, ahead)
	}
	switch {
	case v.spread:
	case v.sharing:
		next, left := v.load(v.next)-v.base, v.load(v.left)-v.base
		most := 2 * v.n
		if v.wrong == "a piece that is not there is held for overwritten" {
			most = v.n
		}
		v.claim(v.n <= next && next <= most, "piece %d is next, want %d to %d", next, v.n, most)
		v.claim(0 <= left && left <= v.n, "%d pieces are left, want 0 to %d", left, v.n)
	default:
		complete := v.wrong == "done looked at before the count" && v.load(v.done) == v.number
		count := v.load(v.seatWords.count)
		ok := (v.counted-1)*v.n < count && count <= v.counted*v.n
		switch {
		case ok, v.wrong == "done not looked at":
		case v.wrong == "done looked at before the count":
			ok = complete
		default:
			ok = v.load(v.done) == v.number
		}
		v.claim(ok, "%d have arrived, want %d to %d", count, (v.counted-1)*v.n+1, v.counted*v.n)
	}
}

// wait is Host.Wait for one word.
func (v *modelled) wait(c condition) bool {
	if v.may.check {
		v.check()
		v.mark("checked", c, v.operations, v.number, v.counted, v.seen, v.announcing, v.sharing, v.spread,
			v.nextSpread, v.combines, v.hidden, v.cancelled)
	}
	if !v.aborts {
		v.awaitAny(c)
		return true
	}
	if v.cancelled = v.cancelled || v.may.cancel && v.choose(2) != 0; v.cancelled {
		return v.fail()
	}
	if v.awaitAny(c, condition{v.aborted, 1, 127}) == 1 {
		return v.fail()
	}
	return true
}

// fail is fail of inproc, with Visit.Vacate.
func (v *modelled) fail() bool {
	if v.wrong != "abort after the look for members inside" {
		v.add(v.aborted, 1)
	}
	v.store(v.inside[v.me], 0)
	for i := range v.n {
		if v.wrong == "no look for members inside" {
			break
		}
		v.awaitAny(condition{v.inside[i], 0, 0})
	}
	if v.wrong == "abort after the look for members inside" {
		v.add(v.aborted, 1)
	}
	v.write(v.shown[v.me], 0)
	return false
}

// user makes a Share, and does as it likes with its buffers before and after. It reports whether the Share succeeded.
func (v *modelled) user(o rune) bool {
	v.write(v.in[v.me], message(v.operations+1, v.me))
	ok := v.share(o)
	v.write(v.shown[v.me], 0) // Forget
	for p := range v.n {
		if !slices.Contains(v.touched(p), v.me) {
			continue
		}
		if ok && !v.hidden {
			v.want(v.out[v.me][p], message(v.operations, p), "the output")
		} else {
			v.write(v.out[v.me][p], -1)
		}
	}
	v.write(v.in[v.me], -1)
	return ok
}

// share is Visit.Share. What is not laid open is not shown.
func (v *modelled) share(o rune) bool {
	v.begin()
	hidden := 0
	if v.may.hide {
		hidden = v.choose(2)
	}
	if hidden == 0 {
		v.write(v.shown[v.me], v.operations) // Show
	}
	switch {
	case !v.announce(false, v.n, hidden):
		return false
	case v.hidden:
		return true
	case o == 'r':
		return v.workInRounds()
	case v.spread:
		return v.workApart()
	}
	return v.workTogether()
}

// enter is Visit.enter.
func (v *modelled) enter() bool {
	if v.wrong != "inside after the look for an abort" {
		v.first("inside", v.inside[v.me], 1)
	}
	if v.wrong != "inside without a look for an abort" && v.interruption() {
		return v.fail()
	}
	if v.wrong == "inside after the look for an abort" {
		v.store(v.inside[v.me], 1)
	}
	v.views()
	return true
}

// views is Host.Views.
func (v *modelled) views() {
	for _, i := range v.touched(v.me) {
		v.want(v.shown[i], v.operations, "what is shown")
	}
}

// touched are the places whose buffers a piece touches: all. In the largest models it is the next only, so that there
// are fewer states.
func (v *modelled) touched(p int) []int {
	if v.n == 3 && (v.aborts || !v.spacious) {
		return []int{(p + 1) % v.n}
	}
	return []int{0, 1, 2}[:v.n]
}

// piece is a Worker's: it reads inputs, and writes its piece of outputs.
func (v *modelled) piece(p int) {
	for _, i := range v.touched(p) {
		v.want(v.in[i], message(v.operations, i), "the input")
	}
	for _, i := range v.touched(p) {
		v.write(v.out[i][p], message(v.operations, p))
	}
}

// workInRounds is Visit.workInRounds. The last member has a piece in the second round only.
func (v *modelled) workInRounds() bool {
	if !v.enter() {
		return false
	}
	if v.me < v.n-1 {
		v.piece(v.me)
	}
	if v.wrong != "no barrier between rounds" && !v.synchronise() {
		return false
	}
	if v.me == v.n-1 {
		for p := range v.n - 1 {
			v.want(v.out[0][p], message(v.operations, p), "the output of the first round")
		}
		v.piece(v.me)
	}
	v.store(v.inside[v.me], 0)
	return v.synchronise()
}

// workApart is Visit.workApart, with a piece for each member.
func (v *modelled) workApart() bool {
	if !v.enter() {
		return false
	}
	if v.wrong == "outside before the piece is done" {
		v.store(v.inside[v.me], 0)
	}
	if !v.interruption() {
		v.piece(v.me)
	}
	v.store(v.inside[v.me], 0)
	if v.wrong == "no barrier after the pieces" {
		return true
	}
	return v.synchronise()
}

// workTogether is Visit.workTogether.
func (v *modelled) workTogether() bool {
	entered := false
	if v.wrong == "views without a piece" {
		v.views()
	}
	for {
		i := v.add(v.next, 1) - 1 - v.base
		v.claim(0 <= i && i < 2*v.n, "piece %d is taken, want 0 to %d", i, 2*v.n-1)
		if i >= v.n {
			break
		}
		if !entered {
			if !v.enter() {
				return false
			}
			entered = true
		}
		if v.wrong == "a piece done before it is" && v.add(v.left, -1) == v.base {
			return true
		}
		v.piece(i)
		if v.interruption() {
			return v.fail()
		}
		if v.wrong == "a piece done before it is" {
			continue
		}
		left := v.add(v.left, -1) - v.base
		v.claim(0 <= left && left < v.n, "%d pieces are left, want 0 to %d", left, v.n-1)
		if left == 0 {
			v.store(v.inside[v.me], 0)
			return true
		}
	}
	v.store(v.inside[v.me], 0)
	v.sharing = true
	return v.wait(condition{v.left, v.base, v.base})
}

// modelQueue is queueLength of the model of Broadcast.
const modelQueue = 4

// broadcasts is a model of n members and a Broadcast for each digit of roots, which is its root.
func broadcasts(n int, roots string) func(wrong string) *model {
	return func(wrong string) *model {
		m := &model{}
		number, call := m.grid(n, modelQueue, "number"), m.grid(n, modelQueue, "call")
		board := m.grid(n, modelQueue, "board")
		for range n {
			m.members = append(m.members, func(m *member) {
				for k, digit := range roots {
					m.mark("broadcast", k)
					broadcast(m, n, k+1, int(digit-'0'), number, call, board, wrong)
				}
			})
		}
		return m
	}
}

// broadcast is Visit.Broadcast, with compareQueues and a look of Ahead.
func broadcast(m *member, n, k, root int, number, call, board [][]word, wrong string) {
	at := k % modelQueue
	half := modelQueue / 2
	apart := half
	if wrong == "a root a whole queue ahead" {
		apart = modelQueue
	}
	if k%half == 0 && k > apart && wrong != "a root that never waits" {
		awaited := k - apart
		for i := range n {
			if wrong == "a root waits for nobody but the first" && i > 0 {
				continue
			}
			if i != m.me {
				m.await(number[i][awaited%modelQueue], awaited)
			}
		}
		if wrong == "the notice before the queues are compared" {
			m.store(number[m.me][at], k)
		}
		for i := range n {
			m.want(call[i][awaited%modelQueue], awaited, "the call of a broadcast before")
		}
	}
	if root == m.me {
		if wrong == "the number before the message" {
			m.store(number[m.me][at], k)
		}
		m.write(board[root][at], k)
	} else {
		for i := range n { // Ahead, while it waits
			if i != m.me && m.load(number[i][at]) == k {
				m.want(call[i][at], k, "the call that is ahead")
			}
		}
		m.await(number[root][at], k)
		m.want(call[root][at], k, "the root's call")
		if wrong == "taken before it is copied" {
			m.write(call[m.me][at], k)
			m.store(number[m.me][at], k)
		}
		m.want(board[root][at], k, "the message")
	}
	if wrong != "taken before it is copied" || root == m.me {
		m.write(call[m.me][at], k)
		m.store(number[m.me][at], k)
	}
}
