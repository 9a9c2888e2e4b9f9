package model

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/kernel"
	"github.com/geoalign/geoalign/objectives"
	"github.com/geoalign/geoalign/objectives/scoring"
)

// factor is a part of the configuration with its settings.
type factor struct {
	name     string
	settings []setting
}

type setting struct {
	name  string
	apply func(c *config.Config)
}

// choices makes a factor of values of one key.
func choices[T any](name string, set func(c *config.Config, v T), values ...T) factor {
	f := factor{name: name}
	for _, v := range values {
		f.settings = append(f.settings, setting{fmt.Sprint(v), func(c *config.Config) { set(c, v) }})
	}
	return f
}

// scoreFactor lists scores: single kinds and sums.
func scoreFactor(queue bool) factor {
	kinds, sums := kinds[:5:5], []string{"inner gssf", "angle cosine", "inner l2 gssf"}
	if queue {
		kinds, sums = append(kinds, "geodesic"), append(sums, "gssf geodesic", "l2 geodesic", "inner l2 gssf geodesic")
	}
	f := choices("score", func(c *config.Config, v string) { c.Objective.ITC.Score = v }, kinds...)
	for _, kinds := range sums {
		f.settings = append(f.settings, setting{kinds, func(c *config.Config) {
			for i, k := range strings.Fields(kinds) {
				c.Objective.ITC.Scores = append(c.Objective.ITC.Scores, objectives.ScoreTerm{Kind: scoring.Kind(k), Weight: 1 / float64(1+i)})
			}
		}})
	}
	return f
}

// pairFactors are the factors that every system of images and texts has.
func pairFactors(queue bool) []factor {
	return []factor{
		choices("topology", func(c *config.Config, v string) { c.Model.Head.Topology = v }, "sphere", "Ob(4,2)", "Multi(4,2)", "Multi(2,4)", "euclid"),
		choices("token_blocks", func(c *config.Config, v int) { c.Model.Head.TokenBlocks = v }, 0, 1),
		scoreFactor(queue),
		choices("form", func(c *config.Config, v string) { c.Objective.GSSF.Form = v }, "cosine", "diag", "block_diag", "dense"),
		choices("blocks", func(c *config.Config, v int) { c.Objective.GSSF.Blocks = v }, 0, 1, 4),
		choices("log temperature", func(c *config.Config, v bool) { c.Objective.ITC.LogTemperature = v }, false, true),
		choices("learned temperature", func(c *config.Config, v bool) { c.Objective.ITC.LearnTemperature = v }, true, false),
		choices("positives", func(c *config.Config, v string) { c.Objective.ITC.Positives = v }, "pair", "id"),
		weight("siglip", func(c *config.Config) *float64 { return &c.Objective.SigLIP.Weight }),
	}
}

// weight makes a factor of a loss that is off or on.
func weight(name string, at func(c *config.Config) *float64) factor {
	return choices(name, func(c *config.Config, v float64) { *at(c) = v }, 0, 1)
}

// kinds are the single scores.
var kinds = []string{"cosine", "inner", "l2", "angle", "gssf", "geodesic"}

// teacherFactors are those of every system of pairs with a teacher.
func teacherFactors() []factor {
	return []factor{
		choices("target", func(c *config.Config, v string) { c.Objective.ITC.TargetScore = v }, append([]string{"same"}, kinds...)...),
		choices("gradient", func(c *config.Config, v string) { c.Objective.Geodesic.Gradient = v }, "strict", "same_cluster", "straight_through", "same_cluster+straight_through+soft_entry"),
		choices("geodesic temperature", func(c *config.Config, v float64) { c.Objective.Geodesic.Temperature = v }, 0, 0.1),
		weight("weigh", func(c *config.Config) *float64 { return &c.Objective.Geodesic.Weigh }),
		choices("intra", func(c *config.Config, v bool) { c.Objective.TCL.Intra = v }, false, true),
		weight("itc", func(c *config.Config) *float64 { return &c.Objective.ITC.Weight }),
		weight("in batch", func(c *config.Config) *float64 { return &c.Objective.ITC.InBatchWeight }),
		choices("distill", func(c *config.Config, v float64) { c.Objective.Distill.Alpha = v }, 0, 0.4),
		choices("queue", func(c *config.Config, v int) { c.Queue.Size = min(c.Queue.Size, v) }, 16, 0),
	}
}

// styles makes a factor of styles of a tower, with a pool or without.
func styles(name string, set func(c *config.Config, style, pool string), values ...string) factor {
	return choices(name, func(c *config.Config, v string) {
		style, pool, _ := strings.Cut(v, " ")
		set(c, style, pool)
	}, values...)
}

// towerFactors are those of systems whose towers have tokens and whose heads are linear, for
// styles of texts.
func towerFactors(texts ...string) []factor {
	return []factor{
		weight("geometric", func(c *config.Config) *float64 { return &c.Objective.Geometric.Weight }),
		choices("modalities", func(c *config.Config, v string) { c.Objective.Geometric.Modalities = v }, "both", "image", "text"),
		choices("sampling", func(c *config.Config, v string) { c.Objective.Geometric.Sampling = v }, "biased", "uniform", "closest"),
		choices("search", func(c *config.Config, v string) { c.Objective.Geometric.Search = v }, "exact", "clusters"),
		choices("kernel", func(c *config.Config, v string) { c.Objective.Geometric.Kernel = v }, "heat", "linear", "squared", "inverse"),
		choices("scale", func(c *config.Config, v string) { c.Objective.Geometric.Scale = v }, "unit", "relative", "none"),
		choices("local", func(c *config.Config, v bool) { c.Objective.TCL.Local = v }, false, true),
		styles("images", func(c *config.Config, style, pool string) { c.Model.Image.Style, c.Model.Image.Pool = style, pool }, "", "vit mean", "dinov2", "siglip"),
		styles("texts", func(c *config.Config, style, pool string) { c.Model.Text.Style, c.Model.Text.Pool = style, pool }, texts...),
		choices("recompute", func(c *config.Config, v bool) { c.Compute.Recompute = v }, false, true),
	}
}

// fusionFactors are those of a system with fusion layers.
func fusionFactors() []factor {
	return []factor{
		choices("negatives", func(c *config.Config, v string) { c.Objective.ITM.Negatives = v }, append([]string{"score"}, kinds...)...),
		weight("itm", func(c *config.Config) *float64 { return &c.Objective.ITM.Weight }),
		weight("mlm", func(c *config.Config) *float64 { return &c.Objective.MLM.Weight }),
	}
}

// headsFactors are those of heads over stored features.
func headsFactors() []factor {
	var list []factor
	for _, f := range pairFactors(true) {
		if f.name != "topology" && f.name != "token_blocks" {
			list = append(list, f)
		}
	}
	return append(list,
		choices("activation", func(c *config.Config, v string) { c.Model.Heads.Activation = v }, "gelu", "relu"),
		choices("dropout", func(c *config.Config, v float64) { c.Model.Heads.Dropout = v }, 0, 0.2),
		choices("dropout of the teacher", func(c *config.Config, v bool) { c.Momentum.Dropout = v }, true, false))
}

// combinedConfig is the model that the combinations change.
func combinedConfig() config.Config {
	c := tinyConfig()
	c.Model.Image.Depth, c.Model.Text.Layers, c.Model.Text.FusionLayers = 2, 2, 1
	c.Model.Text.Positions = 16
	c.Queue.Size, c.Objective.ITC.TemperatureMin = 16, 0.01
	c.Objective.Geodesic.Layers, c.Objective.Geodesic.PeriodSteps = []int{2, 4}, 2
	c.Objective.Geometric.Neighbours, c.Objective.Geometric.Pool = 3, 2
	c.Objective.TCL.Grid = 2
	return c
}

// TestEveryPairOfSettings draws configurations until every pair of settings that
// validation accepts together has been seen, and trains each for three steps: nothing may
// fail, and every number must be finite.
func TestEveryPairOfSettings(t *testing.T) {
	base := combinedConfig()
	for _, x := range []struct {
		name    string
		base    config.Config
		factors [][]factor
		least   int // pairs
	}{
		{"albef", base, [][]factor{pairFactors(true), teacherFactors(), towerFactors("", "roberta mean"), fusionFactors()}, 3500},
		{"clip", dualConfig(base), [][]factor{pairFactors(true), teacherFactors(), towerFactors("", "mpnet mean", "clip", "siglip")}, 2600},
		{"clip without a teacher", clipConfig(base), [][]factor{pairFactors(false)}, 200},
		{"heads", headsConfig(base), [][]factor{headsFactors(), teacherFactors()}, 1300},
	} {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()
			check.OK(t, x.base.Validate())
			base, factors := x.base, slices.Concat(x.factors...)
			runs, pairs := trainPairs(t, base, factors)
			t.Logf("%d configurations cover %d pairs of settings", runs, pairs)
			if pairs < x.least {
				t.Errorf("%d pairs of settings were trained, want %d", pairs, x.least)
			}
		})
	}
}

// TestComputedAgainInBF16: of combinations of settings with dropout, what is computed again has the bits of what is
// kept where results are stored in bfloat16 too.
func TestComputedAgainInBF16(t *testing.T) {
	e := engineOf(t, kernel.Options{Threads: 2, Precision: "bf16"})
	base := combinedConfig()
	for name, base := range map[string]config.Config{"albef": base, "clip": dualConfig(base)} {
		factors := slices.Concat(pairFactors(true), teacherFactors(), towerFactors("", "roberta mean"))
		if name == "albef" {
			factors = append(factors, fusionFactors()...)
		}
		r := rand.New(rand.NewPCG(6, 6))
		for n := 0; n < 25; {
			cfg := base
			for _, f := range factors {
				f.settings[r.IntN(len(f.settings))].apply(&cfg)
			}
			cfg.Model.Text.Dropout, cfg.Compute.Recompute = 0.2, true
			if cfg.Validate() != nil {
				continue
			}
			n++
			again, err := threeSteps(cfg, e)
			if err != nil {
				t.Fatalf("%s %d: %v", name, n, err)
			}
			cfg.Compute.Recompute = false
			if kept, err := threeSteps(cfg, e); err != nil || kept != again {
				t.Errorf("%s %d: other bits than what is kept (%v): %+v", name, n, err, cfg)
			}
		}
	}
}

// trainPairs trains configurations until no more of them adds a pair of settings.
func trainPairs(t *testing.T, base config.Config, factors []factor) (runs, pairs int) {
	r := rand.New(rand.NewPCG(5, 5))
	seen := map[[4]int]bool{}  // two factors with their settings
	alone := map[[2]int]bool{} // a factor with its setting
	e := newEngine(t)
	for idle := 0; idle < 4000; idle++ {
		cfg, picked := base, []int{}
		var names []string
		for _, f := range factors {
			k := r.IntN(len(f.settings))
			f.settings[k].apply(&cfg)
			picked, names = append(picked, k), append(names, f.name+" "+f.settings[k].name)
		}
		if !cover(seen, picked, false) || cfg.Validate() != nil { // validation takes longer
			continue
		}
		cover(seen, picked, true)
		runs, idle = runs+1, 0
		for i, k := range picked {
			alone[[2]int{i, k}] = true
		}
		bits, err := threeSteps(cfg, e)
		if err != nil {
			t.Fatalf("%v\n%s", err, strings.Join(names, "\n"))
		}
		if cfg.Compute.Recompute {
			cfg.Compute.Recompute = false
			if kept, err := threeSteps(cfg, e); err != nil || kept != bits {
				t.Fatalf("what is computed again has other bits than what is kept (%v)\n%s", err, strings.Join(names, "\n"))
			}
		}
	}
	for i, f := range factors {
		for k, s := range f.settings {
			if !alone[[2]int{i, k}] {
				t.Errorf("%s %s was never trained", f.name, s.name)
			}
		}
	}
	return runs, len(seen)
}

// cover says whether a pair of the settings picked is new, and marks them if asked to.
func cover(seen map[[4]int]bool, picked []int, mark bool) bool {
	fresh := false
	for i := range picked {
		for j := range i {
			p := [4]int{j, picked[j], i, picked[i]}
			fresh = fresh || !seen[p]
			if mark {
				seen[p] = true
			}
		}
	}
	return fresh
}

// threeSteps trains a configuration for three steps, with the queue full from the first
// on, so that graphs and neighbourhoods are there. bits is a checksum of losses and gradients.
func threeSteps(cfg config.Config, e *kernel.Engine) (bits uint64, err error) {
	m, err := newModel(cfg, e)
	if err != nil {
		return 0, err
	}
	sum := fnv.New64a()
	defer m.Close()
	fillQueue(m.queue)
	for i := range 3 {
		if err := m.Before(i); err != nil {
			return 0, err
		}
		b := randomBatch(m, uint64(i))
		res, err := m.Forward(b, Control{Step: i, Alpha: cfg.Objective.Distill.Alpha, UseQueue: true})
		if err != nil {
			return 0, err
		}
		if !finite(res.Loss) {
			return 0, fmt.Errorf("step %d: the loss is %v: %v", i, res.Loss, res.Parts)
		}
		sum.Write(binary.LittleEndian.AppendUint64(nil, math.Float64bits(res.Loss)))
		p := m.Params()
		for _, q := range p.List() {
			for k, g := range p.Grad(q) {
				sum.Write(binary.LittleEndian.AppendUint32(nil, math.Float32bits(g)))
				if !finite(float64(g)) {
					return 0, fmt.Errorf("step %d: a gradient of %s is %v", i, q.Name, g)
				}
				p.Value(q)[k] -= 0.01 * g
			}
		}
		m.UpdateMomentum(0.9)
		if err := m.After(); err != nil {
			return 0, err
		}
	}
	return sum.Sum64(), nil
}

// fillQueue fills what a queue keeps before the heads; its other rows are unit vectors
// already.
func fillQueue(q *Queue) {
	if q == nil {
		return
	}
	q.Filled = q.size
	r := rand.New(rand.NewPCG(2, 3))
	for _, ring := range [][]float32{q.ImageBackbone, q.TextBackbone} {
		for i := range ring {
			ring[i] = float32(r.NormFloat64())
		}
	}
}

// dualConfig makes a dual encoder of a configuration, with teacher and queue.
func dualConfig(c config.Config) config.Config {
	c.Model.System, c.Model.Text.FusionLayers = "clip", 0
	c.Objective.ITM.Weight, c.Objective.MLM.Weight = 0, 0
	c.Eval.RerankTop = 0
	return c
}

// headsConfig makes heads over stored features of a configuration, with teacher and queue.
func headsConfig(c config.Config) config.Config {
	c = dualConfig(c)
	c.Model.System, c.Model.Heads = "heads", encoders.FeatureHeads{InImage: 6, InText: 4, Layers: 1, Hidden: 10, Activation: "gelu"}
	return c
}

// clipConfig makes a dual encoder without a teacher.
func clipConfig(c config.Config) config.Config {
	c = dualConfig(c)
	c.Momentum.Enabled, c.Queue.Size = false, 0
	c.Objective.ITC.Weight, c.Objective.ITC.InBatchWeight = 0, 1
	c.Objective.Distill = objectives.Distill{}
	return c
}
