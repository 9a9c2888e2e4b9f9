package model

import (
	"slices"
	"testing"
	"time"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/objectives"
)

// BenchmarkHosts reports the step time of what TCL and MAFA add to ALBEF, as ratios of
// the best steps of one process that takes turns: the model of configs/geomm.toml.
func BenchmarkHosts(b *testing.B) {
	base := check.Get(config.Load("../configs/geomm.toml", []string{"objective.itc.score=cosine"}))(b)
	judge := build(b, base, "", 2)
	views, intra, both, mafa := base, base, base, base
	views.Data.Views = 2
	intra.Objective.TCL.Intra = true
	both.Objective.TCL = objectives.TCL{Intra: true, Local: true, Grid: 3}
	mafa.Objective.MAFA = objectives.MAFA{Connector: "somewhere", PositiveAbove: .8, NegativeBelow: .5, Uniform: .1}
	hosts := []struct {
		name string
		m    *Trainer
		best time.Duration
	}{
		{name: "albef", m: build(b, base, "", 2)}, {name: "views", m: build(b, views, "", 2)}, {name: "intra", m: build(b, intra, "", 2)},
		{name: "tcl", m: build(b, both, "", 2)}, {name: "mafa", m: connectedTo(b, mafa, judge)},
	}
	for _, h := range hosts {
		h.m.queue.Filled = h.m.queue.size
	}
	b.ResetTimer()
	for range b.N {
		for i := range hosts {
			h := &hosts[i]
			x := randomBatch(h.m, 1)
			x.Views = slices.Clone(x.Images)
			begin := time.Now()
			forward(b, h.m, x, Control{UseQueue: true, Alpha: .2, Uniform: .1})
			if d := time.Since(begin); h.best == 0 || d < h.best {
				h.best = d
			}
		}
	}
	for _, h := range hosts {
		b.ReportMetric(float64(h.best)/float64(hosts[0].best), h.name+"/albef")
		b.ReportMetric(float64(h.m.Machine().Memory())/(1<<20), h.name+"-MB")
	}
}

func connectedTo(b *testing.B, cfg config.Config, judge *Trainer) *Trainer {
	return check.Get(newConnected(cfg, judge.engine, connectorOf(judge)))(b)
}
