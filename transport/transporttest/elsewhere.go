package transporttest

import (
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"gogcl.dev/transport"
)

// broadcastElsewhere has replica 0 broadcast while the others wait in another call, for messages or at a meeting:
// before they come, after, or when it has closed. They get an error with both calls, and replica 0 one from Close.
func (s *suite) broadcastElsewhere(t *testing.T) {
	waits := map[string]func(e near, g group, c transport.Call) error{
		"rounds": func(e near, g group, c transport.Call) error {
			return e.Share(background, c, g.members, transport.Memory{}, []int{0, 0}, &worker{})
		},
		"Gather": func(e near, g group, c transport.Call) error {
			_, _, err := e.Gather(background, c, g.members, make([]byte, 8), 8, nil)
			return err
		},
		"Share": func(e near, g group, c transport.Call) error {
			return e.Share(background, c, g.members, transport.Memory{}, []int{1}, &worker{})
		},
		"Broadcast": func(e near, g group, c transport.Call) error {
			return e.Broadcast(background, c, g.members, 0, make([]byte, 8))
		},
		"Exchange": func(e near, _ group, c transport.Call) error {
			return e.Exchange(background, c,
				[]transport.Transfer{{Peer: 0, Kind: transport.Recv, Buf: make([]byte, 8)}})
		},
	}
	for what, wait := range waits {
		for _, closes := range []string{"at once", "last"} {
			t.Run(fmt.Sprintf("wait=%s/root closes=%s", what, closes), func(t *testing.T) {
				s.replicas(t, []int{2, 3, 8}, func(t *testing.T, n int) {
					for i := range s.few(20) {
						eps := s.connect(t, n)
						g := everybody(n)
						good, bad := g.call(3), g.call(3)
						bad.Collective++
						came := make(chan bool)
						errs := each(t, eps, func(ep transport.Endpoint) error {
							e := ep.(near)
							if e.Rank() > 0 {
								if i%2 == 1 {
									<-came
								}
								return wait(e, g, bad)
							}
							if i%4 == 2 { // the others have long been waiting
								time.Sleep(10 * time.Millisecond)
							}
							if err := e.Broadcast(background, good, g.members, 0, make([]byte, 8)); err != nil {
								return err
							}
							close(came)
							if closes == "last" { // until the others have found out
								for e.Err() == nil {
									runtime.Gosched()
								}
							}
							return e.Close()
						})
						for rank, err := range errs {
							var m *transport.MismatchError
							if !errors.As(err, &m) {
								t.Fatalf("%d: replica %d: no MismatchError in %v", i, rank, err)
							}
							if m.Mine.Seq != good.Seq || m.Theirs.Seq != good.Seq ||
								m.Mine.Collective+m.Theirs.Collective != good.Collective+bad.Collective {
								t.Errorf("%d: replica %d: %v has not both calls", i, rank, err)
							}
						}
						shut(t, eps)
					}
				})
			})
		}
	}
}
