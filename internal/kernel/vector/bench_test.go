package vector

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/geoalign/geoalign/internal/kernel/cpu"
)

// BenchmarkVector reports elements a nanosecond on rows in the first-level cache.
func BenchmarkVector(b *testing.B) {
	defer cpu.SetLevel(cpu.Level())
	r := rand.New(rand.NewPCG(11, 12))
	for _, level := range []string{cpu.Plain, cpu.AVX2, cpu.AVX512} {
		cpu.SetLevel(level)
		if cpu.Level() != level {
			continue
		}
		for _, k := range vectorKernels {
			b.Run(fmt.Sprintf("%s/%s", k.name, level), func(b *testing.B) {
				s := make([][]float32, k.slices)
				for i := range s {
					s[i], _ = vectorSlice(r, 1024, false)
				}
				for b.Loop() {
					k.run(s)
				}
				b.ReportMetric(1024*float64(b.N)/float64(b.Elapsed().Nanoseconds()), "elements/ns")
			})
		}
	}
}

// BenchmarkVectorRows runs the kernels on the short rows that models have.
func BenchmarkVectorRows(b *testing.B) {
	defer cpu.SetLevel(cpu.Level())
	r := rand.New(rand.NewPCG(13, 14))
	for _, level := range []string{cpu.Plain, cpu.AVX2, cpu.AVX512} {
		cpu.SetLevel(level)
		if cpu.Level() != level {
			continue
		}
		for _, n := range []int{50, 197, 768} {
			const rows = 16
			x, _ := vectorSlice(r, rows*n, false)
			y, _ := vectorSlice(r, rows*n, false)
			g, _ := vectorSlice(r, n, false)
			h, _ := vectorSlice(r, n, false)
			for _, k := range []struct {
				name string
				run  func()
			}{
				{"Softmax", func() {
					for i := range rows {
						Softmax(y[i*n:(i+1)*n], x[i*n:(i+1)*n])
					}
				}},
				{"SoftmaxGradRow", func() {
					for i := range rows {
						SoftmaxGradRow(y[i*n:(i+1)*n], x[i*n:(i+1)*n], x[i*n:(i+1)*n])
					}
				}},
				{"LayerNorm", func() {
					for i := range rows {
						LayerNorm(y[i*n:(i+1)*n], x[i*n:(i+1)*n], g, h, 1e-5)
					}
				}},
				{"AddRows", func() { AddRows(y, g) }},
				{"SumRows", func() { SumRows(g, x) }},
			} {
				b.Run(fmt.Sprintf("%s/%d/%s", k.name, n, level), func(b *testing.B) {
					for b.Loop() {
						k.run()
					}
					b.ReportMetric(float64(rows*n)*float64(b.N)/float64(b.Elapsed().Nanoseconds()), "elements/ns")
				})
			}
		}
	}
}

// BenchmarkVectorMemory runs kernels on slices that no cache holds and reports
// what they read and write.
func BenchmarkVectorMemory(b *testing.B) {
	const n = 1 << 22
	s := make([][]float32, 4)
	for i := range s {
		s[i] = make([]float32, n)
		Fill(s[i], float32(i))
	}
	for _, k := range []struct {
		name   string
		arrays int64 // read plus written
		run    func()
	}{
		{"Add", 3, func() { Add(s[0], s[1], s[2]) }},
		{"EMA", 3, func() { EMA(s[0], s[1], 0.01) }},
		{"SumSq", 1, func() { SumSq(s[0]) }},
		{"GELU", 2, func() { GELU(s[0], s[1]) }},
		{"AdamW", 7, func() { AdamW(s[0], s[1], s[2], s[3], testAdamW) }},
	} {
		b.Run(k.name, func(b *testing.B) {
			b.SetBytes(4 * n * k.arrays)
			for b.Loop() {
				k.run()
			}
		})
	}
}
