package config

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/data/source"
)

// TestReadWith: what a tag says is what ReadWith says, and one that names nothing is a mistake of the program.
func TestReadWith(t *testing.T) {
	for path, want := range map[string]string{"run.seed": "", "init.text.family": "init.text.path",
		"eval.probe_decay": "a model.system with towers and eval.probe_hold = 0", "objective.poly.weight": "",
		"objective.poly.margin": "objective.poly.weight > 0"} {
		if got := ReadWith(path); got != want {
			t.Errorf("%s is read with %q, want %q", path, got, want)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("a tag that names no condition is passed over")
		}
	}()
	new(shape).add(&place{path: "x", tag: `when:"no nonsense"`}, reflect.TypeFor[int]())
}

// viewsOf makes a system of images alone.
func viewsOf(system string) func(c *Config) { return func(c *Config) { *c = imagesOnly(system) } }

// inBatch has a contrast within the batch alone, beside a teacher.
func inBatch(c *Config) {
	c.Objective.ITC.Weight, c.Objective.ITC.InBatchWeight, c.Objective.ITM.Weight, c.Objective.MLM.Weight, c.Queue.Size = 0, 1, 0, 0, 0
}

// mixesSentences has batches of sentences from files between those of scenes.
func mixesSentences(c *Config) {
	inBatch(c)
	c.Objective.ITC.InBatchWeight, c.Objective.SimCSE.Weight, c.Objective.MCSE.Weight = 0, 1, 0.01
	c.Model.System, c.Model.Text.FusionLayers, c.Momentum.Enabled, c.Objective.Distill.Alpha = "clip", 0, false, 0
	c.Data.Sentences.Batches, c.Data.Sentences.TrainFiles = 1, []string{"a.txt"}
}

// asksAboutScenes answers questions about the built-in scenes.
func asksAboutScenes(c *Config) {
	inBatch(c)
	c.Objective.ITC.InBatchWeight, c.Objective.VQA.Weight = 0, 1
	c.Data.Kind, c.Data.Examples.Source = source.VQAKind, source.ExamplesOfScenes
}

// TestUnread: a key that is set in a configuration where nothing reads it, and what makes
// the configuration read it.
func TestUnread(t *testing.T) {
	none := func(*Config) {}
	for _, x := range []struct {
		path   string
		in     func(c *Config)
		set    string
		readIn func(c *Config)
	}{
		{"data.views", inBatch, "2", func(c *Config) { c.Objective.ITC.Weight = 1 }},
		{"data.views", inBatch, "2", func(c *Config) { c.Objective.Geometric.Weight, c.Queue.Size = 1, 65536 }},
		{"data.cache_dir", none, "cache", func(c *Config) { c.Data = fileData("disk") }},
		{"data.cache_dir", func(c *Config) { c.Data = fileData("memory") }, "cache", func(c *Config) { c.Data = fileData("disk") }},
		{"data.cache_size", none, "512", func(c *Config) { c.Data = fileData("memory") }},
		{"data.max_pixels", none, "1000", func(c *Config) { c.Data = fileData("none") }},
		{"data.max_pixels", none, "1000", func(c *Config) { c.Eval.ZeroShot.Images = "classes" }},
		{"data.max_bad_share", none, "0.5", mixesSentences},
		{"data.root", none, "elsewhere", func(c *Config) { c.Data.Vocab = "vocab.txt" }},
		{"data.root", none, "elsewhere", mixesSentences},
		{"data.root", none, "elsewhere", func(c *Config) { asksAboutScenes(c); c.Eval.VQA.Candidates = "answers.txt" }},
		{"data.randaugment_level", func(c *Config) { c.Data.RandAugmentOps = 0 }, "3", none},
		{"data.tokens", viewsOf("moco"), "20", none},
		{"data.karpathy.image_root", none, "images", func(c *Config) { c.Data.Kind, c.Data.Karpathy.File = "karpathy", "x.json" }},
		{"model.heads.hidden", none, "64", func(c *Config) { *c = pairsConfig() }},
		{"model.views.hidden", none, "64", viewsOf("moco")},
		{"model.image.depth", func(c *Config) { *c = pairsConfig() }, "3", none},
		{"model.text.fusion_layers", func(c *Config) { c.Objective.ITM.Weight, c.Objective.MLM.Weight = 0, 0 }, "2", none},
		{"momentum.m", viewsOf("swav"), "0.9", viewsOf("moco")},
		{"momentum.dropout", func(c *Config) { c.Model.Text.Dropout = 0 }, "false", none},
		{"momentum.dropout", inBatch, "false", none},
		{"queue.start_steps", inBatch, "5", none},
		{"objective.distill.alpha", func(c *Config) { inBatch(c); c.Objective.Distill.RampEpochs = 1 }, "0.5", none},
		{"objective.distill.ramp_epochs", func(c *Config) { c.Objective.Distill.Alpha = 0 }, "3", none},
		{"objective.itc.target_score", func(c *Config) { c.Objective.Distill.Alpha = 0 }, "l2", none},
		{"objective.itc.score", func(c *Config) { c.Objective.ITC.Weight, c.Objective.ITM.Weight, c.Eval.Score = 0, 0, "cosine" }, "l2", func(c *Config) { c.Objective.ITC.Weight = 0 }},
		{"objective.itc.temperature", func(c *Config) { c.Objective.ITC.Weight, c.Objective.ITM.Weight = 0, 0 }, "0.1", none},
		{"objective.siglip.bias", none, "-5", func(c *Config) { c.Objective.SigLIP.Weight = 1 }},
		{"objective.klot.epsilon", func(c *Config) { *c = pairsConfig() }, "0.1", func(c *Config) { *c = pairsConfig(); c.Objective.KLOT.Weight = 1 }},
		{"objective.structure.hops", none, "2", func(c *Config) { c.Objective.Structure.Weight = 1 }},
		{"objective.gssf.form", none, "dense", func(c *Config) { c.Objective.ITC.Score = "gssf" }},
		{"objective.gssf.blocks", func(c *Config) { c.Objective.ITC.Score, c.Objective.GSSF.Form = "gssf", "dense" }, "4", func(c *Config) { c.Objective.ITC.Score = "gssf" }},
		{"objective.geodesic.neighbours", none, "3", func(c *Config) { c.Objective.ITC.Score = "geodesic" }},
		{"objective.geodesic.neighbours", none, "3", func(c *Config) { c.Objective.Geodesic.Weigh = 1 }},
		{"objective.geodesic.temperature", func(c *Config) { c.Objective.Geodesic.Weigh = 1 }, "0.1", func(c *Config) { c.Objective.ITM.Negatives = "geodesic" }},
		{"objective.geodesic.mix", none, "0.5", func(c *Config) { c.Objective.ITC.TargetScore = "geodesic" }},
		{"objective.geodesic.softness", func(c *Config) { c.Objective.ITC.Score, c.Objective.Geodesic.Gradient = "geodesic", "strict" }, "0.1", func(c *Config) { c.Objective.ITC.Score = "geodesic" }},
		{"objective.geodesic.construction", func(c *Config) { c.Objective.ITC.Score, c.Objective.Geodesic.Layers = "geodesic", []int{64} }, "split", func(c *Config) { c.Objective.ITC.Score = "geodesic" }},
		{"objective.geodesic.direct_positives", func(c *Config) { viewsOf("swav")(c); c.Objective.ITC.Score = "geodesic" }, "true", func(c *Config) { viewsOf("moco")(c); c.Objective.ITC.Score = "geodesic" }},
		{"objective.geometric.kernel", none, "linear", func(c *Config) { c.Objective.Geometric.Weight = 1 }},
		{"objective.geometric.epsilon", func(c *Config) { c.Objective.Geometric.Weight, c.Objective.Geometric.Kernel = 1, "linear" }, "0.5", func(c *Config) { c.Objective.Geometric.Weight = 1 }},
		{"objective.tcl.grid", none, "8", func(c *Config) { c.Objective.TCL.Local = true }},
		{"objective.mafa.positive_above", none, "0.9", func(c *Config) { c.Objective.MAFA.Connector = "run" }},
		{"objective.mafa.uniform", viewsOf("moco"), "0.1", func(c *Config) { viewsOf("moco")(c); c.Objective.ITC.InBatchWeight = 1 }},
		{"objective.mafa.uniform", viewsOf("swav"), "0.1", none},
		{"objective.swav.epsilon", viewsOf("moco"), "0.1", viewsOf("swav")},
		{"objective.itm.negatives", func(c *Config) { c.Objective.ITM.Weight = 0 }, "l2", none},
		{"objective.mlm.prob", func(c *Config) { c.Objective.MLM.Weight = 0 }, "0.3", none},
		{"optimizer.no_decay", func(c *Config) { c.Optimizer.Decay = 0 }, "bias", none},
		{"schedule.warmup_lr", func(c *Config) { c.Schedule.WarmupSteps = 0 }, "1e-6", none},
		{"schedule.min_lr", func(c *Config) { c.Schedule.Kind = "constant" }, "1e-6", none},
		{"eval.score", viewsOf("moco"), "l2", none},
		{"eval.folds", viewsOf("swav"), "5", none},
		{"eval.probe_samples", func(c *Config) { *c = pairsConfig() }, "100", none},
		{"compute.recompute", func(c *Config) { *c = pairsConfig() }, "true", none},
	} {
		for _, want := range []bool{true, false} {
			c := Default()
			c.Objective.Distill.RampEpochs = 0 // which without soft targets would be set for nothing
			if in := map[bool]func(*Config){true: x.in, false: x.readIn}[want]; in != nil {
				in(&c)
			}
			l := newLoader(&c)
			l.overrides([]string{x.path + "=" + x.set})
			if len(l.errs) > 0 {
				t.Fatal(l.errs)
			}
			if err := c.Validate(); err != nil {
				t.Fatalf("%s: %v", x.path, err)
			}
			got := slices.ContainsFunc(c.Unread(), func(u Unread) bool { return u.Path == x.path })
			if got != want {
				t.Errorf("%s: nothing reads it is %t, want %t: %v", x.path, got, want, c.Unread())
			}
			lines := strings.Join(c.Advice(), "\n")
			if noted := strings.Contains(lines, x.path) && strings.Contains(lines, "nothing reads"); want && !noted {
				t.Errorf("%s is missing in %s", x.path, lines)
			}
		}
	}
}

// fileData reads images of files through a cache.
func fileData(cache string) source.Data {
	d := Default().Data
	d.Kind, d.Captions.TrainFiles, d.Captions.ValFiles, d.Cache = "captions", []string{"a.json"}, []string{"b.json"}, cache
	if cache == "disk" {
		d.CacheDir = "folder"
	}
	return d
}

// TestNotReadLines: keys of one section that lack the same share a line.
func TestNotReadLines(t *testing.T) {
	c := Default()
	c.Objective.Geodesic.Layers, c.Objective.Geodesic.Neighbours, c.Objective.Geodesic.PeriodSteps = []int{8, 64}, 3, 50
	c.Objective.TCL.Grid, c.Model.Views.Hidden = 2, 5
	want := []string{
		"model.views.hidden is set but nothing reads it: it is read with a model.system of two views of an image",
		"objective.tcl.grid is set but nothing reads it: it is read with objective.tcl.local",
		`objective.geodesic.layers, neighbours and period_steps are set but nothing reads them: they are read with objective.itc.score = "geodesic"`,
	}
	if got := c.notRead(); !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	// A unit that another one has replaced was set by nobody.
	c, err := Default().With("objective.distill.ramp_steps=100", "objective.distill.alpha=0")
	if err != nil {
		t.Fatal(err)
	}
	if lines := strings.Join(c.notRead(), "\n"); !strings.HasPrefix(lines, "objective.distill.ramp_steps is set but nothing reads it") || strings.Contains(lines, "ramp_epochs") {
		t.Errorf("of another unit: %s", lines)
	}
	if c := Default(); len(c.Unread()) > 0 {
		t.Errorf("of the defaults nothing reads %v", c.Unread())
	}
}
