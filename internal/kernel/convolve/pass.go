package convolve

// pass is how the result of sweeps is computed in parts.
type pass struct {
	s Sizes
	// Of the source and of the result.
	from, to  images
	transpose bool // the channels of the result are those of x
	sweeps    []sweep
	chunk     []int // rows of windows in a unit of each sweep, or windows where it is narrow
	units     []int // of the sweeps before each one, and of all
	// wide: places of the source are copied further apart than their channels, so that the windows of a row do not
	// compete for the same lines of the level-1 cache.
	wide bool
}

// images says how places lie.
type images struct{ height, width, channels int }

const (
	// directTerms and directColumns bound the packed weights that one product reads, which stay in the level-2 cache.
	directTerms   = 384
	directColumns = 384
	// directResult are the elements of the result in a unit, which stay there with what they are made of.
	directResult = 52 << 10
	// Packed weights of directAhead floats and more are asked for while those before them are multiplied, aheadLines
	// lines at a time.
	directAhead = 128 << 10
	aheadLines  = 16
	// Results with less than narrowCols columns are narrow, and a unit has narrowWindows windows of them, which are
	// whole tiles.
	narrowCols    = 14
	narrowWindows = 448
	// narrowGap lies between rows of gathered values, so that they do not compete for the same lines of the level-1
	// cache.
	narrowGap = 16
	// narrowChannels are the least channels of which gathering them costs next to nothing.
	narrowChannels = 64
	// Channels in multiples of wideChannels, 1 KiB, are wide.
	wideChannels = 256
)

// newPass cuts the convolution, or its gradient by data, into units of rows of windows.
func newPass(s Sizes, threads int, backward bool) *pass {
	p := &pass{s: s, from: images{s.Height, s.Width, s.In}, to: images{s.OutHeight(), s.OutWidth(), s.Out},
		sweeps: s.sweeps()}
	if backward {
		p.from, p.to, p.sweeps, p.transpose = p.to, p.from, s.backward(), true
	}
	p.wide = p.from.channels%wideChannels == 0
	total := 0
	for i := range p.sweeps {
		w := &p.sweeps[i]
		if p.narrow(w) {
			all := s.Batch * w.rows * w.cols
			p.chunk = append(p.chunk, parts(all, min(narrowWindows, (all+threads-1)/threads), 1))
			p.units = append(p.units, total)
			total += (all + p.chunk[i] - 1) / p.chunk[i]
			continue
		}
		rows := max(1, min(directResult/(w.cols*p.to.channels), (s.Batch*w.rows+threads-1)/threads, w.rows))
		p.chunk = append(p.chunk, parts(w.rows, rows, 1))
		p.units = append(p.units, total)
		total += s.Batch * p.chunks(i)
	}
	p.units = append(p.units, total)
	return p
}

// chunks is how many units the rows of an image are cut into in sweep i.
func (p *pass) chunks(i int) int { return (p.sweeps[i].rows + p.chunk[i] - 1) / p.chunk[i] }

// weights returns the floats of packed weights.
func (p *pass) weights() int {
	n := 0
	for _, w := range p.sweeps {
		n += w.u * w.v * p.from.channels * panels(p.to.channels)
	}
	return n
}

// bordered returns the floats of a copy of what a unit sees of the source.
func (p *pass) bordered() int {
	n := 0
	for i, w := range p.sweeps {
		if p.narrow(&w) {
			n = max(n, p.chunk[i]*(directTerms+narrowGap))
			continue
		}
		n = max(n, ((p.chunk[i]-1)*w.step+w.u)*((w.cols-1)*w.step+w.v)*p.apart())
	}
	return n
}

// narrow says that rows of windows of w are too short for tiles to run at full speed. Then the values of a block of
// terms are gathered for windows of several rows, and of several images.
func (p *pass) narrow(w *sweep) bool {
	return w.stride == 1 && w.cols < narrowCols && p.from.channels >= narrowChannels
}

// apart is how far the places of a copy of the source lie apart.
func (p *pass) apart() int {
	if p.wide {
		return p.from.channels + 16
	}
	return p.from.channels
}

// runs returns how many runs the values that a row of a window of sweep w sees are, and how many are in each: all of
// them lie side by side, or those of each place.
func (p *pass) runs(w *sweep) (n, terms int) {
	if p.wide || p.narrow(w) {
		return w.v, p.from.channels
	}
	return 1, w.v * p.from.channels
}

// scratch returns the floats of working memory.
func (p *pass) scratch(threads int) int { return p.weights() + threads*p.bordered() }

// parts returns the length of the parts when a length is cut into as few equal parts of at most most as possible, in
// multiples of unit.
func parts(length, most, unit int) int {
	n := (length + most - 1) / most
	return ((length+n-1)/n + unit - 1) / unit * unit
}
