package convolve

// filters is how the gradient of the weights is computed by tiles: in blocks of places, which are the terms of products
// of what windows see there (the rows) and the gradient of the result (the columns). A unit is the part of the gradient
// of one group of channels and one of filters, over the blocks of one partial sum.
type filters struct {
	s Sizes
	// A row of a window is runs runs of channels values that lie side by side: one for each of its places, or a single
	// one where the images have few channels.
	runs, channels int
	across         int // places in a row of the result
	rows           int // rows of the result in a block
	high           int // rows of an image of the result
	chunks         int // blocks of an image, 0 where a block has several images
	blocks         int
	group, outs    int // channels and filters of a unit
	groups, parts  int // of channels, and of filters
	split          int // units that share the runs of a row: 1 or runs
	sums           int
	copies         []rowCopy
}

// rowCopy is a copy of rows of the source that some rows of a window share: those from row u on, a stride apart. Each
// is a row further on in the copy.
type rowCopy struct{ u, taps int }

const (
	filterPlaces   = 256 // places of a block
	filterGroup    = 128 // channels of a unit
	filterColumns  = 256 // filters of a unit
	filterUnits    = 24  // least units, as far as partial sums may provide for them
	mostPartials   = 16
	channelGap     = 16 // between places of a copy
	fewestChannels = 16 // of fewer, the places of a row of a window are one run
)

// newFilters cuts the gradient of the weights of s into units. All depends on the sizes alone.
func newFilters(s Sizes) *filters {
	f := &filters{s: s, runs: s.Kernel, channels: s.In, across: s.OutWidth(), high: s.OutHeight()}
	if s.In < fewestChannels {
		f.runs, f.channels = 1, s.Kernel*s.In
	}
	if most := max(filterPlaces/f.across, 1); most < 2*f.high {
		f.rows = parts(f.high, most, 1)
		f.chunks = (f.high + f.rows - 1) / f.rows
		f.blocks = f.chunks * s.Batch
	} else {
		images := parts(s.Batch, most/f.high, 1)
		f.rows = images * f.high
		f.blocks = (s.Batch + images - 1) / images
	}
	f.group, f.outs = parts(f.channels, filterGroup, 1), parts(s.Out, filterColumns, panelWidth)
	f.groups, f.parts = (f.channels+f.group-1)/f.group, (s.Out+f.outs-1)/f.outs
	f.split = 1
	if f.chunks == 0 {
		f.split = f.runs
	}
	f.sums = min(max((filterUnits+f.shares()-1)/f.shares(), 1), mostPartials, f.blocks)
	if f.chunks == 0 {
		for u := range s.Kernel {
			f.copies = append(f.copies, rowCopy{u, 1})
		}
		return f
	}
	for u := range min(s.Stride, s.Kernel) {
		f.copies = append(f.copies, rowCopy{u, (s.Kernel - u + s.Stride - 1) / s.Stride})
	}
	return f
}

// shares is the number of units of a partial sum.
func (f *filters) shares() int { return f.split * f.parts * f.groups }

// block returns the rows of the result of block i, counted over all images.
func (f *filters) block(i int) (first, end int) {
	if f.chunks == 0 {
		return i * f.rows, min((i+1)*f.rows, f.s.Batch*f.high)
	}
	first = i % f.chunks * f.rows
	end = min(first+f.rows, f.high)
	image := i / f.chunks * f.high
	return image + first, image + end
}

// slots is the most rows of the source that a copy has.
func (f *filters) slots() int {
	n := 0
	for _, c := range f.copies {
		n = max(n, f.rows+c.taps-1)
	}
	return n
}

// memory returns the floats that a thread works with: the filters of a block, and a copy of what rows of windows see.
func (f *filters) memory() (panel, seen int) {
	panel, seen = f.rows*f.across*panels(f.outs), f.slots()*f.across*(f.group+channelGap)
	if f.runs < f.s.Kernel {
		seen = f.slots() * (f.s.Width + 2*f.s.Pad) * f.s.In
	}
	return panel, seen
}

// scratch returns the floats of working memory.
func (f *filters) scratch(threads int) int {
	panel, seen := f.memory()
	return f.sums*f.s.weights() + threads*(panel+seen)
}

// inside returns the places lo to hi of a row of the result whose value at column v of the window is inside the image.
func (f *filters) inside(v int) (lo, hi int) {
	lo = max(f.s.Pad-v+f.s.Stride-1, 0) / f.s.Stride
	if last := f.s.Width - 1 + f.s.Pad - v; last >= 0 {
		hi = min(last/f.s.Stride+1, f.across)
	}
	return min(lo, hi), hi
}
