package methods

import (
	"math"
	"testing"

	"gogcl.dev/methods/schedule"
)

func TestWhy(t *testing.T) {
	t.Parallel()
	const (
		ar = schedule.AllReduce
		rs = schedule.ReduceScatter
		ag = schedule.AllGather
	)
	host := Tuning{MaxBroadcastBytes: 4096, Direct: true}
	sockets := Tuning{DoublingBytes: [3]int64{9000, 3000, 1000}, MaxBroadcastFromRootBytes: 100, Direct: true}
	never, asked, little := sockets, sockets, sockets
	never.MaxBroadcastBytes, asked.MaxBroadcastBytes, little.MaxBroadcastBytes = -1, 5000, 2000
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
		{host, ar, 4, 1025, false, false, "group size x bytes, 4 x 1025, is above 4096 and every pair of replicas is linked"},
		{host, ar, 4, math.MaxInt64, false, false, "group size x bytes, 4 x 9223372036854775807, is above 4096 and every pair of replicas is linked"},
		{host, ar, 4, 1024, true, false, "a group with a stride above 1 never takes broadcast"},
		{host, ar, 4, 1025, true, false, "group size x bytes, 4 x 1025, is above 4096 and every pair of replicas is linked"},
		{host, ag, 4, 1024, true, false, "every pair of replicas is linked, so that a ring gains nothing"},
		{IPULinks(), rs, 2, 1 << 30, false, false, "a ring of 2 has one way round"},
		{IPULinks(), rs, 3, 1_245_183, false, false, "1245183 bytes are below the 1245184 from which 3 ranks use both directions all the way"},
		{IPULinks(), rs, 3, 1_245_184, false, false, "1245184 bytes are at or above the 1245184 from which 3 ranks use both directions all the way"},
		{IPULinks(), ag, 9, 19_922_943, false, false, "19922943 bytes are below the 19922944 from which 9 ranks use both directions all the way"},
		{sockets, ar, 2, 9000, false, false, "9000 bytes are at or below the 9000 up to which 2 ranks gain by few messages"},
		{sockets, ar, 4, 3001, false, false, "3001 bytes are above the 3000 up to which 4 ranks gain by few messages and every pair of replicas is linked"},
		{sockets, ar, 9, 1001, false, true, "1001 bytes are above the 1000 up to which 9 ranks gain by few messages and every pair of replicas is linked"},
		{sockets, ar, 3, 1000, false, false, "group size x bytes, 3 x 1000, is at or below 3000"},
		{sockets, ar, 3, 1001, false, false, "group size x bytes, 3 x 1001, is above 3000 and every pair of replicas is linked"},
		{sockets, ar, 3, 1000, true, false, "a group with a stride above 1 never takes broadcast"},
		{sockets, ar, 4, 750, false, true, "group size x bytes, 4 x 750, is at or below 3000"},
		{sockets, ar, 4, 751, false, true, "group size x bytes, 4 x 751, is above 3000 and every pair of replicas is linked"},
		{sockets, ag, 4, 3000, false, true, "3000 bytes are at or below the 3000 up to which 4 ranks gain by few messages"},
		{sockets, ag, 4, 3001, false, false, "every pair of replicas is linked, so that a ring gains nothing"},
		{sockets, rs, 3, 8, false, false, "every pair of replicas is linked, so that a ring gains nothing"},
		{sockets, schedule.Broadcast, 3, 100, false, false, "100 bytes are few enough for the root to send them to everyone"},
		{never, ar, 3, 8, false, false, "broadcast is never to be taken and every pair of replicas is linked"},
		{never, ar, 4, 3001, false, false, "3001 bytes are above the 3000 up to which 4 ranks gain by few messages and every pair of replicas is linked"},
		{little, ar, 4, 500, false, false, "group size x bytes, 4 x 500, is at or below 2000"},
		{little, ar, 3, 1000, false, false, "group size x bytes, 3 x 1000, is at or below 3000"},
		{little, ar, 3, 1001, false, false, "group size x bytes, 3 x 1001, is above 3000 and every pair of replicas is linked"},
		{asked, ar, 4, 1250, false, false, "group size x bytes, 4 x 1250, is at or below 5000"},
		{asked, ar, 4, 1251, false, false, "1251 bytes are at or below the 3000 up to which 4 ranks gain by few messages"},
		{asked, ar, 4, 3001, false, false, "group size x bytes, 4 x 3001, is above 5000 and every pair of replicas is linked"},
	} {
		if got := c.tuning.Why(c.collective, c.size, c.bytes, c.strided, c.rankOrder); got != c.want {
			t.Errorf("%v over %d of %d bytes, strided %v, in rank order %v:\nhave %s\nwant %s",
				c.collective, c.size, c.bytes, c.strided, c.rankOrder, got, c.want)
		}
	}
}
