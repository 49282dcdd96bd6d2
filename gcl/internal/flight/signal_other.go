//go:build !unix

package flight

import "os"

// The signals that print the dump: there are none.
var quitSignal, userSignal os.Signal

// raiseQuit is not called.
func raiseQuit() {}

// inBubble is not asked where there is no signal.
func inBubble() bool { return true }
