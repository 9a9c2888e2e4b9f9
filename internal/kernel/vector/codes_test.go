package vector

import (
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/geoalign/geoalign/internal/kernel/kerneltest"
)

// TestDotCodes compares the products with sums in int64, also at the largest values that the
// limit permits, where a sum in int32 is about to overflow.
func TestDotCodes(t *testing.T) {
	kerneltest.EachLevel(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(61, 1))
		for _, n := range []int{16, 32, 48, 256, 272, 1024, 4096} {
			limit := CodeLimit(n)
			for rows := range 11 {
				for _, extreme := range []bool{false, true} {
					x, y, dst := make([]int8, rows*n), make([]int16, n), make([]int32, rows)
					for i := range x {
						x[i] = int8(r.IntN(256) - 128)
						if extreme {
							x[i] = -128
						}
					}
					for i := range y {
						y[i] = int16(r.IntN(2*int(limit)+1) - int(limit))
						if extreme {
							y[i] = limit - 2*limit*int16(rows&1)
						}
					}
					DotCodes(dst, x, y)
					for i, got := range dst {
						var want int64
						for j := range y {
							want += int64(x[i*n+j]) * int64(y[j])
						}
						if int64(got) != want {
							t.Fatalf("row %d of %d, %d codes: got %d, want %d", i, rows, n, got, want)
						}
					}
				}
			}
		}
	})
}

// A kernel that reads or writes outside its slices crashes this test.
func TestDotCodesStaysInside(t *testing.T) {
	for _, atEnd := range []bool{true, false} {
		rows, query, products := kerneltest.Guarded(t, atEnd), kerneltest.Guarded(t, atEnd), kerneltest.Guarded(t, atEnd)
		kerneltest.EachLevel(t, func(*testing.T) {
			for _, n := range []int{16, 32, 48} {
				for count := range 8 {
					x, y, dst := rows(count*n/4), query(n/2), products(count)
					DotCodes(unsafe.Slice((*int32)(unsafe.Pointer(unsafe.SliceData(dst))), count),
						unsafe.Slice((*int8)(unsafe.Pointer(unsafe.SliceData(x))), count*n),
						unsafe.Slice((*int16)(unsafe.Pointer(unsafe.SliceData(y))), n))
				}
			}
		})
	}
}

func TestDotCodesRefuses(t *testing.T) {
	for name, f := range map[string]func(){
		"a width that is not a multiple": func() { DotCodes(make([]int32, 1), make([]int8, 15), make([]int16, 15)) },
		"too few codes":                  func() { DotCodes(make([]int32, 2), make([]int8, 31), make([]int16, 16)) },
		"no width":                       func() { DotCodes(make([]int32, 1), nil, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			f()
		})
	}
}

// BenchmarkDotCodes reads rows from the level-2 cache and from memory.
func BenchmarkDotCodes(b *testing.B) {
	const n = 256
	for name, rows := range map[string]int{"cache": 2 << 10, "memory": 1 << 18} {
		x, y, dst := make([]int8, rows*n), make([]int16, n), make([]int32, rows)
		for i := range x {
			x[i] = int8(i) // else all of it is one page of zeros
		}
		b.Run(name, func(b *testing.B) {
			seconds := kerneltest.Best(func() { DotCodes(dst, x, y) })
			b.ReportMetric(seconds/float64(rows)*1e9, "ns/row")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// TestDotBits compares the sums with those of a loop over bits.
func TestDotBits(t *testing.T) {
	kerneltest.EachLevel(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(61, 2))
		for _, n := range []int{64, 128, 192, 384, 1024, 16384} {
			for rows := range 7 {
				for _, extreme := range []bool{false, true} {
					x, y, dst := make([]uint8, rows*n/8), make([]int8, n), make([]int32, rows)
					for i := range x {
						if x[i] = uint8(r.IntN(256)); extreme {
							x[i] = 255
						}
					}
					for i := range y {
						if y[i] = int8(r.IntN(256) - 128); extreme {
							y[i] = int8(127 - 255*(rows&1))
						}
					}
					DotBits(dst, x, y)
					for i, got := range dst {
						want := int32(0)
						for j, v := range y {
							want += int32(x[i*n/8+j/8]>>(j%8)&1) * int32(v)
						}
						if got != want {
							t.Fatalf("row %d of %d, %d bits: got %d, want %d", i, rows, n, got, want)
						}
					}
				}
			}
		}
	})
}

// A kernel that reads or writes outside its slices crashes this test.
func TestDotBitsStaysInside(t *testing.T) {
	for _, atEnd := range []bool{true, false} {
		rows, query, products := kerneltest.Guarded(t, atEnd), kerneltest.Guarded(t, atEnd), kerneltest.Guarded(t, atEnd)
		kerneltest.EachLevel(t, func(*testing.T) {
			for _, n := range []int{64, 192} {
				for count := range 8 {
					DotBits(unsafe.Slice((*int32)(unsafe.Pointer(unsafe.SliceData(products(count)))), count),
						unsafe.Slice((*uint8)(unsafe.Pointer(unsafe.SliceData(rows(count*n/32)))), count*n/8),
						unsafe.Slice((*int8)(unsafe.Pointer(unsafe.SliceData(query(n/4)))), n))
				}
			}
		})
	}
}
