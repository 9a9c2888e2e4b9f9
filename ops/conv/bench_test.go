package conv

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/geoalign/geoalign/internal/kernel"
	"github.com/geoalign/geoalign/internal/kernel/kerneltest"
	"github.com/geoalign/geoalign/ops/internal/optest"
	"github.com/geoalign/geoalign/ops/nn"
	"gorgonia.org/gorgonia"
)

// BenchmarkResNet50 times ResNet-50 (He et al. 2016, with the stride in the 3x3 convolutions) over 32 images of 224 pixels
// down to the mean of the places: with the gradients of all parameters and by given statistics without any.
func BenchmarkResNet50(b *testing.B) {
	for _, train := range []bool{true, false} {
		for _, threads := range []int{1, 2} {
			b.Run(fmt.Sprintf("train=%t/threads=%d", train, threads), func(b *testing.B) {
				e, err := kernel.New(kernel.Options{Threads: threads})
				if err != nil {
					b.Fatal(err)
				}
				defer e.Close()
				if threads > 1 {
					optest.Benchmark(b, e, resNet50(train, 32))
					return
				}
				// By the time of the processor, which other work on the machine changes little.
				m, _ := resNet50(train, 32).Compile(b, e)
				runtime.LockOSThread()
				defer runtime.UnlockOSThread()
				best := time.Hour
				for b.Loop() {
					start := kerneltest.Clock()
					if err := m.RunAll(); err != nil {
						b.Fatal(err)
					}
					best = min(best, kerneltest.Clock()-start)
				}
				b.ReportMetric(best.Seconds()*1e3, "ms/best")
				b.ReportMetric(float64(m.Memory())/(1<<20), "MiB")
			})
		}
	}
}

// resNet50 is the network with random parameters.
func resNet50(train bool, batch int) optest.Case {
	r := rand.New(rand.NewPCG(1, 74))
	c := optest.Case{Inputs: []optest.Input{optest.F32s(r, "images", batch, 3, 224, 224)}}
	of := func(scale float32, shape ...int) int {
		in := optest.F32s(r, fmt.Sprintf("p%d", len(c.Inputs)), shape...)
		for i := range in.Floats() {
			in.Floats()[i] *= scale
		}
		c.Inputs = append(c.Inputs, in)
		return len(c.Inputs) - 1
	}
	ones := func(n int) int {
		i := of(0, n)
		for j := range n {
			c.Inputs[i].Floats()[j] = 1
		}
		return i
	}
	type layer struct {
		g                        Geometry
		w, gamma, beta, mean, va int
	}
	newLayer := func(side, in, out, kernel, stride int) layer {
		l := layer{g: Geometry{side, side, kernel, stride, kernel / 2}, w: of(.1, out, in, kernel, kernel), gamma: ones(out), beta: of(.1, out)}
		if train {
			c.WRT = append(c.WRT, l.w, l.gamma, l.beta)
		} else {
			l.mean, l.va = of(.1, out), ones(out)
		}
		return l
	}
	type block struct {
		layers [3]layer
		down   *layer
	}
	stem := newLayer(224, 3, 64, 7, 2)
	var blocks []block
	side, in := 56, 64
	for stage, n := range []int{3, 4, 6, 3} {
		width := 64 << stage
		for k := range n {
			stride := 1
			if k == 0 && stage > 0 {
				stride = 2
			}
			b := block{layers: [3]layer{newLayer(side, in, width, 1, 1), newLayer(side, width, width, 3, stride), newLayer(side/stride, width, 4*width, 1, 1)}}
			if k == 0 {
				down := newLayer(side, in, 4*width, 1, stride)
				b.down = &down
			}
			blocks = append(blocks, b)
			side, in = side/stride, 4*width
		}
	}
	c.Build = func(ns gorgonia.Nodes) *gorgonia.Node {
		run := func(l layer, x, add *gorgonia.Node, relu bool) *gorgonia.Node {
			a := nn.BatchNormArgs{X: x, Gamma: ns[l.gamma], Beta: ns[l.beta], Eps: 1e-5, Add: add, ReLU: relu}
			if !train {
				a.Mean, a.Variance = ns[l.mean], ns[l.va]
				return Folded(ns[l.w], l.g, a)
			}
			a.X = Conv(x, ns[l.w], l.g)
			y, _, _ := nn.BatchNorm(a)
			return y
		}
		x := run(stem, FromPlanes(ns[0]), nil, true)
		x = MaxPool(x, Geometry{112, 112, 3, 2, 1})
		for _, b := range blocks {
			y := run(b.layers[1], run(b.layers[0], x, nil, true), nil, true)
			if b.down != nil {
				x = run(*b.down, x, nil, false)
			}
			x = run(b.layers[2], y, x, true)
		}
		return nn.MeanTokens(x, nil, 49, 0)
	}
	return c
}
