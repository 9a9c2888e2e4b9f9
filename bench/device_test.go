package bench

import (
	"testing"
	"time"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/cuda/cudatest"
)

// onDevice has a test measure on the CUDA device, with a peak that the emulator computes too.
func onDevice(t *testing.T) config.Config {
	t.Helper()
	cudatest.Use(t)
	before := peakSide
	peakSide = 128
	t.Cleanup(func() { peakSide = before })
	return check.Get(config.Load(tiny, []string{"compute.device=cuda"}))(t)
}

// TestCUDAMeasure: a step on the device has all its ops there, each with a time, and memory.
func TestCUDAMeasure(t *testing.T) {
	r := check.Get(Measure(t.Context(), onDevice(t), Options{Steps: 2, Warmup: 2, Peak: time.Millisecond}))(t)
	if r.Device == nil || len(r.Device.OnHost) > 0 || !(r.Device.MemoryMB > 0) || !(r.Peak > 0) || !(r.StepMS > 0) {
		t.Fatalf("device %+v, peak %v, step %v ms", r.Device, r.Peak, r.StepMS)
	}
	if m, n, k := PeakSize(r.Device); m != peakSide || n != peakSide || k != peakSide {
		t.Errorf("the peak is of %d x %d x %d", m, n, k)
	}
	for _, o := range r.Ops {
		if !(o.MS > 0) {
			t.Errorf("%s takes %v ms", o.Name, o.MS)
		}
	}
}

// TestCUDAMeasureInference: ops of an encoding have times on a device too, though it runs them as one.
func TestCUDAMeasureInference(t *testing.T) {
	r, err := MeasureInference(t.Context(), onDevice(t), InferenceOptions{Batches: []int{3}, Peak: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if r.Device == nil || !(r.Device.MemoryMB > 0) || len(r.Encodings) == 0 {
		t.Fatalf("device %+v, %d encodings", r.Device, len(r.Encodings))
	}
	for _, e := range r.Encodings {
		if !(e.GFLOPRow > 0) || !(e.PerSecond > 0) {
			t.Errorf("%+v", e)
		}
		for _, o := range e.Ops {
			if !(o.MS > 0) {
				t.Errorf("%s, %s takes %v ms", e.Side, o.Name, o.MS)
			}
		}
	}
}
