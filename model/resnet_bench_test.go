package model

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel"
	"github.com/geoalign/geoalign/internal/kernel/kerneltest"
	"github.com/geoalign/geoalign/internal/rng"
	"github.com/geoalign/geoalign/ops/arith"
	"gorgonia.org/gorgonia"
)

// BenchmarkResNet passes 32 images of 224 pixels through a ResNet-50 of random weights: in training forward and
// backward, with the gradient of every weight and the statistics of the batch, and in inference. On one thread time is
// that of the processor, else of the day. bench/peer/resnet.py measures torchvision's in turns with it.
//
//	go test ./model -run '^$' -bench 'ResNet/train/threads=2' -benchtime 3x
func BenchmarkResNet(b *testing.B) {
	const rows = 32
	for _, mode := range []string{"train", "encode"} {
		for _, threads := range []int{1, 2} {
			b.Run(fmt.Sprintf("%s/threads=%d", mode, threads), func(b *testing.B) {
				e := engineOf(b, kernel.Options{Threads: threads})
				clock := kerneltest.Clock
				if threads != 1 {
					start := time.Now()
					clock = func() time.Duration { return time.Since(start) }
				}
				m := resNetMachine(b, e, rows, mode == "train")
				runtime.LockOSThread()
				defer runtime.UnlockOSThread()
				best := time.Hour
				for b.Loop() {
					start := clock()
					check.OK(b, m.RunAll())
					best = min(best, clock()-start)
				}
				b.ReportMetric(best.Seconds()*1e3, "ms/best")
				b.ReportMetric(rows/best.Seconds(), "pictures/s")
				b.ReportMetric(float64(m.Memory())/1e6, "MB")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

// resNetMachine compiles a ResNet-50 over so many images of 224 pixels.
func resNetMachine(b *testing.B, e *kernel.Engine, rows int, train bool) *exec.Machine {
	tower := encoders.ResNetTower{ResNet: encoders.ResNet{Size: 224, Depth: 50, Width: 64}}
	n := newNet(NewParams(1, false))
	in := n.towerInputs(tower, rows, nil)
	var norms norms
	c := &encoders.Context{}
	if train {
		c.Statistics = norms.add
	}
	q := tower.Encode(c, encoders.NewScope(n.params).In("image"), in, encoders.Want{Classes: true})
	outputs := append(gorgonia.Nodes{q.Classes}, norms.nodes()...)
	store := n.params.params
	check.OK(b, store.seal())
	if train {
		loss := arith.Sum(arith.Square(q.Classes))
		var wrt gorgonia.Nodes
		for _, p := range store.List() {
			if !p.Frozen {
				wrt = append(wrt, n.params.nodes[p.Name])
			}
		}
		grads := check.Get(gorgonia.Grad(loss, wrt...))(b)
		outputs = append(append(outputs, loss), grads...)
	}
	m := check.Get(exec.Compile(n.g, exec.Config{Engine: e, Outputs: outputs}))(b)
	check.OK(b, n.bindParams(m))
	pixels := make([]float32, rows*3*224*224)
	r := rng.New(1, "pixels", 0)
	for i := range pixels {
		pixels[i] = float32(r.NormFloat64())
	}
	check.OK(b, m.SetInput(in[batch.Images], pixels))
	return m
}
