package cuda

import (
	"errors"
	"unsafe"

	"github.com/geoalign/geoalign/internal/cause"
	"github.com/geoalign/geoalign/internal/exec"
)

// tuneRuns is how often an algorithm runs when it is timed, after once that does not count.
const tuneRuns = 3

// tunedFLOPs is the least number of operations of a product whose algorithms are measured: the others are launches more
// than work.
const tunedFLOPs = 1 << 28

// better is the share of the time of cuBLASLt's first proposal that another algorithm must stay below.
const better = 0.98

// settle chooses the algorithm of a product, when it runs for the first time, as Options.Fastest says.
func (d *Device) settle(x *algorithm, key productKey, a, b, c Pointer) error {
	x.tuned = true
	p := key.Product
	if !d.options.Fastest || 2*int64(p.M)*int64(p.N)*int64(p.K)*int64(max(p.Batch, 1)) < tunedFLOPs {
		return nil
	}
	if d.chosen == nil {
		d.chosen = d.known()
	}
	name := key.String()
	if known, ok := d.chosen[name]; ok {
		for i := range x.choices { // of what the library proposes alone: a file may be damaged
			if x.choices[i] == known {
				x.choices[0], x.choices[i] = x.choices[i], x.choices[0]
				return nil
			}
		}
	}
	if err := d.tune(x, p, a, b, c); err != nil {
		return err
	}
	d.chosen[name], d.measured = x.choices[0], true
	return nil
}

// tune times the algorithms of a product on its operands and puts the fastest first. What is in C is written only if it
// is not read.
func (d *Device) tune(x *algorithm, p Product, a, b, c Pointer) (err error) {
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
	best, least := -1, float32(0) // a later one must be better by more than noise
	for i := range x.choices {
		ms, err := d.time(*from, *until, func() error { return d.run(x, &x.choices[i], p, a, b, c, to) })
		var refused *Error
		if errors.As(err, &refused) && refused.Call == "cublasLtMatmul" {
			continue
		}
		if err != nil {
			return err
		}
		if best < 0 || ms < better*least {
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
