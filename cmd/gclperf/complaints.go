package main

import (
	"fmt"
	"io"
	"sync"
)

// complaints prints where wrong values are.
type complaints struct {
	mu sync.Mutex // guards what follows
	to io.Writer
}

func (c *complaints) add(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	fmt.Fprintf(c.to, "gclperf: "+format+"\n", args...)
}
