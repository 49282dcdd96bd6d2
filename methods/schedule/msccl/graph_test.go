package msccl

import (
	"strings"
	"testing"
)

// TestOneSearchForTwoSteps: steps of two thread blocks share a thousand chunks. One search says which is first.
func TestOneSearchForTwoSteps(t *testing.T) {
	t.Parallel()
	const step = `<step s="0" type="cpy" srcbuf="s" srcoff="0" dstbuf="s" dstoff="1000" cnt="1000" `
	text := `<algo name="two" proto="LL" nchannels="1" nchunksperloop="1" ngpus="1" coll="allreduce" inplace="1">` +
		`<gpu id="0" i_chunks="1" o_chunks="0" s_chunks="2000">` +
		`<tb id="0" send="-1" recv="-1" chan="-1">` + step + `depid="-1" deps="-1" hasdep="1"/></tb>` +
		`<tb id="1" send="-1" recv="-1" chan="-1">` + step + `depid="0" deps="0" hasdep="0"/></tb></gpu></algo>`
	for _, c := range []struct{ text, want string }{
		{text, ""},
		{strings.Replace(text, `depid="0" deps="0"`, `depid="-1" deps="-1"`, 1), "nothing says which is first"},
	} {
		a, err := parse([]byte(c.text))
		if err != nil {
			t.Fatal(err)
		}
		g, err := newGraph(a)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want %q", err, c.want)
		}
		if g.turn != 1 {
			t.Errorf("%d searches, want 1", g.turn)
		}
	}
}
