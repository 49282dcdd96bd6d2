package gcl_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"gogcl.dev/gcl"
)

// oddProgram is up to three calls that replicas make before they leave. At one replica one of them is another call.
type oddProgram struct {
	calls          []variant
	replicas       int
	program        []int // numbers in calls
	odd, at, other int   // replica odd makes call other as number at
	before         [][4]time.Duration
}

// newOddProgram makes up calls: in two of three cases one of the first rooted, else one of the first any.
func newOddProgram(rng *rand.Rand, calls []variant, rooted, any int) oddProgram {
	p := oddProgram{calls: calls, replicas: 2 + rng.IntN(3)}
	p.program = make([]int, 1+rng.IntN(3))
	for i := range p.program {
		p.program[i] = rng.IntN(rooted)
		if rng.IntN(3) == 0 {
			p.program[i] = rng.IntN(any)
		}
	}
	p.odd, p.at, p.other = rng.IntN(p.replicas), rng.IntN(len(p.program)), rng.IntN(any)
	return p
}

// delay makes up how late each replica makes its calls, and leaves.
func (p *oddProgram) delay(pause func() time.Duration) {
	p.before = make([][4]time.Duration, p.replicas)
	for r := range p.before {
		for i := range p.before[r] {
			p.before[r][i] = pause()
		}
	}
}

// call is the number of call i of a replica.
func (p *oddProgram) call(replica, i int) int {
	if replica == p.odd && i == p.at {
		return p.other
	}
	return p.program[i]
}

// run has a replica make its calls, up to the first error, and leave.
func (p *oddProgram) run(ctx context.Context, replica int, c *gcl.Comm) (err error) {
	for i := 0; i < len(p.program) && err == nil; i++ {
		time.Sleep(p.before[replica][i])
		err = p.calls[p.call(replica, i)].call(ctx, c)
	}
	time.Sleep(p.before[replica][len(p.program)])
	return errors.Join(err, c.Close())
}

// text says what the replicas have done, and what came of it.
func (p *oddProgram) text(errs []error) string {
	var b strings.Builder
	for r := range p.replicas {
		fmt.Fprintf(&b, "\nreplica %d:", r)
		for i := range p.program {
			fmt.Fprintf(&b, " after %v %s,", p.before[r][i], p.calls[p.call(r, i)].name)
		}
		fmt.Fprintf(&b, " after %v Close: %v", p.before[r][len(p.program)], errs[r])
	}
	return b.String()
}
