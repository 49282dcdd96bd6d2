package rts

import (
	"context"
	"slices"

	"gogcl.dev/gcl"
	"gogcl.dev/rts/checkpoint"
)

// Peers are the processes of a job, for checkpoint.OpenTogether. What they tell each other are collectives on c.
func Peers(c *gcl.Comm) checkpoint.Peers { return peers{c} }

type peers struct{ comm *gcl.Comm }

func (p peers) Rank() int { return p.comm.Rank() }
func (p peers) Size() int { return p.comm.Size() }

// Gather implements checkpoint.Peers: first of the lengths, then of all padded to the greatest.
func (p peers) Gather(ctx context.Context, own []byte) ([][]byte, error) {
	lengths, err := gcl.AllGather(ctx, p.comm, []int64{int64(len(own))})
	if err != nil {
		return nil, err
	}
	most := int(slices.Max(lengths))
	padded := make([]byte, most)
	copy(padded, own)
	texts, err := gcl.AllGather(ctx, p.comm, padded)
	if err != nil {
		return nil, err
	}
	all := make([][]byte, len(lengths))
	for rank, n := range lengths {
		all[rank] = texts[rank*most:][:n]
	}
	return all, nil
}
