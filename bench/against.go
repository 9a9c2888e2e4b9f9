package bench

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/internal/median"
	"github.com/geoalign/geoalign/run/setup"
)

// Duel is a configuration measured against another one in turns: a step of the one, a
// step of the other. What slows the machine down for a while slows both.
type Duel struct {
	Config  string    `json:"config"`
	Against []string  `json:"against"` // the overrides that make the other configuration
	Engine  string    `json:"engine"`
	Steps   int       `json:"steps"`
	StepMS  float64   `json:"step_ms"`               // median of the one, rebuilds of graphs included
	OtherMS float64   `json:"other_step_ms"`         // of the other
	Pairs   []float64 `json:"ratios"`                // step times of each turn, one over other, rebuilds included
	Ratio   float64   `json:"ratio"`                 // their median
	Low     float64   `json:"ratio_lower_quartile"`  // of the ratios
	High    float64   `json:"ratio_higher_quartile"` // of the ratios
	// BestRatio compares the fastest step of each, which waited least for the machine.
	BestRatio float64    `json:"ratio_of_fastest"`
	Graphs    *GraphCost `json:"graph_rebuild,omitempty"`
	Other     *GraphCost `json:"other_graph_rebuild,omitempty"`
}

// Against measures cfg against other. Both run on one engine.
func Against(ctx context.Context, cfg, other config.Config, against []string, o Options) (d Duel, err error) {
	if cfg.Compute != other.Compute {
		return d, errors.New("--against: both configurations run on one engine: no compute key can differ, compare these with --vary")
	}
	engine, err := setup.Engine(cfg)
	if err != nil {
		return d, err
	}
	defer engine.Close()
	var sides [2]*bencher
	for i, c := range []config.Config{cfg, other} {
		b := &bencher{Options: o, cfg: c, engine: engine}
		if err := b.start(ctx); err != nil {
			return d, err
		}
		defer func() { err = errors.Join(err, b.end()) }()
		sides[i] = b
	}
	var times [2][]time.Duration
	for i := range o.Steps {
		for turn := range sides {
			k := (turn + i) % 2 // who comes first changes
			begin := time.Now()
			if err := sides[k].step(ctx, "measuring", o.Warmup+i, o.Warmup+o.Steps); err != nil {
				return d, err
			}
			times[k] = append(times[k], time.Since(begin))
		}
	}
	var share [2]float64 // of rebuilds in a step, ms
	for k, b := range sides {
		if b.graphs != nil {
			share[k] = b.graphs.StepMS()
		}
	}
	ms := func(k int, t time.Duration) float64 { return 1e3*t.Seconds() + share[k] }
	d = Duel{Config: cfg.Run.Name, Against: against, Engine: engine.Describe(), Steps: o.Steps,
		StepMS: ms(0, median.Of(times[0])), OtherMS: ms(1, median.Of(times[1])),
		BestRatio: ms(0, slices.Min(times[0])) / ms(1, slices.Min(times[1])),
		Graphs:    sides[0].graphs, Other: sides[1].graphs}
	for i := range o.Steps {
		d.Pairs = append(d.Pairs, ms(0, times[0][i])/ms(1, times[1][i]))
	}
	sorted := slices.Sorted(slices.Values(d.Pairs))
	n := len(sorted)
	d.Low, d.Ratio, d.High = sorted[n/4], median.Of(d.Pairs), sorted[n-1-n/4]
	return d, nil
}
