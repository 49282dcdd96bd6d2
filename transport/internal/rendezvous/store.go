package rendezvous

import (
	"context"
	"net/netip"
	"time"
)

// store is where the replicas of a job meet. A process has one entry there: its sheet. One goroutine calls the methods.
type store interface {
	// put makes s the entry of this process, in place of the one before. Others read the one or the other, whole.
	put(s sheet) error

	// list returns the entries of others that have come, changed or ended since the last list. Entries of a dead job
	// are not among them. An entry of nobody is that of a stranger: get says why. An *Error ends the job as it is.
	list() ([]*entry, error)

	// get returns the last sheet of an entry, whose step is 0 if there was none, and why the entry has ended, or nil.
	get(e *entry) (sheet, error)

	// wait returns when list may have something, after a time, or when ctx ends. It reports whether ctx goes on.
	wait(ctx context.Context, most time.Duration) bool

	// again connects anew with the host, whose entry has ended, and reports whether it has. What was put last is sent
	// once more.
	again(ctx context.Context) bool

	// leave removes this process's entry and whatever else the store has. The host first lets others read its last
	// sheet, until they have left or ctx ends.
	leave(ctx context.Context)

	site() site
	unmet() string // what there is besides the entries, for the error of a process that waits in vain
}

// site is where a store is.
type site struct {
	where string     // for errors
	local netip.Addr // of this host, if the place tells it
	guard guard
}

// nobody is the rank of a stranger's entry.
const nobody = -1

// entry is what a store has of another process.
type entry struct {
	rank int
	from string // where it comes from, for errors

	sheet sheet
	ended error
	nonce nonce // in sockets: of its here
	fresh bool  // in sockets: list has not returned it since it changed
}

// openStore opens the store at a place.
func openStore(ctx context.Context, c Config, at place) (store, error) {
	if at.kind == directory {
		return openBoard(c, at)
	}
	return openSockets(ctx, c, at)
}

// guard is what keeps others than the replicas of a job from a store: from putting entries there and from reading them.
type guard int

const (
	noGuard      guard = iota // Config.AnyUser
	bySecret                  // holders of the secret may put; a network may read
	byChannel                 // TLS
	byUser                    // the system knows the user, and the job is of one
	byPermission              // of the directory; to put, holders of the secret if there is one
)

// String names those who may come.
func (g guard) String() string {
	return [...]string{"anyone", "holders of the job's secret", "holders of a certificate", "processes of this user",
		"users of the directory"}[g]
}

// guard is that of a kind of place.
func (c *Config) guard(k kind) guard {
	switch own := len(c.Secret) == 0 && c.Channel == nil && !c.AnyUser; {
	case own || k == unixSocket:
		return byUser
	case k == directory:
		return byPermission
	case c.Channel != nil:
		return byChannel
	case len(c.Secret) > 0:
		return bySecret
	}
	return noGuard
}

// pause waits for news, for a time, or until ctx ends. It reports whether ctx goes on.
func pause(ctx context.Context, most time.Duration, news <-chan struct{}) bool {
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	case <-news:
	}
	return ctx.Err() == nil
}
