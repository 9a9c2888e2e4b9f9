package cuda

import (
	"errors"

	"github.com/geoalign/geoalign/internal/exec"
)

// scratchAt is where scratch memory begins to those who prepare steps: no address of the device, but one that becomes
// one when something is enqueued, once it is known how much all steps need.
const scratchAt = Pointer(1) << 62

// scratch is memory that all steps share, one after the other.
type scratch struct {
	need   int64 // bytes: the most that a step was prepared for
	memory *Memory
}

// Scratch returns memory that a step may use while it runs, for a number of bytes, aligned to 256: all steps share it,
// and what it holds is gone when another step runs. It is asked for when a step is prepared. Only Launch and Multiply
// take such a pointer.
func Scratch(c *exec.DeviceCall, bytes int64) Pointer {
	d := Of(c)
	d.scratch.need = max(d.scratch.need, bytes, 256)
	return scratchAt
}

// address returns the address of the device that a pointer stands for.
func (d *Device) address(p Pointer) (Pointer, error) {
	if p < scratchAt {
		return p, nil
	}
	if err := d.reserve(); err != nil {
		return 0, err
	}
	return d.scratch.memory.at + p - scratchAt, nil
}

// reserve has scratch memory be as large as the steps that were prepared need it. What is too small is given back,
// unless a recording knows it: then with the last such recording.
func (d *Device) reserve() error {
	s := &d.scratch
	if s.need == 0 || s.memory != nil && s.memory.bytes >= s.need {
		return nil
	}
	if d.recording {
		return errors.New("cuda: a step that is recorded wants more scratch memory than when it was prepared")
	}
	if old := s.memory; old != nil && old.recordings == 0 {
		s.memory = nil
		if err := old.Free(); err != nil {
			return err
		}
	}
	m, err := d.alloc(s.need)
	if err == nil {
		s.memory = m
	}
	return err
}

// release is told that a recording that knows m is gone.
func (d *Device) release(m *Memory) error {
	m.recordings--
	if m.recordings > 0 || m == d.scratch.memory {
		return nil
	}
	return m.Free()
}
