package convolve

// sweep is a part of a pass in which windows of one shape move over the images of the source: the convolution itself is
// one, and its gradient by data is one for each place that a pixel can have between the steps of a stride, since these
// pixels are seen by the same weights. In the gradient the source is that of the result.
type sweep struct {
	rows, cols int // of windows in an image
	u, v       int // rows and columns of a window
	step       int // places from one window to the next
	top, left  int // of the first window in the source; a border of zeros surrounds it
	// Where the first window's result lies in its image and how many places away the next one's.
	row, col, stride int
	// The weights of row i and column j of a window are those of row ky + i*kstep and column kx + j*kstep.
	ky, kx, kstep int
	packed        int // where packed weights begin
}

// sweeps are those of the convolution.
func (s Sizes) sweeps() []sweep {
	return []sweep{{rows: s.OutHeight(), cols: s.OutWidth(), u: s.Kernel, v: s.Kernel, step: s.Stride, top: -s.Pad,
		left: -s.Pad, stride: 1, kstep: 1}}
}

// backward are the sweeps of the gradient by data, over the gradient of the result. A pixel (i, j) is seen by row ky of
// the filters of place (i+pad-ky)/stride where that is a whole number.
func (s Sizes) backward() []sweep {
	var out []sweep
	packed := 0
	for y := range s.Stride {
		for x := range s.Stride {
			w := sweep{step: 1, stride: s.Stride, kstep: -s.Stride, packed: packed}
			w.rows, w.u, w.top, w.row, w.ky = s.phase(y, s.Height)
			w.cols, w.v, w.left, w.col, w.kx = s.phase(x, s.Width)
			if w.rows > 0 && w.cols > 0 {
				out = append(out, w)
				packed += w.u * w.v * s.Out * panels(s.In)
			}
		}
	}
	return out
}

// phase describes the pixels i of an axis of n with (i+pad) mod stride = y: how many there are, how many rows of the
// filters see them, which row of the result sees the first of them first, where it lies, and with which row of a
// filter.
func (s Sizes) phase(y, n int) (count, u, top, first, k int) {
	first = ((y-s.Pad)%s.Stride + s.Stride) % s.Stride
	count = max(0, (n-first+s.Stride-1)/s.Stride)
	u = max(0, (s.Kernel-y+s.Stride-1)/s.Stride)
	return count, u, (first+s.Pad-y)/s.Stride - (u - 1), first, y + s.Stride*(u-1)
}

// panelWidth is the columns of the widest panel of packed weights.
const panelWidth = 32

// panels is n rounded up to whole panels.
func panels(n int) int { return (n + panelWidth - 1) / panelWidth * panelWidth }
