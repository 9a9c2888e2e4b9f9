package optim

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/cuda"
	"github.com/geoalign/geoalign/internal/cuda/cudatest"
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel/cpu"
	"gorgonia.org/tensor"
)

// slabs are what an optimiser is made of, on the host and as a device mirrors it.
type slabs struct {
	params, grads, momentum []float32
	segs                    []Segment
	twins                   []Twin
	spans, twinSpans        []cuda.Span
}

// Parameters of odd lengths, with every property that a segment can have, and between two of them one of no segment.
// Two runs of twins begin with parameters, and one in the midst of one.
func newSlabs() *slabs {
	s := &slabs{}
	for i, p := range []struct {
		Segment
		none bool // no segment
	}{
		{Segment: Segment{Len: 7}},
		{Segment: Segment{Len: 2*pieceLen + chunkLen + 13, Decay: true}},
		{Segment: Segment{Len: 1, Rate: 0.25}},
		{Segment: Segment{Len: 203, Frozen: true}},
		{Segment: Segment{Len: 45}, none: true},
		{Segment: Segment{Len: pieceLen + 5, Decay: true, Rate: 0.5}},
		{Segment: Segment{Len: 2 * 75 * 75, Pull: Pull{Decay: 0.3, Identity: true, L1: 0.4, Side: 75}}},
		{Segment: Segment{Len: 31, Pull: Pull{Decay: 0.3, Identity: true, Side: 1}}},
		{Segment: Segment{Len: 49, Decay: true, Pull: Pull{L1: 0.2, Side: 7}}},
		{Segment: Segment{Len: 1000, Decay: true}},
	} {
		p.Name, p.Offset = fmt.Sprint(i), len(s.params)
		if !p.none {
			s.segs = append(s.segs, p.Segment)
		}
		s.params = append(s.params, make([]float32, p.Len)...)
		s.spans = append(s.spans, cuda.Span{Lo: p.Offset, Hi: p.Offset + p.Len})
	}
	r := rand.New(rand.NewPCG(3, 4))
	s.grads = make([]float32, len(s.params))
	for i := range s.params {
		s.params[i] = float32(0.1 * r.NormFloat64())
	}
	// Runs of parameters by the numbers of their spans, the last but for its first elements.
	for _, run := range [][3]int{{0, 2, 0}, {3, 7, 0}, {9, 10, 3}} {
		lo, hi := s.spans[run[0]].Lo+run[2], s.spans[run[1]-1].Hi
		s.twins = append(s.twins, Twin{Offset: lo})
		for _, p := range s.spans[run[0]:run[1]] {
			n := len(s.momentum)
			s.twinSpans = append(s.twinSpans, cuda.Span{Lo: n, Hi: n + p.Hi - max(p.Lo, lo)})
			s.momentum = append(s.momentum, make([]float32, p.Hi-max(p.Lo, lo))...)
		}
		s.twins[len(s.twins)-1].Values = s.momentum[len(s.momentum)-(hi-lo):]
	}
	n := 0
	for i, t := range s.twins { // appending may have moved the memory
		s.twins[i].Values = s.momentum[n : n+len(t.Values)]
		n += len(t.Values)
		copy(s.twins[i].Values, s.params[t.Offset:])
	}
	return s
}

// draw sets the gradients of a step.
func (s *slabs) draw(step int) {
	r := rand.New(rand.NewPCG(5, uint64(step)))
	for i := range s.grads {
		s.grads[i] = float32(r.NormFloat64() * math.Exp(3*r.NormFloat64()))
	}
}

func (s *slabs) optimiser(t *testing.T, c Settings) *AdamW {
	t.Helper()
	o, err := New(engine(t, 2), s.params, s.grads, s.segs, c)
	if err == nil {
		err = o.SetTwins(s.twins)
	}
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// mirrors puts slabs on a device.
func (s *slabs) mirrors(t *testing.T, d *cuda.Device, shadow bool) Mirrors {
	t.Helper()
	put := func(host []float32, spans []cuda.Span, shadow bool) *cuda.Mirror {
		m, err := d.Mirror(host, spans, shadow)
		if err == nil {
			t.Cleanup(func() {
				if err := m.Close(); err != nil {
					t.Error(err)
				}
			})
			err = m.Store()
		}
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	return Mirrors{put(s.params, s.spans, shadow), put(s.grads, s.spans, false), put(s.momentum, s.twinSpans, false)}
}

// fetch brings everything to the host.
func fetch(t *testing.T, o *AdamW, m Mirrors) {
	t.Helper()
	check.OK(t, errors.Join(o.Err(), o.Fetch(), m.Params.Fetch(), m.Twins.Fetch()))
}

// same compares values, by their bits where the host's kernel has the device's roundings.
func same(t *testing.T, what string, got, want []float32) {
	t.Helper()
	for i, w := range want {
		equal := math.Float32bits(got[i]) == math.Float32bits(w)
		if !cpu.HasAVX2FMA {
			equal = math.Abs(float64(got[i])-float64(w)) <= 1e-6*math.Max(math.Abs(float64(w)), 1e-3)
		}
		if !equal && !(got[i] != got[i] && w != w) {
			t.Fatalf("%s, element %d: got %v, want %v", what, i, got[i], w)
		}
	}
}

var widen = cuda.Source{Name: "widen", Text: `
extern "C" __global__ void widen(float *y, const bf16 *x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = to_float(x[i]);
}`}

// shadow compares a mirror's values in bfloat16 with those of the host, rounded.
func shadow(t *testing.T, what string, d *cuda.Device, m *cuda.Mirror) {
	t.Helper()
	memory := check.Get(d.Alloc(m.Words()))(t)
	defer memory.Free()
	b := memory.Buffer(0, exec.Spec{Shape: tensor.Shape{m.Words()}})
	_, from := m.At()
	err := d.Kernel(&widen, "widen").Launch(cuda.Grid{X: cuda.Blocks(m.Words(), 256), Threads: 256},
		b.(*cuda.Buffer).Pointer(), from, m.Words())
	check.OK(t, errors.Join(err, b.Fetch()))
	for _, s := range m.Spans() {
		for i := s.Lo; i < s.Hi; i++ {
			bits := math.Float32bits(m.Host()[i])
			want := math.Float32frombits((bits + 0x7fff + bits>>16&1) &^ 0xffff) // to nearest, ties to even
			if got := b.Host().F32[m.Place(i)]; got != want {
				t.Fatalf("%s, element %d: the shadow of %v is %v, want %v", what, i, m.Host()[i], got, want)
			}
		}
	}
}

// TestCUDA compares updates on the device with the host's, with and without twins, clipping and shadows. In its midst
// the optimiser of the device is replaced by one that goes on from the moments of a checkpoint.
func TestCUDA(t *testing.T) {
	d := cudatest.Open(t)
	for name, c := range map[string]struct {
		twins, shadow bool
		clip          float64
	}{
		"step": {}, "clipped": {clip: 0.7}, "twins": {twins: true, clip: 1e9}, "shadows": {twins: true, shadow: true, clip: 0.7}, "shadow without twins": {shadow: true},
	} {
		t.Run(name, func(t *testing.T) {
			h := hyper
			h.ClipNorm = c.clip
			a, b := newSlabs(), newSlabs()
			host, dev := a.optimiser(t, h), b.optimiser(t, h)
			m := b.mirrors(t, d, c.shadow)
			check.OK(t, dev.UseCUDA(d, m))
			defer func() {
				if err := dev.Close(); err != nil {
					t.Error(err)
				}
			}()
			before := slices.Clone(b.params)
			for step := range 20 {
				a.draw(step)
				b.draw(step)
				check.OK(t, m.Grads.Store())
				want := host.GradNorm(0.5)
				if norm := dev.GradNorm(0.5); !(math.Abs(norm-want) <= 1e-12*want) {
					t.Fatalf("step %d: norm %v, want %v (%v)", step, norm, want, dev.Err())
				}
				rate := 1e-2 / float64(1+step)
				if c.twins {
					host.StepTwins(rate, 0.5, want, 0.9)
					dev.StepTwins(rate, 0.5, want, 0.9)
				} else {
					host.Step(rate, 0.5, want)
					dev.Step(rate, 0.5, want)
				}
				if step == 0 && !slices.Equal(b.params, before) {
					t.Fatal("an update on the device changed the host's parameters")
				}
				if step == 9 { // save and go on
					check.OK(t, dev.Fetch())
					next := b.optimiser(t, h)
					check.OK(t, errors.Join(dev.Close(), next.UseCUDA(d, m)))
					for i, x := range next.Tensors() {
						copy(x.Data.([]float32), dev.Tensors()[i].Data.([]float32))
					}
					next.counters = dev.counters
					check.OK(t, next.Store())
					dev = next
				}
			}
			fetch(t, dev, m)
			same(t, "parameters", b.params, a.params)
			same(t, "first moments", dev.m, host.m)
			same(t, "second moments", dev.v, host.v)
			same(t, "twins", b.momentum, a.momentum)
			if c.shadow {
				shadow(t, "parameters", d, m.Params)
			}
		})
	}
}

// The norm counts what an update reads alone, is not finite if and only if an element of that is not, and such a
// gradient does to an element what it does on the host.
func TestCUDANonFinite(t *testing.T) {
	d := cudatest.Open(t)
	for _, bad := range []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)), math.MaxFloat32} {
		a, b := newSlabs(), newSlabs()
		host, dev := a.optimiser(t, hyper), b.optimiser(t, hyper)
		m := b.mirrors(t, d, false)
		check.OK(t, dev.UseCUDA(d, m))
		set := func(i int) {
			a.draw(1)
			b.draw(1)
			a.grads[i], b.grads[i] = bad, bad
			check.OK(t, m.Grads.Store())
		}
		set(b.spans[3].Lo + 100) // frozen
		want := host.GradNorm(1)
		if norm := dev.GradNorm(1); !(math.Abs(norm-want) <= 1e-12*want) {
			t.Errorf("%v in a frozen parameter: norm %v, want %v", bad, norm, want)
		}
		for _, i := range []int{0, b.spans[1].Hi - 1, b.spans[6].Lo + 1} {
			set(i)
			norm := dev.GradNorm(1)
			if finite := !math.IsNaN(norm) && !math.IsInf(norm, 0); finite != (bad == math.MaxFloat32) {
				t.Errorf("%v at %d: norm %v", bad, i, norm)
			}
			host.StepTwins(1e-3, 1, 1, 0.9)
			dev.StepTwins(1e-3, 1, 1, 0.9)
		}
		fetch(t, dev, m)
		same(t, "parameters", b.params, a.params)
		same(t, "twins", b.momentum, a.momentum)
		if err := dev.Close(); err != nil {
			t.Error(err)
		}
	}
}

// The bits of the norm are the same each time.
func TestCUDANormIsFixed(t *testing.T) {
	d := cudatest.Open(t)
	s := newSlabs()
	o := s.optimiser(t, hyper)
	s.draw(1)
	check.OK(t, o.UseCUDA(d, s.mirrors(t, d, false)))
	defer o.Close()
	first := o.GradNorm(1)
	for range 3 {
		if norm := o.GradNorm(1); norm != first {
			t.Errorf("norm %v and %v of one gradient", norm, first)
		}
	}
}

// After Close the host goes on, and twins that are named on the device are moved there.
func TestCUDAClose(t *testing.T) {
	d := cudatest.Open(t)
	a, b := newSlabs(), newSlabs()
	twins := b.twins
	b.twins = nil
	host, dev := a.optimiser(t, hyper), b.optimiser(t, hyper)
	m := b.mirrors(t, d, true)
	check.OK(t, errors.Join(dev.UseCUDA(d, m), dev.SetTwins(twins)))
	check.Error(t, dev.UseCUDA(d, m), "already")
	for step := range 2 {
		a.draw(step)
		b.draw(step)
		check.OK(t, m.Grads.Store())
		norm := host.GradNorm(1)
		host.StepTwins(1e-2, 1, norm, 0.9)
		dev.StepTwins(1e-2, 1, norm, 0.9)
		if step == 0 {
			fetch(t, dev, m)
			check.OK(t, dev.Close())
		}
	}
	same(t, "parameters", b.params, a.params)
	same(t, "twins", b.momentum, a.momentum)
	if err := errors.Join(dev.Close(), dev.Fetch(), dev.Store(), dev.Err()); err != nil {
		t.Errorf("on the host: %v", err)
	}
}

func TestCUDAErrors(t *testing.T) {
	d := cudatest.Open(t)
	s, other := newSlabs(), newSlabs()
	o := s.optimiser(t, hyper)
	good, foreign := s.mirrors(t, d, false), other.mirrors(t, d, false)
	s.spans = append([]cuda.Span{{Lo: 0, Hi: s.spans[1].Hi}}, s.spans[2:]...)
	shifted := s.mirrors(t, d, false)
	s.spans = s.spans[1:]
	partial := s.mirrors(t, d, false)
	rounded := check.Get(d.Mirror(s.momentum, s.twinSpans, true))(t)
	defer rounded.Close()
	before, _ := d.Allocated()
	for _, c := range []struct {
		m    Mirrors
		want string
	}{
		{Mirrors{Grads: good.Grads, Twins: good.Twins}, "the parameters have no mirror"},
		{Mirrors{Params: good.Params, Twins: good.Twins}, "the gradients have no mirror"},
		{Mirrors{Params: good.Params, Grads: good.Grads}, "the momentum encoder has no mirror"},
		{Mirrors{Params: foreign.Params, Grads: good.Grads, Twins: good.Twins}, "the mirror of the parameters is of other memory"},
		{Mirrors{Params: good.Params, Grads: foreign.Grads, Twins: good.Twins}, "the mirror of the gradients is of other memory"},
		{Mirrors{Params: good.Params, Grads: good.Grads, Twins: foreign.Twins}, "the mirror of the momentum encoder is of other memory"},
		{Mirrors{Params: good.Params, Grads: good.Grads, Twins: rounded}, "the mirror of the momentum encoder has values in bfloat16"},
		{Mirrors{Params: good.Params, Grads: shifted.Grads, Twins: good.Twins}, "other spans at element 0"},
		{Mirrors{Params: partial.Params, Grads: partial.Grads, Twins: good.Twins}, "no span of the mirror of the parameters has element 0"},
	} {
		check.Error(t, o.UseCUDA(d, c.m), c.want)
	}
	if after, _ := d.Allocated(); after != before {
		t.Errorf("errors leave %d bytes on the device", after-before)
	}
	if err := o.UseCUDA(d, good); err != nil {
		t.Errorf("after errors: %v", err)
	}
	if err := o.SetTwins(other.twins); err == nil || o.Err() == nil || !math.IsNaN(o.GradNorm(1)) || o.Fetch() == nil {
		t.Errorf("twins elsewhere: got %v, then %v", err, o.Err())
	}
	if err := o.Close(); err != nil {
		t.Error(err)
	}
}
