package measure

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"strings"

	"gogcl.dev/gcl"
	"gogcl.dev/internal/command"
)

// member carries out the task in a process that a launcher has started as a replica of a job. joined is false if none
// has.
//
// It joins before it looks at the flags: the job says how many replicas there are, and an error in the flags, which all
// have, is printed once. flagErr is what Read has found.
func (p *Program) member(ctx context.Context, f *Flags, flagErr error, task Task) (code int, joined bool) {
	replica, agreed, refused := 0, false, false
	err := gcl.RunProcess(ctx, gcl.JoinConfig{Transport: f.joins()}, func(ctx context.Context, c *gcl.Comm) error {
		replica = c.Replica()
		s, err := p.agree(ctx, c, flagErr, task)
		if refused = s == nil; err != nil || refused {
			return err
		}
		agreed = true
		return task.Measure(ctx, s, c)
	})
	switch {
	case errors.Is(err, gcl.ErrNoJob):
		return command.Usage, false
	case agreed:
		return task.Finish(ctx, replica, err), true
	case err == nil && refused:
		return command.Usage, true
	case ctx.Err() != nil:
		return command.Interrupted, true
	}
	p.Complain(err)
	return command.Failed, true
}

// agree makes the settings of a replica of a job. If those of one replica are wrong there are none on any replica, and
// the one of the lowest rank has printed why.
func (p *Program) agree(ctx context.Context, c *gcl.Comm, err error, task Task) (*Settings, error) {
	host, _ := os.Hostname() // "": then all count as on this host
	own := []uint64{digest(p.Args...), digest(host)}
	all := make([]uint64, len(own)*c.Size())
	if err := gcl.AllGatherTo(ctx, c, all, own); err != nil {
		return nil, err
	}
	var s *Settings
	if err == nil {
		s, err = task.Check(c.Size(), c.Rank())
	}
	local := 0
	for r := range c.Size() {
		if theirs := all[len(own)*r:]; theirs[0] != all[0] && err == nil {
			err = fmt.Errorf("replica %d has other arguments than replica 0", r)
		} else if theirs[1] == own[1] {
			local++
		}
	}
	if err == nil {
		s.Beside = all[1] == own[1]
		err = s.check(ctx, local)
	}
	first := []int64{int64(c.Size())}
	if err != nil {
		first[0] = int64(c.Rank())
	}
	if err := gcl.AllReduceInPlace(ctx, c, first, gcl.Min); err != nil {
		return nil, err
	}
	switch first[0] {
	case int64(c.Size()):
		return s, nil
	case int64(c.Rank()):
		p.Complain(err)
	}
	return nil, nil
}

// digest tells texts apart.
func digest(texts ...string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(strings.Join(texts, "\x00"))) // never fails
	return h.Sum64()
}
