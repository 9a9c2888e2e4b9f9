package oncuda

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/cuda"
	"github.com/geoalign/geoalign/internal/cuda/cudatest"
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel/vector"
	"gorgonia.org/tensor"
)

// deviceBench times steps that move memory. Their operands lie in regions that all of them share.
type deviceBench struct {
	b       *testing.B
	regions []exec.Memory
	runs    []deviceRun
}

// deviceRun is a step and the bytes that it has to read and write, 0: that is not what takes its time.
type deviceRun struct {
	name  string
	bytes int
	step  exec.Step
}

// regionWords is the size of a region: a matrix of float32 in the image tower of albef-base at batch 256.
const regionWords = 65792 * 3072

// BenchmarkCUDA times the element-wise steps and the sums at the shapes of albef-base (batch 256: 65792 rows of an image tower,
// 7680 of texts) and of small models. A graph of many of them runs at a time: -test.benchtime 5x is enough.
func BenchmarkCUDA(b *testing.B) {
	d := cudatest.Open(b)
	if cudatest.Emulated(d) {
		b.Skip("times of the emulator mean nothing")
	}
	s := &deviceBench{b: b}
	for range 4 {
		s.regions = append(s.regions, filledRegion(b, d, regionWords))
	}
	s.regions = append(s.regions, filledRegion(b, d, 1<<22))
	s.activations()
	s.sums()
	s.norms()
	s.dropouts()
	s.chains()
	for _, x := range s.runs { // all code is compiled by now, or will be soon
		b.Run(x.name, func(b *testing.B) { x.bench(b, d) })
	}
}

// filledRegion returns memory whose values are normally distributed, as float32 and as bfloat16.
func filledRegion(b *testing.B, d *cuda.Device, words int) exec.Memory {
	mem := check.Get(d.Alloc(words))(b)
	b.Cleanup(func() { _ = mem.Free() })
	part := func(from, n int) exec.Operand {
		spec := exec.Spec{Shape: tensor.Shape{n}}
		return exec.Operand{Spec: spec, Buffer: mem.Buffer(from, spec)}
	}
	r := rand.New(rand.NewPCG(1, 2))
	first := part(0, min(words, 1<<20))
	for i := range first.Buffer.Host().F32 {
		high, low := math.Float32bits(float32(r.NormFloat64())), math.Float32bits(float32(r.NormFloat64()))
		first.Buffer.Host().F32[i] = math.Float32frombits(high&0xffff0000 | low>>16)
	}
	check.OK(b, first.Buffer.Store())
	for n := min(words, 1<<20); n < words; n *= 2 {
		m := min(n, words-n)
		check.OK(b, cuda.Copy(part(n, m), part(0, m)))
	}
	return mem
}

// at returns an operand in a region, the last of which is for vectors.
func (s *deviceBench) at(region int, t exec.Type, shape ...int) exec.Operand {
	spec := exec.Spec{Shape: tensor.Shape(shape), Type: t}
	return exec.Operand{Spec: spec, Buffer: s.regions[region].Buffer(0, spec)}
}

func (s *deviceBench) vector(n int) exec.Operand { return s.at(len(s.regions)-1, exec.Float32, n) }

// add prepares a step.
func (s *deviceBench) add(name string, bytes int, steps cuda.Steps, c *exec.DeviceCall) {
	c.BF16 = true
	step := check.Get(steps[cuda.Name].Prepare(c))(s.b)
	s.runs = append(s.runs, deviceRun{name, bytes, step})
}

func (x deviceRun) bench(b *testing.B, d *cuda.Device) {
	times := 20
	if x.bytes > 0 && x.bytes < 64<<20 {
		times = 200
	}
	check.OK(b, x.step())
	runtime.LockOSThread() // recording is a matter of one thread
	defer runtime.UnlockOSThread()
	r := check.Get(d.Record(func() error {
		for range times {
			if err := x.step(); err != nil {
				return err
			}
		}
		return nil
	}))(b)
	defer r.Close()
	run := func() {
		check.OK(b, r.Launch())
		check.OK(b, d.Sync())
	}
	run()
	for b.Loop() {
		run()
	}
	each := b.Elapsed().Seconds() / float64(b.N*times)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(each*1e6, "us/step")
	if x.bytes > 0 {
		b.ReportMetric(float64(x.bytes)/each/1e9, "GB/s")
	}
}

// Types of operands, and the bytes of their values.
const (
	f32  = exec.Float32
	bf16 = exec.BFloat16
)

func bytesOf(t exec.Type) int { return map[exec.Type]int{f32: 4, bf16: 2}[t] }

func typeName(t exec.Type) string { return map[exec.Type]string{f32: "fp32", bf16: "bf16"}[t] }

func (s *deviceBench) activations() {
	for _, m := range []struct {
		rows, cols int
		t          exec.Type
	}{{65792, 3072, bf16}, {8224, 3072, bf16}, {7680, 3072, bf16}, {2080, 1536, bf16}, {65792, 3072, f32}, {2080, 1536, f32}} {
		name, n := fmt.Sprintf("%dx%d/%s", m.rows, m.cols, typeName(m.t)), m.rows*m.cols*bytesOf(m.t)
		x, y := s.at(0, m.t, m.rows, m.cols), s.at(1, m.t, m.rows, m.cols)
		s.add("gelu/"+name, 2*n, Activation(vector.ByGELU), &exec.DeviceCall{In: []exec.Operand{x}, Out: y})
		s.add("gelu_dx/"+name, 3*n, ActivationGrad(vector.ByGELU), &exec.DeviceCall{In: []exec.Operand{x, y}, Out: y})
	}
	// Other blocks than those of activationGrid.
	x, y := s.at(0, bf16, 65792, 3072), s.at(1, bf16, 65792, 3072)
	for _, threads := range []int{128, 512} {
		s.add(fmt.Sprintf("gelu/65792x3072/bf16/threads=%d", threads), 4*65792*3072, cuda.On(func(c *exec.DeviceCall) cuda.Step {
			k := cuda.Load(c, activationSource, "activate", activationMacros(vector.ByGELU, &y, cuda.Type("X", x))...)
			n := 65792 * 3072
			return func() { k.Enqueue(cuda.Grid{X: cuda.Blocks(n, 16*threads), Threads: threads}, y, x, int64(n)) }
		}), &exec.DeviceCall{In: []exec.Operand{x}, Out: y})
	}
}

func (s *deviceBench) sums() {
	for _, m := range []struct {
		rows, cols int
		t          exec.Type
	}{
		{65792, 2304, bf16}, {65792, 3072, bf16}, {65792, 768, f32}, {65792, 768, bf16}, {23040, 768, f32}, {7680, 3072, bf16},
		{8224, 768, f32}, {8224, 384, f32}, {2080, 384, f32}, {2080, 1536, bf16}, {960, 384, f32}, {960, 1536, bf16},
	} {
		x, out := s.at(0, m.t, m.rows, m.cols), s.at(1, f32, m.cols)
		name, c := fmt.Sprintf("sums/%dx%d/%s", m.rows, m.cols, typeName(m.t)), &exec.DeviceCall{In: []exec.Operand{x}, Out: out}
		add := func(name string, l columnSumsLayout) {
			s.add(name, m.rows*m.cols*bytesOf(m.t),
				cuda.On(func(c *exec.DeviceCall) cuda.Step { return l.prepare(c, 0, m.cols) }), c)
		}
		l := layoutOfSums(x)
		add(name, l)
		for _, lanes := range []int{8, 32} {
			for units := 1; units*256/lanes*8 < m.rows && units <= 16; units *= 2 {
				other := columnSumsLayout{l.wide, lanes, units * 256 / lanes * 8}
				if other != l && (m.rows > 60000 || m.rows < 3000) {
					add(fmt.Sprintf("%s/lanes=%d/each=%d", name, lanes, other.each), other)
				}
			}
		}
	}
}

func (s *deviceBench) norms() {
	for _, m := range []struct{ rows, cols int }{{65792, 768}, {8224, 768}, {7680, 768}, {2080, 384}} {
		n, size := m.rows*m.cols, fmt.Sprintf("%dx%d", m.rows, m.cols)
		gamma, beta, mean, rstd := s.vector(m.cols), s.vector(m.cols), s.vector(m.rows), s.vector(m.rows)
		x, norm := s.at(0, f32, m.rows, m.cols), s.at(3, bf16, m.rows, m.cols)
		aux := []exec.Operand{norm, mean, rstd}
		for _, t := range []exec.Type{f32, bf16} {
			h, sum := s.at(1, t, m.rows, m.cols), s.at(2, f32, m.rows, m.cols)
			for _, dropout := range []bool{false, true} {
				c := &exec.DeviceCall{In: []exec.Operand{h, x, gamma, beta, s.at(4, exec.Int32, n/32)}, Out: sum, Aux: aux}
				s.add(fmt.Sprintf("add_norm/%s/branch=%s/dropout=%t", size, typeName(t), dropout), n*(10+bytesOf(t)),
					AddNorm(1e-5, .9, dropout), c)
			}
			dx := &exec.DeviceCall{In: []exec.Operand{x, gamma, h, sum}, InAux: [][]exec.Operand{aux, nil, nil, nil}, Out: sum,
				Aux: []exec.Operand{s.at(3, f32, m.cols), s.at(1, f32, m.cols)}}
			on := LayerNormGrad{X: 0, Gamma: 1, DY: 2, More: 3, Of: 0, Mean: addNormMean, Rstd: addNormRstd}
			s.add(fmt.Sprintf("add_norm_dx/%s/dy=%s", size, typeName(t)), n*(12+bytesOf(t)), on.Step(), dx)
		}
		s.add("norm_again/"+size, n*6, Normalised(),
			&exec.DeviceCall{In: []exec.Operand{x, gamma, beta}, InAux: [][]exec.Operand{aux, nil, nil}, Out: norm})
		s.add("layer_norm/"+size, n*6, LayerNorm(1e-5),
			&exec.DeviceCall{In: []exec.Operand{x, gamma, beta}, Out: norm, Aux: []exec.Operand{mean, rstd}})
		s.add("rounding/"+size, n*6, cuda.On(func(c *exec.DeviceCall) cuda.Step {
			f := cuda.NewFactors(c, cuda.Part{In: 0, Rows: m.rows, Cols: m.cols, Type: bf16})
			return func() { f.Place() }
		}), &exec.DeviceCall{In: []exec.Operand{x}, Out: norm})
	}
	// Other numbers of blocks that share a multiprocessor's registers than RESIDENT.
	const rows, cols = 65792, 768
	l, _ := layoutOf(cols, layerNormThreads)
	x, h, sum, norm := s.at(0, f32, rows, cols), s.at(1, f32, rows, cols), s.at(2, f32, rows, cols), s.at(3, bf16, rows, cols)
	for _, resident := range []int{3, 6, 8} {
		name := fmt.Sprintf("add_norm/65792x768/branch=fp32/resident=%d", resident)
		s.add(name, rows*cols*14, cuda.On(func(c *exec.DeviceCall) cuda.Step {
			k := cuda.Load(c, layerNormSource, "add_norm", l.macros(cuda.Type("Y", norm), cuda.Type("H", h), cuda.Is("ADD", true),
				cuda.Is("DROPOUT", false), cuda.Value("RESIDENT", resident))...)
			return func() {
				k.Enqueue(l.grid(rows), sum, norm, h, x, nil, s.vector(cols), s.vector(cols), s.vector(rows), s.vector(rows), rows,
					cols, float32(1e-5), float32(1))
			}
		}), &exec.DeviceCall{Out: sum})
	}
}

func (s *deviceBench) dropouts() {
	key := s.at(4, exec.Int32, 2)
	for _, m := range []struct{ rows, cols int }{{23040 * 12, 257}, {23040, 768}, {7680 * 12, 30}, {960, 384}} {
		words := m.rows * ((m.cols + 31) / 32)
		s.add(fmt.Sprintf("dropout_bits/%dx%d", m.rows, m.cols), 4*words, DropoutBits(3, (m.cols+31)/32, .9),
			&exec.DeviceCall{In: []exec.Operand{key}, Out: s.at(0, exec.Int32, words)})
	}
	for _, t := range []exec.Type{f32, bf16} {
		const rows, cols = 23040, 768
		s.add("dropout/23040x768/"+typeName(t), rows*cols*(4+bytesOf(t)), Dropout(.9), &exec.DeviceCall{
			In: []exec.Operand{s.at(0, f32, rows, cols), s.at(1, exec.Int32, rows*cols/32)}, Out: s.at(2, t, rows, cols)})
	}
}

// chains has a feed-forward layer whose GELU goes over the memory in either direction between the two products.
func (s *deviceBench) chains() {
	for _, m := range []struct{ rows, cols int }{{65792, 768}, {8224, 768}} {
		x, w1, w2 := s.at(0, bf16, m.rows, m.cols), s.at(4, bf16, 4*m.cols, m.cols), s.at(4, bf16, m.cols, 4*m.cols)
		before, after, y := s.at(1, bf16, m.rows, 4*m.cols), s.at(2, bf16, m.rows, 4*m.cols), s.at(3, bf16, m.rows, m.cols)
		for _, backwards := range []bool{false, true} {
			name := fmt.Sprintf("feed_forward/%dx%d/backwards=%t", m.rows, m.cols, backwards)
			s.add(name, 0, cuda.On(func(c *exec.DeviceCall) cuda.Step {
				d := cuda.Of(c)
				first, err := Linear(0, false, 0)[cuda.Name].Prepare(c)
				d.Note(err)
				second, err := Linear(0, false, 0)[cuda.Name].Prepare(&exec.DeviceCall{In: []exec.Operand{after, w2}, Out: y, BF16: true})
				d.Note(err)
				k := cuda.Load(c, activationSource, "activate",
					activationMacros(vector.ByGELU, &after, cuda.Type("X", before), cuda.Is("BACKWARDS", backwards))...)
				n := m.rows * m.cols * 4
				return func() {
					d.Note(first())
					k.Enqueue(activationGrid(n), after, before, int64(n))
					d.Note(second())
				}
			}), &exec.DeviceCall{In: []exec.Operand{x, w1}, Out: before})
		}
	}
}
