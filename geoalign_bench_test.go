package geoalign

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// BenchmarkTexts encodes the lines of $GEOALIGN_REAL_TEXTS by the model $GEOALIGN_REAL_MODEL in each precision: texts per second
// together, and the median time of one text alone. make real sets both and measures sentence-transformers and onnxruntime beside.
func BenchmarkTexts(b *testing.B) {
	model, path := os.Getenv("GEOALIGN_REAL_MODEL"), os.Getenv("GEOALIGN_REAL_TEXTS")
	if model == "" || path == "" {
		b.Skip("GEOALIGN_REAL_MODEL and GEOALIGN_REAL_TEXTS name a model and a file of texts")
	}
	text, err := os.ReadFile(path)
	if err != nil {
		b.Fatal(err)
	}
	texts := strings.Split(strings.TrimSpace(string(text)), "\n")
	for _, precision := range []string{"fp32", "bf16", "int8"} {
		b.Run(precision, func(b *testing.B) { benchmarkTexts(b, model, precision, texts) })
	}
}

func benchmarkTexts(b *testing.B, model, precision string, texts []string) {
	enc, err := OpenEncoder(model, Set("compute.precision="+precision))
	if err != nil {
		b.Fatal(err)
	}
	defer enc.Close()
	encode := func(list []string) {
		if _, err := enc.Texts(b.Context(), list); err != nil {
			b.Fatal(err)
		}
	}
	encode(texts) // computations are compiled
	b.Run("together", func(b *testing.B) {
		for b.Loop() {
			encode(texts)
		}
		b.ReportMetric(float64(len(texts)*b.N)/b.Elapsed().Seconds(), "texts/s")
	})
	b.Run("alone", func(b *testing.B) {
		var each []time.Duration
		for b.Loop() {
			for _, x := range texts[:min(len(texts), 100)] {
				begin := time.Now()
				encode([]string{x})
				each = append(each, time.Since(begin))
			}
		}
		slices.Sort(each)
		b.ReportMetric(float64(each[len(each)/2].Microseconds())/1000, "ms/text")
	})
}
