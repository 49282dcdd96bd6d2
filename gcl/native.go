package gcl

import (
	"fmt"

	"gogcl.dev/gcl/internal/pack"
	"gogcl.dev/methods"
	"gogcl.dev/tensor"
)

// nativeError says why the method native cannot be used.
func nativeError(reason string) *OptionError {
	return &OptionError{Option: "Method", Value: methods.Native.String(), Reason: reason}
}

// checkNative returns an *OptionError if the method is native and other options, or the transport, speak against it. A
// group of one, which sends nothing, needs no engine.
func (c *Comm) checkNative() error {
	switch o := &c.options; {
	case o.Method != methods.Native:
		return nil
	case o.Reproducible:
		return nativeError("it does not go with Reproducible, which folds in rank order: an engine combines in an order " +
			"of its own; want one of the two")
	case o.Implementation == Syncful || o.Implementation == Hybrid:
		return nativeError(fmt.Sprintf("it does not go with Implementation=%v: an engine has steps of its own; want "+
			"Implementation=%v", o.Implementation, AutoImplementation))
	case c.Size() > 1 && !c.conn.HasEngine():
		return nativeError("it needs a transport with collectives of its own: mpi")
	}
	return nil
}

// checkEngine says why the transport's engine cannot carry out a call on one operand, of n elements in the larger
// buffer and in these parts, if the method is native.
func (c *Comm) checkEngine(a *ask, dtype tensor.DType, n int, parts *pack.Parts) error {
	if c.options.Method != methods.Native {
		return nil
	}
	return c.caller.EngineRefuses(&a.Ask, dtype, n, parts)
}
