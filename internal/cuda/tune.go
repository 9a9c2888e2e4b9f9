package cuda

import (
	"errors"
	"unsafe"

	"github.com/geoalign/geoalign/internal/cause"
	"github.com/geoalign/geoalign/internal/exec"
)

// tuneRuns is how often an algorithm runs when it is timed, after once that does not count.
const tuneRuns = 3

// tune times the algorithms of a product on its operands and puts the fastest first. What is in C is written only if it is not
// read.
func (d *Device) tune(x *algorithm, p Product, a, b, c Pointer) (err error) {
	x.tuned = true
	if len(x.choices) == 1 {
		return nil
	}
	to := c
	if p.Beta != 0 {
		bytes := int64(p.M) * int64(p.LDC)
		if p.Batch > 1 {
			bytes += int64(p.Batch-1) * int64(p.StrideC)
		}
		m, e := d.alloc(bytes * int64(size(p.C)))
		if e != nil {
			return nil // without room: the first algorithm
		}
		defer func() { err = cause.Join(err, m.Free()) }()
		to = m.at
	}
	from, until := new(uintptr), new(uintptr)
	for _, e := range []*uintptr{from, until} {
		if err := d.driver.do("cuEventCreate", uintptr(unsafe.Pointer(e)), 0); err != nil {
			return err
		}
		defer func() { err = cause.Join(err, d.driver.do("cuEventDestroy_v2", *e)) }()
	}
	best, least := -1, float32(0)
	for i := range x.choices {
		ms, err := d.time(*from, *until, func() error { return d.run(x, &x.choices[i], p, a, b, c, to) })
		var refused *Error
		if errors.As(err, &refused) && refused.Call == "cublasLtMatmul" {
			continue
		}
		if err != nil {
			return err
		}
		if best < 0 || ms < least {
			best, least = i, ms
		}
	}
	if best > 0 {
		x.choices[0], x.choices[best] = x.choices[best], x.choices[0]
	}
	return nil
}

// time returns the milliseconds that the device needs for the fastest of some runs of f.
func (d *Device) time(from, until uintptr, f func() error) (least float32, err error) {
	for i := range 1 + tuneRuns {
		ms := new(float32)
		err := d.driver.do("cuEventRecord", from, d.stream)
		if err == nil {
			err = f()
		}
		if err == nil {
			err = d.driver.do("cuEventRecord", until, d.stream)
		}
		if err == nil {
			err = d.driver.do("cuEventSynchronize", until)
		}
		if err == nil {
			err = d.driver.do("cuEventElapsedTime", uintptr(unsafe.Pointer(ms)), from, until)
		}
		if err != nil {
			return 0, err
		}
		if i == 1 || i > 1 && *ms < least {
			least = *ms
		}
	}
	return least, nil
}

// size returns the bytes of a value.
func size(t exec.Type) int {
	if t == exec.BFloat16 {
		return 2
	}
	return 4
}
