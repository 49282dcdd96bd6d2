package transport

import "time"

// Settler is what an Endpoint may offer beside Exchange when its replicas are processes: before it leaves, a replica
// hears of the others that they have made a call which did not wait for them.
type Settler interface {
	Endpoint

	// AnswerBy has f asked what this replica has made of a call: the call that it is done with, of that group and that
	// number, which is equal if it agrees. Not ok says that it has made none so far, or is in it. f is called on a
	// goroutine of the transport, or in Exchange, and must not wait. AnswerBy is called at most once, before the first
	// Exchange.
	AnswerBy(f func(theirs Call) (mine Call, ok bool))

	// Settle asks replicas what they have made of a call, and waits until each has answered or left, the endpoint is
	// aborted, or the limit is over. Once a replica has waited for so long in vain it does not wait again. The error is
	// a *MismatchError with one that has made another call in its place, which aborts the endpoint, or the *ClosedError
	// of one that has left without it.
	Settle(call Call, replicas []int, limit time.Duration) error
}
