package cuda

import (
	"time"
	"unsafe"

	"github.com/geoalign/geoalign/internal/cause"
	"github.com/geoalign/geoalign/internal/exec"
)

var _ exec.Timeline = (*Device)(nil)

// ballast is how long the device is kept busy before marks, so that the host has enqueued what lies between them when
// it gets there: what is measured is the time of the device alone.
const ballast = 60 * time.Millisecond

// marks are events on the stream.
type marks struct {
	events []uintptr
	used   int
}

// Begin implements exec.Timeline.
func (d *Device) Begin() error {
	if err := d.Sync(); err != nil {
		return err
	}
	d.marks.used = 0
	filler := d.workspace // what products leave there nobody reads
	start := time.Now()
	const few = 8
	for range few { // how long one takes
		if err := d.zero(filler.at, filler.bytes); err != nil {
			return err
		}
	}
	if err := d.Sync(); err != nil {
		return err
	}
	each := max(time.Since(start)/few, time.Microsecond)
	for range min(int(ballast/each)+1, 20000) {
		if err := d.zero(filler.at, filler.bytes); err != nil {
			return err
		}
	}
	return d.Mark()
}

// Mark implements exec.Timeline.
func (d *Device) Mark() error {
	m := &d.marks
	if m.used == len(m.events) {
		e := new(uintptr)
		if err := d.driver.do("cuEventCreate", uintptr(unsafe.Pointer(e)), 0); err != nil {
			return err
		}
		m.events = append(m.events, *e)
	}
	m.used++
	return d.driver.do("cuEventRecord", m.events[m.used-1], d.stream)
}

// End implements exec.Timeline.
func (d *Device) End() (times []time.Duration, err error) {
	if err := d.Sync(); err != nil {
		return nil, err
	}
	m := &d.marks
	for i := 1; i < m.used; i++ {
		ms := new(float32)
		if err := d.driver.do("cuEventElapsedTime", uintptr(unsafe.Pointer(ms)), m.events[i-1],
			m.events[i]); err != nil {
			return nil, err
		}
		times = append(times, time.Duration(float64(*ms)*float64(time.Millisecond)))
	}
	return times, nil
}

// closeMarks gives events back.
func (d *Device) closeMarks() error {
	var errs []error
	for _, e := range d.marks.events {
		errs = append(errs, d.driver.do("cuEventDestroy_v2", e))
	}
	d.marks = marks{}
	return cause.Join(errs...)
}
