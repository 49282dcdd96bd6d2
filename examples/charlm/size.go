package main

// size is what a model's tensors are as large as.
type size struct {
	depth      int // blocks
	width      int // of what a block hands on for each character
	heads      int // of attention
	window     int // characters that a prediction is made from, at most
	vocabulary int
}

// hidden is the width within the mlp.
func (s size) hidden() int { return 4 * s.width }
