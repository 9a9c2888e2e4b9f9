//go:build amd64 || arm64

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
	blocks  [][]termBlock // of each sweep
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
	turned  []float32 // of pack
}

// turnedChannels are the channels of a panel of weights that pack turns at a time.
const turnedChannels = 8

// newDirect makes the kernel of a pass, nil without tiles.
func newDirect(t *gemm.Tiled, p *pass, threads int) *direct {
	if t == nil {
		return nil
	}
	d := &direct{pass: p, tiles: t, threads: make([]directWork, threads)}
	for i := range d.threads {
		d.threads[i].turned = make([]float32, turnedChannels*p.s.Kernel*p.s.Kernel*d.width())
	}
	for i := range d.sweeps {
		d.blocks = append(d.blocks, d.cut(&d.sweeps[i]))
	}
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
// panel by panel, term by term. A few channels of a panel are turned at a time, all places of the filters at once:
// weights lie by filter, channel and place, and each is read once.
func (d *direct) pack(worker, lo, hi int) {
	width, c, area := d.width(), d.from.channels, d.s.Kernel*d.s.Kernel
	turned := d.threads[worker].turned
	for q := lo; q < hi; q++ {
		n := min(width, d.to.channels-q*width)
		for first := 0; first < c; first += turnedChannels {
			end := min(first+turnedChannels, c)
			if d.transpose {
				for o := first; o < end; o++ {
					d.tiles.Transpose(turned[(o-first)*area*width:], width, d.w[(o*d.s.In+q*width)*area:], area, n,
						area)
				}
			} else {
				d.tiles.Transpose(turned, width, d.w[(q*width*d.s.In+first)*area:], d.s.In*area, n, (end-first)*area)
			}
			for i := range d.sweeps {
				d.spread(i, turned, q, first, end)
			}
		}
	}
}

// spread copies channels first to end of panel q, turned, to where the windows of sweep i see them.
func (d *direct) spread(i int, turned []float32, q, first, end int) {
	w, width, k, c := &d.sweeps[i], d.width(), d.s.Kernel, d.from.channels
	for _, b := range d.blocks[i] {
		panel := d.packed[b.at+q*width*b.terms:][:width*b.terms]
		for j := b.first / c; j*c < b.first+b.terms; j++ {
			tap := (w.ky+b.u*w.kstep)*k + w.kx + j*w.kstep
			for p := max(j*c+first, b.first); p < min(j*c+end, b.first+b.terms); p++ {
				copy(panel[(p-b.first)*width:][:width], turned[((p-j*c-first)*k*k+tap)*width:])
			}
		}
	}
}

// termBlock is a block of terms of row u of a window: the first of the row, how many they are, and where their packed
// weights begin.
type termBlock struct{ u, first, terms, at int }

// cut returns the blocks of a window of w.
func (d *direct) cut(w *sweep) []termBlock {
	runs, terms := d.runs(w)
	if runs*terms == 0 {
		return nil
	}
	var out []termBlock
	at, step := w.packed, parts(terms, directTerms, 1)
	for u := range w.u {
		for r := range runs {
			for t := 0; t < terms; t += step {
				block := min(step, terms-t)
				out = append(out, termBlock{u, r*terms + t, block, at})
				at += block * panels(d.to.channels)
			}
		}
	}
	return out
}

// lookAhead asks for the weights that follow block n of blocks for columns from j on, while so many products are
// computed. Weights that stay in the level-2 cache need not be asked for.
func (d *direct) lookAhead(q *gemm.Queue, blocks []termBlock, n, j, step, products int) {
	if d.weights() < directAhead {
		return
	}
	if n++; n == len(blocks) {
		if n, j = 0, j+step; j >= d.to.channels {
			j = 0
		}
	}
	const line = gemm.CacheLine / gemm.WordSize
	b := &blocks[n]
	q.Lines, q.Products = aheadLines, products
	q.Add(gemm.Matrix{F32: d.packed[b.at+j*b.terms:], LD: aheadLines * line},
		min(step, panels(d.to.channels)-j)*b.terms/(aheadLines*line))
}

// work computes units lo to hi.
func (d *direct) work(worker, lo, hi int) {
	t := d.tiles.Work.Take()
	for i := range d.sweeps {
		if w := &d.sweeps[i]; d.narrow(w) {
			all := d.s.Batch * w.rows * w.cols
			for u := max(lo, d.units[i]); u < min(hi, d.units[i+1]); u++ {
				first := (u - d.units[i]) * d.chunk[i]
				d.gathered(t, worker, i, first, min(first+d.chunk[i], all))
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
		for k, b := range d.blocks[i] {
			d.lookAhead(&work.queue, d.blocks[i], k, j, step, hi-lo)
			p.Terms = b.terms
			p.B.Panel = b.terms * p.B.K
			p.B.At = unsafe.Pointer(&d.packed[b.at+j*b.terms])
			from := b.u*across + b.first/channels*apart + b.first%channels
			for y := lo; y < hi; y++ {
				p.A.At = unsafe.Pointer(&source[(y-lo)*w.step*across+from])
				p.C = result[((w.row+y*w.stride)*d.to.width+w.col)*n+j:]
				d.tiles.MultiplyPanels(t, p, &work.queue)
			}
			p.Add = true
		}
	}
	if d.transpose {
		return
	}
	at := lo * d.to.width * n
	d.after.finish(result[at:hi*d.to.width*n], image*d.to.height*d.to.width*n+at)
}

// gathered computes windows lo to hi of a narrow sweep, counted over all images: rows of the result.
func (d *direct) gathered(t *gemm.TileWork, worker, sweep, lo, hi int) {
	w, n, work := &d.sweeps[sweep], d.to.channels, &d.threads[worker]
	p := &work.product
	p.M, p.Alpha, p.LDC = hi-lo, 1, n
	_, height := d.tiles.Heights(p.M)
	p.B.K = d.width() * gemm.WordSize
	rows := d.scratch[worker*d.bordered():][:d.bordered()]
	step := parts(n, directColumns, panelWidth)
	for j := 0; j < n; j += step {
		p.N = min(step, n-j)
		p.Add = d.add
		for k, b := range d.blocks[sweep] {
			d.lookAhead(&work.queue, d.blocks[sweep], k, j, step, 1)
			apart := b.terms + narrowGap
			for i := lo; i < hi; i++ {
				d.gather(rows[(i-lo)*apart:][:b.terms], w, i, b.u, b.first)
			}
			p.Terms = b.terms
			p.A = gemm.RowsOperand{At: unsafe.Pointer(&rows[0]), Row: apart * gemm.WordSize, K: gemm.WordSize,
				Tile: height * apart * gemm.WordSize}
			p.B.Panel = b.terms * p.B.K
			p.B.At = unsafe.Pointer(&d.packed[b.at+j*b.terms])
			p.C = d.result[lo*n+j:]
			d.tiles.MultiplyPanels(t, p, &work.queue)
			p.Add = true
		}
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

// see returns the source from the first place that windows of rows lo to hi of an image see on, and how far its rows
// and its places lie apart: the image itself, or a copy with a border.
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
