package model

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/internal/cuda/cudatest"
	"github.com/geoalign/geoalign/internal/kernel"
)

// testDevice is what newEngine gives its engines, nil: nothing.
var testDevice kernel.Device

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

// TestCUDASteps makes some updates of several systems on the host and on the device, by plain gradient descent: losses, gradients,
// twins and queue are the same to rounding, and so is what is saved.
func TestCUDASteps(t *testing.T) {
	d := cudatest.Open(t)
	for name, cfg := range deviceSystems() {
		for _, precision := range []string{"fp32", "bf16"} {
			t.Run(name+"/"+precision, func(t *testing.T) {
				cfg.Compute.Precision = precision
				tolerance := 1e-4
				if precision == "bf16" {
					tolerance = 0.1 // of the largest element, after updates by gradients that are rounded
				}
				make := func(device kernel.Device) *Pairs {
					e, err := kernel.New(kernel.Options{Backend: "builtin", Threads: 2, Precision: precision})
					if err != nil {
						t.Fatal(err)
					}
					t.Cleanup(e.Close)
					if device != nil {
						e.SetDevice(device)
						t.Cleanup(func() { e.SetDevice(nil) })
					}
					m, err := newModel(cfg, e)
					if err != nil {
						t.Fatal(err)
					}
					t.Cleanup(func() { m.Close() })
					return m
				}
				host, device := make(nil), make(d)
				for i := range 4 {
					b := randomBatch(host, uint64(i))
					c := Control{Step: i, Alpha: 0.4, UseQueue: i > 1}
					want, got := step(t, host, b, c), step(t, device, b, c)
					if d := math.Abs(got.Loss - want.Loss); !(d <= tolerance*math.Abs(want.Loss)) {
						t.Errorf("step %d: loss %v, on the host %v", i, got.Loss, want.Loss)
					}
					for _, q := range host.params.List() {
						p, _ := device.params.Get(q.Name)
						compare := func(what string, got, want []float32) {
							rel, err := relative(got, want)
							if err != nil || !(rel <= tolerance) {
								t.Errorf("step %d: %s of %s differs by %.1e of its largest element (%v)", i, what, q.Name, rel, err)
							}
						}
						if precision == "fp32" {
							compare("gradient", device.params.Grad(p), host.params.Grad(q))
						}
						compare("value", device.params.Value(p), host.params.Value(q))
						if q.Twin {
							compare("twin", device.params.MomentumValue(p), host.params.MomentumValue(q))
						}
					}
					if q := host.queue; q != nil && (!slices.Equal(q.IDs, device.queue.IDs) || q.Pointer != device.queue.Pointer) {
						t.Errorf("step %d: the queue of the device has other entries", i)
					}
				}
				if on := device.step.machine.OnHost(); len(on) > 0 {
					t.Logf("on the host: %v", fmt.Sprint(on))
				}
			})
		}
	}
}
