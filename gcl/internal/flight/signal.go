package flight

import (
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
)

// listener calls a function for signals that come, on a goroutine of its own.
type listener struct {
	signals     chan os.Signal
	done, ended chan struct{}
}

// listen has f called each time that a signal comes.
func listen(s os.Signal, f func(*listener)) *listener {
	l := &listener{make(chan os.Signal, 1), make(chan struct{}), make(chan struct{})}
	signal.Notify(l.signals, s)
	go func() {
		defer close(l.ended)
		for {
			select {
			case <-l.signals:
				f(l)
			case <-l.done:
				return
			}
		}
	}()
	return l
}

// stop has f called no more. A call that goes on is waited for by wait. Of a nil listener both do nothing.
func (l *listener) stop() {
	if l != nil {
		signal.Stop(l.signals)
		close(l.done)
	}
}

func (l *listener) wait() {
	if l != nil {
		<-l.ended
	}
}

// IgnoreQuit has SIGQUIT print the dump for other communicators only. After the first Open it does nothing.
func (s *Recorders) IgnoreQuit() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.noQuit = s.noQuit || len(s.all) == 0
}

// listenToQuit has SIGQUIT print the dump, unless the program ignores or handles it: then it returns nil. The caller
// holds process.mu.
func listenToQuit() *listener {
	if quitSignal == nil || process.handled || signal.Ignored(quitSignal) {
		return nil
	}
	return listen(quitSignal, func(l *listener) {
		signal.Stop(l.signals) // another SIGQUIT does not wait for the dump
		if len(slices.Collect(Open())) > 0 {
			dump(os.Stderr, "SIGQUIT")
		}
		process.mu.Lock()
		process.handled = true // if the process goes on
		process.mu.Unlock()
		raiseQuit()
	})
}

// DumpOnUserSignal has SIGUSR1 print the dump, until all who have asked for that have called stop, which they do once.
// stop waits for a dump that goes on.
func DumpOnUserSignal() (stop func()) {
	if userSignal == nil || inBubble() {
		return func() {}
	}
	process.mu.Lock()
	defer process.mu.Unlock()
	if process.users++; process.users == 1 {
		process.user = listen(userSignal, func(*listener) { dump(os.Stderr, "SIGUSR1") })
	}
	return func() {
		process.mu.Lock()
		l := process.user
		if process.users--; process.users > 0 {
			l = nil
		}
		l.stop()
		process.mu.Unlock()
		l.wait() // for a dump, which locks process.mu
	}
}

// dump prints what the replicas of all open communicators of this process are doing, and after that what those of other
// processes say, who are all asked at once: they may be silent.
func dump(w io.Writer, why string) {
	all := slices.Collect(Open())
	if len(all) == 0 {
		fmt.Fprintf(w, "gcl: %s: no communicator is open\n", why)
	}
	head := func(i int) string { return fmt.Sprintf("gcl: %s: communicator %d of %d", why, i+1, len(all)) }
	for i, s := range all {
		fmt.Fprintf(w, "%s\n%s", head(i), s.Now())
	}
	said := make([]strings.Builder, len(all))
	var asked sync.WaitGroup
	for i, s := range all {
		if s.hears() {
			asked.Go(func() { s.ask(&said[i]) })
		}
	}
	asked.Wait()
	for i := range said {
		if said[i].Len() > 0 {
			fmt.Fprintf(w, "%s, other processes\n%s", head(i), said[i].String())
		}
	}
}
