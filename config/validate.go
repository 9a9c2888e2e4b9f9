package config

import (
	"math"
	"path"
	"reflect"
	"slices"
	"strings"
)

// Validate checks every value and the combinations that cannot work. The error
// is an Errors with all problems, nil if there are none. It looks at no file.
func (c Config) Validate() error { return c.problems().orNil() }

func (c Config) problems() Errors {
	k := &checker{fields: schema(&c), failed: map[string]bool{}}
	for _, f := range leaves(&c) {
		if f.value.Kind() == reflect.Float64 {
			k.require(f.path, !math.IsNaN(f.value.Float()) && !math.IsInf(f.value.Float(), 0), "must be a finite number")
		}
	}
	k.run(c.Run)
	k.data(c)
	k.model(c)
	k.momentum(c)
	k.objective(c.Objective)
	k.topology(c)
	k.scores(c)
	k.clip(c)
	k.temperature(c)
	k.geodesic(c)
	k.geometric(c)
	k.tcl(c)
	k.mafa(c.Objective)
	k.images(c)
	k.optimizer(c.Optimizer)
	k.schedule(c)
	k.train(c)
	k.eval(c)
	k.compute(c.Compute)
	k.units()
	return k.errs
}

// checker collects the first problem of each key.
type checker struct {
	fields map[string]reflect.Value
	failed map[string]bool
	errs   Errors
}

// require records a problem of the key at path unless ok.
func (k *checker) require(path string, ok bool, msg string, hint ...string) {
	if ok || k.failed[path] {
		return
	}
	k.failed[path] = true
	k.errs = append(k.errs, &Error{Path: path, Value: k.fields[path].Interface(), Msg: msg, Hint: strings.Join(hint, " ")})
}

// number returns the value at path as a float64.
func (k *checker) number(path string) float64 {
	switch v := k.fields[path]; v.Kind() {
	case reflect.Int:
		return float64(v.Int())
	default:
		return v.Float()
	}
}

func (k *checker) positive(paths ...string) {
	for _, p := range paths {
		k.require(p, k.number(p) > 0, "must be > 0")
	}
}

func (k *checker) notNegative(paths ...string) {
	for _, p := range paths {
		k.require(p, k.number(p) >= 0, "must be >= 0")
	}
}

// belowOne requires values in [0, 1).
func (k *checker) belowOne(paths ...string) {
	for _, p := range paths {
		v := k.number(p)
		k.require(p, v >= 0 && v < 1, "must be at least 0 and below 1")
	}
}

func (k *checker) oneOf(path string, allowed ...string) {
	k.require(path, slices.Contains(allowed, k.fields[path].String()), "must be one of "+strings.Join(allowed, ", "))
}

func (k *checker) run(r Run) {
	k.require("run.name", r.Name != "" || r.Out != "", "must not be empty", "name the run or set run.out")
	k.require("run.name", !strings.ContainsAny(r.Name, `/\`) && r.Name != "." && r.Name != "..", "must not be a path", "use run.out for the folder")
	k.require("run.seed", r.Seed <= math.MaxInt64, "must be at most 9223372036854775807")
}

func (k *checker) data(c Config) {
	d := c.Data
	k.oneOf("data.kind", "scenes", "captions", "karpathy", "folder", "pairs")
	switch d.Kind {
	case "captions":
		k.require("data.train_files", len(d.TrainFiles) > 0, `must name at least one file for data.kind "captions"`)
		evaluates := c.Train.EvalEverySteps > 0
		k.require("data.val_files", !evaluates || c.Eval.Split != "val" || len(d.ValFiles) > 0,
			"must name at least one file", "or set eval.split or train.eval_every_steps = 0")
		k.require("data.test_files", !evaluates || c.Eval.Split != "test" || len(d.TestFiles) > 0,
			"must name at least one file", "or set eval.split or train.eval_every_steps = 0")
	case "karpathy":
		k.require("data.file", d.File != "", `must name the dataset_*.json for data.kind "karpathy"`)
	case "scenes":
		k.scenes(d.Scenes)
	}
	for _, p := range []string{"data.train_files", "data.val_files", "data.test_files"} {
		k.require(p, !slices.Contains(k.fields[p].Interface().([]string), ""), "must not hold an empty file name")
	}
	k.positive("data.max_pixels", "data.max_words")
	k.require("data.max_bad_share", d.MaxBadShare >= 0 && d.MaxBadShare <= 1, "must be between 0 and 1")
	k.require("data.tokens", d.Tokens >= 2, "must be >= 2", "[CLS] takes one position")
	k.require("data.tokens", d.Tokens <= c.Model.Text.Positions, "must be at most model.text.positions",
		"raise model.text.positions or lower data.tokens")
	// Special tokens and an alphabet are the least a vocabulary can do with.
	k.require("data.vocab_size", d.Vocab != "" || d.VocabSize >= 64, "must be >= 64")
	k.cache(c)
	k.notNegative("data.workers", "data.prefetch", "data.randaugment_ops", "data.overfit_samples", "data.pairs.val_samples", "data.pairs.test_samples")
	k.require("data.views", d.Views == 1 || d.Views == 2, "must be 1 or 2")
	for _, p := range []string{"data.color_jitter", "data.grayscale", "data.blur"} {
		k.require(p, k.number(p) >= 0 && k.number(p) <= 1, "must be between 0 and 1")
	}
	k.require("data.crop_scale_min", d.CropScaleMin > 0 && d.CropScaleMin <= 1, "must be above 0 and at most 1")
	k.require("data.randaugment_level", d.RandAugmentLvl >= 0 && d.RandAugmentLvl <= 10, "must be between 0 and 10")
	k.require("data.overfit_samples", d.OverfitSamples == 0 || !d.DropLast || d.OverfitSamples >= c.Train.BatchSize,
		"must be 0 or at least train.batch_size", "or set data.drop_last = false")
}

func (k *checker) cache(c Config) {
	d := c.Data
	k.oneOf("data.cache", "none", "memory", "disk")
	k.require("data.cache", d.Cache == "none" || d.Kind != "scenes", "must be none for data.kind \"scenes\"", "scenes are drawn, not decoded")
	k.require("data.cache_dir", d.Cache != "disk" || d.CacheDir != "", `must name a folder for data.cache = "disk"`)
	k.positive("data.cache_max_gb")
	k.notNegative("data.cache_size")
	k.require("data.cache_size", d.CacheSize == 0 || d.CacheSize >= c.Model.Image.Size, "must be 0 or at least model.image.size",
		"crops of smaller images would be blurred")
}

func (k *checker) scenes(s Scenes) {
	const most = 4 // the largest number of objects the renderer places apart
	k.require("data.scenes.min_objects", s.MinObjects >= 1 && s.MinObjects <= most, "must be between 1 and 4")
	k.require("data.scenes.max_objects", s.MaxObjects >= 1 && s.MaxObjects <= most, "must be between 1 and 4")
	k.require("data.scenes.max_objects", s.MaxObjects >= s.MinObjects, "must be at least data.scenes.min_objects")
	k.positive("data.scenes.epoch_samples", "data.scenes.val_samples", "data.scenes.test_samples")
}

func (k *checker) model(c Config) {
	k.oneOf("model.system", "albef", "clip", "moco", "swav", "heads")
	k.positive("model.image.size", "model.image.patch", "model.image.depth", "model.image.width", "model.image.heads",
		"model.text.layers", "model.text.width", "model.text.heads", "model.text.positions", "model.head.dim")
	k.notNegative("model.head.hidden", "model.image.mlp", "model.text.mlp", "model.text.fusion_layers")
	i, t := c.Model.Image, c.Model.Text
	k.require("model.image.size", i.Patch <= 0 || i.Size%i.Patch == 0, "must be a multiple of model.image.patch")
	k.require("model.image.width", i.Heads <= 0 || i.Width%i.Heads == 0, "must be a multiple of model.image.heads")
	k.require("model.text.width", t.Heads <= 0 || t.Width%t.Heads == 0, "must be a multiple of model.text.heads")
	fuses := c.Objective.ITM.Weight > 0 || c.Objective.MLM.Weight > 0
	k.require("model.text.fusion_layers", !fuses || t.FusionLayers > 0, "must be > 0",
		"objective.itm and objective.mlm read the fusion layers")
	k.belowOne("model.text.dropout")
	k.positive("model.heads.in_image", "model.heads.in_text", "model.heads.hidden")
	k.belowOne("model.heads.dropout")
	k.oneOf("model.heads.activation", "gelu", "relu")
	if c.Model.System == "heads" {
		k.heads(c)
	}
}

// heads requires what alignment heads are trained with: contrast within the batch and
// nothing that needs a teacher or tokens.
func (k *checker) heads(c Config) {
	const hint = `model.system "heads" has contrast within the batch alone, objective.itc.in_batch_weight`
	k.require("momentum.enabled", !c.Momentum.Enabled, "must be false", hint)
	for _, p := range []string{"objective.itc.weight", "objective.itm.weight", "objective.mlm.weight"} {
		k.require(p, k.number(p) == 0, "must be 0", hint)
	}
}

func (k *checker) momentum(c Config) {
	k.belowOne("momentum.m")
	k.notNegative("momentum.ramp_steps", "queue.size", "queue.start_steps")
	k.require("queue.size", c.Queue.Size == 0 || c.Queue.Size >= c.Train.BatchSize, "must be 0 or at least train.batch_size",
		"a batch would push out its own features: raise queue.size or lower train.batch_size")
	if c.Momentum.Enabled || c.Model.System == "swav" { // which has no teacher, see images
		return
	}
	const hint = "it needs the teacher: set momentum.enabled = true"
	k.require("queue.size", c.Queue.Size == 0, "must be 0 without momentum", hint)
	k.require("objective.distill.alpha", c.Objective.Distill.Alpha == 0, "must be 0 without momentum", hint)
	k.require("objective.itc.weight", c.Objective.ITC.Weight == 0, "must be 0 without momentum", hint+",",
		"or use objective.itc.in_batch_weight")
}

func (k *checker) objective(o Objective) {
	alpha := o.Distill.Alpha
	k.require("objective.distill.alpha", alpha >= 0 && alpha <= 1, "must be between 0 and 1")
	k.notNegative("objective.distill.ramp_steps", "objective.distill.ramp_epochs",
		"objective.itc.weight", "objective.itc.in_batch_weight", "objective.itm.weight", "objective.mlm.weight")
	sum := o.ITC.Weight + o.ITC.InBatchWeight + o.ITM.Weight + o.MLM.Weight
	k.require("objective.itc.weight", sum != 0, "at least one objective must have a weight > 0")
	k.oneOf("objective.itc.positives", "pair", "id")
	k.require("objective.mlm.prob", o.MLM.Prob > 0 && o.MLM.Prob < 1, "must be above 0 and below 1",
		"set objective.mlm.weight = 0 to switch the loss off")
}

// temperature checks the range of the contrast's temperature.
func (k *checker) temperature(c Config) {
	i := c.Objective.ITC
	k.positive("objective.itc.temperature", "objective.itc.temperature_max")
	k.require("objective.itc.temperature_min", i.TemperatureMin > 0 || i.LogTemperature && i.TemperatureMin == 0, "must be > 0",
		"or 0 with objective.itc.log_temperature, which caps the scale at 100 for each sphere")
	least := c.LeastTemperature()
	k.require("objective.itc.temperature_max", i.TemperatureMax >= least, "must be at least objective.itc.temperature_min")
	k.require("objective.itc.temperature", i.Temperature >= least && i.Temperature <= i.TemperatureMax,
		"must lie between objective.itc.temperature_min and temperature_max")
}

// LeastTemperature returns the least temperature of the contrast: that of the
// configuration, or m/100 for a head of m spheres, by which the scale 1/temperature is at
// most 100/m (clip-mtob).
func (c Config) LeastTemperature() float64 {
	if t := c.Objective.ITC.TemperatureMin; t > 0 {
		return t
	}
	space, _ := c.Model.Head.Space()
	return float64(space.Spheres) / 100
}

func (k *checker) optimizer(o Optimizer) {
	k.positive("optimizer.lr", "optimizer.eps")
	k.belowOne("optimizer.beta1", "optimizer.beta2")
	k.notNegative("optimizer.decay", "optimizer.clip_norm")
	for _, p := range o.NoDecay {
		if _, err := path.Match(p, ""); err != nil {
			k.require("optimizer.no_decay", false, "holds the malformed glob \""+p+`"`, "close every [ and end no pattern with \\")
		}
		// A plain word can match no parameter, since their names are paths.
		group := slices.Contains([]string{"bias", "1d", "temperature", "metric"}, p)
		k.require("optimizer.no_decay", group || strings.ContainsAny(p, `/*?[`),
			`holds "`+p+`", which is no group and no glob`, `the groups are "bias", "1d", "temperature" and "metric"; a glob looks like "text/*/norm/*"`)
	}
}

func (k *checker) schedule(c Config) {
	s := c.Schedule
	k.oneOf("schedule.kind", "cosine", "staircase", "constant")
	k.notNegative("schedule.warmup_steps", "schedule.warmup_epochs", "schedule.warmup_lr", "schedule.min_lr")
	k.require("schedule.kind", s.Kind == "constant" || c.Train.MaxMinutes <= 0, "needs the length of the run in steps",
		`use "constant" with train.max_minutes`)
	k.require("schedule.warmup_percent", s.WarmupPercent >= 0 && s.WarmupPercent < 100, "must be at least 0 and below 100")
	k.require("schedule.min_lr", s.MinLR <= c.Optimizer.LR, "must be at most optimizer.lr")
	k.require("schedule.warmup_lr", s.WarmupLR <= c.Optimizer.LR, "must be at most optimizer.lr")
}

func (k *checker) train(c Config) {
	k.positive("train.batch_size", "train.accumulate_steps", "train.log_every_steps")
	k.require("train.batch_size", c.Train.BatchSize >= 2, "must be >= 2", "contrast and matching need another pair as a negative")
	k.notNegative("train.max_steps", "train.max_epochs", "train.max_samples", "train.max_minutes", "train.eval_every_steps",
		"train.save_every_steps", "train.save_every_minutes", "train.keep_last", "train.keep_best", "train.keep_every_steps")
	k.oneOf("train.on_nan", "stop", "skip", "rollback")
}

func (k *checker) eval(c Config) {
	k.oneOf("eval.split", "val", "test")
	k.positive("eval.batch_size")
	k.notNegative("eval.rerank_top", "eval.max_images", "eval.folds", "eval.probe_decay")
	k.positive("eval.probe_samples", "eval.probe_neighbours")
	k.require("eval.rerank_top", c.Eval.RerankTop == 0 || c.Objective.ITM.Weight > 0, "must be 0 when objective.itm.weight is 0",
		"re-ranking uses the matching head, which is not trained")
}

func (k *checker) compute(c Compute) {
	k.oneOf("compute.backend", "auto", "onednn", "openblas", "mkl", "builtin", "plain")
	k.notNegative("compute.threads")
	k.oneOf("compute.precision", "fp32", "bf16")
}

// units checks the quantities that can be given in one of several units.
func (k *checker) units() {
	for _, g := range groups {
		var set []string
		for _, p := range g.paths {
			if k.number(p) > 0 {
				set = append(set, p)
			}
		}
		if len(set) > 1 {
			k.require(set[1], false, "must not be set together with "+set[0], "set one of "+strings.Join(g.paths, ", "))
		}
		if g.need && len(set) == 0 {
			k.require(g.paths[0], false, "one duration must be > 0", "set one of "+strings.Join(g.paths, ", "))
		}
	}
}
