package config

import (
	"math"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/data/source"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/objectives"
	"github.com/geoalign/geoalign/space"
)

// small is a configuration whose queue and head leave room for what is tested.
func small() Config {
	c := Default()
	c.Train.BatchSize, c.Queue.Size, c.Model.Head.Dim = 8, 128, 64
	c.Objective.Geodesic.Layers = []int{8}
	return c
}

// clip is a dual encoder.
func clip() Config {
	c := small()
	c.Model.System, c.Model.Text.FusionLayers = "clip", 0
	c.Momentum.Enabled, c.Queue.Size = false, 0
	c.Objective.ITM.Weight, c.Objective.MLM.Weight, c.Objective.Distill = 0, 0, objectives.Distill{}
	c.Objective.ITC.Weight, c.Objective.ITC.InBatchWeight = 0, 1
	return c
}

// simcse is a text tower on sentences alone, on captions of scenes.
func simcse() Config {
	c := clip()
	c.Model.System, c.Model.Head.Dim, c.Model.Head.Topology, c.Model.Text.Dropout = "simcse", c.Model.Text.Width, "sphere", 0.1
	c.Objective.ITC.InBatchWeight, c.Objective.SimCSE.Weight = 0, 1
	return c
}

// pairsOf is fine-tuning of such a tower on a task of pairs of sentences.
func pairsOf(task string) Config {
	c := simcse()
	c.Model.System, c.Objective.SimCSE.Weight, c.Objective.SentencePairs.Weight = "sentence_pairs", 0, 1
	c.Data.Kind, c.Data.SentencePairs.Task, c.Data.SentencePairs.TrainFiles = source.SentencePairsKind, task, []string{"train.tsv"}
	return c
}

// classifier is fine-tuning for classification.
func classifier() Config {
	c := clip()
	c.Model.System, c.Model.Head.Dim, c.Momentum.Enabled, c.Queue.Size, c.Data.Views = "classes", c.Model.Image.Width, false, 0, 1
	c.Objective.ITC.InBatchWeight, c.Objective.Classes.Weight = 0, 1
	return c
}

// regionHost is clip over features of regions.
func regionHost() Config {
	c := clip()
	c.Data.Kind, c.Data.Regions.Source = "regions", source.RegionsOfScenes
	c.Model.Image.Style = encoders.StyleRegions
	c.Model.Image.Regions.Defaults()
	return c
}

func TestHeadSpace(t *testing.T) {
	for _, x := range []struct {
		topology string
		want     space.Space
		err      string
	}{
		{"sphere", space.Space{Dim: 64, Spheres: 1}, ""},
		{"euclid", space.Space{Dim: 64, Spheres: 1, Euclid: true}, ""},
		{"Ob(4,16)", space.Space{Dim: 64, Spheres: 16}, ""},
		{"Multi(16, 4)", space.Space{Dim: 64, Spheres: 4, Tokens: true}, ""},
		{"Multi(16,8)", space.Space{}, "has 16 x 8 = 128 channels, not 64"},
		{"Multi(0,64)", space.Space{}, "between 1 and 64"},
		{"Ob(4294967296,4294967296)", space.Space{}, "between 1 and 64"},
		{"Ob(99999999999999999999,1)", space.Space{}, "between 1 and 64"},
		{"Multi(16)", space.Space{}, "must be sphere, euclid"},
		{"ball", space.Space{}, "must be sphere, euclid"},
	} {
		got, err := encoders.HeadOptions{Dim: 64, Topology: x.topology}.Space()
		if x.err == "" && (err != nil || got != x.want) {
			t.Errorf("%s: got %+v, %v, want %+v", x.topology, got, err, x.want)
		}
		if x.err != "" && (err == nil || !strings.Contains(err.Error(), x.err)) {
			t.Errorf("%s: got error %v, want one with %q", x.topology, err, x.err)
		}
	}
}

func TestScoreTerms(t *testing.T) {
	c := small()
	c.Objective.ITC.Score, c.Objective.Geodesic.Mix = "geodesic", 0.75
	if got := objectives.ScoreTerms(c.View()); len(got) != 2 || got[0] != (objectives.ScoreTerm{Kind: "geodesic", Weight: 0.75}) || got[1] != (objectives.ScoreTerm{Kind: "cosine", Weight: 0.25}) {
		t.Errorf("a mixed geodesic has the terms %v", got)
	}
	if got := c.PairTerms(); len(got) != 1 || got[0] != (objectives.ScoreTerm{Kind: "cosine", Weight: 0.25}) {
		t.Errorf("without the queue it has the terms %v", got)
	}
	c = small()
	c.Objective.ITC.Scores = objectives.Terms{{Kind: "geodesic", Weight: 1}, {Kind: "gssf", Weight: 0}}
	if got := objectives.ScoreTerms(c.View()); len(got) != 1 {
		t.Errorf("a term of weight 0 is still there: %v", got)
	}
	if c.Has(section.Metric) {
		t.Error("a metric of weight 0 is used")
	}
	if got := c.PairTerms(); len(got) != 1 || got[0] != (objectives.ScoreTerm{Kind: "cosine", Weight: 1}) {
		t.Errorf("the geodesic alone leaves %v for pairs", got)
	}
	c.Model.Head.Topology = "euclid"
	if got := c.PairTerms(); len(got) != 1 || got[0] != (objectives.ScoreTerm{Kind: "l2", Weight: 1}) {
		t.Errorf("in a Euclidean space it leaves %v", got)
	}
}

func TestMetricBlocks(t *testing.T) {
	c := small()
	for _, x := range []struct {
		topology string
		blocks   int
		want     int
	}{{"sphere", 0, 4}, {"sphere", 8, 8}, {"Ob(4,16)", 0, 16}, {"Multi(32,2)", 0, 2}, {"Multi(32,2)", 4, 4}} {
		c.Model.Head.Topology, c.Objective.GSSF.Blocks = x.topology, x.blocks
		space, _ := c.Model.Head.Space()
		if got := c.Objective.GSSF.BlocksOf(space); got != x.want {
			t.Errorf("%s with %d blocks: got %d, want %d", x.topology, x.blocks, got, x.want)
		}
	}
}

// gssf compares pairs by the learned metric.
func gssf(g objectives.GSSF) func(c *Config) {
	return func(c *Config) {
		c.Objective.ITC.Score, c.Objective.GSSF = "gssf", g
	}
}

func TestCombinedMessages(t *testing.T) {
	for _, x := range []struct {
		from   func() Config
		change func(c *Config)
		want   string
	}{
		{small, func(c *Config) { c.Model.Head.Topology = "Multi(16,8)" }, `model.head.topology: has 16 x 8 = 128 channels, not 64 (got "Multi(16,8)"); n x m must be model.head.dim: change one of the two`},
		{small, func(c *Config) { c.Model.Head.TokenBlocks = 2 }, `model.head.token_blocks: must be 0 without class tokens of their own (got 2); set model.head.topology = "Multi(n,m)"`},
		{small, func(c *Config) { c.Model.Head.Topology, c.Model.Head.TokenBlocks = "Multi(16,4)", 7 }, `model.head.token_blocks: must be at most model.image.depth and model.text.layers (got 7); 0 is all blocks`},
		{small, func(c *Config) { c.Model.Head.Topology, c.Model.Text.Positions = "Multi(16,4)", 32 }, `model.text.positions: must be at least data.tokens plus the repeated class tokens, 33 (got 32); Multi(n,m) repeats [CLS] m-1 times: raise model.text.positions`},
		{small, func(c *Config) { c.Objective.ITC.Score, c.Objective.GSSF.Blocks = "gssf", 5 }, `objective.gssf.blocks: must divide model.head.dim (64) (got 5); choose a divisor: the blocks have one size`},
		{small, gssf(objectives.GSSF{Form: "low_rank", Rank: 65}), `objective.gssf.rank: must be at most model.head.dim (64) (got 65); a full rank is objective.gssf.form = "dense"`},
		{small, gssf(objectives.GSSF{Form: "sparse"}), `objective.gssf.l1: must be > 0 with objective.gssf.form "sparse" (got 0); without it the form is "dense"`},
		{small, gssf(objectives.GSSF{Form: "mlp"}), `objective.gssf.form: must not be "mlp" with objective.itc.weight > 0 (got "mlp"); it compares the pairs of a batch, not a batch with a queue: use objective.itc.in_batch_weight`},
		{small, gssf(objectives.GSSF{Form: "dense", Rank: 3}), `objective.gssf.rank: is not of objective.gssf.form "dense" (got 3); it is of low_rank`},
		{small, gssf(objectives.GSSF{Form: "dense", Symmetric: true}), `objective.gssf.symmetric: is not of objective.gssf.form "dense" (got true); it is of low_rank`},
		{small, gssf(objectives.GSSF{Form: "dense", Hidden: 3}), `objective.gssf.hidden: is not of objective.gssf.form "dense" (got 3); it is of mlp`},
		{small, gssf(objectives.GSSF{Form: "dense", L1: 3}), `objective.gssf.l1: is not of objective.gssf.form "dense" (got 3); it is of sparse`},
		{small, gssf(objectives.GSSF{Form: "low_rank", Decay: 3}), `objective.gssf.decay: is not of objective.gssf.form "low_rank" (got 3); it is of diag, block_diag, dense`},
		{small, gssf(objectives.GSSF{Form: "diag", Dropout: 0.5}), `objective.gssf.dropout: is not of objective.gssf.form "diag" (got 0.5); it is of dense`},
		{small, gssf(objectives.GSSF{Form: "low_rank", Start: "random"}), `objective.gssf.start: `},
		{small, gssf(objectives.GSSF{Form: "dense", DecayTo: "zero"}), `objective.gssf.decay_to: is not read with objective.gssf.decay = 0 (got "zero"); set it, or leave this one out`},
		{small, func(c *Config) {
			c.Objective.ITC.Scores = objectives.Terms{{Kind: "cosine", Weight: 0}, {Kind: "gssf", Weight: 0}}
		}, `objective.itc.scores: at least one weight must be > 0 (got [{kind = "cosine", weight = 0}, {kind = "gssf", weight = 0}]); write [{kind = "cosine", weight = 1}]`},
		{small, func(c *Config) { c.Objective.ITC.Scores = objectives.Terms{{Kind: "cosine", Weight: -1}} }, `objective.itc.scores: item 1: weight must be >= 0 (got [{kind = "cosine", weight = -1}]); leave the term out, or give it a weight above 0`},
		{small, func(c *Config) { c.Objective.ITC.Scores = objectives.Terms{{Kind: "hyperbolic", Weight: 1}} }, `objective.itc.scores: item 1: kind must be one of cosine, inner, l2, angle, gssf, geodesic (got [{kind = "hyperbolic", weight = 1}])`},
		{small, func(c *Config) {
			c.Objective.ITC.Scores = objectives.Terms{{Kind: "l2", Weight: 1}, {Kind: "l2", Weight: 2}}
		}, `objective.itc.scores: item 2: l2 is there twice (got [{kind = "l2", weight = 1}, {kind = "l2", weight = 2}]); add the weights`},
		{small, func(c *Config) {
			c.Objective.ITC.Scores, c.Objective.ITC.Score = objectives.Terms{{Kind: "l2", Weight: 1}}, "gssf"
		}, `objective.itc.score: must not be set together with objective.itc.scores (got "gssf"); give it as a term`},
		{small, func(c *Config) { c.Model.Head.Topology = "euclid" }, `objective.itc.score: cosine needs unit vectors, which model.head.topology "euclid" lacks (got "cosine"); use inner, l2, gssf or geodesic`},
		{small, func(c *Config) {
			c.Model.Head.Topology, c.Objective.ITC.Scores = "euclid", objectives.Terms{{Kind: "angle", Weight: 1}}
		}, `objective.itc.scores: angle needs unit vectors, which model.head.topology "euclid" lacks (got [{kind = "angle", weight = 1}]); use inner, l2, gssf or geodesic`},
		{small, func(c *Config) { c.Objective.Geometric.Weight, c.Objective.Geometric.Neighbours = 1, 32 }, `objective.geometric.neighbours: objective.geometric.pool times this must not be more than queue.size (got 32); the nearest 5 x 32 of the 128 entries of the queue are wanted: use fewer, or a larger queue`},
		{small, func(c *Config) { c.Objective.Geometric.Weight, c.Queue.Size = 1, 0 }, `queue.size: must be > 0 (got 0); neighbours are found in a queue of the teacher's features: or set objective.geometric.weight = 0`},
		{small, func(c *Config) { c.Objective.Geometric.Weight, c.Objective.Geometric.Search = 1, "clusters" }, `objective.geometric.search: must be "exact" without a graph over the queue (got "clusters"); its clusters are those of the geodesic, which no score that is trained has`},
		{small, func(c *Config) { c.Objective.ITC.Scores = objectives.Terms{{Kind: "gssf", Weight: 1e-46}} }, `objective.itc.scores: item 1: weight must be 0 or at least 0.000001 (got [{kind = "gssf", weight = 1e-46}]); leave the term out, or give it a larger weight`},
		{small, func(c *Config) { c.Objective.Geometric.Weight, c.Objective.Geometric.Pool = 1, math.MaxInt }, `objective.geometric.neighbours: objective.geometric.pool times this must not be more than queue.size (got 16); the nearest 9223372036854775807 x 16 of`},
		{small, func(c *Config) { c.Objective.ITM.Negatives, c.Objective.ITC.Weight = "geodesic", 0 }, `objective.itc.weight: must be > 0 (got 0); the graph is read by the contrast with the queue`},
		{small, func(c *Config) { c.Objective.ITC.Score, c.Momentum.Enabled = "geodesic", false }, `momentum.enabled: must be true (got false); the geodesic needs the queue that its graph spans: or leave it out of the scores`},
		{clip, func(c *Config) { c.Objective.Geometric.Weight = 1 }, `momentum.enabled: must be true (got false); neighbours are found in a queue of the teacher's features: or set objective.geometric.weight = 0`},
		{clip, func(c *Config) { c.Objective.ITC.Score, c.Objective.ITC.Weight = "geodesic", 1 }, `objective.itc.weight: must be 0 without momentum (got 1); it needs the teacher: set momentum.enabled = true, or use objective.itc.in_batch_weight`},
		{clip, func(c *Config) { c.Objective.ITC.InBatchWeight = 0 }, `objective.itc.weight: no loss is on (got 0); set at least one objective weight above 0`},
		{clip, func(c *Config) { c.Queue.Size = 128 }, `queue.size: must be 0 without momentum (got 128); it needs the teacher: set momentum.enabled = true`},
		{clip, func(c *Config) { c.Objective.ITM.Weight = 1 }, `objective.itm.weight: must be 0 (got 1); model.system "clip" has no fusion layers: use "albef"`},
		{clip, func(c *Config) { c.Objective.MLM.Weight = 1 }, `objective.mlm.weight: must be 0 (got 1); model.system "clip" has no fusion layers: use "albef"`},
		{clip, func(c *Config) { c.Model.Text.FusionLayers = 1 }, `model.text.fusion_layers: must be 0 (got 1); model.system "clip" has no fusion layers`},
		{clip, func(c *Config) { c.Data.Views = 2 }, `data.views: must be 1 without momentum (got 2); no teacher looks at a second view`},
		{clip, func(c *Config) {
			c.Objective.ITC.LogTemperature, c.Objective.ITC.TemperatureMin, c.Model.Head.Topology = true, 0, "Multi(4,16)"
		}, `objective.itc.temperature: must lie between objective.itc.temperature_min and temperature_max (got 0.07)`},
	} {
		c := x.from()
		if err := c.Validate(); err != nil {
			t.Fatalf("before %q: %v", x.want, err)
		}
		x.change(&c)
		wants(t, "", c, x.want)
	}
}

func TestScoresAreRead(t *testing.T) {
	want := objectives.Terms{{Kind: "geodesic", Weight: 0.5}, {Kind: "gssf", Weight: 1}}
	const head = "[objective.geodesic]\nlayers = [8]\n[train]\nbatch_size = 8\n[queue]\nsize = 128\n"
	for name, x := range map[string]struct {
		text string
		sets []string
	}{
		"inline":   {head + "[objective.itc]\nscores = [{kind = \"geodesic\", weight = 0.5}, {kind = \"gssf\", weight = 1}]\n", nil},
		"tables":   {head + "[[objective.itc.scores]]\nkind = \"geodesic\"\nweight = 0.5\n[[objective.itc.scores]]\nkind = \"gssf\"\nweight = 1\n", nil},
		"override": {head, []string{`objective.itc.scores=[{kind="geodesic",weight=0.5},{kind="gssf",weight=1}]`}},
	} {
		c, err := Parse("x.toml", []byte(x.text), x.sets)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := c.Objective.ITC.Scores; len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
		text, err := c.Encode()
		if err != nil {
			t.Fatal(err)
		}
		again, err := Parse("y.toml", text, nil)
		if err != nil || len(again.Objective.ITC.Scores) != 2 {
			t.Errorf("%s: written and read again: %v, %v", name, again.Objective.ITC.Scores, err)
		}
	}
	for _, x := range []struct{ set, want string }{
		{`objective.itc.scores=gssf`, `must be a list of tables`},
		{`objective.itc.scores=[{kind="gssf",wheight=1}]`, `item 1 has the unknown key wheight: the keys are kind and weight`},
		{`objective.itc.scores=[{kind="gssf",weight="1"}]`, `item 1 weight must be a number (got [{kind = "gssf", weight = "1"}])`},
		{`objective.itc.scores=["gssf"]`, `item 1 must be a table (got ["gssf"])`},
		{`objective.itc.scores=[1]`, `item 1 must be a table`},
	} {
		if _, err := Parse("", nil, []string{x.set}); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: got %v, want %q", x.set, err, x.want)
		}
	}
}

// TestPlansReadMetric: objective.klot compares by the metric, so that its settings are checked and evaluation may read it where no other loss does.
func TestPlansReadMetric(t *testing.T) {
	c := headsConfig()
	c.Objective.ITC.InBatchWeight, c.Objective.KLOT.Weight, c.Objective.ITC.Score, c.Eval.Score = 0, 1, "gssf", "gssf"
	if err := c.Validate(); err != nil || !c.Has(section.Metric) {
		t.Errorf("%v, metric %t", err, c.Has(section.Metric))
	}
	c.Objective.GSSF.Form, c.Objective.GSSF.Dropout = "diag", 0.1
	wants(t, "dropout of a diagonal", c, `objective.gssf.dropout: is not of objective.gssf.form "diag"`)
}
