package cuda

import (
	"unsafe"

	"github.com/geoalign/geoalign/internal/cause"
	"github.com/geoalign/geoalign/internal/exec"
)

var _ exec.Borrower = (*Device)(nil)

const (
	// borrowed is the number of bytes from which on the device copies from memory of the caller's itself.
	borrowed = 1 << 20
	// mostBorrowed is the number of such places that stay known: the batches that a loader hands out in turns.
	mostBorrowed = 16
)

// loan is memory of the caller's that the device may read. Keeping the slice keeps its memory from being used for
// anything else.
type loan struct {
	slice []float32
	bytes int64
}

// loans are known places, and whether a copy from one may be under way.
type loans struct {
	list    []loan
	refused map[unsafe.Pointer]bool
	open    bool
	event   uintptr
}

// Borrow implements exec.Borrower: large values are read where they lie, from pages that the driver pins when it first
// sees them.
func (d *Device) Borrow(to exec.Buffer, from exec.Array) (bool, error) {
	b, ok := to.(*Buffer)
	bytes := 4 * int64(len(from.F32))
	if !ok || bytes < borrowed {
		return false, nil
	}
	if !d.lend(from.F32, bytes) {
		return false, nil
	}
	if d.loans.event == 0 {
		if err := d.driver.do("cuEventCreate", uintptr(unsafe.Pointer(&d.loans.event)), eventWithoutTime); err != nil {
			return false, err
		}
	}
	if err := d.toDevice(b.at, unsafe.Pointer(unsafe.SliceData(from.F32)), bytes); err != nil {
		return true, err
	}
	d.loans.open = true
	return true, d.driver.do("cuEventRecord", d.loans.event, d.stream)
}

// lend makes memory known to the driver, false if it cannot be.
func (d *Device) lend(slice []float32, bytes int64) bool {
	p := unsafe.Pointer(unsafe.SliceData(slice))
	for _, x := range d.loans.list {
		if unsafe.Pointer(unsafe.SliceData(x.slice)) == p && bytes <= x.bytes {
			return true
		}
	}
	if len(d.loans.list) >= mostBorrowed || d.loans.refused[p] {
		return false
	}
	// such as pages that another slice has too
	if d.driver.do("cuMemHostRegister_v2", uintptr(p), uintptr(bytes), 0) != nil {
		if d.loans.refused == nil {
			d.loans.refused = map[unsafe.Pointer]bool{}
		}
		d.loans.refused[p] = true
		return false
	}
	d.loans.list = append(d.loans.list, loan{slice, bytes})
	return true
}

// Return implements exec.Borrower.
func (d *Device) Return() error {
	if !d.loans.open {
		return nil
	}
	d.loans.open = false
	return d.driver.do("cuEventSynchronize", d.loans.event)
}

// closeLoans gives back what was borrowed.
func (d *Device) closeLoans() error {
	var errs []error
	for _, x := range d.loans.list {
		errs = append(errs, d.driver.do("cuMemHostUnregister", uintptr(unsafe.Pointer(unsafe.SliceData(x.slice)))))
	}
	if d.loans.event != 0 {
		errs = append(errs, d.driver.do("cuEventDestroy_v2", d.loans.event))
	}
	d.loans = loans{}
	return cause.Join(errs...)
}
