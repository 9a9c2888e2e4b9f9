package config

import (
	"fmt"
	"slices"

	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/data/source"
	"github.com/geoalign/geoalign/objectives"
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
	"images": {"a model.system that reads images", func(c *Config) bool { return c.Model.seesImages() }},
	"towers": {"a model.system with towers", func(c *Config) bool { return !c.Model.Stored() }},
	"pixels": {`a model.system that reads images and a model.image.style other than "regions"`,
		func(c *Config) bool { return c.Model.seesImages() && !c.ReadsRegions() }},
	"patches": {`a model.system that reads images and a model.image.style other than "regions" and "resnet"`,
		func(c *Config) bool { return c.Model.seesImages() && c.Model.Image.Transforms() }},
	"patch steps": {`a model.system that reads images and is trained in steps, and a model.image.style other than "regions" and "resnet"`,
		func(c *Config) bool { return c.Model.seesImages() && c.Model.Image.Transforms() }},
	"other than resnet": {`a model.system that reads images and a model.image.style other than "resnet"`,
		func(c *Config) bool { return c.Model.seesImages() && !c.readsResNet() }},
	"resnet": {`model.image.style = "resnet" and a model.system that reads images`, (*Config).readsResNet},
	"resnet steps": {`model.image.style = "resnet", a model.system that reads images and model.image.freeze = false`,
		func(c *Config) bool { return c.readsResNet() && !c.Model.Image.Freeze }},
	"teacher norms": {`model.image.style = "resnet" with batch norms that are not frozen, and a loss against momentum features`,
		func(c *Config) bool {
			return c.trainsResNetNorms() && c.Momentum.Enabled && c.Has(section.TeacherFeatures)
		}},
	"batch norms": {`model.image.style = "resnet" with batch norms that are not frozen`, (*Config).trainsResNetNorms},
	"random tower": {`init.checkpoint = "" and init.image.path = ""`,
		func(c *Config) bool { return c.Init.Checkpoint == "" && c.Init.Image.Path == "" }},
	"region tower": {`model.image.style = "regions" and a model.system that reads images`, (*Config).ReadsRegions},
	"region graph": {`model.image.regions.encoder = "graph"`,
		func(c *Config) bool { return c.ReadsRegions() && c.Model.Image.Regions.Encoder == RegionsGraph }},
	"masked regions": {`model.image.pool = "esa" and model.image.style = "regions"`,
		func(c *Config) bool { return c.ReadsRegions() && c.Model.Image.Pooling() == "esa" }},
	"region norms": {`model.image.regions.encoder = "mlp" or "graph"`,
		func(c *Config) bool { return c.ReadsRegions() && c.Model.Image.Regions.Encoder != RegionsLinear }},
	"graph blocks": {`model.image.regions.metric = "block_diag"`,
		func(c *Config) bool {
			r := c.Model.Image.Regions
			return c.ReadsRegions() && r.Encoder == RegionsGraph && r.Metric == "block_diag"
		}},
	"words": {"a model.system with a text tower", func(c *Config) bool { return c.Model.traits().words }},
	"started words": {"init.checkpoint and a model.system with a text tower",
		func(c *Config) bool { return c.Init.Checkpoint != "" && c.Model.traits().words }},
	"pairs": {"a model.system of pairs", func(c *Config) bool { return c.Model.traits().captions }},
	"features": {`a model.system of pairs whose features are compared (model.interaction.kind = "")`,
		func(c *Config) bool { return c.Model.traits().captions && !c.Model.Interacts() }},
	"text features": {`a model.system with a text tower, and model.interaction.kind = ""`,
		func(c *Config) bool { return c.Model.traits().words && !c.Model.Interacts() }},
	"scored": {"a model.system of pairs or of identities that is trained in steps",
		func(c *Config) bool {
			return (c.Model.traits().captions || c.Model.ByIdentity()) && !c.Model.Fitted()
		}},
	"views": {"a model.system of two views of an image", func(c *Config) bool { return c.Model.seesViews() }},
	"steps": {`a model.system that is trained in steps, which "align" is not`, func(c *Config) bool { return !c.Model.Fitted() }},
	"heads": {`model.system = "heads"`, (*Config).hasHeads},
	"fusion": {"objective.itm.weight, objective.mlm.weight or that of a downstream task > 0",
		func(c *Config) bool {
			return c.Model.traits().words && (c.Model.Text.FusionLayers == 0 || c.Has(section.FusedPairs))
		}},

	"attention": {"a model.system with a text tower and a model.text.style other than \"gru\"",
		func(c *Config) bool { return c.Model.traits().words && c.Model.Text.Style != StyleGRU }},
	"gru":              {`model.text.style = "gru" and a model.system with a text tower`, (*Config).hasGRU},
	"attention metric": {"model.attention_metric.form", func(c *Config) bool { return c.Model.AttentionMetric.Form != "" }},
	"attention blocks": {`model.attention_metric.form = "block_diag"`,
		func(c *Config) bool { return c.Model.AttentionMetric.Form == "block_diag" }},
	"mlp head":    {`model.head.style = "mlp"`, (*Config).hasMLPHead},
	"interaction": {"model.interaction.kind", func(c *Config) bool { return c.Model.Interacts() }},
	"max_soft": {`model.interaction.kind = "max_soft"`,
		func(c *Config) bool { return c.Model.Interaction.Kind == InteractionMaxSoft }},
	"cross attention": {`model.interaction.kind = "scan", "bfan", "imram", "naaf", "sgr" or "saf"`,
		func(c *Config) bool { return c.Model.Interaction.CrossAttends() }},
	"pooled": {`model.interaction.kind = "scan", "bfan" or "imram"`,
		func(c *Config) bool { return c.Model.Interaction.pools() }},
	"lse": {`model.interaction.kind = "scan", "bfan" or "imram" and pool = "lse"`,
		func(c *Config) bool { return c.Model.Interaction.pools() && c.Model.Interaction.poolsLSE() }},
	"stepped": {`model.interaction.kind = "imram" or "sgr"`,
		func(c *Config) bool { return c.Model.Interaction.Stepped() }},
	"memory": {`model.interaction.kind = "imram" and steps > 1`,
		func(c *Config) bool { return c.Model.Interaction.HasMemory() }},
	"mismatch": {`model.interaction.kind = "naaf"`,
		func(c *Config) bool { return c.Model.Interaction.Mismatches() }},
	"similarity vectors": {`model.interaction.kind = "sgr" or "saf"`,
		func(c *Config) bool { return c.Model.Interaction.MakesVectors() }},
	"cross metric": {`model.interaction.kind = "scan", "bfan", "imram", "naaf", "sgr" or "saf" and objective.itc.score = "gssf"`,
		func(c *Config) bool { return c.Model.Interaction.CrossAttends() && c.Has(section.Metric) }},

	"bottlenecks": {"model.tuning.adapter_width > 0 and a model.system with towers",
		func(c *Config) bool { return !c.Model.Stored() && c.Model.Tuning.AdapterWidth > 0 }},
	"prompts": {"model.tuning.prompt_tokens > 0 and a model.system with towers",
		func(c *Config) bool { return !c.Model.Stored() && c.Model.Tuning.PromptTokens > 0 }},
	"low rank": {"model.lora.rank or model.tuning.adapter_width > 0 and a model.system with towers",
		func(c *Config) bool { return c.Model.lowRank() }},
	"low rank blocks": {`model.tuning.metric = "block_diag", and model.lora.rank or model.tuning.adapter_width > 0`,
		func(c *Config) bool { return c.Model.lowRank() && c.Model.Tuning.Metric == "block_diag" }},
	"adapters": {"model.lora.rank > 0 and a model.system with towers", func(c *Config) bool { return c.Model.Adapts() }},

	"hidden layers": {"model.heads.layers > 0", func(c *Config) bool { return c.hasHeads() && c.Model.Heads.Layers > 0 }},
	"skips": {"model.heads.layers > 1, or 1 and features as wide as model.heads.hidden", func(c *Config) bool {
		h := c.Model.Heads
		return c.hasHeads() && (h.Layers > 1 || h.Layers == 1 && (h.Hidden == h.InImage || h.Hidden == h.InText))
	}},

	// Closed forms.
	"align": {`model.system = "align"`, func(c *Config) bool { return c.Model.Fitted() }},
	"align moments": {`model.system = "align" with a model.align.method other than "asif", model.heads.start or objective.klot.weight > 0`,
		func(c *Config) bool {
			return c.Model.Fitted() && c.Model.Align.Method != AlignByASIF || c.HeadsStart() != "" || c.klotReference() != ""
		}},
	"align cca":         fits(AlignByCCA),
	"align ridge":       fits(AlignByRidge),
	"align procrustes":  fits(AlignByProcrustes),
	"align csa":         fits(AlignByCSA),
	"align asif":        fits(AlignByASIF),
	"align wasserstein": fits(AlignByWasserstein),

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
			return c.Ranks > 1 && c.Parallel.Contrast == OfAllRanks && c.Objective.ITM.On()
		}},

	// Teacher and queue.
	"momentum":        {"momentum.enabled = true", func(c *Config) bool { return c.Momentum.Enabled }},
	"static momentum": {`momentum.enabled = true and momentum.rule = "static"`, func(c *Config) bool { return c.Momentum.Enabled && !c.Momentum.Dynamic() }},
	"teacher dropout": {"a loss against momentum features or a dynamic momentum.rule, and a dropout of the towers, model.text.dropout or model.heads.dropout > 0",
		func(c *Config) bool { return c.Momentum.Enabled && c.Has(section.TeacherFeatures) && c.hasDropout() }},
	"queue": {"queue.size > 0, and objective.itc.weight or objective.adcl.weight > 0",
		func(c *Config) bool {
			return c.Queue.Size > 0 && c.Has(section.PastFeatures)
		}},

	// Losses of tasks.
	"pair loss":      weighed("objective.sentence_pairs.weight"),
	"class loss":     weighed("objective.classes.weight"),
	"joint pairs":    {`objective.sentence_pairs.weight > 0 and encoding = "joint"`, func(c *Config) bool { return c.JointPairs() }},
	"captioning":     weighed("objective.captioning.weight"),
	"caption writer": {`objective.captioning.weight > 0 and decoder = "transformer"`, func(c *Config) bool { return c.Objective.Captioning.byTransformer() > 0 }},
	"gru captioning": {`objective.captioning.weight > 0 and decoder = "gru"`, func(c *Config) bool { return c.Objective.Captioning.recurs() }},
	"vqa":            weighed("objective.vqa.weight"),

	// Evaluation.
	"zero-shot files": {"a model.system over stored features and eval.zeroshot.image", func(c *Config) bool { return c.Model.Stored() && c.Eval.ZeroShot.Image != "" }},
	"zero-shot": {"a model.system with a text tower, or eval.zeroshot.image",
		func(c *Config) bool { return c.Model.traits().words || c.Eval.ZeroShot.Image != "" }},
	"class folder": {"a model.system with a text tower and eval.zeroshot.images",
		func(c *Config) bool { return c.Model.traits().words && c.Eval.ZeroShot.Images != "" }},
	"templates": {`a model.system with a text tower and eval.zeroshot.templates_file = ""`,
		func(c *Config) bool { return c.Model.traits().words && c.Eval.ZeroShot.TemplatesFile == "" }},
	"sentence tasks": {"a model.system with a text tower and eval.sentences.tasks",
		func(c *Config) bool { return c.Model.traits().words && len(c.Eval.Sentences.Tasks) > 0 }},
	"sentiment": {"a model.system with a text tower and eval.sentiment.train",
		func(c *Config) bool { return c.Model.traits().words && c.Eval.Sentiment.Train != "" }},
	"sentence vectors": {"a model.system with a text tower, and eval.sentences.tasks or eval.sentiment.train_texts",
		func(c *Config) bool {
			return c.Model.traits().words && (len(c.Eval.Sentences.Tasks) > 0 || c.Eval.Sentiment.TrainTexts != "")
		}},
	"fixed decay": {"a model.system with towers and eval.probe_hold = 0", func(c *Config) bool { return !c.Model.Stored() && c.Eval.ProbeHold == 0 }},

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

// fits is the condition of a method in closed form.
func fits(method string) condition {
	with := fmt.Sprintf("model.system = \"align\" and model.align.method = %q", method)
	if slices.Contains(startMethods, method) {
		with += fmt.Sprintf(", model.heads.start = %q", method)
	}
	if slices.Contains(objectives.References, method) {
		with += fmt.Sprintf(", or objective.klot.reference = %q with a weight > 0", method)
	}
	return condition{with, func(c *Config) bool {
		return c.Model.Fitted() && c.Model.Align.Method == method || c.HeadsStart() == method || c.klotReference() == method
	}}
}
