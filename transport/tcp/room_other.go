//go:build !unix

package tcp

// room finds nothing: there is no limit to look at.
func room(int) error { return nil }
