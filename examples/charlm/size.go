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

// The sizes that sizeFor makes. What the rules have been chosen by are runs of 25 seconds of processor time (two-core
// EPYC) with about 200,000 parameters, and what was lost on the text held out after that:
//
//	depth x width   1 x 128   2 x 88   3 x 72   4 x 64       window   32     48     64
//	loss            1.65      1.73     1.80     1.82         (2 x 88) 1.76   1.84   2.03 (2 x 96)
//
// The less there is to learn from, and that is little in a minute, the shallower a model should be. But one that shows
// how layers are sharded wants several.
const (
	widthStep    = 8  // widths are multiples of it
	widthByDepth = 24 // the width is near to so many times the depth
	headWidth    = 24 // of each head, or more
	maxDepth     = 12

	smallWindow   = 32
	largeWindow   = 64
	largeModels   = 1_000_000 // parameters from which on they have the larger window
	minParameters = 10_000
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

// sizeFor is a size of about so many parameters. For each depth there is a width that comes nearest to them; of these
// it is the one whose ratio to the depth is nearest to widthByDepth.
func sizeFor(parameters, vocabulary int) size {
	var best size
	least := math.Inf(1)
	for depth := 1; depth <= maxDepth; depth++ {
		s := size{depth: depth, window: smallWindow, vocabulary: vocabulary}
		if parameters >= largeModels {
			s.window = largeWindow
		}
		s.setWidth(widthStep)
		for {
			wider := s
			wider.setWidth(s.width + widthStep)
			if distance(wider.parameters(), parameters) >= distance(s.parameters(), parameters) {
				break
			}
			s = wider
		}
		if off := math.Abs(math.Log(float64(s.width) / float64(widthByDepth*depth))); off < least {
			best, least = s, off
		}
	}
	return best
}

func distance(a, b int) int { return max(a-b, b-a) }

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
