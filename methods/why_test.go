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
	for _, c := range []struct {
		tuning     Tuning
		collective schedule.Collective
		size       int
		bytes      int64
		strided    bool
		want       string
	}{
		{host, ar, 4, 1024, false, "group size x bytes, 4 x 1024, is at or below 4096"},
		{host, ar, 4, 1025, false, "group size x bytes, 4 x 1025, is above 4096 and every pair of replicas is linked"},
		{host, ar, 4, math.MaxInt64, false, "group size x bytes, 4 x 9223372036854775807, is above 4096 and every pair of replicas is linked"},
		{host, ar, 4, 1024, true, "a group with a stride above 1 never takes broadcast"},
		{host, ar, 4, 1025, true, "group size x bytes, 4 x 1025, is above 4096 and every pair of replicas is linked"},
		{host, ag, 4, 1024, true, "every pair of replicas is linked, so that a ring gains nothing"},
		{IPULinks(), rs, 2, 1 << 30, false, "a ring of 2 has one way round"},
		{IPULinks(), rs, 3, 1_245_183, false, "1245183 bytes are below the 1245184 from which 3 ranks use both directions all the way"},
		{IPULinks(), rs, 3, 1_245_184, false, "1245184 bytes are at or above the 1245184 from which 3 ranks use both directions all the way"},
		{IPULinks(), ag, 9, 19_922_943, false, "19922943 bytes are below the 19922944 from which 9 ranks use both directions all the way"},
	} {
		if got := c.tuning.Why(c.collective, c.size, c.bytes, c.strided); got != c.want {
			t.Errorf("%v over %d of %d bytes, strided %v:\nhave %s\nwant %s",
				c.collective, c.size, c.bytes, c.strided, got, c.want)
		}
	}
}
