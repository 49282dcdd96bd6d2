package ir

import (
	"cmp"
	"math"
	"slices"
)

// Lengths of drawings, in pixels.
const (
	fontSize, smallSize = 12.0, 10.0
	letterWidth         = 0.62 // of the font's size: what wide fonts take on average
	textMargin          = 10.0
	lineHeight          = 15.0
	labelHeight         = 38.0 // two lines of small text, and the line before and after
	boxGap              = 22.0 // between boxes of a layer
	passWidth           = 8.0  // of a line that passes a layer
	orderWidth          = 16.0 // right of the other lines
	sheetMargin         = 14.0
	sweeps              = 8 // over the layers, to order and to place boxes: more changed nothing in graphs tried
)

// textWidth is about how wide text is.
func textWidth(text string, size float64) float64 {
	n := 0.0
	for _, r := range text {
		if n++; r >= 0x1100 { // East Asian letters are twice as wide
			n += 0.7
		}
	}
	return n * letterWidth * size
}

// segment is the part of a line between two layers.
type segment struct {
	upper, lower *drawnBox
	out, in      int
	red, dashed  bool
}

// layout gives each box its place and the sheet its size.
func (s *sheet) layout() {
	for _, b := range s.boxes {
		b.measure()
	}
	s.assignLayers()
	s.split()
	s.orderLayers()
	s.placeAcross()
	s.placeDown()
}

// measure finds the size of a box and where lines begin and end.
func (b *drawnBox) measure() {
	width := max(textWidth(b.text, fontSize), textWidth(b.small, smallSize)) + 2*textMargin
	b.height = lineHeight + 8
	if b.small != "" {
		b.height += lineHeight - 3
	}
	var widths []float64
	for _, l := range b.edgeLabels {
		widths = append(widths, l.width())
	}
	switch b.outline {
	case titleText:
		b.width = width
		return
	case pill:
		width = max(width-4, b.least)
	case slanted:
		width += 16
	case drum:
		b.height += 10
	case nestedBox:
		b.measureNested(widths)
		return
	}
	sum := 0.0
	for _, w := range widths {
		sum += w
	}
	if b.before {
		sum += 2 * orderWidth
	}
	b.width = max(width, sum, float64(b.inputs+1)*14)
	at := (b.width - sum) / 2
	if b.before {
		at += orderWidth
	}
	for _, w := range widths {
		b.outAt = append(b.outAt, at+w/2)
		at += w
	}
	for i := range b.inputs {
		b.inAt = append(b.inAt, b.width*float64(i+1)/float64(b.inputs+1))
	}
}

func (l label) width() float64 {
	return max(textWidth(l.name, smallSize), textWidth(l.spec, smallSize)) + 8
}

// measureNested lays out what is in a box. Lines end above its inputs and begin below its outputs.
func (b *drawnBox) measureNested(edgeLabels []float64) {
	outputs := 0
	for _, x := range b.inner.boxes {
		if x.end == atBottom && outputs < len(edgeLabels) {
			x.least = edgeLabels[outputs]
			outputs++
		}
	}
	b.inner.layout()
	b.width, b.height = b.inner.width, b.inner.height
	for _, x := range b.inner.boxes {
		if x.outline != pill {
			continue
		}
		if x.end == atTop {
			b.inAt = append(b.inAt, x.x+x.width/2)
		} else {
			b.outAt = append(b.outAt, x.x+x.width/2)
		}
	}
	if b.before || b.after {
		b.width += orderWidth
	}
}

// portAt is where, from the left of a box, a line begins or ends.
func (b *drawnBox) portAt(list []float64, i int) float64 {
	switch {
	case b.outline == passingBox:
		return b.width / 2
	case i == order:
		return b.width - orderWidth/2
	}
	return list[i]
}

// assignLayers has every line lead down: a box is a layer below the lowest that leads to it, and what nothing leads to
// just above the first that it leads to.
func (s *sheet) assignLayers() {
	into, from := map[*drawnBox][]*line{}, map[*drawnBox][]*line{}
	for _, l := range s.lines {
		into[l.to] = append(into[l.to], l)
		from[l.from] = append(from[l.from], l)
	}
	last := 0
	for _, b := range s.boxes { // in the order in which they were built, so that lines lead from earlier ones to later
		if b.end == atTop {
			continue
		}
		b.layer = 1
		for _, l := range into[b] {
			b.layer = max(b.layer, l.from.layer+1)
		}
		if b.end == anywhere {
			last = max(last, b.layer)
		}
	}
	for _, b := range slices.Backward(s.boxes) {
		if b.end != anywhere || len(into[b]) > 0 || len(from[b]) == 0 {
			continue
		}
		b.layer = last
		for _, l := range from[b] {
			if l.to.end == anywhere {
				b.layer = min(b.layer, l.to.layer-1)
			}
		}
	}
	for _, b := range s.boxes {
		if b.end == atBottom {
			b.layer = last + 1
		}
	}
	s.layers = nil
	for _, b := range s.boxes {
		for len(s.layers) <= b.layer {
			s.layers = append(s.layers, nil)
		}
		s.layers[b.layer] = append(s.layers[b.layer], b)
	}
}

// split cuts lines at the layers that they pass. Lines from one place pass together.
func (s *sheet) split() {
	type place struct {
		from  *drawnBox
		out   int
		layer int
	}
	passing := map[place]*drawnBox{}
	for _, l := range s.lines {
		at, out := l.from, l.out
		for layer := l.from.layer + 1; layer < l.to.layer; layer++ {
			key := place{l.from, l.out, layer}
			b := passing[key]
			if b == nil {
				b = &drawnBox{outline: passingBox, layer: layer, width: passWidth}
				passing[key] = b
				s.layers[layer] = append(s.layers[layer], b)
				s.gaps = append(s.gaps, segment{at, b, out, 0, false, l.in == order})
			}
			at, out = b, 0
		}
		s.gaps = append(s.gaps, segment{at, l.to, out, l.in, l.red, l.in == order})
	}
}

// orderLayers moves boxes within their layers so that few lines cross: each to the middle of those that it is joined to
// in the layer above, then below, some times over. The best order wins. The ends of the graph stay in their order.
func (s *sheet) orderLayers() {
	above, below := map[*drawnBox][]segment{}, map[*drawnBox][]segment{}
	between := make([][]segment, len(s.layers))
	for _, g := range s.gaps {
		above[g.lower] = append(above[g.lower], g)
		below[g.upper] = append(below[g.upper], g)
		between[g.upper.layer] = append(between[g.upper.layer], g)
	}
	at := map[*drawnBox]float64{}
	number := func(layer []*drawnBox) {
		for i, b := range layer {
			at[b] = float64(i)
		}
	}
	for _, layer := range s.layers {
		number(layer)
	}
	upper := func(g segment) float64 {
		return at[g.upper] + g.upper.portAt(g.upper.outAt, g.out)/(g.upper.width+1)
	}
	lower := func(g segment) float64 { return at[g.lower] + g.lower.portAt(g.lower.inAt, g.in)/(g.lower.width+1) }
	crossings := func() int {
		n := 0
		for _, list := range between {
			for i, a := range list {
				for _, b := range list[:i] {
					if (upper(a)-upper(b))*(lower(a)-lower(b)) < 0 {
						n++
					}
				}
			}
		}
		return n
	}
	best, fewest := s.copyLayers(), crossings()
	for k := range 2 * sweeps {
		if fewest == 0 {
			break
		}
		for i := range s.layers {
			layer, joined, other := s.layers[i], above, upper
			if k%2 == 1 {
				layer, joined, other = s.layers[len(s.layers)-1-i], below, lower
			}
			middle := map[*drawnBox]float64{}
			for _, b := range layer {
				middle[b] = at[b]
				if list := joined[b]; len(list) > 0 {
					sum := 0.0
					for _, g := range list {
						sum += other(g)
					}
					middle[b] = sum / float64(len(list))
				}
			}
			if !slices.ContainsFunc(layer, func(b *drawnBox) bool { return b.end != anywhere }) {
				slices.SortStableFunc(layer, func(a, b *drawnBox) int { return cmp.Compare(middle[a], middle[b]) })
			}
			number(layer)
		}
		if n := crossings(); n < fewest {
			best, fewest = s.copyLayers(), n
		}
	}
	s.layers = best
}

func (s *sheet) copyLayers() [][]*drawnBox {
	var out [][]*drawnBox
	for _, layer := range s.layers {
		out = append(out, slices.Clone(layer))
	}
	return out
}

// placeAcross finds each box's x: as near to above and below those that it is joined to as the others of its layer let
// it, so that most lines are straight.
func (s *sheet) placeAcross() {
	above, below := map[*drawnBox][]segment{}, map[*drawnBox][]segment{}
	for _, g := range s.gaps {
		above[g.lower] = append(above[g.lower], g)
		below[g.upper] = append(below[g.upper], g)
	}
	for _, layer := range s.layers {
		x := 0.0
		for _, b := range layer {
			b.x = x
			x += b.width + boxGap
		}
	}
	for k := range 3 * sweeps {
		for i := range s.layers {
			layer := s.layers[i]
			if k%2 == 1 {
				layer = s.layers[len(s.layers)-1-i]
			}
			wanted, weights := make([]float64, len(layer)), make([]float64, len(layer))
			for j, b := range layer {
				pull := func(x, weight float64) {
					wanted[j] += x * weight
					weights[j] += weight
				}
				if k%2 == 0 || k >= 2*sweeps {
					for _, g := range above[b] {
						pull(g.upper.x+g.upper.portAt(g.upper.outAt, g.out)-b.portAt(b.inAt, g.in), g.weight())
					}
				}
				if k%2 == 1 || k >= 2*sweeps {
					for _, g := range below[b] {
						pull(g.lower.x+g.lower.portAt(g.lower.inAt, g.in)-b.portAt(b.outAt, g.out), g.weight())
					}
				}
				if weights[j] == 0 {
					pull(b.x, 0.01)
				}
				wanted[j] /= weights[j]
			}
			settle(layer, wanted, weights)
		}
	}
	for _, layer := range s.layers { // what no line holds stands beside what one does
		alone := func(b *drawnBox) bool { return len(above[b])+len(below[b]) == 0 && b.end == anywhere }
		for i := len(layer) - 2; i >= 0; i-- {
			if alone(layer[i]) {
				layer[i].x = layer[i+1].x - boxGap - layer[i].width
			}
		}
		held := false
		for i, b := range layer {
			if held = held || !alone(b); held && i > 0 && alone(b) {
				b.x = layer[i-1].x + layer[i-1].width + boxGap
			}
		}
	}
	low, high := math.Inf(1), 0.0
	for _, layer := range s.layers {
		for _, b := range layer {
			if b.outline != titleText {
				low = min(low, b.x)
			}
		}
	}
	// The title is the first of its layer, and only has to end before the second begins.
	if top := s.layers[0]; len(top) > 1 {
		low = min(low, top[1].x-boxGap-top[0].width)
	} else if math.IsInf(low, 1) {
		low = 0
	}
	for _, layer := range s.layers {
		for _, b := range layer {
			b.x += sheetMargin - low
			if b.outline == titleText {
				b.x = sheetMargin
			}
			high = max(high, b.x+b.width)
		}
	}
	s.width = high + sheetMargin
}

// weight is how much a segment wants to be straight. A bend in a long line is worse than one at its end.
func (g segment) weight() float64 {
	switch {
	case g.upper.outline == passingBox && g.lower.outline == passingBox:
		return 8
	case g.dashed:
		return 0.5
	}
	return 1
}

// settle places the boxes of a layer in their order, none upon another, with the least sum of the weighted squares of
// the distances from where they are wanted: neighbours that would come too near each other form a heap, which stands
// where its weighted mean is wanted (pool adjacent violators).
func settle(layer []*drawnBox, wanted, weights []float64) {
	type heap struct {
		first       int
		sum, weight float64 // of wanted places, of the first drawnBox
	}
	offset := make([]float64, len(layer)) // from the first drawnBox of the layer, if all are as near as they can be
	for i := 1; i < len(layer); i++ {
		offset[i] = offset[i-1] + layer[i-1].width + boxGap
		if layer[i].outline == passingBox && layer[i-1].outline == passingBox {
			offset[i] -= boxGap / 2
		}
	}
	var heaps []heap
	for i := range layer {
		h := heap{i, (wanted[i] - offset[i]) * weights[i], weights[i]}
		for len(heaps) > 0 {
			last := heaps[len(heaps)-1]
			if last.sum/last.weight < h.sum/h.weight {
				break
			}
			h = heap{last.first, last.sum + h.sum, last.weight + h.weight}
			heaps = heaps[:len(heaps)-1]
		}
		heaps = append(heaps, h)
	}
	for k, h := range heaps {
		end := len(layer)
		if k+1 < len(heaps) {
			end = heaps[k+1].first
		}
		for i := h.first; i < end; i++ {
			layer[i].x = h.sum/h.weight + offset[i]
		}
	}
}

// placeDown finds each layer's y. The wider the lines between two layers lean, the farther apart they are.
func (s *sheet) placeDown() {
	lean := make([]float64, len(s.layers))
	for _, g := range s.gaps {
		dx := g.upper.x + g.upper.portAt(g.upper.outAt, g.out) - g.lower.x - g.lower.portAt(g.lower.inAt, g.in)
		lean[g.upper.layer] = max(lean[g.upper.layer], math.Abs(dx))
	}
	y := sheetMargin
	s.tops, s.bottoms = nil, nil
	for i, layer := range s.layers {
		height := 0.0
		for _, b := range layer {
			b.y = y
			height = max(height, b.height+b.below())
		}
		s.tops, s.bottoms = append(s.tops, y), append(s.bottoms, y+height)
		y += height
		if i+1 < len(s.layers) {
			y += 18 + min(lean[i]*0.15, 60)
		}
	}
	s.height = y + sheetMargin
}

// below is the height of what is below a box.
func (b *drawnBox) below() float64 {
	if slices.ContainsFunc(b.edgeLabels, func(l label) bool { return l.name != "" }) {
		return labelHeight
	}
	return 0
}
