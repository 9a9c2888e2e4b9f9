package pixel

import "fmt"

// Fixed point of a warp: positions in 1/1024 pixel, weights in 1/32.
const (
	CoordBits = 10
	InterBits = 5
)

// maxSide is the largest side of a picture whose positions fit 32 bits with room
// for the sum of two.
const maxSide = 1 << 19

// Warp writes to dst the bilinear values of the RGB picture src, w x h pixels, at
// (x0+xs[i], y0+ys[i]), rounded to 1/32 pixel; fill is the value of every pixel
// outside. Positions must rise or fall with i along either axis, as they do along
// a line. len(dst) = 3 len(xs).
func Warp(dst, src []uint8, w, h int, xs, ys []int32, x0, y0 int32, fill uint8) {
	n := len(xs)
	if len(dst) != 3*n || len(ys) != n || len(src) != 3*w*h {
		panic(fmt.Sprintf("pixel: a row of %d pixels of an image of %dx%d got %d, %d and %d values", n, w, h, len(dst),
			len(ys), len(src)))
	}
	i := 0
	if hasAVX2 && max(w, h) < maxSide {
		// The kernel reads a pixel more to the right than it uses.
		inside := func(i int) bool {
			x, y := int(x0+xs[i])>>CoordBits, int(y0+ys[i])>>CoordBits
			return x >= 0 && x < w-2 && y >= 0 && y < h-1
		}
		for i < n && !inside(i) {
			i++
		}
		end := n
		for end > i && !inside(end-1) {
			end--
		}
		warpPlain(dst[:3*i], src, w, h, xs[:i], ys[:i], x0, y0, fill)
		// The bytes that it writes too many belong to the next pixel.
		if groups := min(end-i, n-i-1) / 4; groups > 0 {
			warpAVX2(&dst[3*i], &src[0], &xs[i], &ys[i], groups, x0, y0, w)
			i += 4 * groups
		}
	}
	warpPlain(dst[3*i:], src, w, h, xs[i:], ys[i:], x0, y0, fill)
}

func warpPlain(dst, src []uint8, w, h int, xs, ys []int32, x0, y0 int32, fill uint8) {
	at := func(x, y, c int) int {
		if x < 0 || y < 0 || x >= w || y >= h {
			return int(fill)
		}
		return int(src[3*(y*w+x)+c])
	}
	for i := range xs {
		fx, fy := (int(x0)+int(xs[i]))>>(CoordBits-InterBits), (int(y0)+int(ys[i]))>>(CoordBits-InterBits)
		sx, ax := fx>>InterBits, fx&(1<<InterBits-1)
		sy, ay := fy>>InterBits, fy&(1<<InterBits-1)
		o := dst[3*i : 3*i+3 : 3*i+3]
		if sx < -1 || sy < -1 || sx >= w || sy >= h {
			o[0], o[1], o[2] = fill, fill, fill
			continue
		}
		w11 := ax * ay
		w01 := ax<<InterBits - w11 // right, upper
		w10 := ay<<InterBits - w11 // left, lower
		w00 := 1<<(2*InterBits) - w01 - w10 - w11
		if sx >= 0 && sy >= 0 && sx < w-1 && sy < h-1 {
			p := src[3*(sy*w+sx):]
			q := p[3*w : 3*w+6 : 3*w+6]
			p = p[:6:6]
			for c := range o {
				o[c] = uint8((w00*int(p[c]) + w01*int(p[c+3]) + w10*int(q[c]) + w11*int(q[c+3]) +
					1<<(2*InterBits-1)) >> (2 * InterBits))
			}
			continue
		}
		for c := range o {
			o[c] = uint8((w00*at(sx, sy, c) + w01*at(sx+1, sy, c) + w10*at(sx, sy+1, c) + w11*at(sx+1, sy+1,
				c) + 1<<(2*InterBits-1)) >> (2 * InterBits))
		}
	}
}
