package contrast

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/ops/internal/optest"
)

// BenchmarkCrossEntropy runs a masked language model's loss over a BERT
// vocabulary and a contrastive one over batch and queue, both distilled.
func BenchmarkCrossEntropy(b *testing.B) {
	r := rand.New(rand.NewPCG(9, 2))
	for _, c := range []struct {
		name       string
		rows, cols int
		ids        bool
	}{{"mlm", 212, 30522, false}, {"itc", 32, 4128, false}, {"ids", 32, 4128, true}} {
		b.Run(c.name, func(b *testing.B) {
			l := &lossCase{rows: c.rows, cols: c.cols, alpha: .4}
			l.logits = optest.F32s(r, "", c.rows, c.cols).Data.([]float32)
			l.teacher = optest.F32s(r, "", c.rows, c.cols).Data.([]float32)
			for i := range c.rows {
				l.labels = append(l.labels, int32(i))
			}
			if c.ids {
				l.rowIDs, l.labels = l.labels, nil
				for range c.cols {
					l.colID = append(l.colID, int32(r.IntN(1000)))
				}
			}
			optest.Benchmark(b, optest.Engine, optest.Case{Inputs: l.inputs(), WRT: []int{0}, Build: l.build})
		})
	}
}

// BenchmarkLossSizes reports the best time of each op and the gigabytes a second of
// what it must read and write: the logits and, with a teacher, its own.
func BenchmarkLossSizes(b *testing.B) {
	r := rand.New(rand.NewPCG(6, 6))
	for _, s := range crossEntropySizes {
		for _, teacher := range []bool{false, true} {
			l := &lossCase{rows: s.rows, cols: s.cols, logits: optest.F32s(r, "", s.rows, s.cols).Data.([]float32)}
			size := 4 * float64(s.rows) * float64(s.cols)
			moved := map[string]float64{"cross entropy": size, "cross entropy dx": 2 * size}
			if teacher {
				l.teacher, l.alpha = optest.F32s(r, "", s.rows, s.cols).Data.([]float32), 0.4
				moved["cross entropy"] += size
				moved["cross entropy dx"] += size
			}
			if s.ids {
				l.rowIDs, l.colID = optest.RandomInts(r, s.rows, 30000), optest.RandomInts(r, s.cols, 30000)
				copy(l.colID, l.rowIDs)
			} else {
				l.labels = optest.RandomInts(r, s.rows, s.cols)
			}
			b.Run(fmt.Sprintf("%s/teacher=%t", s.name, teacher), func(b *testing.B) {
				m, _ := optest.Case{Inputs: l.inputs(), WRT: []int{0}, Build: l.build}.Compile(b, optest.Engine)
				best := map[string]time.Duration{}
				for b.Loop() {
					m.ResetProfile()
					check.OK(b, m.RunAll())
					for _, k := range m.Profile().Kinds {
						if best[k.Kind] == 0 || k.Time < best[k.Kind] {
							best[k.Kind] = k.Time
						}
					}
				}
				for kind, bytes := range moved {
					name := strings.ReplaceAll(strings.TrimPrefix(kind, "cross "), " ", "-")
					b.ReportMetric(float64(best[kind].Microseconds()), name+"-us")
					b.ReportMetric(bytes/best[kind].Seconds()/1e9, name+"-GB/s")
				}
			})
		}
	}
}
