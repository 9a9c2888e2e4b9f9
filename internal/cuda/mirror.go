package cuda

import (
	"fmt"
	"slices"
	"sort"
	"unsafe"

	"github.com/geoalign/geoalign/internal/cause"
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/memory"
)

// Span is a piece of a slice of the host's: a parameter among all, say.
type Span struct{ Lo, Hi int }

// Mirror is memory of the device that stands for a slice of the host's: what a machine on the device reads or writes
// there it reads and writes here instead, and nothing is copied until Fetch or Store. Every span begins at a multiple
// of 256 bytes.
type Mirror struct {
	device *Device
	host   []float32
	spans  []Span
	at     []int // word of each span
	words  int
	memory *Memory
	// shadow holds the values rounded to bfloat16, laid out as memory in values; nil: nobody asked for it.
	shadow *Memory
	cast   *Kernel
	pinned bool // the host's slice, see Pin
	coherence
}

// spanAlign is the alignment of spans in words.
const spanAlign = 64

// Mirror makes a mirror of host, of spans that follow each other there. With shadow it keeps the values in bfloat16
// too, for products in it. Its values are not there before Store.
func (d *Device) Mirror(host []float32, spans []Span, shadow bool) (*Mirror, error) {
	m := &Mirror{device: d, host: host, spans: spans}
	end := 0
	for _, s := range spans {
		if s.Lo < end || s.Hi < s.Lo || s.Hi > len(host) {
			return nil, fmt.Errorf("cuda: a mirror of %d values has no span from %d to %d after %d", len(host), s.Lo,
				s.Hi, end)
		}
		end = s.Hi
		m.at = append(m.at, m.words)
		m.words += (s.Hi - s.Lo + spanAlign - 1) / spanAlign * spanAlign
	}
	var err error
	if m.memory, err = d.alloc(4 * int64(m.words)); err != nil {
		return nil, err
	}
	if shadow {
		m.cast = d.Kernel(&basicSource, "round_bf16")
		if m.shadow, err = d.alloc(2 * int64(m.words)); err != nil {
			return nil, cause.Join(err, m.memory.Free())
		}
	}
	d.mirrors = append(d.mirrors, m)
	err = d.zero(m.memory.at, m.memory.bytes)
	if shadow && err == nil {
		err = d.zero(m.shadow.at, m.shadow.bytes)
	}
	if err != nil {
		return nil, cause.Join(err, m.Close())
	}
	return m, nil
}

// Pin has the driver pin the pages of the host's slice, so that copies to it and from it need no copy in between. Where
// the driver refuses, copies go on as before. A copy to the device reads the slice after StoreSpan has returned then,
// until the next Sync.
func (m *Mirror) Pin() {
	if len(m.host) > 0 && !m.pinned {
		m.pinned = m.device.driver.do("cuMemHostRegister_v2", uintptr(unsafe.Pointer(&m.host[0])),
			uintptr(4*len(m.host)), 0) == nil
	}
}

// Close gives the memory back.
func (m *Mirror) Close() error {
	d := m.device
	for i, x := range d.mirrors {
		if x == m {
			d.mirrors = append(d.mirrors[:i], d.mirrors[i+1:]...)
			break
		}
	}
	err := m.memory.Free()
	if m.shadow != nil {
		err = cause.Join(err, m.shadow.Free())
	}
	if m.pinned {
		err = cause.Join(err, d.driver.do("cuMemHostUnregister", uintptr(unsafe.Pointer(&m.host[0]))))
		m.pinned = false
	}
	return err
}

// Words returns the length of the memory in words, gaps between spans included: they are zero.
func (m *Mirror) Words() int { return m.words }

// At returns where the memory begins, and where its values in bfloat16 do (0: nowhere).
func (m *Mirror) At() (values, shadow Pointer) {
	if m.shadow != nil {
		shadow = m.shadow.at
	}
	return m.memory.at, shadow
}

// Host returns the slice that the memory stands for.
func (m *Mirror) Host() []float32 { return m.host }

// Spans returns the pieces of that slice that are mirrored.
func (m *Mirror) Spans() []Span { return m.spans }

// Index returns where in the host's slice part begins, false if it is no part of it.
func (m *Mirror) Index(part []float32) (int, bool) {
	return memory.Index(m.host, part)
}

// SpanOf returns the span that a value of the host's slice lies in, false if it lies in none.
func (m *Mirror) SpanOf(i int) (Span, bool) {
	k := m.find(i)
	if k == len(m.spans) || i < m.spans[k].Lo {
		return Span{}, false
	}
	return m.spans[k], true
}

// find returns the number of the first span that ends behind a value of the host's slice.
func (m *Mirror) find(i int) int {
	return sort.Search(len(m.spans), func(k int) bool { return m.spans[k].Hi > i })
}

// Place returns the word at which a value of the host's slice lies, one of a span.
func (m *Mirror) Place(i int) int {
	k := m.find(i)
	return m.at[k] + i - m.spans[k].Lo
}

// Store takes all values to the device.
func (m *Mirror) Store() error { return m.StoreSpan(0, len(m.host)) }

// StoreSpan takes the values from lo to hi to the device.
func (m *Mirror) StoreSpan(lo, hi int) error {
	return m.each(lo, hi, func(lo, hi, at int) error {
		err := m.device.toDevice(m.memory.at+Pointer(4*at), unsafe.Pointer(&m.host[lo]), 4*int64(hi-lo))
		if err != nil {
			return err
		}
		return m.round(at, hi-lo)
	})
}

// round brings the shadow of n words up to date.
func (m *Mirror) round(at, n int) error {
	if m.shadow == nil || n == 0 {
		return nil
	}
	return m.cast.Launch(Grid{X: Blocks(n, 1024), Threads: 256}, m.shadow.at+Pointer(2*at), m.memory.at+Pointer(4*at),
		int64(n))
}

// Fetch brings all values to the host.
func (m *Mirror) Fetch() error { return m.FetchSpan(0, len(m.host)) }

// FetchSpan brings the values from lo to hi to the host.
func (m *Mirror) FetchSpan(lo, hi int) error {
	err := m.each(lo, hi, func(lo, hi, at int) error {
		return m.device.driver.do("cuMemcpyDtoHAsync_v2", uintptr(unsafe.Pointer(&m.host[lo])),
			uintptr(m.memory.at+Pointer(4*at)), uintptr(4*(hi-lo)), m.device.stream)
	})
	if err != nil {
		return err
	}
	return m.device.Sync()
}

// Copy makes the values on the device those of from, a mirror of the same spans.
func (m *Mirror) Copy(from *Mirror) error {
	if err := m.alike(from); err != nil || m.words == 0 {
		return err
	}
	m.Changed()
	if err := m.device.copy(m.memory.at, from.memory.at, 4*int64(m.words)); err != nil {
		return err
	}
	return m.round(0, m.words)
}

// Add adds the values of from, a mirror of the same spans, to those on the device.
func (m *Mirror) Add(from *Mirror) error {
	if err := m.alike(from); err != nil || m.words == 0 {
		return err
	}
	m.Changed()
	if err := m.device.Add(m.memory.at, from.memory.at, m.words); err != nil {
		return err
	}
	return m.round(0, m.words)
}

// alike returns an error unless word i of both mirrors stands for the same place.
func (m *Mirror) alike(o *Mirror) error {
	if m.device != o.device || !slices.Equal(m.spans, o.spans) {
		return fmt.Errorf("cuda: mirrors of %d and %d values have other spans or lie on two devices: they have no value in common", len(m.host), len(o.host))
	}
	return nil
}

// each calls f for the parts of spans between lo and hi: the part and the word at which it lies.
func (m *Mirror) each(lo, hi int, f func(lo, hi, at int) error) error {
	for k := m.find(lo); k < len(m.spans) && m.spans[k].Lo < hi; k++ {
		s := m.spans[k]
		from, to := max(lo, s.Lo), min(hi, s.Hi)
		if from < to {
			if err := f(from, to, m.at[k]+from-s.Lo); err != nil {
				return err
			}
		}
	}
	return nil
}

// Mirrored implements exec.Mirrorer: memory that stands for host, whose Free does nothing.
func (d *Device) Mirrored(host []float32) (exec.Mirrored, bool) {
	if len(host) == 0 {
		return nil, false
	}
	p := uintptr(unsafe.Pointer(&host[0]))
	for _, m := range d.mirrors {
		base := uintptr(unsafe.Pointer(unsafe.SliceData(m.host)))
		if p < base || p >= base+4*uintptr(len(m.host)) {
			continue
		}
		lo := int(p-base) / 4
		k := m.find(lo)
		if k < len(m.spans) && lo >= m.spans[k].Lo && lo+len(host) <= m.spans[k].Hi {
			return &reflection{mirror: m, host: host, span: k, word: m.at[k] + lo - m.spans[k].Lo}, true
		}
	}
	return nil, false
}

// Lend implements exec.Lender: the memory of a mirror of host that has no shadow, whose values are what they are in
// float32.
func (d *Device) Lend(host []float32) (exec.Lent, bool) {
	for _, m := range d.mirrors {
		if m.shadow == nil && len(m.host) == len(host) && unsafe.SliceData(m.host) == unsafe.SliceData(host) {
			return exec.Lent{Memory: m.memory.Share(), Words: m.words, Place: m.Place}, true
		}
	}
	return exec.Lent{}, false
}

// reflection is the part of a mirror that stands for a slice of the host's.
type reflection struct {
	mirror *Mirror
	host   []float32
	span   int
	word   int
}

// Buffer implements exec.Memory. The host's view is the slice itself.
func (r *reflection) Buffer(word int, s exec.Spec) exec.Buffer {
	b := r.mirror.memory.Buffer(r.word+word, s).(*Buffer)
	if s.Type == exec.Float32 {
		a := s.Array(r.host[word:])
		b.host = &a
	}
	if r.mirror.shadow != nil {
		b.shadow = r.mirror.shadow.at + Pointer(2*(r.word+word))
	}
	return b
}

// Free implements exec.Memory.
func (r *reflection) Free() error { return nil }

// Changed implements exec.Mirrored.
func (r *reflection) Changed() { r.mirror.changedSpan(r.span) }
