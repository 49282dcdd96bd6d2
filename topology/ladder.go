package topology

// position returns where in a ring of n the one with a given id comes.
func (c course) position(id, n int) int {
	switch {
	case c == straight:
		return id
	case id%2 == 0:
		return id / 2
	default:
		return n - 1 - id/2
	}
}
