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

// unpack is the way back, which adds where add says so.
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
