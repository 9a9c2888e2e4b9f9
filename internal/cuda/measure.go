package cuda

import (
	"math/rand/v2"
	"time"
	"unsafe"

	"github.com/geoalign/geoalign/internal/exec"
)

// Measured is the size of the product of square matrices whose speed is the peak of a device.
const Measured = 8192

// MeasureProduct returns the GFLOP/s of a product (m, k) (k, n) of random matrices of a type, best of what fits into d.
func (d *Device) MeasureProduct(m, n, k int, t exec.Type, limit time.Duration) (gflops float64, err error) {
	size := int64(4)
	if t == exec.BFloat16 {
		size = 2
	}
	var x [3]*Memory
	for i, values := range []int{m * k, k * n, m * n} {
		if x[i], err = d.alloc(size * int64(values)); err != nil {
			return 0, err
		}
		defer x[i].Free()
		if err := d.noise(x[i], t, values); err != nil {
			return 0, err
		}
	}
	p := Product{M: m, N: n, K: k, LDA: k, LDB: n, LDC: n, A: t, B: t, C: t}
	begin := time.Now()
	for n := 0; n < 3 || time.Since(begin) < limit; n++ {
		start := time.Now()
		const times = 4 // so that the wait for the device hardly counts
		for range times {
			if err := d.Multiply(p, x[0].at, x[1].at, x[2].at, 0); err != nil {
				return 0, err
			}
		}
		if err := d.Sync(); err != nil {
			return 0, err
		}
		gflops = max(gflops, times*2*float64(p.M)*float64(p.N)*float64(p.K)/time.Since(start).Seconds()/1e9)
	}
	return gflops, nil
}

// noise fills memory with numbers from N(0, 1), a period of them again and again: products of zeros run faster than
// those of data.
func (d *Device) noise(m *Memory, t exec.Type, values int) error {
	r := rand.New(rand.NewPCG(3, 4))
	words := make([]float32, min(values, 1<<20+7))
	for i := range words {
		words[i] = float32(r.NormFloat64())
	}
	for at := 0; at < values; at += len(words) {
		n := min(len(words), values-at)
		if t != exec.BFloat16 {
			if err := d.toDevice(m.at+Pointer(4*at), unsafe.Pointer(&words[0]), 4*int64(n)); err != nil {
				return err
			}
			continue
		}
		p, err := d.alloc(4 * int64(len(words)))
		if err != nil {
			return err
		}
		err = d.toDevice(p.at, unsafe.Pointer(&words[0]), 4*int64(n))
		if err == nil {
			err = d.Round(m.at+Pointer(2*at), p.at, n)
		}
		if e := p.Free(); err == nil {
			err = e
		}
		if err != nil {
			return err
		}
	}
	return nil
}
