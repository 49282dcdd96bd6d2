package tcp

// brokenLink is a stream.Link in place of one that could not be made.
type brokenLink struct{ err error }

func (l brokenLink) Send(_, _, _ []byte) (int, error) { return 0, l.err }
func (l brokenLink) Peek(int) ([]byte, error)         { return nil, l.err }
func (l brokenLink) Skip(int)                         {}
func (l brokenLink) ReadInto([]byte) (int, error)     { return 0, l.err }
func (l brokenLink) Close() error                     { return nil }
