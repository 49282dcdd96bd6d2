package methods

import "gogcl.dev/methods/schedule"

// send sends a span to a rank.
func send(src schedule.Span, to int) schedule.Step {
	return schedule.Step{Verb: schedule.Send, Peer: to, Src: src}
}

// recv receives a span from a rank.
func recv(dst schedule.Span, from int) schedule.Step {
	return schedule.Step{Verb: schedule.Recv, Peer: from, Dst: dst}
}

// recvReduce is dst = src op what a rank sends.
func recvReduce(dst, src schedule.Span, from int) schedule.Step {
	return schedule.Step{Verb: schedule.RecvReduce, Peer: from, Src: src, Dst: dst}
}

// move copies a span.
func move(dst, src schedule.Span) schedule.Step {
	return schedule.Step{Verb: schedule.Copy, Peer: -1, Src: src, Dst: dst}
}

// reduce is dst = dst op src.
func reduce(dst, src schedule.Span) schedule.Step {
	return schedule.Step{Verb: schedule.Fold, Peer: -1, Src: src, Dst: dst}
}

// keep copies n chunks of the Input from chunk f on to the same place of the Output.
func keep(f, n int) schedule.Step { return move(schedule.Out(f, n), schedule.In(f, n)) }
