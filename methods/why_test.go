package methods

import (
	"math"
	"strings"
	"testing"

	"gogcl.dev/methods/schedule"
)

func TestWhy(t *testing.T) {
	t.Parallel()
	const (
		ar     = schedule.AllReduce
		rs     = schedule.ReduceScatter
		ag     = schedule.AllGather
		linked = "every pair of replicas is linked, so that a ring gains nothing "
		few    = "few bytes, which gain by few messages "
		one    = "few enough bytes for one round to all "
	)
	host, sockets, never, asked := MemoryLinks(), SocketLinks(), SocketLinks(), SocketLinks()
	host.MaxBroadcastBytes, never.MaxBroadcastBytes, asked.MaxBroadcastBytes = 4096, -1, 5000
	for _, c := range []struct {
		tuning     Tuning
		collective schedule.Collective
		size       int
		bytes      int64
		strided    bool
		rankOrder  bool
		want       string
	}{
		{host, ar, 4, 1024, false, false, "group size x bytes, 4 x 1024, is at or below 4096"},
		{host, ar, 4, 1025, false, false, "group size x bytes, 4 x 1025, is above 4096, and " + linked + "(memory.txt:4)"},
		{host, ar, 4, math.MaxInt64, false, false,
			"group size x bytes, 4 x 9223372036854775807, is above 4096, and " + linked + "(memory.txt:4)"},
		{host, ar, 4, 1024, true, false, "a group with a stride above 1 never takes broadcast, and " + linked + "(memory.txt:4)"},
		{host, ag, 4, 1024, true, false, linked + "(memory.txt:6)"},
		{IPULinks(), rs, 2, 1 << 30, false, false, "a ring of 2 has one way round (ipu.txt:8)"},
		{sockets, ar, 2, 9000, false, false, few + "(sockets.txt:13)"},
		{sockets, ar, 4, 64<<10 + 1, false, false, linked + "(sockets.txt:16)"},
		{sockets, ar, 3, 1000, false, false, one + "(sockets.txt:10)"},
		{sockets, ar, 3, 1000, true, false,
			"a group with a stride above 1 never takes broadcast, and " + linked + "(sockets.txt:9)"},
		{sockets, ar, 4, 8, false, true, one + "(sockets.txt:10)"},
		{never, ar, 3, 8, false, false, "broadcast is never to be taken, and " + linked + "(sockets.txt:9)"},
		{asked, ar, 4, 1251, false, false, "group size x bytes, 4 x 1251, is above 5000, and " + few + "(sockets.txt:15)"},
		{Tuning{}, ag, 4, 8, false, false, "no line of the table of links fits"},
	} {
		got := c.tuning.Why(c.collective, c.size, c.bytes, c.strided, c.rankOrder)
		if got := strings.ReplaceAll(got, "gogcl.dev/methods/tables/links/", ""); got != c.want {
			t.Errorf("%v over %d of %d bytes, strided %v, in rank order %v:\nhave %s\nwant %s",
				c.collective, c.size, c.bytes, c.strided, c.rankOrder, got, c.want)
		}
	}
}
