package main

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"strings"

	"gogcl.dev/gcl"
)

// member is the program in a process that a launcher has started as a replica of a job. The error is gcl.ErrNoJob if
// none has; any other has been printed.
//
// It joins before it looks at the flags: the job says how many replicas there are, and an error in the flags, which all
// have, is printed once.
func (p *program) member(ctx context.Context) (int, error) {
	var b *bench
	replica, refused := 0, false
	err := gcl.RunProcess(ctx, gcl.JoinConfig{Transport: p.line.raw.network()},
		func(ctx context.Context, c *gcl.Comm) error {
			replica = c.Replica()
			s, err := p.agree(ctx, c)
			if refused = s == nil; err != nil || refused {
				return err
			}
			if b, err = p.bench(s, replica); err != nil {
				return err
			}
			if err := b.replica(ctx, c); err != nil || s.compares == nil || replica != 0 {
				return err
			}
			return writePoints(p.stdout, b.compared)
		})
	switch {
	case errors.Is(err, gcl.ErrNoJob):
		return exitUsage, err
	case b != nil:
		return p.finish(ctx, b, replica, err), nil
	case err == nil && refused:
		return exitUsage, nil
	case ctx.Err() != nil:
		return exitInterrupted, nil
	}
	p.complain(err)
	return exitWrong, nil
}

// agree makes the settings of a replica of a job. If those of one replica are wrong there are none on any replica, and
// the one of the lowest rank has printed why.
func (p *program) agree(ctx context.Context, c *gcl.Comm) (*settings, error) {
	host, _ := os.Hostname() // "": then all count as on this host
	own := []uint64{digest(p.args...), digest(host)}
	all := make([]uint64, len(own)*c.Size())
	if err := gcl.AllGatherTo(ctx, c, all, own); err != nil {
		return nil, err
	}
	s, err := p.line.settings(c.Size())
	local := 0
	for r := range c.Size() {
		if theirs := all[len(own)*r:]; theirs[0] != all[0] && err == nil {
			err = fmt.Errorf("replica %d has other arguments than replica 0", r)
		} else if theirs[1] == own[1] {
			local++
		}
	}
	if err == nil {
		s.beside = all[1] == own[1]
		err = s.check(ctx, local)
	}
	if err == nil && c.Rank() == 0 {
		err = s.checkFiles()
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
		p.complain(err)
	}
	return nil, nil
}

// digest tells texts apart.
func digest(texts ...string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(strings.Join(texts, "\x00"))) // never fails
	return h.Sum64()
}
