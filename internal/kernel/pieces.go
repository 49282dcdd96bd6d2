package kernel

// An assembly function cannot be interrupted: while it runs, the goroutine's processor is lost to the Go scheduler and
// to a garbage collection that wants to begin. So what calls assembly calls it for a piece at a time.

// pieceTouched is how many bytes one call may touch, all operands together: at 5 GB/s, which is slow for one thread
// even from memory that another one is hammering (PERFORMANCE: 11 to 24), it is 50 microseconds.
const pieceTouched = 256 << 10

// pieceBytes is how many bytes of each operand a call may take. It is a multiple of 1024, so that pieces begin on a
// cache line if the whole did.
func pieceBytes(operands int) int { return max(1024, pieceTouched/operands&^1023) }
