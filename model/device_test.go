package model

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/compute/feed"
	"github.com/geoalign/geoalign/compute/parallel"
	"github.com/geoalign/geoalign/compute/parallel/paralleltest"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/cuda"
	"github.com/geoalign/geoalign/internal/cuda/cudatest"
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel"
)

// testDevice is what newEngine, build and newViewsSystem give their engines, nil: nothing.
var testDevice kernel.Device

// giveDevice gives an engine testDevice for the time of a test.
func giveDevice(t testing.TB, e *kernel.Engine) {
	if testDevice != nil {
		e.SetDevice(testDevice)
		t.Cleanup(func() { e.SetDevice(nil) })
	}
}

// TestCUDAGoldens makes the golden steps on the CUDA device: against PyTorch, by the same comparisons as on the host.
func TestCUDAGoldens(t *testing.T) {
	testDevice = cudatest.Open(t)
	defer func() { testDevice = nil }()
	for _, x := range []struct {
		name string
		test func(t *testing.T)
	}{
		{"step", TestGoldenStep}, {"clip", TestGoldenCLIP}, {"heads", TestGoldenHeads}, {"tcl", TestTCLGoldenStep}, {"geodesic", TestGeodesicGoldenStep},
		{"towers", TestGoldenTowers}, {"geoalign", TestGeoalignGoldenStep}, {"sentences", TestGoldenSentences}, {"vipmm", TestGoldenViPMM},
		{"resnet", TestGoldenResNet}, {"classes", TestGoldenClasses}, {"hosts", TestGoldenHosts}, {"entailment", TestGoldenEntailment},
		{"pictures", TestGoldenPictures}, {"geometric pool", TestGoldenGeometricPool}, {"decoder", TestGoldenDecoder},
	} {
		t.Run(x.name, x.test)
	}
}

// noneOnHost wants all ops of a machine on testDevice, if there is one.
func noneOnHost(t testing.TB, m *exec.Machine) {
	t.Helper()
	if on := m.OnHost(); len(on) > 0 {
		t.Errorf("on the host: %v", on)
	}
}

// deviceSystems are configurations whose steps TestCUDASteps makes.
func deviceSystems() map[string]config.Config {
	albef := tinyConfig()
	dropout := tinyConfig()
	dropout.Model.Text.Dropout, dropout.Objective.ITC.Positives = 0.1, "id"
	clip := tinyConfig()
	clip.Model.Text.FusionLayers, clip.Momentum.Enabled, clip.Queue.Size = 0, false, 0
	clip.Objective.Distill.Alpha, clip.Objective.ITC.Weight, clip.Objective.ITC.InBatchWeight = 0, 0, 1
	clip.Objective.ITM.Weight, clip.Objective.MLM.Weight = 0, 0
	geodesic := tinyConfig()
	geodesic.Objective.ITC.Score = "geodesic"
	geodesic.Objective.Geodesic.Layers = []int{2, 4}
	geodesic.Objective.Geodesic.Neighbours = 2
	return map[string]config.Config{"albef": albef, "dropout": dropout, "clip": clip, "geodesic": geodesic}
}

// deviceModel builds a model on the host, or on a device.
func deviceModel(t *testing.T, cfg config.Config, precision string, device kernel.Device) *Trainer {
	t.Helper()
	e := engineOf(t, kernel.Options{Backend: "builtin", Threads: 2, Precision: precision})
	if device != nil {
		e.SetDevice(device)
		t.Cleanup(func() { e.SetDevice(nil) })
	}
	cfg.Compute.Precision = precision
	m := modelOn(t, cfg, e)
	t.Cleanup(func() { m.Close() })
	return m
}

// sameParams wants what of returns for each parameter of got to be within tolerance of that of want, relative to its
// largest element.
func sameParams(t *testing.T, what string, got, want *Trainer, tolerance float64, of func(p *Params, q *Param) []float32) {
	t.Helper()
	for _, q := range want.params.List() {
		x := of(want.params, q)
		if x == nil {
			continue
		}
		p, _ := got.params.Get(q.Name)
		if rel, err := relative(of(got.params, p), x); err != nil || !(rel <= tolerance) {
			t.Errorf("%s of %s differs by %.1e of its largest element (%v)", what, q.Name, rel, err)
		}
	}
}

// twinOf is the twin of a parameter, nil without one.
func twinOf(p *Params, q *Param) []float32 {
	if !q.Momentum {
		return nil
	}
	return p.MomentumValue(q)
}

// TestCUDASteps makes updates of several systems on the host and on the device, by plain gradient descent: losses,
// gradients, values, twins and queue are the same to rounding. Rounding grows from one update to the next.
func TestCUDASteps(t *testing.T) {
	d := cudatest.Open(t)
	for name, cfg := range deviceSystems() {
		t.Run(name, func(t *testing.T) {
			host, device := deviceModel(t, cfg, "fp32", nil), deviceModel(t, cfg, "fp32", d)
			for i := range 4 {
				tolerance := 1e-4
				if i > 0 {
					tolerance = 1e-3
				}
				b := randomBatch(host, uint64(i))
				c := Control{Step: i, Alpha: 0.4, UseQueue: i > 1}
				want, got := step(t, host, b, c), step(t, device, b, c)
				if d := math.Abs(got.Loss - want.Loss); !(d <= tolerance*math.Abs(want.Loss)) {
					t.Errorf("step %d: loss %v, on the host %v", i, got.Loss, want.Loss)
				}
				at := fmt.Sprintf("step %d: ", i)
				sameParams(t, at+"the gradient", device, host, tolerance, (*Params).Grad)
				sameParams(t, at+"the value", device, host, tolerance, (*Params).Value)
				sameParams(t, at+"the twin", device, host, tolerance, twinOf)
				if q := host.queue; q != nil && (!slices.Equal(q.IDs, device.queue.IDs) || q.Pointer != device.queue.Pointer) {
					t.Errorf("step %d: the queue of the device has other entries", i)
				}
			}
			if on := device.step.machine.OnHost(); len(on) > 0 {
				t.Logf("on the host: %v", on)
			}
		})
	}
}

// allSystems has TestCUDASystems compare all of rankCases, whose kernels take minutes to compile where they are not
// cached.
var allSystems = flag.Bool("cuda-systems", false, "compare every system in TestCUDASystems and TestCUDARanks")

// TestCUDASystems makes a step of a few systems, or of all systems and losses: loss and gradients are the host's to
// rounding, and no op runs on the host.
func TestCUDASystems(t *testing.T) {
	d := cudatest.Open(t)
	few := []string{"clip, network", "heads, plans", "matching, memory", "matching, vectors"}
	for name, x := range rankCases() {
		if !*allSystems && !slices.Contains(few, name) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			cfg := rankConfig(t, x)
			build := func(d kernel.Device) *Trainer {
				o := rankOptions(t, x)
				if d != nil {
					o.Engine.SetDevice(d)
					t.Cleanup(func() { o.Engine.SetDevice(nil) })
				}
				m := newTrainer(t, cfg, o)
				t.Cleanup(func() { m.Close() })
				return m
			}
			host, device := build(nil), build(d)
			s := &feed.Step{Batch: randomRows(host.Columns(), cfg.Train.BatchSize, 1), Update: 1, Counter: 1, PerEpoch: 10}
			var losses []float64
			for _, m := range []*Trainer{host, device} {
				check.OK(t, m.Before(1))
				r := stepOf(t, m, s)
				losses = append(losses, r.Loss)
			}
			if on := device.step.machine.OnHost(); len(on) > 0 {
				t.Errorf("on the host run %v", on)
			}
			far := distance(device.params.Grads(), host.params.Grads())
			if e := math.Abs(losses[1] - losses[0]); !(e <= 1e-4*math.Abs(losses[0])) || !(far <= 1e-3) {
				t.Errorf("loss %v, on the host %v; gradients differ by %.1e of their length", losses[1], losses[0], far)
			}
		})
	}
}

// TestCUDARanks: two ranks and four, each with a device of its own, have the losses, gradients and queues of one process
// on a device, with what they exchange within the computation: features, negatives, tokens, statistics of norms.
func TestCUDARanks(t *testing.T) {
	cudatest.Open(t)
	few := []string{"albef", "albef, four ranks", "clip", "moco, shuffled", "matching, memory", "classes, resnet", "heads, plans"}
	for name, x := range rankCases() {
		if !*allSystems && !slices.Contains(few, name) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			build := func(g parallel.Group) *Trainer {
				o := rankOptions(t, x)
				d := check.Get(cuda.Open(cuda.Options{}))(t)
				t.Cleanup(func() { check.OK(t, d.Close()) })
				o.Engine.SetDevice(d)
				t.Cleanup(func() { o.Engine.SetDevice(nil) })
				if o.Group = g; g != nil {
					o.Group = &recorder{Group: g}
				}
				m := newTrainer(t, rankConfig(t, x), o)
				t.Cleanup(func() { check.OK(t, m.Close()) })
				return m
			}
			whole := build(nil)
			var ranks []*Trainer
			for _, g := range paralleltest.Ranks(max(2, x.ranks)) {
				ranks = append(ranks, build(g))
			}
			for step := range 3 { // the second is recorded and the third replayed
				agree(t, x, whole, ranks, step, looser[name])
			}
		})
	}
}

// hostAndDevice builds a model twice, on the host and on the device.
func hostAndDevice(t *testing.T, build func() *Trainer) (host, device *Trainer) {
	t.Helper()
	d := cudatest.Open(t)
	host = build()
	testDevice = d
	defer func() { testDevice = nil }()
	return host, build()
}

// TestCUDAViews makes updates of the systems of images alone on the host and on the device, with residual networks
// whose batch norms see groups of the batch, and the queue in use: nothing runs on the host. At 32 pixels the smallest
// group has 32 places: statistics of few values make much of rounding.
func TestCUDAViews(t *testing.T) {
	for _, x := range []struct{ system, set string }{
		{"moco", "model.image.resnet.shuffle_groups=2"}, {"moco", "model.image.resnet.teacher_norm=running"}, {"swav", "objective.swav.epsilon=0.5"},
	} {
		t.Run(x.system+" "+x.set, func(t *testing.T) {
			host, device := hostAndDevice(t, func() *Trainer {
				return newViewsSystem(t, tinyViews(t, x.system, append(slices.Clone(narrow), x.set, "model.image.size=32")...))
			})
			for i := range 4 {
				want, got := descend(t, host, i, i > 1), descend(t, device, i, i > 1)
				if d := math.Abs(got.Loss - want.Loss); !(d <= 1e-3*math.Abs(want.Loss)) {
					t.Errorf("step %d: loss %v, on the host %v", i, got.Loss, want.Loss)
				}
				sameParams(t, fmt.Sprintf("step %d: the value", i), device, host, 1e-3, (*Params).Value)
			}
			noneOnHost(t, device.step.machine)
		})
	}
}

// TestCUDAGera makes a step of deep heads with dropout and the geometric term over pools, in chunks, on the host and on
// the device.
func TestCUDAGera(t *testing.T) {
	for _, scale := range []string{"unit", "relative"} {
		t.Run(scale, func(t *testing.T) {
			cfg := deepGera()
			cfg.Objective.Geometric.Scale = scale
			var b Batch
			host, device := hostAndDevice(t, func() (m *Trainer) {
				m, b = buildGera(t, cfg, newEngine(t))
				return m
			})
			for i := range 2 {
				c := Control{Step: i}
				want, got := step(t, host, b, c), step(t, device, b, c)
				if d := math.Abs(got.Loss - want.Loss); !(d <= 1e-4*math.Abs(want.Loss)) {
					t.Errorf("step %d: loss %v, on the host %v", i, got.Loss, want.Loss)
				}
				sameParams(t, fmt.Sprintf("step %d: the gradient", i), device, host, 1e-3, (*Params).Grad)
			}
			noneOnHost(t, device.step.machine)
		})
	}
}

// distance is |a - b| / |b|, 0 where b is nothing but rounding.
func distance(a, b []float32) float64 {
	var d, n float64
	for i, v := range b {
		e := float64(a[i]) - float64(v)
		d, n = d+e*e, n+float64(v)*float64(v)
	}
	if n < 1e-14 {
		return 0
	}
	return math.Sqrt(d / n)
}

// TestCUDAHalfSteps makes a step in bfloat16: gradients on the device are about as near to those in float32 as the
// host's in bfloat16 are, which makes small products in float32 all the same.
func TestCUDAHalfSteps(t *testing.T) {
	d := cudatest.Open(t)
	for name, cfg := range deviceSystems() {
		t.Run(name, func(t *testing.T) {
			exact, half, device := deviceModel(t, cfg, "fp32", nil), deviceModel(t, cfg, "bf16", nil), deviceModel(t, cfg, "bf16", d)
			b, c := randomBatch(exact, 1), Control{Alpha: 0.4, UseQueue: true}
			want, near, got := step(t, exact, b, c), step(t, half, b, c), step(t, device, b, c)
			if e := math.Abs(got.Loss - want.Loss); !(e <= 2*math.Abs(near.Loss-want.Loss)+0.02*math.Abs(want.Loss)) {
				t.Errorf("loss %v, on the host %v, in float32 %v", got.Loss, near.Loss, want.Loss)
			}
			for _, q := range exact.params.List() {
				p, _ := device.params.Get(q.Name)
				h, _ := half.params.Get(q.Name)
				mine := distance(device.params.Grad(p), exact.params.Grad(q))
				hosts := distance(half.params.Grad(h), exact.params.Grad(q))
				if !(mine <= 2*hosts+0.05) {
					t.Errorf("the gradient of %s is %.1e of its length from that in float32, on the host %.1e", q.Name, mine, hosts)
				}
			}
		})
	}
}

// TestCUDAStage: steps whose images went to the device beside the step before have the bits of steps without that, also
// where the batch that was on its way is not the one that comes.
func TestCUDAStage(t *testing.T) {
	d := cudatest.Open(t)
	cfg := deviceSystems()["clip"]
	cfg.Model.Image.Size, cfg.Model.Image.Depth, cfg.Model.Text.Layers, cfg.Train.BatchSize = 96, 1, 1, 12 // more than a megabyte of images
	plain, staged := deviceModel(t, cfg, "fp32", d), deviceModel(t, cfg, "fp32", d)
	var feeds [4]*feed.Step
	for i := range feeds {
		feeds[i] = plain.feed(randomBatch(plain, uint64(i)), Control{Step: i})
	}
	for i, f := range feeds {
		switch {
		case i == 1:
			staged.Stage(feeds[3].Batch) // and then another one comes
		case i < 3:
			staged.Stage(feeds[i+1].Batch)
		}
		want := stepOf(t, plain, f)
		loss := want.Loss
		got := stepOf(t, staged, f)
		if got.Loss != loss {
			t.Errorf("step %d: loss %v, without staging %v", i, got.Loss, loss)
		}
		if !sameBits(staged.params.Grads(), plain.params.Grads()) {
			t.Errorf("step %d: the gradients have other bits", i)
		}
	}
	if err := staged.Unstage(); err != nil {
		t.Error(err)
	}
}

// TestCUDAPlans: steps in bfloat16 whose activations are computed again, whose results are looked at one by one, or
// between which the model encodes and a step is given up, have the bits of plain ones.
func TestCUDAPlans(t *testing.T) {
	d := cudatest.Open(t)
	cfg := deviceSystems()["dropout"]
	again, looked := cfg, cfg
	again.Compute.Recompute, looked.Compute.CheckNaN = true, true
	plain, disturbed := deviceModel(t, cfg, "bf16", d), deviceModel(t, cfg, "bf16", d)
	others := map[string]*Trainer{"computed again": deviceModel(t, again, "bf16", d), "looked at": deviceModel(t, looked, "bf16", d), "disturbed": disturbed}
	for i := range 3 {
		b, c := randomBatch(plain, uint64(i)), Control{Step: i, Alpha: 0.4, UseQueue: i > 0}
		check.Get2(disturbed.EncodeImages(b.Images[:(1+i%2)*len(b.Images)/4], 1+i%2))(t)
		other := disturbed.feed(randomBatch(plain, 77), c)
		if _, err := disturbed.Step(&countdown{t.Context(), 0}, other); !errors.Is(err, context.Canceled) {
			t.Fatalf("a step that is given up: %v", err)
		}
		want := step(t, plain, b, c).Loss
		for name, m := range others {
			if got := step(t, m, b, c).Loss; got != want {
				t.Errorf("%s, step %d: loss %v, want %v", name, i, got, want)
			}
			if !sameBits(m.params.Grads(), plain.params.Grads()) || !sameBits(m.params.Values(), plain.params.Values()) {
				t.Errorf("%s, step %d: gradients or values have other bits", name, i)
			}
		}
	}
}
