package convolve

import (
	"unsafe"

	"github.com/geoalign/geoalign/internal/kernel/gemm"
)

// direct computes sweeps by the tiles of the built-in product without gathering what the windows see: the places that a
// row of a window sees lie side by side in memory, so that the windows of a row of the result are a matrix whose rows
// overlap. Each row of a window is a product that adds to the result. A source with a border is copied, a few rows at a
// time; narrow sweeps are gathered.
//
// An element of the result sums its products in an order that depends on the sizes alone.
type direct struct {
	*pass
	tiles   *gemm.Tiled
	threads []directWork
	packAll func(worker, lo, hi int)
	run     func(worker, lo, hi int)

	// Of the call in progress.
	w, packed, source, result, scratch []float32
	add                                bool
	after                              After
}

// directWork is what a thread works with.
type directWork struct {
	product gemm.PanelProduct
	queue   gemm.Queue
}

// newDirect makes the kernel of a pass, nil without tiles.
func newDirect(t *gemm.Tiled, p *pass, threads int) *direct {
	if t == nil {
		return nil
	}
	d := &direct{pass: p, tiles: t, threads: make([]directWork, threads)}
	d.packAll, d.run = d.pack, d.work
	return d
}

// compute runs the pass on e.
func (d *direct) compute(e Engine, result, source, w []float32, add bool, after After, scratch []float32) {
	d.w, d.source, d.result, d.add, d.after = w, source, result, add, after
	d.packed, d.scratch = scratch[:d.weights()], scratch[d.weights():]
	e.For((d.to.channels+d.width()-1)/d.width(), 1, d.packAll)
	e.For(d.units[len(d.sweeps)], 1, d.run)
	d.w, d.source, d.result, d.packed, d.scratch, d.after = nil, nil, nil, nil, nil, After{}
}

// width is the columns of a panel.
func (d *direct) width() int { return 2 * d.tiles.Lanes }

// pack packs panels lo to hi of the weights of all sweeps: for each row of a window and each block of its terms
// panel by panel, term by term.
func (d *direct) pack(_, lo, hi int) {
	width, k, c := d.width(), d.s.Kernel, d.from.channels
	column, term := d.s.In*k*k, k*k // how far apart the weights of two columns and of two channels of the source lie
	if d.transpose {
		column, term = term, column
	}
	for i := range d.sweeps {
		w := &d.sweeps[i]
		d.blocks(w, func(u, first, block, at int) {
			for q := lo; q < hi; q++ {
				n := min(width, d.to.channels-q*width)
				panel := d.packed[at+q*width*block:][:width*block]
				for p := 0; p < block; {
					j, channel := (first+p)/c, (first+p)%c
					run := min(block-p, c-channel)
					from := d.w[q*width*column+channel*term+(w.ky+u*w.kstep)*k+w.kx+j*w.kstep:]
					if d.transpose {
						packRows(panel[p*width:], from, run, n, width, term, column)
					} else {
						packColumns(panel[p*width:], from, run, n, width, term, column)
					}
					p += run
				}
			}
		})
	}
}

// blocks calls f for the blocks of terms of each row u of a window of w: the first term of the row, how many they are,
// and where their packed weights begin.
func (d *direct) blocks(w *sweep, f func(u, first, block, at int)) {
	runs, terms := d.runs(w)
	if runs*terms == 0 {
		return
	}
	at, step := w.packed, parts(terms, directTerms, 1)
	for u := range w.u {
		for r := range runs {
			for t := 0; t < terms; t += step {
				block := min(step, terms-t)
				f(u, r*terms+t, block, at)
				at += block * panels(d.to.channels)
			}
		}
	}
}

// packRows writes run terms of n columns of w row by row, packColumns column by column: the nearer values of w lie side
// by side.
func packRows(dst, w []float32, run, n, width, term, column int) {
	for p := range run {
		row, from := dst[p*width:][:n], w[p*term:]
		for x := range row {
			row[x] = from[x*column]
		}
	}
}

func packColumns(dst, w []float32, run, n, width, term, column int) {
	for x := range n {
		from := w[x*column:]
		for p := range run {
			dst[p*width+x] = from[p*term]
		}
	}
}

// work computes units lo to hi.
func (d *direct) work(worker, lo, hi int) {
	t := d.tiles.Work.Take()
	for i := range d.sweeps {
		if w := &d.sweeps[i]; d.narrow(w) {
			all := d.s.Batch * w.rows * w.cols
			for u := max(lo, d.units[i]); u < min(hi, d.units[i+1]); u++ {
				first := (u - d.units[i]) * d.chunk[i]
				d.gathered(t, worker, w, first, min(first+d.chunk[i], all))
			}
			continue
		}
		chunks := d.chunks(i)
		for u := max(lo, d.units[i]); u < min(hi, d.units[i+1]); u++ {
			image, first := (u-d.units[i])/chunks, (u-d.units[i])%chunks*d.chunk[i]
			d.unit(t, worker, i, image, first, min(first+d.chunk[i], d.sweeps[i].rows))
		}
	}
	d.threads[worker].product = gemm.PanelProduct{}
	d.tiles.Work.Give(t)
}

// unit computes the windows of rows lo to hi of an image in sweep i.
func (d *direct) unit(t *gemm.TileWork, worker, i, image, lo, hi int) {
	w := &d.sweeps[i]
	result := d.result[image*d.to.height*d.to.width*d.to.channels:]
	if w.u*w.v == 0 {
		d.blank(w, result, lo, hi)
		return
	}
	source, across, apart := d.see(worker, w, image, lo, hi)
	channels, n := d.from.channels, d.to.channels
	work := &d.threads[worker]
	p := &work.product
	p.M, p.Alpha, p.LDC = w.cols, 1, w.stride*n
	_, height := d.tiles.Heights(p.M)
	p.A = gemm.RowsOperand{Row: w.step * apart * gemm.WordSize, K: gemm.WordSize}
	p.A.Tile = height * p.A.Row
	p.B.K = d.width() * gemm.WordSize
	step := parts(n, directColumns, panelWidth)
	for j := 0; j < n; j += step {
		p.N = min(step, n-j)
		p.Add = d.add
		d.blocks(w, func(u, first, block, at int) {
			p.Terms = block
			p.B.Panel = block * p.B.K
			p.B.At = unsafe.Pointer(&d.packed[at+j*block])
			from := u*across + first/channels*apart + first%channels
			for y := lo; y < hi; y++ {
				p.A.At = unsafe.Pointer(&source[(y-lo)*w.step*across+from])
				p.C = result[((w.row+y*w.stride)*d.to.width+w.col)*n+j:]
				d.tiles.MultiplyPanels(t, p, &work.queue)
			}
			p.Add = true
		})
	}
	if d.transpose {
		return
	}
	at := lo * d.to.width * n
	d.after.finish(result[at:hi*d.to.width*n], image*d.to.height*d.to.width*n+at)
}

// gathered computes windows lo to hi of a narrow sweep, counted over all images: rows of the result.
func (d *direct) gathered(t *gemm.TileWork, worker int, w *sweep, lo, hi int) {
	n, work := d.to.channels, &d.threads[worker]
	p := &work.product
	p.M, p.Alpha, p.LDC = hi-lo, 1, n
	_, height := d.tiles.Heights(p.M)
	p.B.K = d.width() * gemm.WordSize
	rows := d.scratch[worker*d.bordered():][:d.bordered()]
	step := parts(n, directColumns, panelWidth)
	for j := 0; j < n; j += step {
		p.N = min(step, n-j)
		p.Add = d.add
		d.blocks(w, func(u, first, block, at int) {
			apart := block + narrowGap
			for i := lo; i < hi; i++ {
				d.gather(rows[(i-lo)*apart:][:block], w, i, u, first)
			}
			p.Terms = block
			p.A = gemm.RowsOperand{At: unsafe.Pointer(&rows[0]), Row: apart * gemm.WordSize, K: gemm.WordSize, Tile: height * apart * gemm.WordSize}
			p.B.Panel = block * p.B.K
			p.B.At = unsafe.Pointer(&d.packed[at+j*block])
			p.C = d.result[lo*n+j:]
			d.tiles.MultiplyPanels(t, p, &work.queue)
			p.Add = true
		})
	}
	if !d.transpose {
		d.after.finish(d.result[lo*n:hi*n], lo*n)
	}
}

// gather copies values of one place that window i sees in row u: from value first of the row on.
func (d *direct) gather(dst []float32, w *sweep, i, u, first int) {
	c, at := d.from.channels, i%(w.rows*w.cols)
	y, x := at/w.cols*w.step+w.top+u, at%w.cols*w.step+w.left+first/c
	if y < 0 || y >= d.from.height || x < 0 || x >= d.from.width {
		clear(dst)
		return
	}
	image := i / (w.rows * w.cols)
	copy(dst, d.source[((image*d.from.height+y)*d.from.width+x)*c+first%c:])
}

// blank is what pixels that no window sees have.
func (d *direct) blank(w *sweep, result []float32, lo, hi int) {
	if d.add {
		return
	}
	n := d.to.channels
	for y := lo; y < hi; y++ {
		for x := range w.cols {
			clear(result[((w.row+y*w.stride)*d.to.width+w.col+x*w.stride)*n:][:n])
		}
	}
}

// see returns the source from the first place that windows of rows lo to hi of an image see on, and how far its rows and
// its places lie apart: the image itself, or a copy with a border.
func (d *direct) see(worker int, w *sweep, image, lo, hi int) (source []float32, across, apart int) {
	c := d.from.channels
	x := d.source[image*d.from.height*d.from.width*c:][:d.from.height*d.from.width*c]
	top, rows, cols := w.top+lo*w.step, (hi-lo-1)*w.step+w.u, (w.cols-1)*w.step+w.v
	if !d.wide && top >= 0 && w.left >= 0 && top+rows <= d.from.height && w.left+cols <= d.from.width {
		return x[(top*d.from.width+w.left)*c:], d.from.width * c, c
	}
	apart = d.apart()
	across = cols * apart
	dst := d.scratch[worker*d.bordered():][:rows*across]
	from, to := min(max(-w.left, 0), cols), max(min(d.from.width-w.left, cols), 0)
	for y := range rows {
		row := dst[y*across:][:across]
		if top+y < 0 || top+y >= d.from.height || from >= to {
			clear(row)
			continue
		}
		clear(row[:from*apart])
		seen := x[((top+y)*d.from.width+w.left+from)*c:]
		if apart == c {
			copy(row[from*c:to*c], seen)
		} else {
			for p := range to - from {
				copy(row[(from+p)*apart:][:c], seen[p*c:])
			}
		}
		clear(row[to*apart:])
	}
	return dst, across, apart
}
