package recurrent

import (
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/kernel"
	"github.com/geoalign/geoalign/internal/kernel/gemm"
	"github.com/geoalign/geoalign/internal/kernel/kerneltest"
	"github.com/geoalign/geoalign/ops/arith"
	"github.com/geoalign/geoalign/ops/internal/optest"
	"gorgonia.org/gorgonia"
)

// captionLengths are 128 lengths as captions have them, 12 in the mean, 6 to 30, which
// bench/peer/gru.py has too.
func captionLengths() []int32 {
	lengths := make([]int32, 128)
	for i := range lengths {
		lengths[i] = int32(6 + 26*(37*i%128)*((53*i+29)%128)/16129)
	}
	lengths[0] = 30
	return lengths
}

// BenchmarkGRU runs the text side of image-text matching, forward and backward: 128 captions, words
// of 300 channels, states of 1,024 in both directions. It reports the rate of the products that
// the words take, and that of a large product measured in turns with it; of one thread by the
// time that the thread ran, which other work on the machine disturbs less.
// bench/peer/gru.py runs PyTorch's on the same lengths.
func BenchmarkGRU(b *testing.B) {
	const rows, l, in, h = 128, 30, 300, 1024
	r := rand.New(rand.NewPCG(41, 42))
	lengths := captionLengths()
	tokens := 0
	for _, n := range lengths {
		tokens += int(n)
	}
	inputs := []optest.Input{optest.F32s(r, "x", rows*l, in)}
	for _, d := range []string{"forward", "reverse"} {
		for _, x := range []optest.Input{optest.F32s(r, d+" weight_ih", 3*h, in), optest.F32s(r, d+" weight_hh", 3*h, h), optest.F32s(r, d+" bias_ih", 3*h), optest.F32s(r, d+" bias_hh", 3*h)} {
			for i := range x.Floats() {
				x.Floats()[i] /= 32
			}
			inputs = append(inputs, x)
		}
	}
	inputs = append(inputs, optest.I32s("lengths", lengths, rows))
	c := optest.Case{Inputs: inputs, WRT: []int{0, 1, 2, 3, 4, 5, 6, 7, 8}, Build: func(ns gorgonia.Nodes) *gorgonia.Node {
		a := Args{X: ns[0], Lengths: ns[9], WeightIH: ns[1], WeightHH: ns[2], BiasIH: ns[3], BiasHH: ns[4], Len: l}
		forward := GRU(a)
		a.WeightIH, a.WeightHH, a.BiasIH, a.BiasHH, a.Reverse = ns[5], ns[6], ns[7], ns[8], true
		return arith.Add(forward, GRU(a))
	}}
	flops := 2. * 3 * 6 * float64(tokens) * h * (in + h)
	for _, precision := range []string{"fp32", "bf16"} {
		for _, threads := range []int{1, 0} {
			name := precision + "/threads"
			if threads == 1 {
				name = precision + "/thread"
			}
			b.Run(name, func(b *testing.B) {
				e := check.Get(kernel.New(kernel.Options{Threads: threads, Precision: precision}))(b)
				defer e.Close()
				m, _ := c.Compile(b, e)
				clock := kerneltest.Clock
				if threads != 1 {
					start := time.Now()
					clock = func() time.Duration { return time.Since(start) }
				}
				best, peak := time.Hour, 0.
				runtime.LockOSThread()
				defer runtime.UnlockOSThread()
				p := &gemm.Product{M: 1536, N: 3072, K: 1024, Alpha: 1, BF16: e.BF16(), A: gemm.Matrix{F32: make([]float32, 1536*1024), LD: 1024},
					B: gemm.Matrix{F32: make([]float32, 1024*3072), LD: 3072}, C: make([]float32, 1536*3072), LDC: 3072}
				for b.Loop() {
					t := clock()
					check.OK(b, m.RunAll())
					best, t = min(best, clock()-t), clock()
					e.Multiply(p)
					peak = max(peak, 2*1536*3072*1024/(clock()-t).Seconds()/1e9)
				}
				b.ReportMetric(best.Seconds()*1e3, "ms/best")
				b.ReportMetric(flops/best.Seconds()/1e9, "GFLOP/s")
				b.ReportMetric(peak, "peak")
				b.ReportMetric(float64(m.Memory())/(1<<20), "MiB")
				for _, k := range m.Profile().Kinds {
					b.Logf("%-20s %6.1f ms", k.Kind, k.Time.Seconds()*1e3/float64(m.Profile().Runs))
				}
			})
		}
	}
}
