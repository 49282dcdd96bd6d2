package inproc

// wanted is an index of the receives of a batch that are not done. It is made when the endpoint enters the register,
// and good for as long as the endpoint stands there.
//
//	one chain         Recv from 3     RecvFold from 1     RecvFold from 2
//	has it arrived    no              yes                 no
//	open              open[0]                             open[1]
//	in front of it    open[0:0]       open[0:1]           open[0:1]
type wanted struct {
	links []link
	first []int32 // by sender: the index of one of its links, plus 1; or 0
	open  []int32 // by chain: the receives, as indices into the batch, whose messages had not arrived
}

// link is one receive.
type link struct {
	tag      uint32
	more     int32 // another link of the same sender, as in first
	from, to int32 // open[from:to] are in front of it in its chain
}

// list makes the index, and returns how many receives there are.
func (w *wanted) list(e *endpoint) int {
	if w.first == nil && len(e.chains) > 0 {
		w.first = make([]int32, len(e.lane.eps))
	}
	clear(w.first)
	w.links, w.open = w.links[:0], w.open[:0]
	for _, c := range e.chains {
		from := int32(len(w.open))
		for i := c.at; i < c.end; i++ {
			first := &w.first[e.batch[i].Peer]
			w.links = append(w.links, link{tag: e.batch[i].Tag, more: *first, from: from, to: int32(len(w.open))})
			*first = int32(len(w.links))
			if !e.arrived(i) {
				w.open = append(w.open, int32(i))
			}
		}
	}
	return len(w.links)
}

// find returns the link of a message, or nil when the endpoint does not want it.
func (w *wanted) find(peer int, tag uint32) *link {
	if len(w.links) == 0 {
		return nil
	}
	for k := w.first[peer]; k > 0; k = w.links[k-1].more {
		if l := &w.links[k-1]; l.tag == tag {
			return l
		}
	}
	return nil
}
