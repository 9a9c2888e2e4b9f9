package convolve

// pack writes filters lo to hi of w (Out, In, k, k) by row, column and channel: (Out, k, k, In).
func (s Sizes) pack(dst, w []float32, lo, hi int) {
	area := s.Kernel * s.Kernel
	for o := lo; o < hi; o++ {
		to, from := dst[o*s.terms():][:s.terms()], w[o*s.terms():][:s.terms()]
		for t := range area {
			for c := range s.In {
				to[t*s.In+c] = from[c*area+t]
			}
		}
	}
}

// turnedFilters are the filters that turn moves at a time: a cache line of its result.
const turnedFilters = 16

// turn writes w (Out, In) of windows of one place as (In, Out), for blocks lo to hi of filters: what a product reads
// by rows.
func (s Sizes) turn(dst, w []float32, lo, hi int) {
	for o := lo * turnedFilters; o < min(hi*turnedFilters, s.Out); o += turnedFilters {
		n := min(turnedFilters, s.Out-o)
		for c := range s.In {
			row, from := dst[c*s.Out+o:][:n], w[o*s.In+c:]
			for i := range row {
				row[i] = from[i*s.In]
			}
		}
	}
}

// unpack is the way back from pack, which adds where add says so.
func (s Sizes) unpack(w, src []float32, lo, hi int, add bool) {
	area := s.Kernel * s.Kernel
	for o := lo; o < hi; o++ {
		to, from := w[o*s.terms():][:s.terms()], src[o*s.terms():][:s.terms()]
		for c := range s.In {
			for t := range area {
				v := from[t*s.In+c]
				if add {
					v += to[c*area+t]
				}
				to[c*area+t] = v
			}
		}
	}
}
