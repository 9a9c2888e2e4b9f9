package optest

import (
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/internal/kernel"
)

// Benchmark times runs of c with its gradients on e, the first one apart, and reports the
// microseconds of a run of every kind of op that matters and the rate of its matrix products.
func Benchmark(b *testing.B, e *kernel.Engine, c Case) {
	b.Helper()
	m, _ := c.Compile(b, e)
	check.OK(b, m.RunAll())
	m.ResetProfile()
	for b.Loop() {
		check.OK(b, m.RunAll())
	}
	report(b, m.Profile())
}

// report names the time of every kind of op that takes 5 % of the whole or more, those of
// this package left out.
func report(b *testing.B, p exec.Profile) {
	b.Helper()
	for _, k := range p.Kinds {
		if k.Time*20 < p.Time || strings.HasPrefix(k.Kind, "test ") {
			continue
		}
		name := strings.ReplaceAll(k.Kind, " ", "-")
		b.ReportMetric(k.Time.Seconds()*1e6/float64(p.Runs), "us/"+name)
		if k.FLOPs > 0 {
			b.ReportMetric(float64(k.FLOPs)/k.Time.Seconds()/1e9, "GFLOPs/"+name)
		}
	}
}
