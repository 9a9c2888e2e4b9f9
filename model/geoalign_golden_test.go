package model

import (
	"strings"
	"testing"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/objectives"
	"github.com/geoalign/geoalign/objectives/geodesic"
	"gorgonia.org/gorgonia"
)

// geoalignCase is a step of tools/goldens/geoalign.py.
type geoalignCase struct {
	positives       string
	filled, pointer int  // of the queue
	graphs          bool // whether there are graphs over a queue whose score is geodesic
	change          func(c *config.Config)
}

var geoalignCases = map[string]geoalignCase{
	"multi":   {positives: "pair", filled: 8, pointer: 6, graphs: true, change: geoalignFlagship},
	"early":   {positives: "pair", filled: 8, pointer: 6, change: geoalignFlagship},
	"oblique": {positives: "pair", filled: 7, pointer: 7, change: geoalignOblique},
	"euclid": {positives: "id", filled: 5, pointer: 5, change: func(c *config.Config) {
		c.Model.Head.Topology = "euclid"
		c.Objective.ITC.Score, c.Objective.ITC.TargetScore, c.Objective.ITM.Negatives = "l2", "inner", "l2"
	}},
	"tokenblocks": {positives: "pair", filled: 8, pointer: 2, change: func(c *config.Config) {
		c.Model.Head.Topology, c.Model.Head.TokenBlocks = "Multi(4,2)", 1
		c.Objective.ITC.Score, c.Objective.GSSF.Form = "gssf", "dense"
		geoalignGeometric(c, 0.5, "text", "squared", "none", "uniform")
	}},
	"paths": {positives: "id", filled: 8, pointer: 3, graphs: true, change: func(c *config.Config) {
		c.Model.Head.Topology = "Ob(4,2)"
		c.Objective.ITC.Score, c.Objective.ITM.Negatives = "geodesic", "geodesic"
		geoalignPaths(c, "same_cluster+soft_entry")
		c.Objective.Geodesic.DirectPositives = true
	}},
}

// geoalignFlagship is all of the combined objective at once.
func geoalignFlagship(c *config.Config) {
	c.Model.Head.Topology = "Multi(4,2)"
	c.Objective.ITC.Scores = objectives.Terms{{Kind: "gssf", Weight: 1}, {Kind: "geodesic", Weight: 0.5}}
	c.Objective.GSSF = objectives.GSSF{Form: "block_diag", Blocks: 2}
	geoalignPaths(c, "same_cluster+straight_through+soft_entry")
	geoalignGeometric(c, 50, "both", "heat", "unit", "biased")
}

func geoalignOblique(c *config.Config) {
	c.Model.Head.Topology = "Ob(4,2)"
	c.Objective.ITC.Scores = objectives.Terms{{Kind: "angle", Weight: 0.3}, {Kind: "gssf", Weight: 1}}
	c.Objective.GSSF.Form = "diag"
	c.Objective.ITC.LogTemperature, c.Objective.ITC.TemperatureMin = true, 0
	geoalignGeometric(c, 50, "image", "inverse", "relative", "closest")
}

func geoalignPaths(c *config.Config, gradient string) {
	g := &c.Objective.Geodesic
	g.Layers, g.Gradient, g.Entries, g.Softness, g.LimitPi = []int{5}, gradient, 3, 0.1, 4
}

func geoalignGeometric(c *config.Config, weight float64, modalities, kernel, scale, sampling string) {
	g := &c.Objective.Geometric
	g.Weight, g.Modalities, g.Kernel, g.Scale, g.Sampling = weight, modalities, kernel, scale, sampling
	g.Neighbours, g.Pool, g.Epsilon = 3, 2, 0.8
}

// geoalignStep is a case's model with the golden's weights, twins, queue and graphs, and
// its batch. What the file of the case does not hold is that of albef.py, base.
type geoalignStep struct {
	m *Trainer
	b Batch
	golden
	base golden
}

func loadGeoalign(t testing.TB, name string, change ...func(c *config.Config)) geoalignStep {
	k := geoalignCases[name]
	_, b, base := loadGolden(t, k.positives)
	cfg := tinyConfig()
	cfg.Objective.ITC.Positives = k.positives
	for _, f := range append([]func(c *config.Config){k.change}, change...) {
		f(&cfg)
	}
	m := build(t, cfg, "", 2)
	s := geoalignStep{m: m, b: b, golden: openGolden(t, "geoalign_"+name), base: base}
	for _, q := range m.params.List() {
		s.set(m.params.Value(q), "param/"+q.Name)
		if q.Momentum {
			s.set(m.params.MomentumValue(q), "momentum/"+q.Name)
		}
	}
	s.set(m.queue.Image, "image_queue")
	s.set(m.queue.Text, "text_queue")
	for _, r := range []ring{{name: "image_backbone", rows: m.queue.ImageBackbone}, {name: "text_backbone", rows: m.queue.TextBackbone}} {
		if r.rows != nil {
			s.set(r.rows, r.name)
		}
	}
	copy(m.queue.IDs, base.ints("input/queue_ids"))
	m.queue.Filled, m.queue.Pointer = k.filled, k.pointer
	if k.graphs {
		s.setGraphs()
	}
	return s
}

// set copies a value of the golden that has the size of dst.
func (s geoalignStep) set(dst []float32, name string) {
	s.t.Helper()
	from := s.base
	if s.has(name) {
		from = s.golden
	}
	from.set(dst, name)
}

func (s geoalignStep) setGraphs() {
	for name, x := range map[string]*geodesic.Graph{"image": s.m.graphs.Image, "text": s.m.graphs.Text} {
		s.set(x.Centres, name+"/centres")
		s.set(x.Paths, name+"/paths")
		s.set(x.Reach, name+"/reach")
		copy(x.Owner, s.ints(name+"/owner"))
		x.Used = 4
	}
	s.m.graphs.Begun = 0
}

// run runs the step with the numbers that the golden drew.
func (s geoalignStep) run(alpha float64) {
	s.t.Helper()
	check.Get(s.m.load(s.b, Control{Alpha: alpha, UseQueue: true}))(s.t)
	s.set(s.m.floats("noise i2t"), "input/noise_i2t")
	s.set(s.m.floats("noise t2i"), "input/noise_t2i")
	for _, side := range []string{"image", "text"} {
		if x := s.m.floats("noise of " + side + " neighbours"); x != nil {
			s.set(x, side+"_neighbours")
		}
	}
	check.OK(s.t, s.m.step.machine.RunAll())
}

// TestGeoalignGoldenStep compares whole training steps of the combined objective with
// PyTorch as TestGoldenStep does: class tokens, spaces, sums of scores, learned metrics
// with their twins, graphs over several spheres, and the geometric term.
func TestGeoalignGoldenStep(t *testing.T) {
	for name, k := range geoalignCases {
		t.Run(name, func(t *testing.T) {
			s := loadGeoalign(t, name)
			if used := s.m.graphs != nil && s.m.graphs.Begun >= 0; used != k.graphs {
				t.Fatalf("the step reads graphs: %t, want %t", used, k.graphs)
			}
			for _, x := range s.f.Tensors() {
				if name, ok := strings.CutPrefix(x.Name, "grad/"); ok {
					if _, ok := s.m.params.Get(name); !ok {
						t.Errorf("the model has no parameter %s", name)
					}
				}
			}
			s.run(0.4)
			s.step(s.m)
			for _, f := range []struct {
				name string
				node *gorgonia.Node
			}{{"image_m", s.m.step.keys.image}, {"text_m", s.m.step.keys.text}} {
				v := check.Get(s.m.step.machine.Value(f.node))(t)
				near(t, f.name, v.F32, s.floats("expect/"+f.name), 1e-5)
			}
		})
	}
}

// TestGeoalignGradientsAgainstFiniteDifferences is TestGradientsAgainstFiniteDifferences
// of the combined objective. Its graph has the gradient mode soft_entry, since
// straight_through gives by intention the gradient of other scores than those of the step.
func TestGeoalignGradientsAgainstFiniteDifferences(t *testing.T) {
	s := loadGeoalign(t, "multi", func(c *config.Config) { c.Objective.Geodesic.Gradient = "soft_entry" })
	temperature, _ := s.m.params.Get(temperatureName)
	s.m.params.Value(temperature)[0] = 0.5 // a smoother loss than at 0.07
	loss := func(alpha float64) float64 {
		s.run(alpha)
		var sum float64
		weights := map[string]float64{"itc": 1, "itc_in_batch": 0.5, "itm": 1, "mlm": 1, "geometric_image": 50, "geometric_text": 50}
		for _, p := range s.m.step.parts {
			v := check.Get(s.m.step.machine.Scalar(p.Node))(t)
			sum += weights[p.Name] * float64(v)
		}
		return sum
	}
	checkDifferences(t, s.m, loss, []string{
		"image/cls_token", "image/pos_embed", "image/patch_embed/weight", "image/blocks/00/attn/qkv/weight", "image/norm/weight",
		"image_proj/weight", "image_proj/bias", "text/embeddings/word/weight", "text/embeddings/position/weight",
		"text/layers/01/attention/qkv/weight", "text/layers/02/crossattention/kv/weight", "text/mlm/dense/weight",
		"text_proj/weight", "text_proj/bias", "gssf/weight", "itm_head/weight", "temperature",
	})
}
