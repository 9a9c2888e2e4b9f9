package cuda

import (
	"slices"
	"unsafe"

	"github.com/geoalign/geoalign/internal/exec"
)

var (
	_ exec.Mirrorer = (*Device)(nil)
	_ exec.Lender   = (*Device)(nil)
)

// coherence knows which side of a mirror has the newest values.
type coherence struct {
	newer   []bool // the spans that the device has written since the host read them
	touched []Span // what the host may have changed since
	err     error  // of a copy to the host: told by Refresh from then on, since the host's values are old
}

// Changed says that work which was enqueued changes all values on the device.
func (m *Mirror) Changed() {
	for k := range m.spans {
		m.changedSpan(k)
	}
}

func (m *Mirror) changedSpan(k int) {
	if m.newer == nil {
		m.newer = make([]bool, len(m.spans))
	}
	m.newer[k] = true
}

// Edit brings the values from lo to hi of the host's slice up to date, where work on the device has changed them, and
// has the device take them before its next work, since the caller may change them. A copy that fails is an error of
// Refresh.
func (m *Mirror) Edit(lo, hi int) {
	m.Read(lo, hi)
	m.Touch(lo, hi)
}

// Read is Edit for a caller that changes nothing.
func (m *Mirror) Read(lo, hi int) {
	for k, newer := range m.newer {
		s := m.spans[k]
		if s.Lo >= hi || s.Hi <= lo || !newer {
			continue
		}
		if err := m.FetchSpan(s.Lo, s.Hi); err != nil {
			if m.err == nil {
				m.err = err
			}
			return
		}
		m.newer[k] = false
	}
}

// Err returns why values could not be brought to the host, nil if they all were: what the host has is old then.
func (m *Mirror) Err() error { return m.err }

// Touch says that the host has changed the values from lo to hi.
func (m *Mirror) Touch(lo, hi int) {
	if s := (Span{lo, hi}); lo < hi && !slices.Contains(m.touched, s) {
		m.touched = append(m.touched, s)
	}
}

// Touch says that the host has changed values from lo to hi of a slice that the device keeps, if it does; d may be nil.
func (d *Device) Touch(host []float32, lo, hi int) {
	if d == nil {
		return
	}
	for _, m := range d.mirrors {
		if len(host) > 0 && unsafe.SliceData(m.host) == unsafe.SliceData(host) {
			m.Touch(lo, hi)
		}
	}
}

// Refresh implements exec.Mirrorer: it takes what the host has changed to the device. After a copy to the host that
// failed it takes nothing and fails again and again: what the host has changed was not the newest.
func (d *Device) Refresh() error {
	for _, m := range d.mirrors {
		if m.err != nil {
			return m.err
		}
		for _, s := range m.touched {
			if err := m.StoreSpan(s.Lo, s.Hi); err != nil {
				return err
			}
		}
		m.touched = m.touched[:0]
	}
	return nil
}
