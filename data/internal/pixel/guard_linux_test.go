package pixel

import (
	"math/rand/v2"
	"testing"

	"golang.org/x/sys/unix"
)

// edge returns n bytes of noise that end (or, at the front, begin) at a page that
// may not be touched.
func edge(t *testing.T, r *rand.Rand, n int, front bool) []uint8 {
	t.Helper()
	page := unix.Getpagesize()
	size := (n + page - 1) / page * page
	m, err := unix.Mmap(-1, 0, size+2*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Skip("no memory mapping: ", err)
	}
	t.Cleanup(func() { unix.Munmap(m) })
	for _, guard := range [][]byte{m[:page], m[page+size:]} {
		if err := unix.Mprotect(guard, unix.PROT_NONE); err != nil {
			t.Skip("no page protection: ", err)
		}
	}
	b := m[page+size-n : page+size : page+size]
	if front {
		b = m[page : page+n : page+n]
	}
	copy(b, noise(r, n))
	return b
}

// The kernels must read and write nothing beyond their slices: a picture may end
// where its memory does (the decoded image cache maps files).
func TestKernelsStayInside(t *testing.T) {
	levels(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(1, 2))
		z := NewNormalizer([3]float32{0.5, 0.4, 0.3}, [3]float32{0.2, 0.3, 0.4})
		for i := range 40 {
			front := i%2 == 0
			in, out, rows := 20+r.IntN(200), 6+r.IntN(100), 1+r.IntN(3)
			var f RowFilter
			f.Set(bicubic(r, in, out))
			f.Apply(edge(t, r, 3*out*rows, front), edge(t, r, 3*in*rows, front), rows, 3*in)
			in, out = 300+r.IntN(700), 1+r.IntN(60)
			f.Set(bicubic(r, in, out))
			f.Apply(edge(t, r, 3*out*rows, front), edge(t, r, 3*in*rows, front), rows, 3*in)
			n := 16 + r.IntN(100)
			MixRows(edge(t, r, n, front), edge(t, r, 3*n, front), n, []int32{1, 2, 3}, nil)
			z.Apply(make([]float32, 3*n), edge(t, r, 3*n, front))
			YCbCr(edge(t, r, 3*n, front), edge(t, r, n, front), edge(t, r, n, front), edge(t, r, n, front))
			sums := make([]uint16, n)
			Weigh(sums, edge(t, r, n, front), edge(t, r, n, front))
			Stretch(edge(t, r, 2*(n-2), front), sums)
			StretchRow(edge(t, r, 2*n, front), edge(t, r, n, front))
			Sharpen(edge(t, r, n, front), edge(t, r, n, front), edge(t, r, n, front), edge(t, r, n, front), 1.3)
			row := func() []uint8 { return edge(t, r, n, front) }
			Box3(row(), row(), row(), row(), 1<<23, 1<<22)
			Box5(row(), row(), row(), row(), row(), row(), 1<<22, 1<<21)
			Shade(row(), 3, 1.2)
			Saturate(edge(t, r, 3*n, front), 1.2)
			LumaSum(edge(t, r, 3*n, front))
			c, steps := block(r, front)
			stride := 8 + r.IntN(9)
			InverseDCT(edge(t, r, 7*stride+8, front), stride, &c, &steps)
			w, h := 1+r.IntN(60), 1+r.IntN(60)
			xs, ys, x0, y0 := line(r, n, w, h)
			Warp(edge(t, r, 3*n, front), edge(t, r, 3*w*h, front), w, h, xs, ys, x0, y0, 128)
		}
	})
}
