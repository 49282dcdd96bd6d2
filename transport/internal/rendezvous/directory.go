package rendezvous

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"
)

// The pauses between two looks at a directory. Progress makes them short again.
const (
	minLook = time.Millisecond
	maxLook = 50 * time.Millisecond
)

// looks paces the looks at a directory.
type looks struct {
	next time.Duration
}

// pause waits until the next look is due, at most the time given, and reports whether the context goes on.
func (l *looks) pause(ctx context.Context, progress bool, most time.Duration) bool {
	if progress || l.next == 0 {
		l.next = minLook
	}
	timer := time.NewTimer(min(l.next, most))
	defer timer.Stop()
	l.next = min(l.next*3/2, maxLook)
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

func isZero(rank int) bool { return rank == 0 }

func isAny(int) bool { return true }

// visitDirectory is Meet of any replica but 0 in a directory.
func visitDirectory(ctx context.Context, c Config, at place) (Met, error) {
	b, err := newBoard(at.path, c)
	if err != nil {
		return Met{}, err
	}
	blob, unable := c.blob(netip.Addr{})
	if unable != nil {
		return Met{}, unable
	}
	v := &visiting{board: b, seen: map[id]bool{}, unread: map[string]error{}}
	v.sheet.here = here{size: c.Size, left: timeLeft(ctx), self: self(), blob: blob}
	if err := v.post(); err != nil {
		return Met{}, err
	}
	defer b.leave()
	for pace := new(looks); ; {
		progress, err := v.look(c, at)
		if err != nil || v.begun {
			return Met{Blobs: v.blobs}, err
		}
		if !pace.pause(ctx, progress, maxLook) {
			return v.end(ctx, c, at)
		}
	}
}

// overLeft is the time that a replica says to have left when it has none.
const overLeft = time.Millisecond

// end is how the meeting ends for a replica whose context has ended. At the end of its time it says so, and hears from
// replica 0 who is missing, which all others hear, too.
func (v *visiting) end(ctx context.Context, c Config, at place) (Met, error) {
	v.sheet.here.left = overLeft
	if ctx.Err() != context.DeadlineExceeded || len(v.seen) == 0 || v.post() != nil {
		return Met{}, outOfTime(ctx, c, at, v.unmet())
	}
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.linger)
	defer cancel()
	for pace := new(looks); pace.pause(limited, false, maxLook); {
		if _, err := v.look(c, at); err != nil || v.begun {
			return Met{Blobs: v.blobs}, err
		}
	}
	return Met{}, outOfTime(ctx, c, at, v.unmet())
}

// visiting is what a replica has said and heard in a directory.
type visiting struct {
	board  *board
	sheet  visitorSheet
	blobs  [][]byte // once it has a table
	host   id       // that the table is from
	missed int      // how many looks in a row have missed the host's file
	begun  bool
	seen   map[id]bool      // replicas 0 that are believed, of any run
	unread map[string]error // files of replicas 0 that are not believed
}

func (v *visiting) post() error { return v.board.post(appendVisitorSheet(nil, v.sheet)) }

// look reads what is new and answers it.
func (v *visiting) look(c Config, at place) (progress bool, err error) {
	if !v.board.isPosted() {
		return false, late(c.Rank, at.text)
	}
	posted, refused, err := v.board.look(isZero, maxHostSheet(c.Size))
	if err != nil {
		return false, fmt.Errorf("replica %d cannot read %s: %w", c.Rank, at.text, err)
	}
	maps.Copy(v.unread, refused)
	if len(refused) > 0 && c.came != nil {
		c.came(-1)
	}
	for of, body := range posted {
		v.seen[of] = true
		s, err := parseHostSheet(body)
		if err != nil {
			continue // has the secret, and another idea of a file: not of this run
		}
		var isNew bool
		v.sheet.echoes, isNew = echo(v.sheet.echoes, of.nonce)
		progress = progress || isNew
		if !slices.Contains(s.roster, v.board.id) {
			continue // waits, or is of another run
		}
		switch s.step {
		case tagFailed:
			e, err := parseError(s.rest)
			if err != nil {
				return false, err
			}
			return false, e
		case tagTable:
			hash := sha256.Sum256(body)
			if v.sheet.got == hash {
				continue
			}
			if v.blobs, err = parseTable(s.rest, c.Size); err != nil {
				return false, hostGone(at, err)
			}
			v.sheet.got, v.host = hash, of
			progress = true
		case tagBegin:
			v.begun = v.blobs != nil && string(s.rest) == string(v.sheet.got[:])
			if v.begun {
				return true, nil
			}
		}
	}
	if progress {
		return true, v.post()
	}
	v.missed++
	if _, there := posted[v.host]; there || v.blobs == nil {
		v.missed = 0
	}
	if v.missed >= missedLooks {
		return false, hostGone(at, errors.New("it has removed its file"))
	}
	return false, nil
}

// unmet says what a replica has found in place of replica 0.
func (v *visiting) unmet() string {
	if v.blobs != nil {
		return ": replica 0 had taken it in and does not go on: see why its process ended, or another one"
	}
	var s strangers
	for name, err := range v.unread {
		s.add("file "+name, err)
	}
	return fmt.Sprintf(" (%d replicas 0 were there, of this run or an earlier one): start replica 0 with the same "+
		"directory and job; if the others run, the job has begun without you%s", len(v.seen), s.text())
}

// hostDirectory is Meet of replica 0 in a directory.
func hostDirectory(ctx context.Context, c Config, at place) (Met, error) {
	b, err := newBoard(at.path, c)
	if err != nil {
		return Met{}, err
	}
	blob, unable := c.blob(netip.Addr{})
	h := &hostingDirectory{
		board: b,
		roll:  newRoll(ctx, c, at.text, self(), blob),
		sheet: hostSheet{step: tagHere, self: self()},
		ranks: map[id]int{},
	}
	if err := h.post(); err != nil {
		return Met{}, err
	}
	defer b.leave()
	failed := unable
	if failed == nil {
		failed = h.run(ctx)
	}
	if failed == nil {
		b.clear()
		return Met{Blobs: h.roll.blobs()}, nil
	}
	h.fail(ctx, failed, c.patience)
	return Met{}, failed
}

// hostingDirectory is a meeting that replica 0 holds in a directory.
type hostingDirectory struct {
	board  *board
	roll   *roll
	sheet  hostSheet
	ranks  map[id]int        // the processes that are alive; how many looks in a row have missed each
	over   bool              // the time of one of them is over
	got    int               // how many have said that they got the table
	hash   [sha256.Size]byte // of the sheet with the table
	posted map[id][]byte     // what was there at the last look
}

func (h *hostingDirectory) post() error { return h.board.post(appendHostSheet(nil, h.sheet)) }

// run returns when all have got the table and left, or with what ends the job.
func (h *hostingDirectory) run(ctx context.Context) *Error {
	for pace := new(looks); ; {
		progress, failed := h.look()
		switch {
		case failed != nil || h.sheet.step == tagBegin && len(h.ranks) == 0:
			return failed
		case h.roll.wait() <= 0, h.over && h.sheet.step != tagBegin:
			return h.roll.timeOver(h.unanswered())
		case !pace.pause(ctx, progress, h.roll.wait()):
			return h.roll.ended(ctx, h.unanswered())
		}
	}
}

// look reads what is new and answers it.
func (h *hostingDirectory) look() (progress bool, failed *Error) {
	posted, refused, err := h.board.look(isAny, max(maxVisitorSheet, maxHostSheet(h.roll.size)))
	if err != nil {
		return false, h.cannot(err)
	}
	if !h.board.isPosted() {
		return false, h.cannot(errors.New("somebody has removed replica 0's file"))
	}
	h.posted = posted
	h.roll.strangers = strangers{}
	for name, err := range refused {
		h.roll.refuse("file "+name, err)
	}
	stale := 0
	h.got = 0
	step := h.sheet.step
	for of, body := range posted {
		var alive bool
		if of.rank == 0 {
			alive, failed = h.rival(of, body)
		} else {
			alive, failed = h.visitor(of, body)
		}
		if failed != nil {
			return false, failed
		}
		if !alive {
			stale++
		}
	}
	if stale > 0 {
		h.roll.strangers.add(fmt.Sprintf("%d files", stale), errors.New("of processes that do not answer"))
	}
	if failed := h.missed(); failed != nil {
		return false, failed
	}
	return h.answer(step)
}

// rival looks at the file of another replica 0, which echoes this one's nonce if it is alive.
func (h *hostingDirectory) rival(of id, body []byte) (alive bool, failed *Error) {
	s, err := parseHostSheet(body)
	if err != nil {
		return false, nil
	}
	switch {
	case s.step == tagFailed && slices.Contains(s.roster, h.board.id):
		if failed, err = parseError(s.rest); err != nil {
			return false, nil
		}
		return true, failed
	case h.sheet.step != tagHere:
		return true, nil // late, or of an earlier run: clear will remove its file
	case slices.Contains(s.echoes, h.board.id.nonce):
		return true, duplicate(0, h.sheet.self, s.self)
	}
	var isNew bool
	if h.sheet.echoes, isNew = echo(h.sheet.echoes, of.nonce); isNew {
		err = h.post()
	}
	if err != nil {
		return false, h.cannot(err)
	}
	return false, nil
}

// visitor looks at the file of any other replica, which echoes this one's nonce if it is alive.
func (h *hostingDirectory) visitor(of id, body []byte) (alive bool, failed *Error) {
	s, err := parseVisitorSheet(body)
	if err != nil || !slices.Contains(s.echoes, h.board.id.nonce) {
		return false, nil
	}
	if _, known := h.ranks[of]; !known {
		if h.sheet.step != tagHere {
			return true, nil // late: clear will remove its file
		}
		h.ranks[of] = 0
		if failed = h.roll.add(&arrival{here: s.here, rank: of.rank, from: s.here.self}); failed != nil {
			return true, failed
		}
	}
	h.over = h.over || s.here.left == overLeft
	if h.sheet.step != tagHere && s.got == h.hash {
		h.got++
	}
	return true, nil
}

// missedLooks is how many looks in a row may miss a file: one that is being replaced may be missed once.
const missedLooks = 3

// missed counts who has removed its file: gone before the begin, done after it.
func (h *hostingDirectory) missed() *Error {
	for of := range h.ranks {
		if _, there := h.posted[of]; there {
			h.ranks[of] = 0
			continue
		}
		h.ranks[of]++
		if h.ranks[of] < missedLooks {
			continue
		}
		if h.sheet.step != tagBegin {
			return h.roll.gone(of.rank, errors.New("it has removed its file"))
		}
		delete(h.ranks, of)
	}
	return nil
}

// answer goes on to the table when all are here, and to begin when all have got it.
func (h *hostingDirectory) answer(before tag) (progress bool, failed *Error) {
	switch {
	case h.sheet.step == tagHere && h.roll.missing == 0:
		h.sheet.step = tagTable
		for of := range h.ranks {
			h.sheet.roster = append(h.sheet.roster, of)
		}
		h.sheet.rest = appendTable(nil, h.roll.blobs())
		h.hash = sha256.Sum256(appendHostSheet(nil, h.sheet))
	case h.sheet.step == tagTable && h.got == len(h.ranks):
		h.sheet.step, h.sheet.rest = tagBegin, h.hash[:]
	default:
		return false, nil
	}
	if err := h.post(); err != nil {
		return false, h.cannot(err)
	}
	return h.sheet.step != before, nil
}

// unanswered lists the ranks that have not said that they got the table, or not left after the begin.
func (h *hostingDirectory) unanswered() []int {
	var ranks []int
	for of := range h.ranks {
		s, err := parseVisitorSheet(h.posted[of])
		if err != nil || s.got != h.hash || h.sheet.step == tagBegin {
			ranks = append(ranks, of.rank)
		}
	}
	return ranks
}

// cannot is the error when replica 0 cannot use the directory.
func (h *hostingDirectory) cannot(err error) *Error {
	return &Error{Kind: GaveUp, Replicas: []int{0}, Err: err,
		Reason: fmt.Sprintf("replica 0 has given up: it cannot use %s: %v", h.roll.at, err)}
}

// fail tells all who have a file why it ends. It waits a little until those who are alive have left. When time is left
// it waits, up to a while, for those who are about to come.
func (h *hostingDirectory) fail(ctx context.Context, why *Error, while time.Duration) {
	h.sheet.step, h.sheet.rest, h.sheet.roster = tagFailed, appendError(nil, why), nil
	told := map[id]bool{} // who has a file, or had one
	for of := range h.ranks {
		told[of] = true
	}
	wanted := map[int]bool{} // ranks of which nobody has left yet
	for rank := 1; rank < h.roll.size; rank++ {
		wanted[rank] = true
	}
	if ctx.Err() != nil || why.Kind == Missing {
		while = linger
		clear(wanted)
		for of := range told {
			wanted[of.rank] = true
		}
	}
	if ctx.Err() != nil {
		ctx = context.Background()
	}
	limited, cancel := context.WithTimeout(ctx, max(linger, min(while, h.roll.wait())))
	defer cancel()
	posted, progress := h.posted, true
	for pace := new(looks); ; progress = false {
		for of := range posted {
			if !slices.Contains(h.sheet.roster, of) && len(h.sheet.roster) < maxRoster {
				h.sheet.roster = append(h.sheet.roster, of)
				told[of] = true
				progress = true
			}
		}
		if progress && h.post() != nil {
			return
		}
		for of := range told {
			if _, there := posted[of]; !there {
				delete(wanted, of.rank)
			}
		}
		if len(wanted) == 0 || !pace.pause(limited, progress, maxLook) {
			return
		}
		var err error
		if posted, _, err = h.board.look(isAny, max(maxVisitorSheet, maxHostSheet(h.roll.size))); err != nil {
			return
		}
	}
}
