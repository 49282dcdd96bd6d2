package transporttest

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"gogcl.dev/transport"
)

// random runs rounds of random messages: any sizes, several between a pair, folds of any shape.
func (s *suite) random(t *testing.T) {
	const rounds = 25
	s.repeat(t, s.few(80), func(t *testing.T, seed int) {
		random := rand.New(rand.NewPCG(uint64(seed), 20))
		n := s.number(2 + seed%7)
		plan := make([][]batch, rounds)
		for r := range plan {
			plan[r] = newRound(random, n)
		}
		all(t, s.connect(t, n), func(e transport.Endpoint) error {
			for r := range plan {
				if err := plan[r][e.Rank()].run(s, t, e, r); err != nil {
					return fmt.Errorf("round %d: %w", r, err)
				}
			}
			return nil
		})
	})
}

// batch is what one replica does in a round.
type batch struct {
	units []unit // in the order of the batch
	late  bool   // it comes so late that the others are parked
}

// unit is a send, when links is empty, or a chain of receives.
type unit struct {
	to, tag, size int
	links         []link
}

// newRound makes up a round: for every replica some chains, and the sends that belong to them.
func newRound(random *rand.Rand, n int) []batch {
	parts := make([]batch, n)
	for q := range parts {
		tags := make([]int, n)
		for range random.IntN(4) {
			newChain(random, parts, q, tags)
		}
	}
	for q := range parts {
		u := parts[q].units
		random.Shuffle(len(u), func(i, j int) { u[i], u[j] = u[j], u[i] })
		parts[q].late = random.IntN(200) == 0
	}
	return parts
}

// newChain makes up a chain of replica q. tags are the next of each sender to it.
func newChain(random *rand.Rand, parts []batch, q int, tags []int) {
	sizes := []int{0, 1, 63, 64, 65, 1000, 4096, 16384, 16385, 20000}
	size := sizes[random.IntN(len(sizes))]
	if random.IntN(40) == 0 {
		size = 200000
	}
	var links []link
	for range 1 + random.IntN(4) {
		if random.IntN(3) == 0 {
			links = append(links, link{own: true})
		}
		p := (q + 1 + random.IntN(len(parts)-1)) % len(parts)
		links = append(links, link{from: p, tag: tags[p]})
		parts[p].units = append(parts[p].units, unit{to: q, tag: tags[p], size: size})
		tags[p]++
	}
	parts[q].units = append(parts[q].units, unit{size: size, links: links})
}

// run exchanges the batch and checks what came of it.
func (p batch) run(s *suite, t testing.TB, e transport.Endpoint, round int) error {
	me := e.Rank()
	var transfers []transport.Transfer
	var got, want [][]byte
	for _, u := range p.units {
		if len(u.links) == 0 {
			transfers = append(transfers, send(u.to, u.tag, made(u.size, origin{me, u.to, u.tag, round})))
			continue
		}
		buf := make([]byte, u.size)
		chain, w := chainOf(t, me, u.links, round, buf, made(u.size, origin{me, me, 0, round}))
		transfers = append(transfers, chain...)
		got, want = append(got, buf), append(want, w)
	}
	if p.late {
		s.clock.Sleep(e, 3*time.Millisecond)
	}
	if err := e.Exchange(background, call(0, round), transfers); err != nil {
		return err
	}
	for i := range got {
		if err := same(fmt.Sprintf("receive %d", i), got[i], want[i]); err != nil {
			return err
		}
	}
	scribbleBatch(transfers)
	return nil
}
