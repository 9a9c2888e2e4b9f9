package convolve

import "github.com/geoalign/geoalign/internal/kernel/vector"

// gather writes what the filters see at places lo to hi of the result for x (B*H*W, In) into the rows of dst:
// (hi-lo, k*k*In), by row of the filter, its column and channel, with 0 for the border.
func (s Sizes) gather(dst, x []float32, lo, hi int) {
	wide, across, out := s.Kernel*s.In, s.OutWidth(), s.out()
	for p := lo; p < hi; p++ {
		x := x[p/out*s.places()*s.In:]
		top, left := p%out/across*s.Stride-s.Pad, p%out%across*s.Stride-s.Pad
		from, to := max(left, 0), min(left+s.Kernel, s.Width)
		for y := top; y < top+s.Kernel; y++ {
			row := dst[:wide]
			dst = dst[wide:]
			if y < 0 || y >= s.Height || from >= to {
				clear(row)
				continue
			}
			a, b := (from-left)*s.In, (to-left)*s.In
			clear(row[:a])
			copy(row[a:b], x[(y*s.Width+from)*s.In:])
			clear(row[b:])
		}
	}
}

// scatter adds the rows of src to the places that gather took them from.
func (s Sizes) scatter(x, src []float32, lo, hi int) {
	wide, across, out := s.Kernel*s.In, s.OutWidth(), s.out()
	for p := lo; p < hi; p++ {
		x := x[p/out*s.places()*s.In:]
		top, left := p%out/across*s.Stride-s.Pad, p%out%across*s.Stride-s.Pad
		from, to := max(left, 0), min(left+s.Kernel, s.Width)
		for y := top; y < top+s.Kernel; y++ {
			row := src[:wide]
			src = src[wide:]
			if y < 0 || y >= s.Height || from >= to {
				continue
			}
			a, b := (from-left)*s.In, (to-left)*s.In
			at := x[(y*s.Width+from)*s.In:][:b-a]
			vector.Add(at, at, row[a:b])
		}
	}
}
