//go:build amd64 || arm64

package convolve

import (
	"unsafe"

	"github.com/geoalign/geoalign/internal/kernel/gemm"
	"github.com/geoalign/geoalign/internal/kernel/vector"
)

// filterTiles computes gradients of weights as (k, k, In, Out): what windows see is copied a block of places and a
// column of the windows at a time, with neither a turn nor a copy for each row of the windows, since tiles read the
// channels of a place as rows, and rows of windows lie one row of places apart in the copy. Its sums are those of the
// blocks of places, in their order, in each partial sum, and then those of the partial sums: all of it depends on the
// sizes alone.
type filterTiles struct {
	*filters
	tiles   *gemm.Tiled
	threads []directWork
	run     func(worker, lo, hi int)
	add     func(worker, lo, hi int)
	turn    func(worker, lo, hi int)

	// Of the call in progress.
	dw, dy, x, sum, scratch []float32
	adds                    bool
}

// newFilterTiles makes the kernel, nil without tiles.
func newFilterTiles(t *gemm.Tiled, s Sizes, threads int) *filterTiles {
	if t == nil {
		return nil
	}
	f := &filterTiles{filters: newFilters(s), tiles: t, threads: make([]directWork, threads)}
	f.run, f.add, f.turn = f.work, f.addUp, f.unpack
	return f
}

// compute sets dw (Out, In, k, k), or adds to it.
func (f *filterTiles) compute(e Engine, dw, dy, x []float32, add bool, scratch []float32) {
	f.dw, f.dy, f.x, f.adds = dw, dy, x, add
	n := f.sums * f.s.weights()
	f.sum, f.scratch = scratch[:n], scratch[n:]
	e.For(f.sums*f.shares(), 1, f.run)
	if f.sums > 1 {
		e.For(f.s.terms(), 1+8192/f.s.Out, f.add)
	}
	e.For((f.s.Out+turnedFilters-1)/turnedFilters, 1+8192/(turnedFilters*f.s.terms()), f.turn)
	f.dw, f.dy, f.x, f.sum, f.scratch = nil, nil, nil, nil, nil
}

// share is one unit of the work: of partial sum sum the blocks first to end, of the rows of windows the runs v0 to v1
// and so many channels from c0 on, and so many filters from o0 on.
type share struct{ sum, first, end, v0, v1, c0, channels, o0, outs int }

// share returns unit i.
func (f *filters) share(i int) share {
	sum, i := i/f.shares(), i%f.shares()
	s := share{sum: sum, v1: f.runs, c0: i % f.groups * f.group, o0: i / f.groups % f.parts * f.outs,
		first: sum * f.blocks / f.sums, end: (sum + 1) * f.blocks / f.sums}
	s.channels, s.outs = min(f.group, f.channels-s.c0), min(f.outs, f.s.Out-s.o0)
	if f.split > 1 {
		s.v0 = i / f.groups / f.parts
		s.v1 = s.v0 + 1
	}
	return s
}

// work computes units lo to hi.
func (f *filterTiles) work(worker, lo, hi int) {
	t := f.tiles.Work.Take()
	for i := lo; i < hi; i++ {
		u := f.share(i)
		for b := u.first; b < u.end; b++ {
			next, c := u, b+1
			if c == u.end && i+1 < hi {
				next = f.share(i + 1)
				c = next.first
			}
			f.lookAhead(&f.threads[worker].queue, &next, c)
			f.accumulate(t, worker, &u, b)
		}
	}
	f.threads[worker].product = gemm.PanelProduct{}
	f.tiles.Work.Give(t)
}

// lookAhead asks for what block b of unit u reads.
func (f *filterTiles) lookAhead(q *gemm.Queue, u *share, b int) {
	if b == u.end {
		return
	}
	s := f.s
	r0, r1 := f.block(b)
	q.Lines = lines(u.outs)
	q.Add(gemm.Matrix{F32: f.dy[r0*f.across*s.Out+u.o0:], LD: s.Out}, (r1-r0)*f.across)
	from := (r0/f.high*s.Height + min(r0%f.high*s.Stride, s.Height-1)) * s.Width
	places := min((r1-r0)*s.Stride*s.Width, s.Batch*s.places()-from)
	if f.runs < s.Kernel { // all channels of a place, which are a part of a line
		const line = gemm.CacheLine / gemm.WordSize
		q.Lines = 1
		q.Add(gemm.Matrix{F32: f.x[from*s.In:], LD: line}, places*s.In/line)
	} else {
		q.Lines = lines(u.channels)
		q.Add(gemm.Matrix{F32: f.x[from*s.In+u.c0:], LD: s.In}, places)
	}
	q.Products = 0
	for _, c := range f.copies {
		q.Products += c.taps * (u.v1 - u.v0)
	}
}

// lines is the cache lines that n values take.
func lines(n int) int { return (n*gemm.WordSize + gemm.CacheLine - 1) / gemm.CacheLine }

// accumulate sets the sums of unit u to those of block b, or adds these where it is not the first.
func (f *filterTiles) accumulate(t *gemm.TileWork, worker int, u *share, b int) {
	s, work := f.s, &f.threads[worker]
	panelFloats, copyFloats := f.memory()
	memory := f.scratch[worker*(panelFloats+copyFloats):]
	panel, seen := memory[:panelFloats], memory[panelFloats:][:copyFloats]
	r0, r1 := f.block(b)
	terms, width := (r1-r0)*f.across, 2*f.tiles.Lanes
	p := &work.product
	*p = gemm.PanelProduct{M: u.channels, N: u.outs, Terms: terms, Alpha: 1, Add: b > u.first, LDC: s.Out}
	f.tiles.PackRows(panel, width, width*terms, gemm.Matrix{F32: f.dy, LD: s.Out}, r0*f.across*s.Out+u.o0, terms, p.N,
		width)
	p.B = gemm.PanelsOperand{At: unsafe.Pointer(&panel[0]), K: width * gemm.WordSize,
		Panel: width * terms * gemm.WordSize}
	begin := 0
	if f.runs < s.Kernel { // the copy has all channels
		begin = u.c0
	}
	_, height := f.tiles.Heights(p.M)
	p.A = gemm.RowsOperand{Row: gemm.WordSize, Tile: height * gemm.WordSize}
	for v := u.v0; v < u.v1; v++ {
		for _, c := range f.copies {
			apart, next := f.see(seen, r0, r1-r0+c.taps-1, c.u, v, u.c0, p.M)
			p.A.K = apart * gemm.WordSize
			for i := range c.taps {
				p.C = f.sum[u.sum*s.weights()+(((c.u+i*s.Stride)*s.Kernel*s.In+v*f.channels+u.c0)*s.Out+u.o0):]
				if next == f.across*apart {
					p.A.At = unsafe.Pointer(&seen[i*next+begin])
					f.tiles.MultiplyPanels(t, p, &work.queue)
					continue
				}
				whole := *p // the places of a row are not followed by those of the next one
				p.Terms = f.across
				for r := range r1 - r0 {
					p.A.At, p.B.At = unsafe.Pointer(&seen[(i+r)*next+begin]), unsafe.Pointer(&panel[r*f.across*width])
					f.tiles.MultiplyPanels(t, p, &work.queue)
					p.Add = true
				}
				*p = whole
			}
		}
	}
}

// see copies n channels from channel c0 on of what row u and run v of the windows see in so many rows from row r0 of
// the result on, and returns how far places and rows lie apart. Where the places of a row of a window are one run, the
// rows of the images themselves are copied, with a border.
func (f *filterTiles) see(dst []float32, r0, rows, u, v, c0, n int) (apart, next int) {
	s := f.s
	border := s.Pad * s.In
	apart = n + channelGap
	next = f.across * apart
	if f.runs < s.Kernel {
		apart, next = s.Stride*s.In, s.Width*s.In+2*border
	}
	lo, hi := f.inside(v)
	for i := range rows {
		row := dst[i*next:][:next]
		image, y := (r0+i)/f.high, (r0+i)%f.high
		if f.chunks > 0 { // the rows of a copy may end below the image
			image, y = r0/f.high, r0%f.high+i
		}
		y = y*s.Stride + u - s.Pad
		switch {
		case y < 0 || y >= s.Height:
			clear(row)
		case f.runs < s.Kernel:
			clear(row[:border])
			copy(row[border:next-border], f.x[(image*s.Height+y)*s.Width*s.In:])
			clear(row[next-border:])
		case lo == hi:
			clear(row)
		default:
			clear(row[:lo*apart])
			from := f.x[((image*s.Height+y)*s.Width+lo*s.Stride+v-s.Pad)*s.In+c0:]
			for j := range hi - lo {
				copy(row[(lo+j)*apart:][:n], from[j*s.Stride*s.In:])
			}
			clear(row[hi*apart:])
		}
	}
	return apart, next
}

// addUp adds up rows lo to hi of the partial sums.
func (f *filterTiles) addUp(_, lo, hi int) {
	a, b := lo*f.s.Out, hi*f.s.Out
	for i := 1; i < f.sums; i++ {
		vector.Add(f.sum[a:b], f.sum[a:b], f.sum[i*f.s.weights():][a:b])
	}
}

// unpack writes the sums (k, k, In, Out) of blocks lo to hi of filters as the gradient (Out, In, k, k).
func (f *filterTiles) unpack(_, lo, hi int) {
	area, terms, out := f.s.Kernel*f.s.Kernel, f.s.terms(), f.s.Out
	for o := lo * turnedFilters; o < min(hi*turnedFilters, out); o += turnedFilters {
		n := min(turnedFilters, out-o)
		whole := area &^ 7
		if f.adds {
			whole = 0
		}
		for c := range f.s.In {
			for t := 0; t < whole; t += 8 {
				f.tiles.Transpose(f.dw[o*terms+c*area+t:], terms, f.sum[(t*f.s.In+c)*out+o:], f.s.In*out, 8, n)
			}
			for t := whole; t < area; t++ {
				from, to := f.sum[(t*f.s.In+c)*out+o:][:n], f.dw[o*terms+c*area+t:]
				for i, v := range from {
					if f.adds {
						v += to[i*terms]
					}
					to[i*terms] = v
				}
			}
		}
	}
}
