package config

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/objectives"
)

func TestDefaultIsValid(t *testing.T) { wants(t, "", Default(), "") }

// wants holds the problems of a configuration against what they must have in them; empty: there are none.
func wants(t *testing.T, name string, c Config, want string) {
	t.Helper()
	err := c.Validate()
	if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
		t.Errorf("%s: got  %v\nwant %s", name, err, want)
	}
}

// Each row breaks the defaults in one way and states the one message expected.
func TestValidateMessages(t *testing.T) {
	nan := math.NaN()
	rows := []struct {
		change func(c *Config)
		want   string
	}{
		{func(c *Config) { *c = simcse(); c.Objective.SimCSE.Weight = 0; c.Objective.MCSE.Weight = 0 }, `objective.itc.weight: no loss is on (got 0); set at least one objective weight above 0
objective.simcse.weight: must be > 0 (got 0); it is the loss of model.system "simcse"`},
		{func(c *Config) { *c = simcse(); c.Objective.SimCSE.Head = "pooler" }, `objective.simcse.head: must be one of training, always, none (got "pooler")`},
		{func(c *Config) { *c = simcse(); c.Objective.SimCSE.Temperature = 0 }, "objective.simcse.temperature: must be at least 0.0001 (got 0); 0.05 in the paper"},
		{func(c *Config) {
			*c = simcse()
			c.Data.Kind, c.Data.Sentences.Positive, c.Data.Sentences.Negative, c.Objective.SimCSE.HardNegativeWeight = "sentences", "a", "b", 0
			c.Data.Sentences.TrainFiles = []string{"x"}
		}, "objective.simcse.hard_negative_weight: must be at least 0.000001 (got 0); leave out data.sentences.negative for none"},
		{func(c *Config) { *c = simcse(); c.Model.Text.Dropout = 0 }, "model.text.dropout: must be > 0 with objective.simcse.weight > 0 (got 0); two passes of a text differ by dropout alone"},
		{func(c *Config) { *c = simcse(); c.Model.Text.Freeze = true }, "model.text.freeze: must be false with objective.simcse.weight > 0 (got true); it trains the text tower"},
		{func(c *Config) { *c = simcse(); c.Model.Head.Dim = 8 }, `model.head.dim: must be model.text.width (got 8); an embedding is what the text tower gives, where objective.simcse.head is not "always"`},
		{func(c *Config) { *c = simcse(); c.Model.Head.Style = "mlp" }, `model.head.style: must be "linear" (got "mlp"); model.system "simcse" has no other`},
		{func(c *Config) { *c = simcse(); c.Objective.MCSE.Weight = 1 }, `objective.mcse.weight: must be 0 (got 1); model.system "simcse" has no pairs of images and captions: use "albef", "clip", "matching", "heads" or "align"`},
		{func(c *Config) { *c = simcse(); c.Objective.ITC.InBatchWeight = 1 }, `objective.itc.in_batch_weight: must be 0 (got 1); model.system "simcse" compares no images with texts`},
		{func(c *Config) { *c = simcse(); c.Queue.Size = 4096 }, `queue.size: must be 0 (got 4096); model.system "simcse" compares a batch with itself`},
		{func(c *Config) { *c = simcse(); c.Data.Cache = "memory"; c.Data.Kind = "folder" }, `data.cache: must be none (got "memory"); model.system "simcse" reads no images`},
		{func(c *Config) { *c = simcse(); c.Eval.Beside = []string{"zeroshot"} }, `eval.beside: must be empty (got ["zeroshot"]); model.system "simcse" has no images`},
		{func(c *Config) { *c = simcse(); c.Data.Kind = "sentences" }, `data.sentences.train_files: must name at least one file for data.kind "sentences" (got [])`},
		{func(c *Config) { *c = simcse(); c.Data.Sentences.Negative = "no" }, `data.sentences.negative: must be empty without data.sentences.positive (got "no"); a hard negative stands beside a positive`},
		{func(c *Config) { *c = simcse(); c.Data.Sentences.Sentence = "" }, `data.sentences.sentence: must name a column (got "")`},
		{func(c *Config) {
			*c = clip()
			c.Data.Kind, c.Data.Sentences.TrainFiles = "sentences", []string{"x.txt"}
		},
			`data.kind: must not be "sentences" (got "sentences"); model.system "clip" reads images: sentences alone are for model.system "simcse"`},
		{func(c *Config) {
			*c = clip()
			c.Objective.SimCSE.Weight, c.Objective.SimCSE.Head, c.Model.Text.Dropout = 1, "always", 0.1
		},
			`objective.simcse.head: must be training or none (got "always"); model.system "clip" has a head of its own for evaluation`},
		{func(c *Config) {
			*c = clip()
			c.Objective.MCSE.Weight, c.Model.Text.Dropout, c.Model.Head.Dim, c.Model.Head.Topology = 1, 0.1, 64, "Multi(8,8)"
		},
			`objective.mcse.weight: must be 0 with several class tokens (got 1); it reads one vector for each text: choose another model.head.topology`},
		{func(c *Config) { c.Objective.SimCSE.Weight = 1 }, `objective.simcse.weight: must be 0 (got 1); model.system "albef" has no text tower of its own: use "simcse", "clip" or "matching"`},
		{func(c *Config) {
			*c = clip()
			c.Data.Sentences.Batches, c.Data.Sentences.TrainFiles = 2, []string{"x.txt"}
		},
			"data.sentences.batches: must be 0 without objective.simcse.weight and objective.mcse.weight > 0 (got 2); the other losses compare the images of a batch, which sentences have not"},
		{func(c *Config) {
			*c = clip()
			c.Model.Text.Dropout, c.Objective.SimCSE.Weight, c.Objective.MCSE.Weight, c.Data.Sentences.Batches, c.Data.Sentences.TrainFiles = 0.1, 1, 1, 2, []string{"x.txt"}
		}, "data.sentences.batches: must be 0 with losses on images besides objective.mcse (got 2); they compare the images of a batch, which sentences have not"},
		{func(c *Config) {
			*c = clip()
			c.Model.Text.Dropout, c.Objective.ITC.InBatchWeight, c.Objective.SimCSE.Weight, c.Objective.MCSE.Weight, c.Data.Sentences.Batches = 0.1, 0, 1, 1, 2
		}, "data.sentences.train_files: must name at least one file with data.sentences.batches > 0 (got [])"},
		{func(c *Config) { *c = clip(); c.Model.Text.Style, c.Model.Text.Pool = encoders.StyleCLIP, "first_last" },
			`model.text.pool: must be class, mean, end, max, gpo or esa with a model.text.style other than bert, roberta and mpnet (got "first_last"); first_last reads the states behind the first layer of these`},
		{func(c *Config) { *c = classifier(); c.Objective.Classes.Weight = 0 }, `objective.itc.weight: no loss is on (got 0); set at least one objective weight above 0
objective.classes.weight: must be > 0 (got 0); it is the loss of model.system "classes"`},
		{func(c *Config) { *c = clip(); c.Objective.Classes.Weight = 1 }, `objective.classes.weight: must be 0 (got 1); model.system "clip" tells no classes: use "classes"`},
		{func(c *Config) { *c = classifier(); c.Objective.Classes.Smoothing = 1 }, "objective.classes.smoothing: must be at least 0 and below 1 (got 1)"},
		{func(c *Config) { *c = classifier(); c.Objective.Classes.Mixup = -1 }, "objective.classes.mixup: must be >= 0 (got -1)"},
		{func(c *Config) { *c = classifier(); c.Model.Head.Dim = 8 }, `model.head.dim: must be 768, the width of what the image tower gives (got 8); features of model.system "classes" are that, without a projection`},
		{func(c *Config) { *c = classifier(); c.Model.Image.Freeze = true }, `model.image.freeze: must be false (got true); model.system "classes" trains the image tower: trainer eval --task probe fits a classifier to a frozen one`},
		{func(c *Config) { *c = classifier(); c.Objective.ITC.Weight = 1 }, `objective.itc.weight: must be 0 (got 1); model.system "classes" is trained by objective.classes.weight`},
		{func(c *Config) { *c = classifier(); c.Data.Views = 2 }, `data.views: must be 1 (got 2); model.system "classes" sees an image once`},
		{func(c *Config) { *c = classifier(); c.Queue.Size = 4096 }, `queue.size: must be 0 (got 4096); model.system "classes" compares a batch with itself`},
		{func(c *Config) { *c = pairsOf("mrpc"); c.Objective.SentencePairs.Encoding = "both" }, `objective.sentence_pairs.encoding: must be one of separate, joint (got "both")`},
		{func(c *Config) {
			*c = pairsOf("mrpc")
			c.Objective.SentencePairs.Encoding, c.Model.Text.Pool = "joint", "mean"
		},
			`objective.sentence_pairs.encoding: must be "separate" with this text tower (got "joint"); joint reads the first token of BERT or RoBERTa: set model.text.style and model.text.pool`},
		{func(c *Config) { *c = pairsOf("mrpc"); c.Objective.SentencePairs.Dropout = 1 }, "objective.sentence_pairs.dropout: must be at least 0 and below 1 (got 1)"},
		{func(c *Config) { *c = pairsOf("mrpc"); c.Data.Kind = "scenes" }, `data.kind: must be "sentence_pairs" (got "scenes"); model.system "sentence_pairs" is trained on these`},
		{func(c *Config) { *c = pairsOf("mrpc"); c.Objective.SimCSE.Weight = 1 }, `objective.simcse.weight: must be 0 (got 1); model.system "sentence_pairs" is trained by objective.sentence_pairs.weight`},
		{func(c *Config) { *c = clip(); c.Objective.SentencePairs.Weight = 1 }, `objective.sentence_pairs.weight: must be 0 (got 1); model.system "clip" reads no pairs of sentences: use "sentence_pairs"`},

		{func(c *Config) { c.Run.Name = "" }, `run.name: must not be empty (got ""); name the run or set run.out`},
		{func(c *Config) { c.Run.Name = "a/b" }, `run.name: must not be a path (got "a/b"); use run.out for the folder`},
		{func(c *Config) { c.Run.Name = ".." }, `run.name: must not be a path (got ".."); use run.out for the folder`},
		{func(c *Config) { c.Run.Seed = 1 << 63 }, "run.seed: must be at most 9223372036854775807 (got 9223372036854775808); lower it: docs/config.md lists the limit of every key"},

		{func(c *Config) { c.Train.Accumulate = "batches" }, `train.accumulate: must be one of gradients, features (got "batches")`},
		{func(c *Config) { c.Train.Accumulate, c.Train.AccumulateSteps = "features", 2 },
			`train.accumulate: must be "gradients" with objective.itm.weight > 0 (got "features"); it reads more than the features of other micro-batches: set objective.itm.weight = 0`},
		{func(c *Config) {
			c.Train.Accumulate, c.Train.AccumulateSteps, c.Objective.ITM.Weight, c.Objective.MLM.Weight, c.Objective.Structure.Weight = "features", 2, 0, 0, 1
		}, `train.accumulate: must be "gradients" with objective.structure.weight > 0 (got "features"); it reads more than the features of other micro-batches: set objective.structure.weight = 0`},
		{func(c *Config) {
			c.Train.Accumulate, c.Train.AccumulateSteps, c.Objective.ITM.Weight, c.Objective.MLM.Weight, c.Objective.TCL.Local = "features", 2, 0, 0, true
		}, `train.accumulate: must be "gradients" with objective.tcl.local (got "features"); it reads tokens of other micro-batches: set objective.tcl.local = false`},
		{func(c *Config) { *c = clip(); c.Model.Image.KeepPatches, c.Objective.WordPatch.Weight = 0.5, 1 },
			"model.image.keep_patches: must be 1 with objective.word_patch, token_image, text_swap or captioning, which read all patches (got 0.5)"},
		{func(c *Config) { *c = clip(); c.Model.Image.KeepPatches, c.Objective.Captioning.Weight = 0.5, 1 },
			"model.image.keep_patches: must be 1 with objective.word_patch, token_image, text_swap or captioning, which read all patches (got 0.5)"},
		{func(c *Config) {
			*c = clip()
			c.Train.Accumulate, c.Train.AccumulateSteps, c.Model.Text.Dropout, c.Objective.SimCSE.Weight = "features", 2, 0.1, 1
		}, `train.accumulate: must be "gradients" with objective.simcse.weight > 0 (got "features"); it reads more than the features of other micro-batches: set objective.simcse.weight = 0`},
		{func(c *Config) {
			*c = clip()
			c.Train.Accumulate, c.Train.AccumulateSteps, c.Model.Text.Dropout, c.Objective.MCSE.Weight = "features", 2, 0.1, 1
		}, `train.accumulate: must be "gradients" with objective.mcse.weight > 0 (got "features"); it reads more than the features of other micro-batches: set objective.mcse.weight = 0`},
		{func(c *Config) {
			c.Train.Accumulate, c.Train.AccumulateSteps, c.Objective.ITM.Weight, c.Objective.MLM.Weight, c.Queue.Size = "features", 2, 0, 0, 64
		}, `queue.size: must be 0 or at least train.batch_size x train.accumulate_steps with train.accumulate = "features" (got 64); the pairs of an update enter it together: raise queue.size or lower train.accumulate_steps`},
		{func(c *Config) { c.Momentum.Rule = "moco" }, `momentum.rule: must be one of static, dynamic, dynamic_teacher (got "moco")`},
		{func(c *Config) { c.Objective.ADCL.Weight = -1 }, "objective.adcl.weight: must be >= 0 (got -1)"},
		{func(c *Config) { c.Objective.ADCL.Temperature = 0 }, "objective.adcl.temperature: must be between 0.001 and 1000 (got 0); 0.07 and 0.1 are usual"},
		{func(c *Config) { c.Objective.ADCL.FusionTemperature = 2000 }, "objective.adcl.fusion_temperature: must be between 0.001 and 1000 (got 2000); 0.07 and 0.1 are usual"},
		{func(c *Config) { c.Objective.ADCL.Fusion = "sum" }, `objective.adcl.fusion: must be one of tucker, attention, none (got "sum")`},
		{func(c *Config) { c.Objective.ADCL.Dim = 0 }, "objective.adcl.dim: must be > 0 (got 0)"},
		{func(c *Config) { c.Objective.ADCL.Rank = -2 }, "objective.adcl.rank: must be >= 0 (got -2)"},
		{func(c *Config) { c.Objective.ADCL.Dropout = 1 }, "objective.adcl.dropout: must be at least 0 and below 1 (got 1)"},
		{func(c *Config) { *c = clip(); c.Objective.ADCL.Weight = 0.04 },
			"objective.adcl.weight: must be 0 without momentum (got 0.04); it needs the teacher: set momentum.enabled = true"},
		{func(c *Config) {
			*c = clip()
			c.Momentum.Enabled, c.Objective.ADCL.Weight = true, 0.04
		}, "objective.adcl.weight: must be 0 without a queue (got 0.04); its negatives are there: set queue.size"},
		{func(c *Config) { *c = small(); c.Objective.ADCL.Weight, c.Model.Head.Topology = 0.04, "Ob(8,8)" },
			`objective.adcl.weight: must be 0 with another model.head.topology than "sphere" (got 0.04); it compares unit vectors of one sphere`},
		{func(c *Config) {
			*c = small()
			c.Objective.ADCL.Weight, c.Objective.ADCL.Rank, c.Model.Head.Dim, c.Objective.ADCL.Dim = 0.04, 0, 1<<14, 1
		}, "model.head.dim: makes 4398046527488 weights of the fusion of objective.adcl, model.head.dim^3 with a full core, of which there must be at most 1099511627776 (got 16384); lower it or set objective.adcl.rank"},
		{func(c *Config) { c.Model.Head.Style = "tucker" }, `model.head.style: must be one of linear, tanh, mlp (got "tucker")`},
		{func(c *Config) { c.Model.Head.Activation = "sine" }, `model.head.activation: must be one of tanh, gelu, relu, silu (got "sine")`},
		{func(c *Config) { c.Model.Head.Shared = -1 }, "model.head.shared: must be >= 0 (got -1)"},
		{func(c *Config) { *c = clip(); c.Model.System, c.Model.Head.Style = "matching", "mlp" },
			`model.head.style: must be "linear" (got "mlp"); model.system "matching" has no other`},
		{func(c *Config) {
			*c = clip()
			c.Model.Head.Style, c.Model.Head.Identity, c.Model.Head.Dim = "mlp", "image", 768
		}, `model.head.style: must be "linear" with model.head.identity (got "mlp"); a side without a projection has no layers: set model.head.identity = ""`},
		{func(c *Config) { *c = clip(); c.Model.Head.Style, c.Model.Head.Topology = "mlp", "Multi(8,8)" },
			`model.head.style: must be "linear" with model.head.topology = "Multi(n,m)" (got "mlp"); its class tokens share one layer: use another topology`},
		{func(c *Config) { c.Model.Head.Style, c.Objective.Geometric.Weight = "mlp", 1 },
			`model.head.style: must be "linear" with objective.geometric (got "mlp"); the term passes points through one layer: set objective.geometric.weight = 0`},
		{func(c *Config) {
			c.Train.Accumulate, c.Train.AccumulateSteps, c.Objective.ITM.Weight, c.Objective.MLM.Weight, c.Objective.TextSwap.Weight = "features", 2, 0, 0, 1
		}, `train.accumulate: must be "gradients" with objective.text_swap.weight > 0 (got "features"); it reads more than the features of other micro-batches: set objective.text_swap.weight = 0`},
		{func(c *Config) { c.Objective.SimCSE.Weight = -1 }, "objective.simcse.weight: must be >= 0 (got -1)"},
		{func(c *Config) { c.Objective.MCSE.Weight = -1 }, "objective.mcse.weight: must be >= 0 (got -1)"},
		{func(c *Config) {
			*c = clip()
			c.Objective.SimCSE.Weight, c.Model.Text.Dropout, c.Model.Interaction.Kind = 1, 0.1, "max_ave"
		}, "objective.simcse.weight: must be 0 with model.interaction.kind (got 1); it reads one vector for each text"},
		{func(c *Config) {
			*c = clip()
			c.Objective.ADCL.Weight, c.Model.Interaction.Kind = 0.04, "max_ave"
		}, "objective.adcl.weight: must be 0 with model.interaction (got 0.04); it compares features"},
		{func(c *Config) { c.Objective.WordPatch.Weight = -1 }, "objective.word_patch.weight: must be >= 0 (got -1)"},
		{func(c *Config) { c.Objective.WordPatch.Temperature = 0 }, "objective.word_patch.temperature: must be between 0.001 and 10000 (got 0)"},
		{func(c *Config) { c.Objective.WordPatch.ContextTemperature = -1 }, "objective.word_patch.context_temperature: must be between 0.001 and 10000 (got -1)"},
		{func(c *Config) { c.Objective.WordPatch.AttentionScale = 1e5 }, "objective.word_patch.attention_scale: must be between 0.001 and 10000 (got 100000)"},
		{func(c *Config) { c.Objective.WordPatch.Reduce = "max" }, `objective.word_patch.reduce: must be one of mean, sum (got "max")`},
		{func(c *Config) { c.Objective.WordPatch.Weight, c.Model.Head.Topology = 1, "Multi(64,4)" },
			`objective.word_patch.weight: must be 0 with model.head.topology = "Multi(n,m)" (got 1); a word or a patch is one token and has no m spheres`},
		{func(c *Config) { c.Objective.WordPatch.Weight, c.Train.BatchSize = 1, 1 },
			"train.batch_size: must be at least 2 with objective.word_patch.weight > 0 (got 1); a pair is told from others of its batch"},
		{func(c *Config) { c.Objective.TokenImage.Margin = 0 }, "objective.token_image.margin: must be above 0 and at most 10000 (got 0); 0.5 is what cosines are trained with"},
		{func(c *Config) { c.Objective.TokenImage.Negatives = "hardest" }, `objective.token_image.negatives: must be one of random, half (got "hardest")`},
		{func(c *Config) { c.Objective.TextSwap.Margin = -1 }, "objective.text_swap.margin: must be above 0 and at most 10000 (got -1); 0.2 is what cosines are trained with"},
		{func(c *Config) { c.Objective.TextSwap.Alpha = -1 }, "objective.text_swap.alpha: must be between 0 and 10000 (got -1)"},
		{func(c *Config) { c.Objective.TextSwap.Weight, c.Objective.TextSwap.Probability = 1, 0 }, "objective.text_swap.probability: must be above 0 and at most 1 (got 0); to leave the loss out set objective.text_swap.weight = 0"},
		{func(c *Config) { c.Objective.TextSwap.Attention = "global" }, `objective.text_swap.attention: must be one of local, batch (got "global")`},
		{func(c *Config) { c.Model.LoRA.Rank = -1 }, "model.lora.rank: must be >= 0 (got -1)"},
		{func(c *Config) { c.Model.LoRA.Alpha = 0 }, "model.lora.alpha: must be > 0 (got 0)"},
		{func(c *Config) { c.Model.LoRA.Dropout = 1 }, "model.lora.dropout: must be at least 0 and below 1 (got 1)"},
		{func(c *Config) { c.Model.LoRA.Layers = []string{"text/[layers"} }, `model.lora.layers: must be globs of names (got ["text/[layers"]); such as "text/layers/*/attention/*"`},
		{func(c *Config) {
			c.Model.LoRA.Rank, c.Model.Image.Freeze, c.Model.Text.Freeze, c.Model.Text.FusionLayers, c.Objective.ITM.Weight, c.Objective.MLM.Weight = 4, true, true, 0, 0, 0
		}, "model.lora.rank: must be 0 without a transformer that is not frozen: nothing has adapters (got 4); set model.image.freeze = false or set model.text.freeze = false"},
		{func(c *Config) { c.Model.Tuning.AdapterWidth = -1 }, "model.tuning.adapter_width: must be >= 0 (got -1)"},
		{func(c *Config) { c.Model.Tuning.AdapterActivation = "silu" }, `model.tuning.adapter_activation: must be one of gelu, relu (got "silu")`},
		{func(c *Config) { c.Model.Tuning.PartialBlocks = 7 }, "model.tuning.partial_blocks: must be at most model.text.layers (6) (got 7); leave model.tuning off to train all"},
		{func(c *Config) { c.Model.Tuning.PromptTokens = -2 }, "model.tuning.prompt_tokens: must be >= 0 (got -2)"},
		{func(c *Config) {
			c.Model.Tuning.PromptTokens, c.Model.System, c.Model.Text.Style, c.Model.Text.FusionLayers, c.Objective.ITM.Weight, c.Objective.MLM.Weight = 2, "clip", "mpnet", 0, 0, 0
		}, `model.tuning.prompt_tokens: must be 0 with model.text.style "mpnet", whose attention reads distances that prompts have not (got 2)`},
		{func(c *Config) { c.Model.Tuning.Metric = "cosine" }, `model.tuning.metric: must be empty or one of diag, block_diag, dense (got "cosine")`},
		{func(c *Config) {
			c.Model.Tuning.Metric, c.Model.Tuning.MetricBlocks, c.Model.LoRA.Rank = "block_diag", 10, 4
		}, "model.tuning.metric_blocks: must divide model.image.width (768) (got 10); choose a divisor: the blocks have one size"},
		{func(c *Config) {
			c.Model.Tuning.Metric, c.Model.Tuning.AdapterWidth, c.Model.Text.Width = "block_diag", 4, 780
		}, "model.tuning.metric_blocks: must divide model.text.width (780) (got 0); 0 stands for blocks of 8 channels: choose a divisor"},
		{func(c *Config) {
			c.Model.Tuning.SSF, c.Model.Image.Freeze, c.Model.Text.Freeze, c.Model.Text.FusionLayers, c.Objective.ITM.Weight, c.Objective.MLM.Weight = true, true, true, 0, 0, 0
		}, `model.tuning.ssf: must be off without a transformer that is not frozen: there is nothing to tune (got true); set model.image.freeze = false or set model.text.freeze = false`},
		{func(c *Config) { c.Data.Kind = "imagenet" }, `data.kind: must be one of captions, coco, csv, entailment, flickr, folder, grounding, karpathy, multimodal, nlvr, pairs, parquet, regions, reid, scenes, sentence_pairs, sentences, vqa, webdataset (got "imagenet")`},
		{func(c *Config) { c.Data.Kind = "csv" }, `data.csv.train_files: must name at least one file for data.kind "csv" (got [])`},
		{func(c *Config) { c.Data.CSV.Separator = "||" }, `data.csv.separator: must be one character, and no quotation mark or end of a line (got "||")`},
		{func(c *Config) { c.Data.CSV.Separator = "\"" }, `data.csv.separator: must be one character, and no quotation mark or end of a line (got "\"")`},
		{func(c *Config) { c.Data.CSV.Image = "" }, `data.csv.image: must name a column (got "")`},
		{func(c *Config) { c.Data.CSV.Caption = "" }, `data.csv.caption: must name a column (got ""); or name one in data.csv.id, which is then the caption`},
		{func(c *Config) { c.Data.Kind = "coco" }, `data.coco.train_file: must name the captions_*.json for data.kind "coco" (got "")`},
		{func(c *Config) {
			c.Data.Kind, c.Data.COCO.TrainFile, c.Train.EvalEverySteps = "coco", "a", 5
		}, `data.coco.val_file: must name a file (got ""); or set eval.split or train.eval_every_steps = 0`},
		{func(c *Config) { c.Data.Kind = "flickr" }, `data.flickr.file: must name the file of the captions for data.kind "flickr" (got "")`},
		{func(c *Config) { c.Data.Kind, c.Data.Flickr.File, c.Data.Flickr.ValList = "flickr", "a", "b" },
			`data.flickr.train_list: must name a file where another split has a list (got ""); else images of that split would be trained on`},
		{func(c *Config) {
			c.Data.Kind, c.Data.Flickr.File, c.Train.EvalEverySteps = "flickr", "a", 5
		}, `data.flickr.val_list: must name a file (got ""); or set eval.split or train.eval_every_steps = 0`},
		{func(c *Config) { c.Data.Kind, c.Data.Regions.Train = "regions", "" }, `data.regions.train: must name the split for data.kind "regions" (got "")`},
		{func(c *Config) { c.Data.Kind, c.Data.Regions.Features = "regions", "x.h5" }, `data.regions.features: must end in .npy, .npz, .pt, .pth, .safetensors or .tsv (got "x.h5")`},
		{func(c *Config) { c.Data.Kind, c.Data.Regions.Repeated = "regions", "5" }, `data.regions.repeated: must be one of auto, yes, no (got "5")`},
		{func(c *Config) { c.Data.VocabKind = "bpe" }, `data.vocab_kind: must be one of auto, wordpiece, words (got "bpe")`},
		{func(c *Config) { c.Data.Kind = "webdataset" }, `data.webdataset.train_files: must name at least one file for data.kind "webdataset" (got [])`},
		{func(c *Config) { c.Data.WebDataset.Shuffle = 0 }, "data.webdataset.shuffle: must be > 0 (got 0)"},
		{func(c *Config) { c.Data.Kind = "parquet" }, `data.parquet.train_files: must name at least one file for data.kind "parquet" (got [])`},
		{func(c *Config) { c.Data.Parquet.Shuffle = 0 }, "data.parquet.shuffle: must be > 0 (got 0)"},
		{func(c *Config) { c.Data.Parquet.Image = "" }, `data.parquet.image: must name a column (got "")`},
		{func(c *Config) { c.Data.Parquet.Caption = "" }, `data.parquet.caption: must name a column (got "")`},
		{func(c *Config) { c.Data.Kind = "captions" }, `data.captions.train_files: must name at least one file for data.kind "captions" (got [])`},
		{func(c *Config) {
			c.Data.Kind, c.Data.Captions.TrainFiles, c.Train.EvalEverySteps = "captions", []string{"a"}, 5
		},
			"data.captions.val_files: must name at least one file (got []); or set eval.split or train.eval_every_steps = 0"},
		{func(c *Config) {
			c.Data.Kind, c.Data.Captions.TrainFiles, c.Train.EvalEverySteps, c.Eval.Split = "captions", []string{"a"}, 5, "test"
		}, "data.captions.test_files: must name at least one file (got []); or set eval.split or train.eval_every_steps = 0"},
		{func(c *Config) { c.Data.Captions.ValFiles = []string{"a", ""} }, `data.captions.val_files: must not hold an empty file name (got ["a" ""])`},
		{func(c *Config) { c.Data.Kind = "karpathy" }, `data.karpathy.file: must name the dataset_*.json for data.kind "karpathy" (got "")`},
		{func(c *Config) { c.Data.MaxPixels = 0 }, "data.max_pixels: must be > 0 (got 0)"},
		{func(c *Config) { c.Data.MaxWords = -1 }, "data.max_words: must be > 0 (got -1)"},
		{func(c *Config) { c.Data.MaxBadShare = 1.5 }, "data.max_bad_share: must be between 0 and 1 (got 1.5)"},
		{func(c *Config) { c.Data.Tokens = 1 }, "data.tokens: must be >= 2 (got 1); [CLS] takes one position"},
		{func(c *Config) { c.Data.Tokens = 513 }, "data.tokens: must be at most model.text.positions (got 513); raise model.text.positions or lower data.tokens"},
		{func(c *Config) { c.Data.VocabSize = 63 }, "data.vocab_size: must be >= 64 (got 63)"},
		{func(c *Config) { c.Data.Workers = -1 }, "data.workers: must be >= 0 (got -1)"},
		{func(c *Config) { c.Data.Prefetch = -1 }, "data.prefetch: must be >= 0 (got -1)"},
		{func(c *Config) { c.Data.Cache = "ram" }, `data.cache: must be one of none, memory, disk (got "ram")`},
		{func(c *Config) { c.Data.Cache = "memory" }, `data.cache: must be none for scenes (got "memory"); they are drawn, not decoded`},
		{func(c *Config) {
			c.Data.Kind, c.Data.Captions.TrainFiles, c.Data.Cache = "captions", []string{"a"}, "disk"
		},
			`data.cache_dir: must name a folder for data.cache = "disk" (got "")`},
		{func(c *Config) { c.Data.CacheMaxGB = 0 }, "data.cache_max_gb: must be > 0 (got 0)"},
		{func(c *Config) { c.Data.CacheSize = -1 }, "data.cache_size: must be >= 0 (got -1)"},
		{func(c *Config) { c.Data.CacheSize = 255 }, "data.cache_size: must be 0 or at least model.image.size (got 255); crops of smaller images would be blurred"},
		{func(c *Config) { c.Data.CropScaleMin = 0 }, "data.crop_scale_min: must be above 0 and at most 1 (got 0)"},
		{func(c *Config) { c.Data.RandAugmentOps = -2 }, "data.randaugment_ops: must be >= 0 (got -2)"},
		{func(c *Config) { c.Data.RandAugmentLvl = 11 }, "data.randaugment_level: must be between 0 and 10 (got 11)"},
		{func(c *Config) { c.Data.OverfitSamples = -1 }, "data.overfit_samples: must be >= 0 (got -1)"},
		{func(c *Config) { c.Data.OverfitSamples = 10 }, "data.overfit_samples: must be 0 or at least train.batch_size (got 10); or set data.drop_last = false"},
		{func(c *Config) { c.Data.Scenes.MinObjects = 0 }, "data.scenes.min_objects: must be between 1 and 4 (got 0)"},
		{func(c *Config) { c.Data.Scenes.MaxObjects = 5 }, "data.scenes.max_objects: must be between 1 and 4 (got 5)"},
		{func(c *Config) { c.Data.Scenes.MinObjects, c.Data.Scenes.MaxObjects = 3, 2 }, "data.scenes.max_objects: must be at least data.scenes.min_objects (got 2)"},
		{func(c *Config) { c.Data.Scenes.ValSamples = 0 }, "data.scenes.val_samples: must be > 0 (got 0)"},

		{func(c *Config) { identities(c); c.Train.BatchSize = 10 }, `data.identities.images: must divide train.batch_size into at least 2 identities (got 4); a batch is so many images of each of some identities`},
		{func(c *Config) { identities(c); c.Data.Identities.Images = 1 }, `data.identities.images: must be at least 2 with objective.triplet.weight > 0 (got 1); a triplet has two images of one identity`},
		{func(c *Config) { identities(c); c.Data.Identities.Short = "drop" }, `data.identities.short: must be one of repeat, leave_out (got "drop")`},
		{func(c *Config) { identities(c); c.Data.Views = 2 }, `data.views: must be 1 (got 2); model.system "identities" sees an image once`},
		{func(c *Config) { identities(c); c.Objective.ITC.Weight = 1 }, `objective.itc.weight: must be 0 (got 1); model.system "identities" is trained by objective.triplet.weight and objective.softmax.weight`},
		{func(c *Config) { identities(c); c.Queue.Size = 64 }, `queue.size: must be 0 (got 64); model.system "identities" compares a batch with itself`},
		{func(c *Config) { identities(c); c.Objective.Softmax.Classes = 1 }, `objective.softmax.classes: must be at least 2 (got 1); the number of identities of the training data`},
		{func(c *Config) { identities(c); c.Objective.Softmax.Smoothing = 1 }, `objective.softmax.smoothing: must be at least 0 and below 1 (got 1)`},
		{func(c *Config) { identities(c); c.Objective.Triplet.Margin = 0 }, `objective.triplet.margin: must be above 0 and at most 10000 (got 0); 0.3 is what distances are trained with`},
		{func(c *Config) { identities(c); c.Objective.Triplet.Negatives = "none" }, `objective.triplet.negatives: must be one of hardest, all (got "none")`},
		{func(c *Config) { c.Objective.Triplet.Weight = 1 }, `objective.triplet.weight: must be 0 (got 1); model.system "albef" has no identities: use "identities"`},
		{func(c *Config) { c.Objective.Softmax.Weight, c.Objective.Softmax.Classes = 1, 9 }, `objective.softmax.weight: must be 0 (got 1); model.system "albef" has no identities: use "identities"`},
		{func(c *Config) { c.Model.System = "blip" }, `model.system: must be one of albef, clip, matching, moco, swav, identities, classes, simcse, sentence_pairs, heads, align, text_encoder, image_encoder (got "blip")`},
		{func(c *Config) {
			c.Model.System, c.Model.Head.Identity, c.Model.Head.Dense = "clip", "text", []string{"text 300 gelu", "text 100 nobias"}
			c.Objective.ITM.Weight, c.Objective.MLM.Weight, c.Model.Text.FusionLayers = 0, 0, 0
		}, `model.head.identity: must leave the projection of a side whose width is not that of the space: model.head.dense gives 100 of texts, a token of the space 256 (got "text"); set model.head.dim = 100 or model.head.identity = ""`},
		{func(c *Config) {
			c.Model.System, c.Model.Text.Style, c.Model.Text.Positions, c.Data.Tokens = "clip", "coca", 20, 20
			c.Objective.ITM.Weight, c.Objective.MLM.Weight, c.Model.Text.FusionLayers = 0, 0, 0
		}, `model.text.positions: must be more than data.tokens with model.text.style "coca" (got 20); its token stands behind all places of a text`},
		{func(c *Config) { c.Model.Head.Dense = []string{"text 256"} }, `model.head.dense: must be of a side that model.head.identity names (got ["text 256"]); layers stand behind the pool, and a projection is a layer`},
		{func(c *Config) { c.Model.Image.Style = "convnext" }, `model.image.style: must be empty or one of vit, deit, clip, dinov2, siglip, block, resnet, convnet, regions (got "convnext")`},
		{func(c *Config) { c.Model.Image.Style, c.Model.Image.ResNet.Depth = "resnet", 52 }, "model.image.resnet.depth: must be 18, 34, 50 or 101 (got 52)"},
		{func(c *Config) { c.Model.Image.Style, c.Model.Image.ResNet.Width = "resnet", 0 }, "model.image.resnet.width: must be > 0 (got 0)"},
		{func(c *Config) { c.Model.Image.ResNet.FrozenStages = 6 }, "model.image.resnet.frozen_stages: must be at most 5 (got 6); lower it: docs/config.md lists the limit of every key"},
		{func(c *Config) { c.Model.Image.ResNet.TeacherNorm = "sync" }, `model.image.resnet.teacher_norm: must be one of batch, running (got "sync")`},
		{func(c *Config) { c.Model.Image.Style, c.Model.Head.Topology = "resnet", "Multi(128,2)" }, `model.head.topology: must be sphere, Ob(n,m) or euclid (got "Multi(128,2)"); a network of convolutions has one class token, and Multi(n,m) reads m`},
		{func(c *Config) { c.Model.Image.Style, c.Model.Image.ResNet.ShuffleGroups = "resnet", 3 }, "model.image.resnet.shuffle_groups: must divide train.batch_size (64) (got 3); the groups have one size"},
		{func(c *Config) { c.Model.Image.Style, c.Model.Image.ResNet.ShuffleGroups = "resnet", 64 }, "model.image.resnet.shuffle_groups: must be less than train.batch_size (got 64); a group is 2 images at least"},
		{func(c *Config) {
			c.Model.Image.Style, c.Model.Image.ResNet = "resnet", encoders.ResNet{Depth: 18, Width: 64, TeacherNorm: "running", ShuffleGroups: 4}
		}, `model.image.resnet.shuffle_groups: must be 0 with model.image.resnet.teacher_norm "running" (got 4); batch norms of the momentum encoder take no statistics from the batch`},
		{func(c *Config) {
			c.Model.Image.Style, c.Model.Image.ResNet = "resnet", encoders.ResNet{Depth: 18, Width: 64, TeacherNorm: "batch", FrozenNorm: true, ShuffleGroups: 4}
		}, "model.image.resnet.shuffle_groups: must be 0 with frozen batch norms (got 4); they take no statistics from the batch"},
		{func(c *Config) {
			*c = clip()
			c.Model.Image.Style, c.Model.Image.ResNet.ShuffleGroups = "resnet", 4
		}, "model.image.resnet.shuffle_groups: must be 0 without momentum (got 4); there is no key whose batch norm could tell which batch it is of"},
		{func(c *Config) {
			*c = clip()
			c.Model.Image.Style, c.Train.Accumulate, c.Train.AccumulateSteps = "resnet", "features", 2
		}, `train.accumulate: must be "gradients" with batch norms of model.image.style "resnet" that are not frozen (got "features"); a batch norm would see one micro-batch at a time, and the pairs would not be those of one batch`},
		{func(c *Config) {
			c.Model.Image.Style, c.Model.Image.Size, c.Train.BatchSize = "resnet", 32, 1
		}, "train.batch_size: must be at least 2 with images of one place (got 1); one row has no variance: or set model.image.resnet.frozen_norm = true"},
		{func(c *Config) { c.Data.Crops.ScaleMin = 0.5 }, "data.crops.scale_max: must be at least data.crops.scale_min (got 0.14)"},
		{func(c *Config) { c.Data.Crops.Count = -1 }, "data.crops.count: must be >= 0 (got -1)"},
		{func(c *Config) { c.Model.Image.Style, c.Init.Image.LayerDecay = "resnet", .5 }, `init.image.layer_decay: must be 1 with model.image.style "resnet" (got 0.5); such a tower has no blocks: init.image.lr_factor is the rate of all of it`},
		{func(c *Config) { c.Model.Image.Activation = "relu" }, `model.image.activation: must be empty or one of gelu, gelu_tanh, quick_gelu, swiglu (got "relu")`},
		{func(c *Config) { c.Model.Image.Pool = "max" }, `model.image.pool: must be empty or one of class, mean, attention (got "max")`},
		{func(c *Config) { c.Model.Image.Style, c.Model.Image.Pool = "siglip", "class" }, `model.image.pool: must be mean or attention with model.image.style "siglip", which has no class token (got "class")`},
		{func(c *Config) { c.Model.Image.Style, c.Model.Head.Topology = "siglip", "Multi(64,4)" }, `model.image.style: must have class tokens (got "siglip"); Multi(n,m) reads m class tokens: choose another model.head.topology`},
		{func(c *Config) { c.Model.Image.Pool, c.Model.Head.Topology = "mean", "Multi(64,4)" }, `model.image.pool: must be class with several class tokens (got "mean"); Multi(n,m) reads m class tokens: choose another model.head.topology`},
		{func(c *Config) { c.Model.Image.Registers = -1 }, `model.image.registers: must be >= 0 (got -1)`},
		{func(c *Config) { c.Model.Image.Mean = []float64{0.5, 0.5, 0.5} }, `model.image.mean: must have as many values as model.image.std (got [0.5 0.5 0.5]); set both, or none`},
		{func(c *Config) { c.Model.Image.Mean, c.Model.Image.Std = []float64{0.5}, []float64{0.5} }, "model.image.mean: must have three values, of R, G and B, or none (got [0.5])\nmodel.image.std: must have three values, of R, G and B, or none (got [0.5])"},
		{func(c *Config) {
			c.Model.Image.Mean, c.Model.Image.Std = []float64{0.5, 127, 0.5}, []float64{0.5, 0.5, 0.5}
		}, `model.image.mean: must be between 0 and 1 (got [0.5 127 0.5]); pixels are in [0, 1] when they are normalised`},
		{func(c *Config) { c.Model.Image.Mean, c.Model.Image.Std = []float64{0, 0, 0}, []float64{1, 0, 1} }, `model.image.std: must be above 0 (got [1 0 1])`},
		{func(c *Config) { c.Model.Image.Mean, c.Model.Image.Std = []float64{nan, 0, 0}, []float64{1, 1, 1} }, `model.image.mean: must be finite numbers (got [NaN 0 0])`},
		{func(c *Config) { c.Model.Image.Resize = "pad" }, `model.image.resize: must be empty or one of squash, crop (got "pad")`},
		{func(c *Config) { c.Model.Image.Interpolation = "nearest" }, `model.image.interpolation: must be empty or one of bicubic, bilinear (got "nearest")`},
		{func(c *Config) { c.Model.Text.Style = "gpt" }, `model.text.style: must be empty or one of bert, roberta, mpnet, clip, coca, siglip, gru, block (got "gpt")`},
		{func(c *Config) { c.Model.Text.Style = "mpnet" }, `model.text.style: must be bert or roberta with fusion layers, which matching and masked language modelling read (got "mpnet"); set model.text.fusion_layers, objective.itm.weight and objective.mlm.weight to 0, or choose another style`},
		{func(c *Config) { c.Model.Text.Activation = "swiglu" }, `model.text.activation: must be empty or one of gelu, gelu_tanh, quick_gelu (got "swiglu")`},
		{func(c *Config) { c.Model.Text.Pool = "min" }, `model.text.pool: must be empty or one of class, pooler, mean, first_last, end, weighted_mean, max, gpo, esa (got "min")`},
		{func(c *Config) { *c = clip(); c.Model.Text.Style, c.Model.Text.Pool = "gru", "pooler" }, `model.text.pool: must not be pooler with a model.text.style other than bert, roberta, mpnet and block (got "pooler"); they have no first token that stands for a text`},
		{func(c *Config) { *c = clip(); c.Model.Image.Style = "regions" }, `data.kind: must be "regions" with model.image.style "regions" (got "scenes"); other kinds have no features of regions`},
		{func(c *Config) { c.Model.Image.Style, c.Data.Kind = "regions", "regions" }, `model.image.style: must not be "regions" (got "regions"); model.system "albef" reads pixels: use model.system "clip" or "matching"`},
		{func(c *Config) { *c = regionHost(); c.Model.Image.Pool = "class" }, `model.image.pool: must be empty or one of mean, max, gpo, esa, gru (got "class")`},
		{func(c *Config) { *c = regionHost(); c.Model.Head.Topology = "Multi(16,4)" }, `model.head.topology: must be sphere, Ob(n,m) or euclid (got "Multi(16,4)"); regions have no class tokens, of which Multi(n,m) reads m`},
		{func(c *Config) { *c = regionHost(); c.Model.Image.Regions.Encoder = "" }, `model.image.regions.encoder: must be one of linear, mlp, graph (got "")`},
		{func(c *Config) { *c = regionHost(); c.Model.Image.Regions.Encoder, c.Model.Image.Width = "mlp", 33 }, `model.image.width: must be even with model.image.regions.encoder "mlp" (got 33); its hidden layer is half as wide`},
		{func(c *Config) { *c = regionHost(); c.Model.Image.Regions.Mask = 1 }, `model.image.regions.mask: must be below 1 (got 1)`},
		{func(c *Config) { *c = regionHost(); c.Model.Image.Pool, c.Model.Image.Regions.Mask = "esa", .2 }, `model.image.regions.mask: must be 0 without objective.hinge, or with model.interaction, which compare no views (got 0.2)`},
		{func(c *Config) {
			*c = regionHost()
			c.Model.Image.Pool, c.Model.Image.Regions.Mask, c.Model.Image.Regions.Drop, c.Objective.Hinge.Weight = "esa", .2, .2, 1
		}, `model.image.regions.mask: must be 0 with model.image.regions.drop (got 0.2); set one of the two`},
		{func(c *Config) {
			*c = regionHost()
			c.Model.Image.Pool, c.Model.Image.Regions.Mask, c.Objective.Hinge.Weight, c.Train.Accumulate, c.Train.AccumulateSteps = "esa", .2, 1, "features", 2
		}, `model.image.regions.mask: must be 0 with train.accumulate = "features" and data.cache_features (got 0.2); they keep one feature of an image`},
		{func(c *Config) { *c = regionHost(); c.Init.Image.LayerDecay = .5 }, `init.image.layer_decay: must be 1 with model.image.style "regions" (got 0.5); such a tower has no blocks: init.image.lr_factor is the rate of all of it`},
		{func(c *Config) {
			*c = regionHost()
			c.Objective.Captioning.Weight, c.Objective.Captioning.Tokens = 1, 1
		}, `objective.captioning.tokens: must be at least 2, or 0 (got 1); the first token of a caption is given`},
		{func(c *Config) { c.Objective.Captioning.Dropout = 1 }, `objective.captioning.dropout: must be at least 0 and below 1 (got 1)`},
		{func(c *Config) { c.Objective.Captioning.Weight = -1 }, `objective.captioning.weight: must be >= 0 (got -1)`},
		{func(c *Config) { c.Objective.Captioning.Width = 0 }, `objective.captioning.width: must be > 0 (got 0)`},
		{func(c *Config) { *c = headsConfig(); c.Objective.Captioning.Weight = 1 }, `objective.captioning.weight: must be 0 (got 1); model.system "heads" has no text tower: use "albef", "clip" or "matching"`},
		{func(c *Config) {
			*c = regionHost()
			c.Objective.Captioning.Weight, c.Train.Accumulate, c.Train.AccumulateSteps = 1, "features", 2
		}, `train.accumulate: must be "gradients" with objective.captioning.weight > 0 (got "features"); it reads more than the features of other micro-batches: set objective.captioning.weight = 0`},
		{func(c *Config) { *c = regionHost(); c.Model.Image.Regions.Drop = 1 }, `model.image.regions.drop: must be below 1 (got 1)`},
		{func(c *Config) {
			*c = regionHost()
			c.Model.Image.Regions.Drop, c.Model.Image.Freeze, c.Data.CacheFeatures, c.Data.CacheDir = .2, true, true, "cache"
			c.Data.CropScaleMin, c.Data.Flip, c.Data.RandAugmentOps = 1, false, 0
		}, `model.image.regions.drop: must be 0 with data.cache_features (got 0.2); what is kept of an image is the same at every step`},
		{func(c *Config) {
			*c = regionHost()
			c.Model.Image.Regions.Encoder, c.Model.Image.Regions.BatchNorm, c.Train.Accumulate, c.Train.AccumulateSteps = "mlp", true, "features", 2
		}, `train.accumulate: must be "gradients" with model.image.regions.batch_norm (got "features"); a batch norm would see one micro-batch at a time, and the pairs would not be those of one batch`},
		{func(c *Config) {
			*c = regionHost()
			c.Model.Image.Regions.Encoder, c.Model.Image.Regions.BatchNorm, c.Train.BatchSize = "graph", true, 1
		}, `train.batch_size: must be at least 2 with model.image.regions.batch_norm (got 1); one row has no variance`},
		{func(c *Config) {
			*c = regionHost()
			c.Model.Image.Regions.Encoder, c.Model.Image.Regions.Layers = "graph", 0
		}, `model.image.regions.layers: must be > 0 (got 0)`},
		{func(c *Config) {
			*c = regionHost()
			c.Model.Image.Regions.Encoder, c.Model.Image.Regions.Metric = "graph", "full"
		}, `model.image.regions.metric: must be empty or one of cosine, diag, block_diag, dense (got "full")`},
		{func(c *Config) {
			*c = regionHost()
			r := &c.Model.Image.Regions
			r.Encoder, r.Metric, r.MetricBlocks = "graph", "block_diag", 5
		}, `model.image.regions.metric_blocks: must divide model.image.width (got 5); choose a divisor: the blocks have one size`},
		{func(c *Config) { *c = clip(); c.Model.Text.Style, c.Model.Text.Pool = "clip", "class" }, `model.text.pool: must be mean, end, max, gpo or esa with a pre-norm style, whose first token stands for nothing (got "class")`},
		{func(c *Config) { *c = clip(); c.Model.Text.Style, c.Model.Text.Pool = "gru", "class" }, `model.text.pool: must be mean, end, max, gpo or esa with model.text.style "gru", whose first state has seen one word (got "class")`},
		{func(c *Config) { c.Model.Text.Style = "gru" }, `model.text.style: must be bert or roberta with fusion layers, which matching and masked language modelling read (got "gru"); set model.text.fusion_layers, objective.itm.weight and objective.mlm.weight to 0, or choose another style`},
		{func(c *Config) { *c = clip(); c.Model.Text.Style, c.Model.Text.GRU.Embedding = "gru", 0 }, `model.text.gru.embedding: must be > 0 (got 0)`},
		{func(c *Config) { c.Model.Text.GRU.Directions = "both" }, `model.text.gru.directions: must be one of forward, mean, concat (got "both")`},
		{func(c *Config) {
			*c = clip()
			c.Model.Text.Style, c.Model.Text.Width, c.Model.Text.GRU.Directions = "gru", 301, "concat"
		}, `model.text.width: must be even with model.text.gru.directions "concat", which halves it (got 301)`},
		{func(c *Config) { *c = clip(); c.Model.Text.Style, c.Model.Head.Topology = "mpnet", "Multi(16,4)" }, `model.text.style: must be bert or roberta with several class tokens (got "mpnet"); Multi(n,m) reads m class tokens: choose another model.head.topology`},
		{func(c *Config) { c.Model.Text.Pool, c.Model.Head.Topology = "mean", "Multi(64,4)" }, `model.text.pool: must be class with several class tokens (got "mean"); Multi(n,m) reads m class tokens: choose another model.head.topology`},
		{func(c *Config) { c.Model.Head.Identity = "images" }, `model.head.identity: must be empty or one of image, text, both (got "images")`},
		{func(c *Config) { c.Model.Head.Identity = "text" }, `model.head.identity: must leave the projection of a side whose width is not that of the space: model.text.width is 768, a token of the space 256 (got "text"); set model.head.dim = 768 or model.head.identity = ""`},
		{func(c *Config) {
			c.Model.Head.Identity, c.Model.Head.Dim, c.Objective.Geometric.Weight = "both", 768, 1
		}, `model.head.identity: must leave the projection that objective.geometric regularises (got "both"); set objective.geometric.weight = 0 or model.head.identity = ""`},
		{func(c *Config) { *c = headsConfig(); c.Model.Head.Identity = "text" }, `model.head.identity: must be empty (got "text"); model.system "heads" has a head of its own`},
		{func(c *Config) { *c = headsConfig(); c.Model.Heads.InImage = 0 }, `model.heads.in_image: must be > 0 (got 0); set data.kind = "pairs", whose files tell it; trainer bench, which needs no files, takes a width`},
		{func(c *Config) { c.Model.Heads.InText = -1 }, "model.heads.in_text: must be >= 0 (got -1)"},
		{func(c *Config) { c.Model.Heads.Hidden = 0 }, "model.heads.hidden: must be > 0 (got 0)"},
		{func(c *Config) { c.Model.Heads.Dropout = 1 }, "model.heads.dropout: must be at least 0 and below 1 (got 1)"},
		{func(c *Config) { c.Model.Heads.Activation = "tanh" }, `model.heads.activation: must be one of gelu, relu, silu (got "tanh")`},
		{func(c *Config) { *c = headsConfig(); c.Model.Heads.Start = "random" }, `model.heads.start: must be empty or one of cca, ridge, procrustes (got "random")`},
		{func(c *Config) { *c = headsConfig(); c.Objective.MLM.Weight = 1 },
			`objective.mlm.weight: must be 0 (got 1); model.system "heads" has no fusion layers: use "albef"`},
		{func(c *Config) { *c = headsConfig(); c.Objective.ITM.Weight = 1 },
			`objective.itm.weight: must be 0 (got 1); model.system "heads" has no fusion layers: use "albef"`},
		{func(c *Config) { *c = headsConfig(); c.Data.Views, c.Momentum.Enabled = 2, true }, `data.views: must be 1 (got 2); stored features have no views`},
		{func(c *Config) { *c = headsConfig(); c.Model.Head.Topology = "Multi(16,16)" }, `model.head.topology: must be sphere, Ob(n,m) or euclid (got "Multi(16,16)"); model.system "heads" has one class token for each feature, and Multi(n,m) needs m`},
		{func(c *Config) { *c = headsConfig(); c.Model.Heads.Layers = -1 }, `model.heads.layers: must be >= 0 (got -1)`},
		{func(c *Config) { *c = pairsConfig(); c.Data.Pairs.Image = "" }, `data.pairs.image: must name a file of features for data.kind "pairs" (got "")`},
		{func(c *Config) { *c = pairsConfig(); c.Data.Pairs.Text = "t.csv" }, `data.pairs.text: must end in .npy, .npz, .safetensors, .pt, .pth or .parquet (got "t.csv"); or name a folder of .pt files; one whose name has a dot needs a / at its end`},
		{func(c *Config) { *c = pairsConfig(); c.Data.Pairs.ImageTensor = "x" }, `data.pairs.image_tensor: must be empty for a .npy file (got "x"); which holds one array`},
		{func(c *Config) { *c = pairsConfig(); c.Data.Pairs.TestSamples = -1 }, `data.pairs.test_samples: must be >= 0 (got -1)`},
		{func(c *Config) { *c = pairsConfig(); c.Data.Pairs.ValSamples, c.Train.EvalEverySteps = 0, 5 },
			`data.pairs.val_samples: must be > 0 (got 0); or set eval.split or train.eval_every_steps = 0`},
		{func(c *Config) { *c = pairsConfig(); c.Data.Cache = "memory" }, `data.cache: must be none for data.kind "pairs" (got "memory"); features are not decoded`},
		{func(c *Config) { c.Data = pairsConfig().Data }, `data.kind: must not be "pairs" (got "pairs"); model.system "albef" reads images: stored features are for model.system "heads" and "align"`},
		{func(c *Config) { c.Model.Image.Depth = 0 }, "model.image.depth: must be > 0 (got 0)"},
		{func(c *Config) { c.Model.Image.Patch = 0 }, "model.image.patch: must be > 0 (got 0)"},
		{func(c *Config) { c.Model.Image.Heads = 0 }, "model.image.heads: must be > 0 (got 0)"},
		{func(c *Config) { c.Model.Text.Heads = -1 }, "model.text.heads: must be > 0 (got -1)"},
		{func(c *Config) { c.Model.Image.Size = 250 }, "model.image.size: must be a multiple of model.image.patch (got 250)"},
		{func(c *Config) { c.Model.Image.Width = 770 }, "model.image.width: must be a multiple of model.image.heads (got 770)"},
		{func(c *Config) { c.Model.Text.Width = 770 }, "model.text.width: must be a multiple of model.text.heads (got 770)"},
		{func(c *Config) { c.Model.Text.MLP = -1 }, "model.text.mlp: must be >= 0 (got -1)"},
		{func(c *Config) { c.Model.Text.FusionLayers = 0 }, "model.text.fusion_layers: must be > 0 (got 0); objective.itm and objective.mlm read the fusion layers"},
		{func(c *Config) { c.Model.Text.Dropout = 1 }, "model.text.dropout: must be at least 0 and below 1 (got 1)"},
		{func(c *Config) { c.Model.Text.Dropout = nan }, "model.text.dropout: must be a finite number (got NaN)"},

		{func(c *Config) { c.Momentum.M = 1 }, "momentum.m: must be at least 0 and below 1 (got 1)"},
		{func(c *Config) { c.Momentum.RampSteps = -1 }, "momentum.ramp_steps: must be >= 0 (got -1)"},
		{func(c *Config) { c.Queue.StartSteps = -1 }, "queue.start_steps: must be >= 0 (got -1)"},
		{func(c *Config) { c.Queue.Size = 63 }, "queue.size: must be 0 or at least train.batch_size (got 63); a batch would push out its own features: raise queue.size or lower train.batch_size"},
		{func(c *Config) { c.Momentum.Enabled, c.Objective.ITC.Weight, c.Objective.Distill.Alpha = false, 0, 0 },
			"queue.size: must be 0 without momentum (got 65536); it needs the teacher: set momentum.enabled = true"},
		{func(c *Config) { c.Momentum.Enabled, c.Objective.ITC.Weight, c.Queue.Size = false, 0, 0 },
			"objective.distill.alpha: must be 0 without momentum (got 0.4); it needs the teacher: set momentum.enabled = true"},
		{func(c *Config) { c.Momentum.Enabled, c.Objective.Distill.Alpha, c.Queue.Size = false, 0, 0 },
			"objective.itc.weight: must be 0 without momentum (got 1); it needs the teacher: set momentum.enabled = true, or use objective.itc.in_batch_weight"},

		{func(c *Config) { c.Objective.Distill.Alpha = 1.1 }, "objective.distill.alpha: must be between 0 and 1 (got 1.1)"},
		{func(c *Config) { c.Objective.Distill.RampEpochs = -1 }, "objective.distill.ramp_epochs: must be >= 0 (got -1)"},
		{func(c *Config) { c.Objective.Distill.RampSteps = 5 }, "objective.distill.ramp_epochs: must not be set together with objective.distill.ramp_steps (got 1); set one of objective.distill.ramp_steps, objective.distill.ramp_epochs"},
		{func(c *Config) { c.Objective.ITM.NegativeFloor = -1 }, "objective.itm.negative_floor: must be >= 0 (got -1)"},
		{func(c *Config) { c.Objective.ITM.NegativeFloor = 1.5 }, "objective.itm.negative_floor: must be at most 1 (got 1.5); lower it: docs/config.md lists the limit of every key"},
		{func(c *Config) { c.Objective.ITM.Weight = -1 }, "objective.itm.weight: must be >= 0 (got -1)"},
		{func(c *Config) { c.Objective.ITM.Weight, c.Objective.ITC.Weight, c.Objective.MLM.Weight = 0, 0, 0 },
			"objective.itc.weight: no loss is on (got 0); set at least one objective weight above 0"},
		{func(c *Config) { c.Objective.ITC.Positives = "all" }, `objective.itc.positives: must be one of pair, id (got "all")`},
		{func(c *Config) { c.Objective.ITC.TemperatureMin = 0 }, "objective.itc.temperature_min: must be > 0 (got 0); or 0 with objective.itc.log_temperature, which caps the scale at 100 for each sphere"},
		{func(c *Config) { c.Objective.ITC.Temperature = 0.6 }, "objective.itc.temperature: must lie between objective.itc.temperature_min and temperature_max (got 0.6)"},
		{func(c *Config) { c.Objective.ITC.Temperature = 0.0001 }, "objective.itc.temperature: must lie between objective.itc.temperature_min and temperature_max (got 0.0001)"},
		{func(c *Config) { c.Objective.MLM.Prob = 0 }, "objective.mlm.prob: must be above 0 and below 1 (got 0); set objective.mlm.weight = 0 to switch the loss off"},

		{func(c *Config) { c.Objective.SigLIP.Weight = -1 }, "objective.siglip.weight: must be >= 0 (got -1)"},
		{func(c *Config) { c.Objective.SigLIP.Scale = 0 }, "objective.siglip.scale: must be between 0.001 and 10000 (got 0); 10 in the paper"},
		{func(c *Config) { c.Objective.SigLIP.ScaleMax = 9 }, "objective.siglip.scale_max: must be at least objective.siglip.scale and at most 10000 (got 9)"},
		{func(c *Config) { c.Objective.KLOT.Weight = 1 }, `objective.klot.weight: must be 0 (got 1); model.system "albef" does not read stored features: use "heads" or "align"`},
		{func(c *Config) { c.Objective.KLOT.Reference = "ridge" }, "objective.klot.reference: must be one of cca, procrustes (got \"ridge\")"},
		{func(c *Config) { c.Objective.KLOT.Epsilon = 0 }, "objective.klot.epsilon: must be between 0.001 and 1000 (got 0); 0.3 did well for cosines"},
		{func(c *Config) { c.Objective.KLOT.TargetEpsilon = 1e-4 }, "objective.klot.target_epsilon: must be 0, or between 0.001 and 1000 (got 0.0001); 0.3 did well for cosines"},
		{func(c *Config) { c.Objective.KLOT.Iterations = 0 }, "objective.klot.iterations: must be > 0 (got 0)"},
		{func(c *Config) { c.Objective.KLOT.Rows = -1 }, "objective.klot.rows: must be >= 0 (got -1)"},
		{func(c *Config) { c.Objective.Structure.Modalities = "none" }, `objective.structure.modalities: must be one of both, image, text (got "none")`},
		{func(c *Config) { c.Objective.Structure.Hops = 0 }, "objective.structure.hops: must be > 0 (got 0)"},
		{func(c *Config) { c.Objective.Structure.Temperature = 0 }, "objective.structure.temperature: must be between 0.001 and 1000 (got 0); 0.05 keeps a step to the nearest few"},
		{func(c *Config) { c.Objective.Structure.TargetTemperature = 2e3 }, "objective.structure.target_temperature: must be 0, or between 0.001 and 1000 (got 2000); 0.05 keeps a step to the nearest few"},
		{func(c *Config) { c.Objective.Structure.WarmupSteps = -1 }, "objective.structure.warmup_steps: must be >= 0 (got -1)"},
		{func(c *Config) { c.Objective.SigLIP.Bias = 1001 }, "objective.siglip.bias: must be between -1000 and 1000 (got 1001); -10 in the paper"},

		{func(c *Config) { c.Optimizer.LR, c.Schedule.MinLR, c.Schedule.WarmupLR = 0, 0, 0 }, "optimizer.lr: must be > 0 (got 0)"},
		{func(c *Config) { c.Optimizer.Eps = 0 }, "optimizer.eps: must be > 0 (got 0)"},
		{func(c *Config) { c.Optimizer.Beta1 = -0.1 }, "optimizer.beta1: must be at least 0 and below 1 (got -0.1)"},
		{func(c *Config) { c.Optimizer.Beta2 = 1 }, "optimizer.beta2: must be at least 0 and below 1 (got 1)"},
		{func(c *Config) { c.Optimizer.Decay = math.Inf(1) }, "optimizer.decay: must be a finite number (got +Inf)"},
		{func(c *Config) { c.Optimizer.ClipNorm = -1 }, "optimizer.clip_norm: must be >= 0 (got -1)"},
		{func(c *Config) { c.Optimizer.NoDecay = []string{"image/[a"} }, `optimizer.no_decay: holds the malformed glob "image/[a" (got ["image/[a"]); close every [ and end no pattern with \`},
		{func(c *Config) { c.Objective.Matryoshka.Dims = []int{0} }, "objective.matryoshka.dims: item 1 must be between 1 and 256 channels (got [0])"},
		{func(c *Config) { c.Objective.Matryoshka.Dims = []int{64, 256} }, "objective.matryoshka.dims: item 2 must be below model.head.dim (got [64 256]); all channels are always trained"},
		{func(c *Config) { c.Objective.Matryoshka.Dims = []int{64, 32} }, "objective.matryoshka.dims: item 2 must be larger than the one before (got [64 32])"},
		{func(c *Config) { c.Objective.Matryoshka.Dims, c.Model.Head.Topology = []int{48}, "Ob(32,8)" }, "objective.matryoshka.dims: item 1 must be whole spheres of Ob(32,8), a multiple of 32 channels (got [48])"},
		{func(c *Config) { c.Objective.Matryoshka.Dims, c.Objective.ITC.Score = []int{48}, "gssf" }, `objective.matryoshka.dims: must be empty with the score "gssf" (got [48]); the learned metric is of all channels: use cosine, inner, l2 or angle`},
		{func(c *Config) { c.Objective.Matryoshka.Dims, c.Objective.ITC.Score = []int{48}, "geodesic" }, `objective.matryoshka.dims: must be empty with the score "geodesic" (got [48]); the graph over the queue is of all channels`},
		{func(c *Config) { c.Objective.Matryoshka.Dims, c.Objective.TCL.Intra = []int{48}, true }, `objective.matryoshka.dims: must be empty with objective.tcl (got [48]); it reads more than features`},
		{func(c *Config) { c.Objective.Geodesic.Layers = nil }, "objective.geodesic.layers: must name at least the number of bottom centres (got []); such as [256]"},
		{func(c *Config) { c.Objective.Geodesic.Layers = []int{256, 16} }, "objective.geodesic.layers: must grow from the top layer to the bottom one (got [256 16]); such as [16, 256]"},
		{func(c *Config) { c.Objective.ITC.Score = "geodesic"; c.Objective.Geodesic.Layers = []int{100000} }, "objective.geodesic.layers: must not end in more clusters than queue.size (got [100000]); use fewer clusters or a larger queue"},
		{func(c *Config) { c.Objective.Geodesic.Gradient = "soft" }, `objective.geodesic.gradient: must be one of strict, same_cluster, straight_through, soft_entry, same_cluster+straight_through, same_cluster+soft_entry, straight_through+soft_entry, same_cluster+straight_through+soft_entry (got "soft")`},
		{func(c *Config) { c.Data.TokenLengths = []int{16, 16} }, "data.token_lengths: must rise from at least 2 to less than data.tokens (got [16 16]); such as [16, 32] of 64"},
		{func(c *Config) { c.Data.TokenLengths = []int{1} }, "data.token_lengths: must rise from at least 2 to less than data.tokens (got [1]); such as [16, 32] of 64"},
		{func(c *Config) { c.Data.TokenLengths = []int{c.Data.Tokens} }, "data.token_lengths: must rise from at least 2 to less than data.tokens (got [30]); such as [16, 32] of 64"},
		{func(c *Config) { c.Data.TokenLengths = []int{2, 3, 4, 5, 6, 7, 8, 9, 10} }, "data.token_lengths: must name at most 8 lengths (got [2 3 4 5 6 7 8 9 10]); each is a computation of its own"},
		{func(c *Config) { c.Data.TokenLengths, c.Objective.Captioning.Weight = []int{8}, 1 }, "data.token_lengths: must be empty with objective.captioning.weight > 0 (got [8]); whose decoder writes captions of data.tokens places"},
		{func(c *Config) { c.Data.TokenLengths, c.Objective.DistillScores.Teacher = []int{8}, "runs/a" }, "data.token_lengths: must be empty with objective.distill_scores.teacher (got [8]); which reads texts of data.tokens places"},
		{func(c *Config) { c.Objective.Geodesic.Iterations = 0 }, "objective.geodesic.iterations: must be > 0 (got 0)"},
		{func(c *Config) { c.Objective.Geodesic.LimitPi = 1e-40 }, "objective.geodesic.limit_pi: must be between 0.01 and 1000 (got 1e-40); 4 in the paper"},
		{func(c *Config) { c.Objective.Geodesic.LimitPi = 1e39 }, "objective.geodesic.limit_pi: must be between 0.01 and 1000 (got 1e+39); 4 in the paper"},
		{func(c *Config) { c.Objective.Geodesic.Softness = 1e-46 }, "objective.geodesic.softness: must be between 0.0001 and 100 (got 1e-46)"},
		{func(c *Config) { c.Objective.Geodesic.Weigh = 1e39 }, "objective.geodesic.weigh: must be at most 10000 (got 1e+39)"},
		{func(c *Config) { c.Objective.ITC.TargetScore = "geodesic"; c.Objective.Distill.Alpha = 0 }, "objective.itc.target_score: needs objective.distill.alpha > 0 (got \"geodesic\"); there are no soft targets without it"},
		{func(c *Config) { c.Objective.Geodesic.LagSteps = 100 }, "objective.geodesic.lag_steps: must be below objective.geodesic.period_steps (got 100); one graph would not be ready when the next is begun"},
		{func(c *Config) { c.Objective.ITC.Score = "geodesic"; c.Objective.Geodesic.Weigh = 1 }, `objective.geodesic.weigh: must be 0 with a geodesic score (got 1); it weighs the negatives of another score`},
		{func(c *Config) { c.Objective.TCL.Local = true; c.Objective.TCL.Grid = 5 }, "objective.tcl.grid: must divide the patches along a side of an image (model.image.size / model.image.patch, of a residual network the places of its last layer) (got 5)"},
		{func(c *Config) {
			*c = clip()
			c.Data.Kind, c.Model.Image.Style, c.Objective.TCL.Local, c.Momentum.Enabled, c.Objective.ITC.Weight = "regions", "regions", true, true, 1
		}, `objective.tcl.local: must be false with model.image.style = "regions" (got true); parts of an image are squares of its patches`},
		{func(c *Config) { c.Objective.MAFA.Uniform = 1 }, "objective.mafa.uniform: must be at least 0 and below 1 (got 1)"},
		{func(c *Config) { c.Objective.MAFA.Uniform = 0.5; c.Objective.ITC.Weight = 0 }, "objective.mafa.uniform: needs objective.itc.weight or objective.itc.in_batch_weight > 0 (got 0.5); it is a part of the contrast's targets"},
		{func(c *Config) { c.Objective.MAFA.Connector = "run"; c.Objective.ITM.Weight = 0 }, `objective.mafa.connector: needs objective.itm.weight > 0 (got "run"); it relabels the negatives of matching`},
		{func(c *Config) { c.Objective.TCL.Intra = true; c.Objective.ITC.Weight = 0 }, "objective.tcl.intra: needs objective.itc.weight > 0 (got true); its terms are part of the contrast against momentum features"},
		{func(c *Config) { c.Objective.MAFA.NegativeBelow = 0.9 }, "objective.mafa.negative_below: must be between 0 and objective.mafa.positive_above (got 0.9)"},
		{func(c *Config) { c.Optimizer.NoDecay = []string{"1d", "biass"} }, `optimizer.no_decay: holds "biass", which is neither a group nor a glob (got ["1d" "biass"]); the groups are "bias", "1d", "temperature" and "metric"; a glob looks like "text/*/norm/*"`},

		{func(c *Config) { c.Schedule.Kind = "linear" }, `schedule.kind: must be one of cosine, staircase, step, constant (got "linear")`},
		{func(c *Config) { c.Schedule.WarmupSteps = -1 }, "schedule.warmup_steps: must be >= 0 (got -1)"},
		{func(c *Config) { c.Schedule.WarmupSteps, c.Schedule.WarmupPercent = 0, 100 }, "schedule.warmup_percent: must be at least 0 and below 100 (got 100)"},
		{func(c *Config) { c.Schedule.WarmupEpochs = 2 }, "schedule.warmup_epochs: must not be set together with schedule.warmup_steps (got 2); set one of schedule.warmup_steps, schedule.warmup_epochs, schedule.warmup_percent"},
		{func(c *Config) { c.Schedule.MinLR = 1 }, "schedule.min_lr: must be at most optimizer.lr (got 1)"},
		{func(c *Config) { c.Schedule.WarmupLR = 1 }, "schedule.warmup_lr: must be at most optimizer.lr (got 1)"},

		{func(c *Config) { c.Train.BatchSize = -4 }, "train.batch_size: must be > 0 (got -4)"},
		{func(c *Config) { c.Train.BatchSize = 1 }, "train.batch_size: must be >= 2 (got 1); contrast and matching need another pair as a negative"},
		{func(c *Config) { c.Train.AccumulateSteps = 0 }, "train.accumulate_steps: must be > 0 (got 0)"},
		{func(c *Config) { c.Train.MaxSteps = 9 }, "train.max_epochs: must not be set together with train.max_steps (got 30); set one of train.max_steps, train.max_epochs, train.max_samples, train.max_minutes"},
		{func(c *Config) { c.Train.MaxEpochs = 0 }, "train.max_steps: one duration must be > 0 (got 0); set one of train.max_steps, train.max_epochs, train.max_samples, train.max_minutes"},
		{func(c *Config) { c.Train.MaxMinutes = -1 }, "train.max_minutes: must be >= 0 (got -1)"},
		{func(c *Config) { c.Train.KeepLast = -1 }, "train.keep_last: must be >= 0 (got -1)"},
		{func(c *Config) { c.Train.OnNaN = "ignore" }, `train.on_nan: must be one of stop, skip, rollback (got "ignore")`},
		{func(c *Config) { c.Train.KeepBestBy = "worst" }, `train.keep_best_by: must be one of better, first, rerank (got "worst")`},

		{func(c *Config) { c.Train.KeepBestBy = "eval/sts/stsb/spearman" }, `train.keep_best_by: names a number that is not measured (got "eval/sts/stsb/spearman"); add "sentences" to eval.beside`},
		{func(c *Config) { c.Eval.Beside = []string{"sentences"} }, `eval.beside: must not have "sentences" (got ["sentences"]); eval.sentences.tasks names no task`},
		{func(c *Config) { c.Eval.Sentences.Tasks = []string{"stsb", "mrpc="} }, `eval.sentences.tasks: has an item "mrpc=" that is none (got ["stsb" "mrpc="]); write "mrpc", "mrpc=dev.tsv" or "mrpc=dev.tsv,train.tsv"`},
		{func(c *Config) { c.Eval.Sentences.Tasks = []string{"stsb", "stsb=dev.tsv"} }, `eval.sentences.tasks: must name a task once (got ["stsb" "stsb=dev.tsv"])`},
		{func(c *Config) { c.Eval.Sentences.Tasks = []string{"cola"} }, `eval.sentences.tasks: has an item "cola" of no task (got ["cola"]); the tasks are mnli, mnli-mm, qnli, snli, qqp, mrpc, rte, stsb, sick, sick-e, sts12, sts13, sts14, sts15, sts16`},
		{func(c *Config) { c.Eval.Sentences.Feature = "cls" }, `eval.sentences.feature: must be one of class, mean, head (got "cls")`},
		{func(c *Config) { c.Eval.Sentences.Rules = []string{"fixed", "svm"} }, `eval.sentences.rules: must be some of fixed, tuned, kmeans, probe (got ["fixed" "svm"])`},
		{func(c *Config) { c.Eval.Sentences.Rules = []string{"fixed", "fixed"} }, `eval.sentences.rules: must name a rule once (got ["fixed" "fixed"])`},
		{func(c *Config) { c.Eval.Sentences.Folder = "" }, `eval.sentences.folder: must name a folder (got "")`},
		{func(c *Config) { c.Eval.Sentences.Split = "train" }, `eval.sentences.split: must be one of val, test (got "train")`},
		{func(c *Config) { c.Eval.Sentences.MaxTrain = -1 }, "eval.sentences.max_train: must be >= 0 (got -1)"},
		{func(c *Config) { c.Eval.Sentences.MaxPairs = -1 }, "eval.sentences.max_pairs: must be >= 0 (got -1)"},
		{func(c *Config) {
			*c = clip()
			c.Model.Interaction.Kind, c.Objective.Distill.Alpha, c.Eval.Sentences.Feature = "max_ave", 0, "head"
		}, `eval.sentences.feature: must not be "head" with model.interaction.kind (got "head"); the model compares tokens: it has no feature of a sentence`},
		{func(c *Config) { c.Eval.Sentiment.Train = "a.npz" }, `eval.sentiment.test: must name a file of utterances beside the other one (got "")`},
		{func(c *Config) { c.Eval.Sentiment.Test = "a.npz" }, `eval.sentiment.train: must name a file of utterances beside the other one (got "")`},
		{func(c *Config) { c.Eval.Sentiment.Modalities = []string{"text", "text"} }, `eval.sentiment.modalities: must name a modality once (got ["text" "text"])`},
		{func(c *Config) { c.Eval.Sentiment.Decay = -1 }, "eval.sentiment.decay: must be >= 0 (got -1)"},
		{func(c *Config) { c.Eval.VQA.Top = -1 }, "eval.vqa.top: must be >= 0 (got -1)"},
		{func(c *Config) { c.Eval.VQA.Common = -1 }, "eval.vqa.common: must be >= 0 (got -1)"},
		{func(c *Config) { c.Eval.VQA.Beams = 0 }, "eval.vqa.beams: must be > 0 (got 0)"},
		{func(c *Config) { c.Data.VQA.Kinds = "all" }, `data.vqa.kinds: must be one of answer_type, question_type (got "all")`},
		{func(c *Config) { c.Data.VQA.ImageName = "%d/%d.jpg" }, `data.vqa.image_name: must have %d or %012d once (got "%d/%d.jpg"); it stands for the image_id`},
		{func(c *Config) { c.Eval.Sentences.Isotropy = 1 }, `eval.sentences.isotropy: must be 0 or at least 2 (got 1)`},
		{func(c *Config) { c.Data.Kind = "sentence_pairs" }, "data.sentence_pairs.train_files: must name at least one file for data.kind \"sentence_pairs\" (got [])\ndata.kind: must not be \"sentence_pairs\" (got \"sentence_pairs\"); model.system \"albef\" reads no pairs of sentences: evaluate on them with eval.sentences"},
		{func(c *Config) { c.Eval.Split = "train" }, `eval.split: must be one of val, test (got "train")`},
		{func(c *Config) { c.Eval.BatchSize = 0 }, "eval.batch_size: must be > 0 (got 0)"},
		{func(c *Config) { c.Train.MaxEpochs, c.Train.MaxMinutes = 0, 5 }, `schedule.kind: needs the length of the run in steps (got "cosine"); use "constant" or "step" with train.max_minutes`},
		{func(c *Config) { c.Eval.Folds = -1 }, "eval.folds: must be >= 0 (got -1)"},
		{func(c *Config) { c.Eval.RerankTop, c.Objective.ITM.Weight = 16, 0 }, "eval.rerank_top: must be 0 when objective.itm.weight is 0 (got 16); re-ranking uses the matching head, which is not trained"},
		{func(c *Config) { c.Eval.RerankScore, c.Eval.Score = RerankSum, "l2" }, `eval.rerank_score: must be "match" when eval.score is "l2" (got "sum"); the temperature is that of the score of training`},

		{func(c *Config) { c.Compute.Backend = "openblas" }, `compute.backend: is no longer a backend (got "openblas"); products are built in: leave it out, or write "auto"`},
		{func(c *Config) { c.Compute.Backend = "cuda" }, `compute.backend: must be one of auto, builtin, plain (got "cuda")`},
		{func(c *Config) { c.Compute.Threads = -1 }, "compute.threads: must be >= 0 (got -1)"},
		{func(c *Config) { c.Compute.Precision = "fp16" }, `compute.precision: must be one of fp32, bf16, int8 (got "fp16")`},
		{func(c *Config) { c.Compute.Precision = "int8" }, `compute.precision: must be "fp32" or "bf16" to train (got "int8"); int8 is for a trained model: eval, embed, search, serve and bench --inference take --set compute.precision=int8`},
		{func(c *Config) { c.Compute.Precision, c.Compute.Device = "int8", "cuda" }, `compute.precision: must be "fp32" or "bf16" with compute.device = "cuda" (got "int8"); int8 is of processors`},
	}
	for _, r := range rows {
		c := Default()
		r.change(&c)
		err := c.Validate()
		if err == nil {
			t.Errorf("accepted, want %s", r.want)
		} else if err.Error() != r.want {
			t.Errorf("got  %s\nwant %s", err, r.want)
		}
	}
}

// headsConfig is a valid configuration of alignment heads.
func headsConfig() Config {
	c := Default()
	c.Model.System, c.Momentum.Enabled, c.Queue.Size, c.Objective.Distill.Alpha = "heads", false, 0, 0
	c.Model.Heads.InImage, c.Model.Heads.InText = 512, 512
	c.Objective.ITC.Weight, c.Objective.ITC.InBatchWeight = 0, 1
	c.Objective.ITM.Weight, c.Objective.MLM.Weight = 0, 0
	return c
}

// pairsConfig is a valid configuration of alignment heads over files of features, whose
// widths say those of the heads.
func pairsConfig() Config {
	c := headsConfig()
	c.Model.Heads.InImage, c.Model.Heads.InText = 0, 0
	c.Data.Kind, c.Data.Pairs.Image, c.Data.Pairs.Text, c.Data.Pairs.TextTensor = "pairs", "i.npy", "t.safetensors", "text"
	return c
}

func TestValidateAcceptsHeads(t *testing.T) {
	for name, change := range map[string]func(c *Config){
		"given widths":   func(c *Config) { *c = headsConfig() },
		"files":          func(c *Config) {},
		"sigmoid alone":  func(c *Config) { c.Objective.ITC.InBatchWeight, c.Objective.SigLIP.Weight = 0, 1 },
		"learned metric": func(c *Config) { c.Objective.ITC.Score = "gssf" },
		"geometric term": func(c *Config) { c.Objective.Geometric.Weight, c.Objective.Geometric.Chunk = 1, 600 },
		"linear heads":   func(c *Config) { c.Model.Heads.Layers = 0 },
		"spheres":        func(c *Config) { c.Model.Head.Topology = "Ob(16,16)" },
		"no sphere":      func(c *Config) { c.Model.Head.Topology, c.Objective.ITC.Score = "euclid", "l2" },
		"all that a queue has": func(c *Config) {
			c.Momentum.Enabled, c.Queue.Size, c.Objective.Distill.Alpha = true, 4096, 0.4
			c.Objective.ITC.Weight, c.Objective.ITC.Score = 1, "geodesic"
		},
	} {
		c := pairsConfig()
		change(&c)
		wants(t, name, c, "")
	}
}

// The dual encoder takes every part of the objective that reads no fusion layers.
func TestValidateAcceptsDualEncoders(t *testing.T) {
	for name, change := range map[string]func(c *Config){
		"momentum":      func(c *Config) { c.Momentum.Enabled = true },
		"second view":   func(c *Config) { c.Momentum.Enabled, c.Data.Views = true, 2 },
		"sigmoid alone": func(c *Config) { c.Objective.ITC.InBatchWeight, c.Objective.SigLIP.Weight = 0, 1 },
		"queue":         func(c *Config) { c.Momentum.Enabled, c.Queue.Size, c.Objective.ITC.Weight = true, 128, 1 },
		"everything": func(c *Config) {
			c.Momentum.Enabled, c.Queue.Size, c.Objective.ITC.Weight, c.Objective.Distill.Alpha = true, 128, 1, 0.4
			c.Objective.ITC.Scores = objectives.Terms{{Kind: "gssf", Weight: 1}, {Kind: "geodesic", Weight: 0.5}}
			c.Objective.Geometric.Weight, c.Objective.TCL.Intra, c.Objective.SigLIP.Weight = 1, true, 0.5
		},
	} {
		c := clip()
		change(&c)
		wants(t, name, c, "")
	}
}

func TestValidateAcceptsSwitchedOffParts(t *testing.T) {
	rows := map[string]func(c *Config){
		"no momentum": func(c *Config) {
			c.Momentum.Enabled, c.Queue.Size, c.Objective.Distill.Alpha = false, 0, 0
			c.Objective.ITC.Weight, c.Objective.ITC.InBatchWeight = 0, 1
		},
		"no queue":        func(c *Config) { c.Queue.Size = 0 },
		"dual encoder":    func(c *Config) { c.Objective.ITM.Weight, c.Objective.MLM.Weight, c.Model.Text.FusionLayers = 0, 0, 0 },
		"given vocab":     func(c *Config) { c.Data.Vocab, c.Data.VocabSize = "vocab.txt", 0 },
		"name from out":   func(c *Config) { c.Run.Name, c.Run.Out = "", "/tmp/x" },
		"name globs":      func(c *Config) { c.Optimizer.NoDecay = []string{"image/*/norm/*", "*temperature"} },
		"overfit, padded": func(c *Config) { c.Data.OverfitSamples, c.Data.DropLast = 10, false },
	}
	for name, change := range rows {
		c := Default()
		change(&c)
		wants(t, name, c, "")
	}
}

// Every leaf that can be negative must be refused when it is, and every number
// that is not finite: a field without a check is a mistake.
func TestNoNumberIsUnchecked(t *testing.T) {
	for _, p := range Paths() {
		c := Default()
		v := c.value(p)
		switch {
		case v.CanInt():
			v.SetInt(-1)
		case v.CanFloat():
			v.SetFloat(-1)
			if p == "objective.siglip.bias" { // as it should be
				v.SetFloat(-1e9)
			}
		default:
			continue
		}
		err := c.Validate()
		var e *Error
		if !errors.As(err, &e) || !strings.Contains(err.Error(), p+": ") {
			t.Errorf("%s = %v was accepted", p, v)
		}
	}
}

// What makes the features of a frozen tower more than a function of an image or a caption is refused.
func TestValidateCacheFeatures(t *testing.T) {
	for _, r := range []struct {
		change func(c *Config)
		want   string // beginning of the message; empty: it is valid
	}{
		{func(c *Config) { c.Model.Image.Freeze = false }, "data.cache_features: must be false without a frozen tower (got true); set model.image.freeze or model.text.freeze to true"},
		{func(c *Config) { c.Data.CacheDir = "" }, "data.cache_features: must be false without a folder (got true); name one with data.cache_dir"},
		{func(c *Config) { c.Data.Kind = "scenes" }, `data.cache_features: must be false with data.kind "scenes" (got true); every epoch has new scenes: use images in files`},
		{func(c *Config) { c.Data.OverfitSamples = 64 }, "data.cache_features: must be false with data.overfit_samples"},
		{func(c *Config) { c.Objective.TCL.Local = true }, "data.cache_features: must be false with objective.tcl.local"},
		{func(c *Config) { c.Model.Text.FusionLayers, c.Objective.ITM.Weight = 2, 1 }, "data.cache_features: must be false with fusion layers (got true); they read all tokens of a tower"},
		{func(c *Config) { c.Data.Flip = true }, "data.flip: must be false (got true); the features of a frozen image tower are computed once (data.cache_features): every epoch sees the same picture"},
		{func(c *Config) { c.Data.CropScaleMin = 0.5 }, "data.crop_scale_min: must be 1 (got 0.5)"},
		{func(c *Config) { c.Data.RandAugmentOps = 2 }, "data.randaugment_ops: must be 0 (got 2)"},
		{func(c *Config) { c.Data.ColorJitter = 0.5 }, "data.color_jitter: must be 0 (got 0.5)"},
		{func(c *Config) { c.Data.Views = 2 }, "data.views: must be 1 (got 2)"},
		{func(c *Config) { c.Model.Image.KeepPatches = 0.5 }, "model.image.keep_patches: must be 1 (got 0.5)"},
		{func(c *Config) { c.Model.Image.Freeze, c.Model.Text.Freeze, c.Data.Flip = false, true, true }, ""},
	} {
		c := Default()
		c.Data.Kind, c.Data.Captions.TrainFiles, c.Data.CacheFeatures, c.Data.CacheDir, c.Model.Image.Freeze = "captions", []string{"a.json"}, true, "cache", true
		c.Data.CropScaleMin, c.Data.Flip, c.Data.RandAugmentOps = 1, false, 0
		c.Model.Text.FusionLayers, c.Objective.ITM.Weight, c.Objective.MLM.Weight, c.Eval.RerankTop = 0, 0, 0, 0
		r.change(&c)
		if err := c.Validate(); r.want == "" && err != nil || r.want != "" && (err == nil || !strings.HasPrefix(err.Error(), r.want)) {
			t.Errorf("got  %v\nwant %s", err, r.want)
		}
	}
}

// identities makes a configuration one of model.system "identities" without a problem.
func identities(c *Config) {
	c.Model.System, c.Momentum.Enabled, c.Queue.Size, c.Objective.Distill.Alpha, c.Train.BatchSize = "identities", false, 0, 0, 8
	c.Objective.ITC.Weight, c.Objective.ITC.InBatchWeight, c.Objective.ITM.Weight, c.Objective.MLM.Weight, c.Eval.RerankTop, c.Objective.ITC.Score = 0, 0, 0, 0, 0, "gssf"
	c.Objective.Triplet.Weight, c.Objective.Softmax.Weight, c.Objective.Softmax.Classes = 1, 1, 64
}

// TestIdentities: a configuration of the system has no problem, and its advice none of keys that are read.
func TestIdentities(t *testing.T) {
	c := Default()
	identities(&c)
	wants(t, "", c, "")
	if !c.Has(section.ImagesAlone) || !c.Has(section.Metric) || c.Has(section.SecondView) || c.Data.Identities.Of(c.Train.BatchSize) != 2 {
		t.Errorf("images alone %t, metric %t, second view %t, %d identities a batch", c.Has(section.ImagesAlone), c.Has(section.Metric), c.Has(section.SecondView), c.Data.Identities.Of(c.Train.BatchSize))
	}
}

// TestSentencesBesideOtherLosses: batches of sentences have no images, which every loss of pairs but objective.mcse reads.
func TestSentencesBesideOtherLosses(t *testing.T) {
	mixed := func() Config {
		c := clip()
		c.Objective.ITC.InBatchWeight, c.Objective.SimCSE.Weight, c.Objective.MCSE.Weight, c.Model.Text.Dropout = 0, 1, 1, 0.1
		c.Data.Sentences.Batches, c.Data.Sentences.TrainFiles = 2, []string{"x.txt"}
		c.Momentum.Enabled, c.Queue.Size = true, 4096
		return c
	}
	c := mixed()
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{
		"objective.itc.weight", "objective.itc.in_batch_weight", "objective.siglip.weight", "objective.hinge.weight", "objective.poly.weight", "objective.cmpm.weight",
		"objective.word_patch.weight", "objective.token_image.weight", "objective.text_swap.weight", "objective.adcl.weight",
		"objective.geometric.weight", "objective.structure.weight", "objective.captioning.weight",
	} {
		c := mixed()
		c.value(key).SetFloat(1)
		wants(t, key, c, "data.sentences.batches: must be 0 with losses on images besides objective.mcse")
	}
}

// TestTokenLosses: losses over words and patches need both, in one space and in every batch.
func TestTokenLosses(t *testing.T) {
	for _, key := range []string{"objective.word_patch.weight", "objective.token_image.weight", "objective.text_swap.weight"} {
		for _, r := range []struct {
			change func(c *Config)
			want   string
		}{
			{func(c *Config) { c.Model.System = "moco" }, `: must be 0 (got 1); model.system "moco" has no pairs of images and captions: use "albef", "clip" or "matching"`},
			{func(c *Config) { c.Model.System = "identities" }, `: must be 0 (got 1); model.system "identities" has no pairs of images and captions: use "albef", "clip" or "matching"`},
			{func(c *Config) { c.Model.System = "heads" }, `: must be 0 (got 1); model.system "heads" has no text tower: use "albef", "clip" or "matching"`},
			{func(c *Config) { c.Data.CacheFeatures, c.Model.Text.Freeze = true, true }, ": must be 0 with data.cache_features and a frozen tower (got 1); tokens are not kept"},
			{func(c *Config) { c.Data.CacheFeatures, c.Model.Image.Freeze = true, true }, ": must be 0 with data.cache_features and a frozen tower (got 1); tokens are not kept"},
		} {
			c := Default()
			c.value(key).SetFloat(1)
			if err := c.Validate(); err != nil {
				t.Fatalf("%s: %v", key, err)
			}
			r.change(&c)
			wants(t, key, c, key+r.want)
		}
		c := Default()
		c.Objective.ITC.Weight, c.Objective.ITM.Weight, c.Objective.MLM.Weight = 0, 0, 0
		c.Momentum.Enabled, c.Queue.Size, c.Objective.Distill.Alpha, c.Data.Views = false, 0, 0, 1
		c.value(key).SetFloat(1)
		wants(t, key, c, "")
	}
}
