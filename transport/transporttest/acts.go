package transporttest

import (
	"context"
	"fmt"
	"testing"

	"gogcl.dev/transport"
)

// exchanging is the act of exchanging a batch, call by call and round by round.
func exchanging(name string, batch func(t testing.TB, me, n int) []transport.Transfer) act {
	return act{name: name, number: rounds, begin: func(r *role) part {
		e := r.endpoint
		b := batch(r.t, e.Rank(), e.Size())
		p := part{do: func(ctx context.Context, c transport.Call) error { return e.Exchange(ctx, c, b) }}
		for _, x := range b {
			if p.bufs = append(p.bufs, x.Buf, x.With); x.Kind != transport.Send {
				p.out = append(p.out, x.Buf)
			}
		}
		return p
	}}
}

// rounds numbers the rounds of calls, of which each has four.
func rounds(i int) transport.Call { return call(i/4, i%4) }

// oneTransfer is the act of exchanging one message with a replica. That one does something else.
func oneTransfer(kind transport.Kind, peer int) act {
	return exchanging(kind.String(), func(testing.TB, int, int) []transport.Transfer {
		return []transport.Transfer{{Peer: peer, Kind: kind, Buf: make([]byte, 100)}}
	})
}

// around is the act of sending to the next replica and receiving from the one before, by receives of a kind. Each
// expects as many bytes as it sends, but that which sends others.
func around(kind transport.Kind, sends, expects int) act {
	name := fmt.Sprintf("%v of %d bytes", kind, sends)
	return exchanging(name, func(t testing.TB, me, n int) []transport.Transfer {
		in := recv((me+n-1)%n, 0, make([]byte, expects))
		if kind == transport.RecvFold {
			in = recvFold(t, (me+n-1)%n, 0, make([]byte, expects), make([]byte, expects))
		}
		return []transport.Transfer{send((me+1)%n, 0, make([]byte, sends)), in}
	})
}

// ring is around, with bytes that differ from call to call and are checked.
func ring(size int) act {
	a := act{name: fmt.Sprintf("ring of %d bytes", size), number: rounds}
	a.begin = func(r *role) part {
		e := r.endpoint
		me, n := e.Rank(), e.Size()
		next, before := (me+1)%n, (me+n-1)%n
		out, in := make([]byte, size), make([]byte, size)
		return part{bufs: [][]byte{out, in}, out: [][]byte{in}, do: func(ctx context.Context, c transport.Call) error {
			fill(out, origin{me, next, 0, int(4*c.Seq) + int(c.Round)})
			if err := e.Exchange(ctx, c, []transport.Transfer{send(next, 0, out), recv(before, 0, in)}); err != nil {
				return err
			}
			want := made(size, origin{before, me, 0, int(4*c.Seq) + int(c.Round)})
			if err := same(fmt.Sprintf("%+v", c), in, want); err != nil {
				panic(err) // what Exchange says it has delivered is not there
			}
			return nil
		}}
	}
	return a
}

// messy is the act of a round with some of everything: a chain from all others, a fold and a plain receive.
func messy(size, tries int) act {
	a := exchanging(fmt.Sprintf("mess of %d bytes", size), func(t testing.TB, me, n int) []transport.Transfer {
		return mess(t, me, n, size)
	})
	a.tries = tries
	return a
}

func mess(t testing.TB, me, n, size int) []transport.Transfer {
	var links []link
	var batch []transport.Transfer
	for k := 1; k < n; k++ {
		p := (me + k) % n
		links = append(links, link{from: p})
		batch = append(batch, send(p, 0, made(size, origin{me, p, 0, 0})))
	}
	chain, _ := chainOf(t, me, links, 0, make([]byte, size), nil)
	to, from := (me+1)%n, (me+n-1)%n
	return append(append(batch, chain...),
		send(to, 1, make([]byte, size)), recv(from, 1, make([]byte, size)),
		send(to, 2, make([]byte, size)), recvFold(t, from, 2, make([]byte, size), make([]byte, size)))
}
