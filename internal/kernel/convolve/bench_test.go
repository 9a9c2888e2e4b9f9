package convolve_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/geoalign/geoalign/internal/kernel"
	"github.com/geoalign/geoalign/internal/kernel/convolve"
	"github.com/geoalign/geoalign/internal/kernel/gemm"
	"github.com/geoalign/geoalign/internal/kernel/kerneltest"
)

// resnet50 are the 53 convolutions of ResNet-50 (He et al. 2016, with the stride in the 3x3 convolutions) over 224
// pixels, each kind with how many there are of it.
var resnet50 = []struct {
	count, size, in, out, kernel, stride int
}{
	{1, 224, 3, 64, 7, 2},
	{1, 56, 64, 64, 1, 1}, {3, 56, 64, 64, 3, 1}, {4, 56, 64, 256, 1, 1}, {2, 56, 256, 64, 1, 1},
	{1, 56, 256, 128, 1, 1}, {1, 56, 128, 128, 3, 2}, {1, 56, 256, 512, 1, 2},
	{3, 28, 128, 128, 3, 1}, {4, 28, 128, 512, 1, 1}, {3, 28, 512, 128, 1, 1},
	{1, 28, 512, 256, 1, 1}, {1, 28, 256, 256, 3, 2}, {1, 28, 512, 1024, 1, 2},
	{5, 14, 256, 256, 3, 1}, {6, 14, 256, 1024, 1, 1}, {5, 14, 1024, 256, 1, 1},
	{1, 14, 1024, 512, 1, 1}, {1, 14, 512, 512, 3, 2}, {1, 14, 1024, 2048, 1, 2},
	{2, 7, 512, 512, 3, 1}, {3, 7, 512, 2048, 1, 1}, {2, 7, 2048, 512, 1, 1},
}

// BenchmarkResNet50 prints the least time of each convolution of ResNet-50 with 32 images and of its two gradients, one
// line each, and reports their sums over the network, without the gradient of the images, which nobody asks for. On one thread time is that of the processor, else of the day.
// bench/peer/conv.py measures PyTorch's in the same way.
func BenchmarkResNet50(b *testing.B) {
	const batch = 32
	for _, threads := range []int{1, 2} {
		b.Run(fmt.Sprintf("threads=%d", threads), func(b *testing.B) {
			e, err := kernel.New(kernel.Options{Threads: threads})
			if err != nil {
				b.Fatal(err)
			}
			defer e.Close()
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			clock := kerneltest.Clock
			if threads != 1 {
				start := time.Now()
				clock = func() time.Duration { return time.Since(start) }
			}
			var sums [3]time.Duration
			for b.Loop() {
				sums = [3]time.Duration{}
				for _, k := range resnet50 {
					s := convolve.Sizes{Batch: batch, In: k.in, Out: k.out, Height: k.size, Width: k.size, Kernel: k.kernel, Stride: k.stride, Pad: k.kernel / 2}
					times := measure(e, s, clock)
					fmt.Printf("%d x %v", k.count, s)
					for i, t := range times {
						fmt.Printf("  %6.1f ms %4.0f GFLOP/s", t.Seconds()*1e3, float64(s.FLOPs())/t.Seconds()/1e9)
						if i != 1 || k.in != 3 {
							sums[i] += time.Duration(k.count) * t
						}
					}
					fmt.Println()
				}
			}
			for i, name := range []string{"forward", "data", "weights"} {
				b.ReportMetric(sums[i].Seconds()*1e3, "ms/"+name)
			}
		})
	}
}

// measure returns the least times of the three passes of three runs each.
func measure(e *kernel.Engine, s convolve.Sizes, clock func() time.Duration) [3]time.Duration {
	c := e.NewConvolution(s)
	x, w := gemm.Values(s.Batch*s.Height*s.Width*s.In, 1), gemm.Values(s.Out*s.In*s.Kernel*s.Kernel, 2)
	y, scratch := make([]float32, s.Batch*s.OutHeight()*s.OutWidth()*s.Out), make([]float32, s.Scratch(e.Threads()))
	dx, dw := make([]float32, len(x)), make([]float32, len(w))
	var least [3]time.Duration
	for i, run := range []func(){
		func() { c.Forward(y, x, w, convolve.After{}, scratch) },
		func() { c.Data(dx, y, w, false, scratch) },
		func() { c.Weights(dw, y, x, false, scratch) },
	} {
		run()
		least[i] = time.Hour
		for range 3 {
			t := clock()
			run()
			least[i] = min(least[i], clock()-t)
		}
	}
	return least
}
