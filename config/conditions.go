package config

import (
	"slices"
	"strings"

	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/data/source"
)

// condition says when something reads a key or a section; the tag read names it.
type condition struct {
	with  string // in words that follow "read with"
	holds func(c *Config) bool
}

// conditions are those of the tag. A key without one has that of the innermost section
// around it that has one, and is read always where none has. What a check refuses needs no
// condition besides, such as the weight of a loss that a system has not.
var conditions = map[string]condition{
	// Systems.
	"images": {"a model.system that reads images", func(c *Config) bool { return c.Has(section.Images) }},
	"towers": {"a model.system with towers", func(c *Config) bool { return !c.Has(section.Stored) }},
	"words":  {"a model.system with a text tower", func(c *Config) bool { return c.Has(section.Words) }},
	"started words": {"init.checkpoint and a model.system with a text tower",
		func(c *Config) bool { return c.Init.Checkpoint != "" && c.Has(section.Words) }},
	"pairs": {"a model.system of pairs", func(c *Config) bool { return c.Has(section.Captions) }},
	"features": {`a model.system of pairs whose features are compared (model.interaction.kind = "")`,
		func(c *Config) bool { return c.Has(section.Captions) && !c.Has(section.TokenScores) }},
	"scored": {"a model.system of pairs or of identities that is trained in steps",
		func(c *Config) bool {
			return (c.Has(section.Captions) || c.Has(section.Identities)) && !c.Has(section.Fitted)
		}},
	"steps":      {`a model.system that is trained in steps, which "align" is not`, func(c *Config) bool { return !c.Has(section.Fitted) }},
	"prototypes": {`model.system = "swav"`, func(c *Config) bool { return c.Has(section.Prototypes) }},

	// Data.
	"heat maps": {"a model.system of pairs with patches, whose features are compared", (*Config).hasHeatMaps},
	"questions": {`data.kind = "vqa"`, ofKind(source.VQAKind)},
	"ranked answers": {`data.kind = "vqa" and eval.vqa.generate = false`,
		func(c *Config) bool { return c.Data.Kind == source.VQAKind && !c.Eval.VQA.Generate }},
	"common answers": {`data.kind = "vqa", eval.vqa.generate = false and eval.vqa.candidates = ""`,
		func(c *Config) bool {
			return c.Data.Kind == source.VQAKind && !c.Eval.VQA.Generate && c.Eval.VQA.Candidates == ""
		}},
	"written answers": {`data.kind = "vqa" and eval.vqa.generate = true`,
		func(c *Config) bool { return c.Data.Kind == source.VQAKind && c.Eval.VQA.Generate }},

	// Several processes.
	"ranks": {"several processes that train together", func(c *Config) bool { return c.Ranks > 1 }},
	"hard negatives of ranks": {`several processes that train together with parallel.contrast = "global", and objective.itm.weight > 0`,
		func(c *Config) bool {
			return c.Ranks > 1 && c.Parallel.Contrast == OfAllRanks && c.Objective.ITM.Weight > 0
		}},

	// Teacher and queue.

	// Losses.
	"soft targets": {"objective.itc.weight, objective.mlm.weight or that of a downstream task > 0",
		func(c *Config) bool { return c.Objective.Distill.Alpha == 0 || c.Objective.distils() }},
	"distill": {"objective.distill.alpha > 0, and objective.itc.weight, objective.mlm.weight or that of a downstream task > 0",
		func(c *Config) bool { return c.Objective.Distill.Alpha > 0 && c.Objective.distils() }},
	"soft contrast": {"objective.distill.alpha > 0 and objective.itc.weight > 0",
		func(c *Config) bool { return c.Objective.Distill.Alpha > 0 && c.Objective.ITC.Weight > 0 }},
	"score": {`a contrast, matching whose objective.itm.negatives = "score", or eval.score = "train"`, (*Config).readsScore},
	"temperature": {"objective.itc.weight, objective.itc.in_batch_weight or objective.itm.weight > 0",
		func(c *Config) bool { return c.Objective.contrasts() || c.Objective.ITM.Weight > 0 }},
	"contrasts": {"objective.itc.weight or objective.itc.in_batch_weight > 0", func(c *Config) bool { return c.Objective.contrasts() }},
	"triplet":   weighed("objective.triplet.weight"),
	"hard margin": {"objective.triplet.weight > 0 and soft = false",
		func(c *Config) bool { return c.Objective.Triplet.Weight > 0 && !c.Objective.Triplet.Soft }},
	"softmax":     weighed("objective.softmax.weight"),
	"poly":        weighed("objective.poly.weight"),
	"cmpm":        weighed("objective.cmpm.weight"),
	"simcse":      weighed("objective.simcse.weight"),
	"mcse":        weighed("objective.mcse.weight"),
	"pair loss":   weighed("objective.sentence_pairs.weight"),
	"class loss":  weighed("objective.classes.weight"),
	"joint pairs": {`objective.sentence_pairs.weight > 0 and encoding = "joint"`, func(c *Config) bool { return c.JointPairs() }},
	"hard negatives": {`objective.simcse.weight > 0 and data.sentences.negative`,
		func(c *Config) bool { return c.Objective.SimCSE.Weight > 0 && c.HasNegatives() }},
	"klot":      weighed("objective.klot.weight"),
	"structure": weighed("objective.structure.weight"),
	"metric":    {`objective.itc.score = "gssf"`, func(c *Config) bool { return c.UsesMetric() }},
	"block_diag": {`objective.itc.score = "gssf" and objective.gssf.form = "block_diag"`,
		func(c *Config) bool { return c.UsesMetric() && c.Objective.GSSF.Form == "block_diag" }},
	"graph":    {`objective.itc.score = "geodesic"`, func(c *Config) bool { return c.Objective.UsesGraph() }},
	"geodesic": {`objective.itc.score = "geodesic"`, func(c *Config) bool { return c.Objective.UsesGeodesic() }},
	"mix":      {`objective.itc.score = "geodesic"`, func(c *Config) bool { return c.Objective.readsMix() }},
	"layers": {"a geodesic whose objective.geodesic.layers are more than one",
		func(c *Config) bool { return c.Objective.UsesGraph() && len(c.Objective.Geodesic.Layers) > 1 }},
	"soft entry": {"a geodesic whose objective.geodesic.gradient has soft_entry",
		func(c *Config) bool {
			return c.Objective.UsesGraph() && strings.Contains(c.Objective.Geodesic.Gradient, "soft_entry")
		}},
	"direct": {"a geodesic between samples, which prototypes are not",
		func(c *Config) bool { return c.Objective.UsesGraph() && !c.Has(section.Prototypes) }},
	"contrast": weighed("objective.itc.weight"),
	"geometric queue": {"objective.geometric.weight > 0 and a model.system with towers",
		func(c *Config) bool { return c.GeometricQueue() }},
	"geometric pool": {`objective.geometric.weight > 0 and model.system = "heads"`,
		func(c *Config) bool { return c.GeometricPool() }},
	"geometric": {"objective.geometric.weight > 0", func(c *Config) bool { return c.Objective.UsesGeometric() }},
	"heat": {`objective.geometric.weight > 0 and kernel = "heat"`,
		func(c *Config) bool { return c.Objective.UsesGeometric() && c.Objective.Geometric.Kernel == "heat" }},
	"adcl":        weighed("objective.adcl.weight"),
	"adcl fusion": {`objective.adcl.weight > 0 and fusion = "tucker" or "attention"`, func(c *Config) bool { return c.Objective.ADCL.fuses() }},
	"adcl tucker": {`objective.adcl.weight > 0 and fusion = "tucker"`,
		func(c *Config) bool { return c.Objective.ADCL.fuses() && c.Objective.ADCL.Fusion == FusionTucker }},
	"adcl ranks": {`objective.adcl.weight > 0, fusion = "tucker" and rank > 0`,
		func(c *Config) bool {
			a := c.Objective.ADCL
			return a.fuses() && a.Fusion == FusionTucker && a.Rank > 0
		}},
	"local":         {"objective.tcl.local = true", func(c *Config) bool { return c.Objective.TCL.Local }},
	"score teacher": {"objective.distill_scores.teacher", func(c *Config) bool { return c.Objective.DistillScores.Teacher != "" }},
	"teacher blocks": {`objective.distill_scores.teacher and metric = "block_diag"`,
		func(c *Config) bool {
			d := c.Objective.DistillScores
			return d.Teacher != "" && d.Metric == "block_diag"
		}},
	"connector": {"objective.mafa.connector", func(c *Config) bool { return c.Objective.MAFA.Connector != "" }},
	"targets": {"objective.itc.in_batch_weight > 0 or, of pairs, objective.itc.weight > 0",
		func(c *Config) bool {
			return c.Objective.ITC.InBatchWeight > 0 || c.Objective.ITC.Weight > 0 && !c.Has(section.ImagesAlone)
		}},
	"itm":            weighed("objective.itm.weight"),
	"captioning":     weighed("objective.captioning.weight"),
	"caption writer": {`objective.captioning.weight > 0 and decoder = "transformer"`, func(c *Config) bool { return c.Objective.Captioning.byTransformer() > 0 }},
	"gru captioning": {`objective.captioning.weight > 0 and decoder = "gru"`, func(c *Config) bool { return c.Objective.Captioning.recurs() }},
	"vqa":            weighed("objective.vqa.weight"),
	"word_patch":     weighed("objective.word_patch.weight"),
	"token_image":    weighed("objective.token_image.weight"),
	"text_swap":      weighed("objective.text_swap.weight"),
	"mlm":            weighed("objective.mlm.weight"),

	// Evaluation.
	"zero-shot files": {"a model.system over stored features and eval.zeroshot.image", func(c *Config) bool { return c.Has(section.Stored) && c.Eval.ZeroShot.Image != "" }},
	"zero-shot": {"a model.system with a text tower, or eval.zeroshot.image",
		func(c *Config) bool { return c.Has(section.Words) || c.Eval.ZeroShot.Image != "" }},
	"class folder": {"a model.system with a text tower and eval.zeroshot.images",
		func(c *Config) bool { return c.Has(section.Words) && c.Eval.ZeroShot.Images != "" }},
	"templates": {`a model.system with a text tower and eval.zeroshot.templates_file = ""`,
		func(c *Config) bool { return c.Has(section.Words) && c.Eval.ZeroShot.TemplatesFile == "" }},
	"sentence tasks": {"a model.system with a text tower and eval.sentences.tasks",
		func(c *Config) bool { return c.Has(section.Words) && len(c.Eval.Sentences.Tasks) > 0 }},
	"sentiment": {"a model.system with a text tower and eval.sentiment.train",
		func(c *Config) bool { return c.Has(section.Words) && c.Eval.Sentiment.Train != "" }},
	"sentence vectors": {"a model.system with a text tower, and eval.sentences.tasks or eval.sentiment.train_texts",
		func(c *Config) bool {
			return c.Has(section.Words) && (len(c.Eval.Sentences.Tasks) > 0 || c.Eval.Sentiment.TrainTexts != "")
		}},
	"fixed decay": {"a model.system with towers and eval.probe_hold = 0", func(c *Config) bool { return !c.Has(section.Stored) && c.Eval.ProbeHold == 0 }},

	// Starts.
	"image weights": {"init.image.path", func(c *Config) bool { return c.Init.Image.Path != "" }},
	"text weights":  {"init.text.path", func(c *Config) bool { return c.Init.Text.Path != "" }},
	"image rate":    {"model.image.freeze = false", func(c *Config) bool { return !c.Model.Image.Freeze }},
	"text rate": {"model.text.freeze = false, or fusion layers, and a loss that reads texts",
		func(c *Config) bool {
			return (!c.Model.Text.Freeze || c.Model.Text.FusionLayers > 0) && c.Objective.Captioning.byTransformer() == 0
		}},

	// Training.
	"micro-batches": {"train.accumulate_steps > 1", func(c *Config) bool { return c.Train.AccumulateSteps > 1 }},
}

// weighed is the condition that a weight is above 0.
func weighed(path string) condition {
	return condition{path + " > 0", func(c *Config) bool {
		w, _ := c.Get(path)
		return w.(float64) > 0
	}}
}

func ofKind(kinds ...string) func(c *Config) bool {
	return func(c *Config) bool { return slices.Contains(kinds, c.Data.Kind) }
}
