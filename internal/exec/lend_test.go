package exec_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/exec"
	"gorgonia.org/gorgonia"
)

// bound returns memory for nodes, one behind the other in turn with values that nobody is bound to, which are 7.
// bind is nil where a node comes twice, as the gradient of two inputs does.
func (f *feed) bound(nodes gorgonia.Nodes) (all []float32, bind map[*gorgonia.Node][]float32) {
	const between = 40
	n := between
	for _, x := range nodes {
		n += x.Shape().TotalSize() + between
	}
	all, bind = make([]float32, n), map[*gorgonia.Node][]float32{}
	for i := range all {
		all[i] = 7
	}
	at := between
	for _, x := range nodes {
		if _, twice := bind[x]; twice {
			return all, nil
		}
		k := x.Shape().TotalSize()
		bind[x] = all[at:][:k:k]
		at += k + between
	}
	return all, bind
}

// TestLent compares runs whose results lie among the gradients, until these are written, with runs that keep them elsewhere.
func TestLent(t *testing.T) {
	lent, saved := 0, 0
	for seed := range uint64(150) {
		f := randomGraph(t, rand.New(rand.NewPCG(seed, 9)), 3+int(seed)%20)
		all, bind := f.bound(f.outputs[2:])
		if bind == nil {
			continue
		}
		config := exec.Config{Outputs: f.outputs, Bind: bind}
		plain := f.compileBound(config)
		if plain == nil {
			continue
		}
		check.OK(t, plain.RunAll())
		want := f.results(t, plain)
		config.Lend = all
		m := f.compile(t, config)
		if err := m.CheckLayout(); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if m.Borrowed() > 0 {
			lent++
		}
		if m.Memory() < plain.Memory() {
			saved++
		} else if m.Memory() > plain.Memory() {
			t.Errorf("seed %d: %d bytes with memory that is lent, %d without", seed, m.Memory(), plain.Memory())
		}
		for _, poison := range []float32{float32(math.NaN()), 1e9} {
			m.Poison(poison)
			for _, mem := range bind {
				for i := range mem {
					mem[i] = poison
				}
			}
			check.OK(t, m.RunAll())
			same(t, seed, f.results(t, m), want)
			for i := range all {
				if !within(bind, &all[i]) && all[i] != 7 {
					t.Fatalf("seed %d: a value that nobody is bound to is %v", seed, all[i])
				}
			}
		}
	}
	if lent < 50 || saved < 20 {
		t.Errorf("%d graphs had results in memory that is lent and %d took less memory: too few to say anything", lent, saved)
	}
}

// compileBound is compile, nil of a graph whose gradients cannot be bound: two inputs may have one, which has one place.
func (f *feed) compileBound(cfg exec.Config) *exec.Machine {
	cfg.Engine = engine
	m, err := exec.Compile(f.g, cfg)
	if err != nil {
		return nil
	}
	for i, n := range f.inputs {
		if m.SetInput(n, f.values[i]) != nil {
			return nil
		}
	}
	return m
}

// results returns copies of the values of all outputs.
func (f *feed) results(t *testing.T, m *exec.Machine) (all [][]float32) {
	t.Helper()
	for _, n := range f.outputs {
		a := check.Get(m.Value(n))(t)
		all = append(all, append([]float32(nil), a.F32...))
	}
	return all
}

func same(t *testing.T, seed uint64, got, want [][]float32) {
	t.Helper()
	for k := range want {
		for i, w := range want[k] {
			if math.Float32bits(got[k][i]) != math.Float32bits(w) {
				t.Fatalf("seed %d: output %d [%d] is %v, want %v", seed, k, i, got[k][i], w)
			}
		}
	}
}

func within(bind map[*gorgonia.Node][]float32, p *float32) bool {
	for _, mem := range bind {
		lo, at := uintptr(unsafe.Pointer(&mem[0])), uintptr(unsafe.Pointer(p))
		if at >= lo && at < lo+4*uintptr(len(mem)) {
			return true
		}
	}
	return false
}

// lender is a device with memory that stands for some of the host's, a few words further on.
type lender struct {
	ram
	host   []float32
	memory *ramMemory
}

// newLender returns a device that stands for memory of the host's.
func newLender(t *testing.T, host []float32) *lender {
	t.Helper()
	d := &lender{host: host}
	memory := check.Get(d.Alloc(d.place(len(host))))(t)
	d.memory = memory.(*ramMemory)
	return d
}

func (d *lender) place(i int) int { return 16 + i }

func (d *lender) Mirrored(host []float32) (exec.Mirrored, bool) {
	at := (int(uintptr(unsafe.Pointer(&host[0]))) - int(uintptr(unsafe.Pointer(&d.host[0])))) / 4
	if at < 0 || at+len(host) > len(d.host) {
		return nil, false
	}
	return &lenderPart{d, host, d.place(at)}, true
}

func (d *lender) Refresh() error { return nil }

func (d *lender) Lend(host []float32) (exec.Lent, bool) {
	if &host[0] != &d.host[0] {
		return exec.Lent{}, false
	}
	return exec.Lent{Memory: borrowed{d.memory}, Words: len(d.memory.words), Place: d.place}, true
}

// borrowed is memory that whoever frees it does not own.
type borrowed struct{ *ramMemory }

func (borrowed) Free() error { return nil }

type lenderPart struct {
	d    *lender
	host []float32
	at   int
}

func (p *lenderPart) Buffer(word int, s exec.Spec) exec.Buffer {
	n := s.Words()
	view := p.host[word:][:n]
	return &ramBuffer{&p.d.ram, p.d.memory.words[p.at+word:][:n], view, s.Array(view)}
}

func (p *lenderPart) Free() error { return nil }

func (p *lenderPart) Changed() {}

// TestLentOnDevice is TestLent where the gradients lie on a device.
func TestLentOnDevice(t *testing.T) {
	lent := 0
	for seed := range uint64(60) {
		f := randomGraph(t, rand.New(rand.NewPCG(seed, 9)), 3+int(seed)%20)
		all, bind := f.bound(f.outputs[2:])
		if bind == nil {
			continue
		}
		d := newLender(t, all)
		config := exec.Config{Outputs: f.outputs, Bind: bind, Device: d}
		plain := f.compileBound(config)
		if plain == nil {
			continue
		}
		check.OK(t, plain.RunAll())
		want := f.results(t, plain)
		check.OK(t, plain.Close())
		config.Lend = all
		m := f.compile(t, config)
		if err := m.CheckLayout(); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if m.Borrowed() > 0 {
			lent++
		}
		for range 2 {
			for i := range d.memory.words {
				d.memory.words[i] = float32(math.NaN())
			}
			check.OK(t, m.RunAll())
			same(t, seed, f.results(t, m), want)
		}
		for range 2 { // the second time for nothing
			check.OK(t, m.Close())
		}
		if d.held != len(d.memory.words) {
			t.Fatalf("seed %d: %d words are held after Close, %d of them of the mirror", seed, d.held, len(d.memory.words))
		}
	}
	if lent < 20 {
		t.Errorf("%d graphs had results in memory that is lent: too few to say anything", lent)
	}
}
