//go:build !amd64

package pixel

// Never called: hasAVX2 is false here.
const noVectors = "pixel: no vector kernels on this architecture"

func filterRows(dst0, dst1, src0, src1 *uint8, program *int32, blocks int) { panic(noVectors) }

func shrinkRow(dst, src *uint8, program *int32, n int) { panic(noVectors) }

func mixRowsAVX2(dst, src *uint8, n, stride int, weights *int32, taps int) { panic(noVectors) }

func mixRowsAVX512(dst, src *uint8, n, stride int, weights *int32, taps int) { panic(noVectors) }

func normalizeAVX2(dst *float32, src *uint8, n int, constants *float32) { panic(noVectors) }

func normalizeAVX512(dst *float32, src *uint8, n int, constants *float32) { panic(noVectors) }

func yCbCrAVX2(dst, y, cb, cr *uint8, n int) { panic(noVectors) }

func sharpenAVX2(dst, up, row, down *uint8, n int, factor float32) { panic(noVectors) }

func sharpenAVX512(dst, up, row, down *uint8, n int, factor float32) { panic(noVectors) }

func weighAVX2(dst *uint16, a, b *uint8, n int) { panic(noVectors) }

func stretchRowAVX2(dst, src *uint8, n int) { panic(noVectors) }

func stretchAVX2(dst *uint8, sums *uint16, n int) { panic(noVectors) }

func warpAVX2(dst, src *uint8, xs, ys *int32, groups int, x0, y0 int32, width int) { panic(noVectors) }

func box3AVX2(dst, a, b, c *uint8, n int, near, far uint32) { panic(noVectors) }

func box5AVX2(dst, a, b, c, d, e *uint8, n int, near, far uint32) { panic(noVectors) }

func saturateAVX2(pix *uint8, n int, factor float32) { panic(noVectors) }

func lumaSumAVX2(sums *uint32, src *uint8, n int) { panic(noVectors) }

func shadeAVX2(pix *uint8, n int, base, factor float32) { panic(noVectors) }

func box3AVX512(dst, a, b, c *uint8, n int, near, far uint32) { panic(noVectors) }

func box5AVX512(dst, a, b, c, d, e *uint8, n int, near, far uint32) { panic(noVectors) }

func saturateAVX512(pix *uint8, n int, factor float32) { panic(noVectors) }

func lumaSumAVX512(sums *uint32, src *uint8, n int) { panic(noVectors) }

func shadeAVX512(pix *uint8, n int, base, factor float32) { panic(noVectors) }

func inverseDCTAVX2(dst *uint8, stride int, c, steps *int16) { panic(noVectors) }
