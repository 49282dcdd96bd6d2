package main

import "math"

// size is how large a model is.
type size struct {
	depth      int // blocks
	width      int // of what a block hands on for each character
	heads      int // of attention
	window     int // characters that a prediction is made from, at most
	vocabulary int
}

// The sizes that sizeFor makes. The less there is to learn from, and that is little in minutes, the shallower a model
// may be. But one that shows how layers are sharded wants several.
const (
	widthStep    = 8  // widths are multiples of it
	widthByDepth = 24 // the width is half to twice so many times the depth, where that is possible
	headWidth    = 24 // of each head, or more
	maxDepth     = 12

	smallWindow   = 32
	largeWindow   = 64
	largeModels   = 1_000_000 // parameters from which on they have the larger window
	minParameters = 2659      // those of one block of width 8, with the 91 characters of the book
	maxParameters = 5_000_000
)

// hidden is the width within the mlp.
func (s size) hidden() int { return 4 * s.width }

// parameters is how many numbers a model learns.
func (s size) parameters() int {
	n := count(s.embeddingParams()) + count(s.headParams())
	return n + s.depth*count(s.blockParams())
}

func count(params []parameter) int {
	n := 0
	for _, p := range params {
		elements := 1
		for _, extent := range p.shape {
			elements *= extent
		}
		n += elements
	}
	return n
}

// sizeFor is the size with the most parameters that are not more than these. For each depth there is a largest width;
// of these sizes only those count whose width is half to twice widthByDepth times the depth, or, if there is none, the
// nearest to that. If no size fits it is the least one.
func sizeFor(parameters, vocabulary int) size {
	s := size{depth: 1, window: smallWindow, vocabulary: vocabulary}
	if parameters >= largeModels {
		s.window = largeWindow
	}
	s.setWidth(widthStep)
	best, least := s, math.Inf(1)
	for ; s.depth <= maxDepth; s.depth++ {
		s.setWidth(widthStep)
		if s.parameters() > parameters {
			break
		}
		for wider := s; ; {
			wider.setWidth(s.width + widthStep)
			if wider.parameters() > parameters {
				break
			}
			s = wider
		}
		off := math.Abs(math.Log2(float64(s.width) / float64(widthByDepth*s.depth)))
		off = max(off, 1) // up to a factor of two is as good as none
		if off < least || off == least && s.parameters() > best.parameters() {
			best, least = s, off
		}
	}
	return best
}

// setWidth sets the width, and the number of heads: as many as there can be of headWidth or more.
func (s *size) setWidth(width int) {
	s.width, s.heads = width, max(1, width/headWidth)
	for width%s.heads != 0 {
		s.heads--
	}
}

// The learning rate: at its peak, for a model of rateWidth. It goes down with the width, as the sums that a step
// changes have more parts.
const (
	rateWidth = 72
	peakRate  = 0.008
	lastRate  = 0.02 // of the peak, at the end
	warmSteps = 100  // in which it rises to the peak
)

// rate is the peak of the learning rate.
func (s size) rate() float64 { return peakRate * rateWidth / float64(s.width) }

// rateAt is the learning rate of a step, the first being 1, after a part of the training that is between 0 and 1: it
// rises for some steps, and goes down as half a wave of a cosine.
func rateAt(peak float64, step int, part float64) float64 {
	warm := min(1, float64(step)/warmSteps)
	return peak * warm * (lastRate + (1-lastRate)*(1+math.Cos(math.Pi*part))/2)
}
