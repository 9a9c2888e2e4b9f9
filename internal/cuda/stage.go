package cuda

import (
	"errors"
	"unsafe"

	"github.com/geoalign/geoalign/internal/exec"
)

var _ exec.Stager = (*Device)(nil)

// stage is memory that values wait in, which a stream of its own copies there.
type stage struct {
	memory     *Memory
	done, free uintptr // events: the values are there, and have been taken
	filling    bool    // a copy from the host may be under way
}

// NewStage implements exec.Stager.
func (d *Device) NewStage(s exec.Spec) (exec.Stage, error) {
	if d.aside == 0 {
		if err := d.driver.do("cuStreamCreate", uintptr(unsafe.Pointer(&d.aside)), streamNonBlocking); err != nil {
			return nil, err
		}
	}
	m, err := d.alloc(4 * int64(s.Words()))
	if err != nil {
		return nil, err
	}
	x := &stage{memory: m}
	for _, e := range []*uintptr{&x.done, &x.free} {
		if err := d.driver.do("cuEventCreate", uintptr(unsafe.Pointer(e)), eventWithoutTime); err != nil {
			return nil, errors.Join(err, x.Free())
		}
	}
	return x, d.driver.do("cuEventRecord", x.free, d.stream)
}

// Fill implements exec.Stage, for memory that the device can read where it lies.
func (x *stage) Fill(from exec.Array) (bool, error) {
	d, bytes := x.memory.device, 4*int64(len(from.F32))
	if bytes < borrowed || bytes > x.memory.bytes || !d.lend(from.F32, bytes) {
		return false, nil
	}
	err := d.driver.do("cuStreamWaitEvent", d.aside, x.free, 0)
	if err == nil {
		err = d.driver.do("cuMemcpyHtoDAsync_v2", uintptr(x.memory.at),
			uintptr(unsafe.Pointer(unsafe.SliceData(from.F32))), uintptr(bytes), d.aside)
	}
	if err == nil {
		x.filling = true
		err = d.driver.do("cuEventRecord", x.done, d.aside)
	}
	return true, err
}

// Take implements exec.Stage.
func (x *stage) Take(to exec.Buffer) error {
	d, b := x.memory.device, to.(*Buffer)
	err := d.driver.do("cuStreamWaitEvent", d.stream, x.done, 0)
	if err == nil {
		err = d.copy(b.at, x.memory.at, 4*int64(b.spec.Words()))
	}
	if err == nil {
		err = d.driver.do("cuEventRecord", x.free, d.stream)
	}
	return err
}

// Drop implements exec.Stage.
func (x *stage) Drop() error {
	if !x.filling {
		return nil
	}
	x.filling = false
	return x.memory.device.driver.do("cuEventSynchronize", x.done)
}

// Free implements exec.Stage.
func (x *stage) Free() error {
	errs := []error{x.Drop()}
	for _, e := range []uintptr{x.done, x.free} {
		if e != 0 {
			errs = append(errs, x.memory.device.driver.do("cuEventDestroy_v2", e))
		}
	}
	x.done, x.free = 0, 0
	return errors.Join(append(errs, x.memory.Free())...)
}
