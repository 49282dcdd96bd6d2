// Package transporttest is the conformance suite of transports: [Run] holds a transport to every promise of package
// transport.
//
//	func TestConformance(t *testing.T) {
//		transporttest.Run(t, func(t testing.TB, n int) []transport.Endpoint {
//			eps, err := mytransport.New(n)
//			if err != nil {
//				t.Fatal(err)
//			}
//			return eps
//		}, transporttest.NoAlloc)
//	}
//
// [RunProcesses] does the same with one process for each replica, and [RunLaunched] with processes that a launcher such
// as mpirun starts.
//
// The suite drives each endpoint from a goroutine of its own, with batches in which every byte depends on the sender,
// the receiver, the tag, the round and its place. Folds are neither commutative nor associative, so the order in which
// they were applied shows in the result, and each piece that a Fold is given is checked. After every Exchange that
// fails, and after every Close, the replica overwrites all its buffers at once: run the suite with -race, which then
// sees who still reads them. A watchdog turns a hang into a failure with the stacks of all goroutines. No test asserts
// a time.
//
// What goes wrong goes wrong in the same scenes for calls of every kind, exchanges, meetings in memory and collectives
// of an engine: contexts end, replicas abort, close, have left, or are in other calls, at any moment.
package transporttest
