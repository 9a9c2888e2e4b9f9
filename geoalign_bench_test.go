package geoalign

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// BenchmarkTexts encodes the lines of $GEOALIGN_REAL_TEXTS by the model $GEOALIGN_REAL_MODEL in each precision: texts per second
// together, and the time of one text alone, both by medians; a least time far below the median tells of a machine that is busy
// otherwise. make real sets both and measures sentence-transformers and onnxruntime beside.
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
	encode := func(list []string) time.Duration {
		begin := time.Now()
		if _, err := enc.Texts(b.Context(), list); err != nil {
			b.Fatal(err)
		}
		return time.Since(begin)
	}
	median := func(each []time.Duration) float64 {
		slices.Sort(each)
		return each[len(each)/2].Seconds()
	}
	encode(texts) // computations are compiled
	b.Run("together", func(b *testing.B) {
		var each []time.Duration
		for b.Loop() {
			each = append(each, encode(texts))
		}
		b.ReportMetric(float64(len(texts))/median(each), "texts/s")
	})
	b.Run("alone", func(b *testing.B) {
		var each []time.Duration
		for b.Loop() {
			for _, x := range texts[:min(len(texts), 100)] {
				each = append(each, encode([]string{x}))
			}
		}
		b.ReportMetric(1000*median(each), "ms/text")
		b.ReportMetric(1000*each[0].Seconds(), "ms/text-least")
	})
}
