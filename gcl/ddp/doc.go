// Package ddp is data parallel training for programs that have gradients of their own: of gonum, of gomlx, by hand.
// Every replica has all parameters and a share of each batch. A [Reducer] gives all of them the mean of the gradients,
// and begins while the backward pass still computes.
//
//	r, err := ddp.New(ctx, c, grads, ddp.Options{}) // after ddp.Broadcast(ctx, c, params)
//	for ... {
//		for i := range slices.Backward(layers) {
//			layers[i].backward(grads[i])
//			err = r.Ready(ctx, i) // gradient i is complete
//		}
//		err = r.Finish(ctx) // the mean over the replicas is in grads
//		update(params, grads)
//	}
//
// Gradients travel in buckets, from the last gradient to the first, which is the order of a backward pass. The
// all-reduce of a bucket starts when all its gradients are ready and all buckets before it have started. So the calls
// have one order on all replicas, whatever the order of Ready is:
//
//	gradients    0       1   2       3   4
//	buckets     |-- 2 --|-- 1 --|-- 0 --|
//	Ready(4)                             waits for 3
//	Ready(2), Ready(1)                   bucket 1 waits for bucket 0
//	Ready(3)                             buckets 0 and 1 start
//	Finish                               gradient 0 is unused: it is cleared, and bucket 2 goes
//
// The calls have the queue of Comm.Start: a program whose backward pass makes others gives New a Comm.Dup.
//
// A gradient that no Ready has named is unused, and counts as zero. A parameter that some replicas use gets the sum of
// their gradients over the number of all replicas. One that nobody uses gets zero, and an optimizer with momentum or
// weight decay still moves it.
//
// To accumulate, a program adds gradients up in their slices over several steps, all but the last of which begin with
// NoSync. A gradient is unused if none of them has named it. The program clears its gradients itself.
//
// All replicas get the same bits. With Options.Reproducible of the Comm they are those of a loop that adds gradients in
// rank order, and divides by the number of ranks.
//
// All replicas make the same calls of NoSync and Finish. If a NoSync is missing on some, Finish is an error on all. A
// Finish too many mixes different steps from then on, and shows when a replica leaves. A step with a wrong Ready is
// carried out all the same, so that nobody waits, and its Finish returns the error on that replica. Within a function
// given to Comm.Start there is no step: Ready starts calls of its own.
package ddp
