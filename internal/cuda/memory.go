package cuda

import (
	"fmt"
	"unsafe"

	"github.com/geoalign/geoalign/internal/exec"
)

// Pointer is an address in the device's memory.
type Pointer uint64

// Memory is memory of the device that buffers lie in.
type Memory struct {
	device *Device
	at     Pointer
	bytes  int64
	pinned []uintptr // views of buffers on the host
	// recordings is how many know it as scratch memory.
	recordings int
	shared     bool // it is another's
}

var (
	_ exec.Device = (*Device)(nil)
	_ exec.Sharer = (*Memory)(nil)
	_ exec.Buffer = (*Buffer)(nil)
)

// Alloc implements exec.Device. The memory holds anything.
func (d *Device) Alloc(words int) (exec.Memory, error) {
	m, err := d.alloc(4 * int64(words))
	if err != nil {
		return nil, err // not an interface that holds no memory
	}
	return m, nil
}

func (d *Device) alloc(bytes int64) (*Memory, error) {
	m := &Memory{device: d, bytes: max(bytes, 256)}
	if err := d.driver.do("cuMemAlloc_v2", uintptr(unsafe.Pointer(&m.at)), uintptr(m.bytes)); err != nil {
		if e, ok := err.(*Error); ok && e.Status == statusOutOfMemory {
			free, _ := d.Free()
			return nil, fmt.Errorf("%s more are needed on %s, of whose %s %s are free (this program holds %s): %w",
				inWords(bytes), d.info.Name, inWords(d.info.Bytes), inWords(free), inWords(d.allocated), err)
		}
		return nil, err
	}
	d.allocated += m.bytes
	d.most = max(d.most, d.allocated)
	d.live[m] = true
	return m, nil
}

// inWords is a number of bytes for a person, who would learn nothing from 0.00 GiB.
func inWords(bytes int64) string {
	switch n := float64(bytes); {
	case n >= 1<<30:
		return fmt.Sprintf("%.2f GiB", n/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.2f MiB", n/(1<<20))
	}
	return fmt.Sprintf("%d bytes", bytes)
}

// Buffer implements exec.Memory.
func (m *Memory) Buffer(word int, s exec.Spec) exec.Buffer {
	return &Buffer{memory: m, at: m.at + Pointer(4*word), spec: s}
}

// Share implements exec.Sharer.
func (m *Memory) Share() exec.Memory {
	s := &Memory{device: m.device, at: m.at, bytes: m.bytes, shared: true}
	m.device.live[s] = true // for its views
	return s
}

// Free implements exec.Memory. Work that reads it is waited for.
func (m *Memory) Free() error {
	if m.at == 0 {
		return nil
	}
	d := m.device
	err := d.Sync()
	if !m.shared {
		if e := d.driver.do("cuMemFree_v2", uintptr(m.at)); err == nil {
			err = e
		}
		d.allocated -= m.bytes
	}
	for _, p := range m.pinned {
		if e := d.driver.do("cuMemFreeHost", p); err == nil {
			err = e
		}
	}
	delete(d.live, m)
	m.at, m.pinned = 0, nil
	return err
}

// Buffer is a value in the device's memory.
type Buffer struct {
	memory *Memory
	at     Pointer
	spec   exec.Spec
	host   *exec.Array // the view, made when it is first asked for
	// shadow is a copy of the values in bfloat16 that somebody keeps up to date, 0: none.
	shadow Pointer
}

// Pointer returns where the value lies.
func (b *Buffer) Pointer() Pointer { return b.at }

// Shadow returns where a copy of the values in bfloat16 lies, 0: there is none.
func (b *Buffer) Shadow() Pointer { return b.shadow }

// Host implements exec.Buffer.
func (b *Buffer) Host() exec.Array {
	if b.host == nil {
		a := b.spec.Array(b.memory.view(b.spec.Words()))
		b.host = &a
	}
	return *b.host
}

// pinnedWords is the size in words from which a view is worth memory that the device copies from and to without the
// driver's help.
const pinnedWords = 16 << 10

// view returns memory of the host's for a view, for as long as m lives.
func (m *Memory) view(words int) []float32 {
	if words < pinnedWords {
		return make([]float32, words)
	}
	p := new(unsafe.Pointer)
	if err := m.device.driver.do("cuMemHostAlloc", uintptr(unsafe.Pointer(p)), uintptr(4*words), 0); err != nil {
		return make([]float32, words)
	}
	m.pinned = append(m.pinned, uintptr(*p))
	return unsafe.Slice((*float32)(*p), words)
}

// words returns the memory of a view.
func words(a exec.Array, s exec.Spec) (unsafe.Pointer, int64) {
	n := s.Shape.TotalSize()
	switch s.Type {
	case exec.Int32:
		return unsafe.Pointer(unsafe.SliceData(a.I32)), 4 * int64(n)
	case exec.BFloat16:
		return unsafe.Pointer(unsafe.SliceData(a.BF16)), 2 * int64(n)
	}
	return unsafe.Pointer(unsafe.SliceData(a.F32)), 4 * int64(n)
}

// Fetch implements exec.Buffer: it waits for all work that was enqueued.
func (b *Buffer) Fetch() error {
	p, n := words(b.Host(), b.spec)
	return b.memory.device.toHost(p, b.at, n)
}

// Store implements exec.Buffer.
func (b *Buffer) Store() error {
	p, n := words(b.Host(), b.spec)
	return b.memory.device.toDevice(b.at, p, n)
}

// toHost copies from the device and waits for it.
func (d *Device) toHost(to unsafe.Pointer, from Pointer, bytes int64) error {
	if bytes == 0 {
		return nil
	}
	if err := d.driver.do("cuMemcpyDtoHAsync_v2", uintptr(to), uintptr(from), uintptr(bytes), d.stream); err != nil {
		return err
	}
	return d.Sync()
}

// toDevice copies to the device. The driver has read pageable memory when the call returns.
func (d *Device) toDevice(to Pointer, from unsafe.Pointer, bytes int64) error {
	if bytes == 0 {
		return nil
	}
	return d.driver.do("cuMemcpyHtoDAsync_v2", uintptr(to), uintptr(from), uintptr(bytes), d.stream)
}

// copy copies within the device.
func (d *Device) copy(to, from Pointer, bytes int64) error {
	return d.driver.do("cuMemcpyDtoDAsync_v2", uintptr(to), uintptr(from), uintptr(bytes), d.stream)
}

// zero clears memory of the device.
func (d *Device) zero(at Pointer, bytes int64) error {
	return d.driver.do("cuMemsetD8Async", uintptr(at), 0, uintptr(bytes), d.stream)
}

// Zero clears an operand in a step.
func Zero(o exec.Operand) {
	b := o.Buffer.(*Buffer)
	bytes := int64(4 * o.Shape.TotalSize())
	if o.Type == exec.BFloat16 {
		bytes /= 2
	}
	b.memory.device.clear(b.at, bytes)
}

// Copy copies operand from to operand to, of the same type and number of values.
func Copy(to, from exec.Operand) error {
	b := to.Buffer.(*Buffer)
	bytes := int64(4 * to.Shape.TotalSize())
	if to.Type == exec.BFloat16 {
		bytes /= 2
	}
	return b.memory.device.copy(b.at, from.Buffer.(*Buffer).at, bytes)
}
