package bench

import (
	"context"
	"time"

	"github.com/geoalign/geoalign/compute"
	"github.com/geoalign/geoalign/internal/cuda"
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/memory"
)

// DeviceResult is what bench reports of a device beside the host.
type DeviceResult struct {
	Name     string  `json:"name"`
	MemoryMB float64 `json:"memory_mb"` // the most of the device's memory that the program held
	// ops without a step for the device, which wait for copies: nodes by kind
	OnHost map[string]int `json:"on_host,omitempty"`
}

// deviceOf returns the GPU that an engine's graphs run on, nil: the host.
func deviceOf(e *compute.Engine) *cuda.Device {
	d, _ := e.Device().(*cuda.Device)
	return d
}

// peakSide is the size of the square matrices whose product is the peak of a device.
var peakSide = cuda.Measured

// measureDevicePeak is measurePeak of a GPU, by a product that fills it; 0 where that fails.
func measureDevicePeak(gpu *cuda.Device, bf16 bool, d time.Duration) float64 {
	t, n := exec.Float32, peakSide
	if bf16 {
		t = exec.BFloat16
	}
	gflops, err := gpu.MeasureProduct(n, n, n, t, d)
	gpu.ResetMost()
	if err != nil {
		return 0
	}
	return gflops
}

// profiled is the number of steps by which the times of ops are measured on a device.
const profiled = 3

// profileOps makes steps op by op, with a mark of the device after each: in those that are measured a device runs all
// of them as one, of which nobody knows the parts. The times of ops are of these steps, and add up to a little more
// than a step.
func (b *bencher) profileOps(ctx context.Context) error {
	m, spent := b.work.Machine(), b.spent
	m.StepByStep(true)
	defer m.StepByStep(false)
	m.ResetProfile()
	for i := range profiled {
		if err := b.step(ctx, "ops", i, profiled); err != nil {
			return err
		}
	}
	b.spent = spent
	return nil
}

// onDevice enters what is of the device.
func (r *Result) onDevice(gpu *cuda.Device, m *compute.Machine) {
	_, most := gpu.Allocated()
	r.Device = &DeviceResult{Name: gpu.Info().String(), MemoryMB: memory.MB(most), OnHost: m.OnHost()}
}

// PeakSize returns the size of the product whose speed is the peak, on a device or on the host (nil).
func PeakSize(d *DeviceResult) (m, n, k int) {
	if d != nil {
		return peakSide, peakSide, peakSide
	}
	return PeakM, PeakN, PeakK
}
