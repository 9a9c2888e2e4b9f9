package run

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/data/source"
	"github.com/geoalign/geoalign/run/console"
	"github.com/geoalign/geoalign/run/setup"
	"github.com/geoalign/geoalign/tasks"
	"github.com/geoalign/geoalign/tasks/all"
	"github.com/geoalign/geoalign/tasks/classes"
	"github.com/geoalign/geoalign/tasks/grounding"
	"github.com/geoalign/geoalign/tasks/retrieval"
	"github.com/geoalign/geoalign/train/checkpoint"
)

// alone are settings of a task whose loss stands alone: those of pre-training are off.
var alone = []string{"objective.itc.weight=0", "objective.itc.in_batch_weight=0", "objective.itm.weight=0",
	"objective.mlm.weight=0", "objective.itc.score=cosine", "objective.itc.scores=[]", "queue.size=0",
	"queue.start_steps=0", "data.views=1", "eval.rerank_top=0", "eval.rerank_score=match"}

// pairKeys are keys and sections of what a model of images alone lacks.
var pairKeys = []string{"objective", "momentum", "queue", "model.text", "model.head", "model.interaction",
	"model.views", "model.image.resnet.shuffle_groups", "data.views", "data.crops", "data.cache_features",
	"data.tokens", "init.text", "eval.rerank_top", "eval.rerank_score", "eval.score", "eval.beside", "train.accumulate",
	"train.keep_best_by"}

// classificationSettings are those of a model of images alone over a configuration of another system: its image tower,
// its data and how it is trained. What else it sets is of parts that are not there.
func classificationSettings(base config.Config) (sets []string) {
	if base.Has(section.Classes) {
		return nil
	}
	for _, d := range base.NotDefault() {
		for _, part := range pairKeys {
			if d.Path == part || strings.HasPrefix(d.Path, part+".") {
				sets = append(sets, config.Reset(d.Path))
			}
		}
	}
	return append(sets, "model.system=classes", fmt.Sprintf("model.head.dim=%d", base.Model.Image.TokenWidth()),
		"objective.classes.weight=1", "objective.itc.weight=0", "objective.itm.weight=0", "objective.mlm.weight=0",
		"objective.distill.alpha=0", "momentum.enabled=false", "queue.size=0", "eval.rerank_top=0")
}

// withoutTask are the settings that take another downstream task than task out of a configuration: for retrieval and
// grounding its loss, in whose place they get theirs (see otherLosses for tasks that stand alone), and its examples of
// scenes, in whose place are the scenes.
func withoutTask(task string, base config.Config) (sets []string) {
	paired := task == retrieval.Name || task == grounding.Name
	if loss := base.TaskLoss(); paired && loss != "" && loss != "objective."+task {
		for _, d := range base.NotDefault() {
			if strings.HasPrefix(d.Path, loss+".") {
				sets = append(sets, config.Reset(d.Path))
			}
		}
		sets = append(sets, "objective.itc.in_batch_weight=1", "objective.itm.weight=1")
	}
	if base.Data.ReadsExamples() && base.Data.Drawn() && base.Task() != task {
		sets = append(sets, "data.kind=scenes")
	}
	return sets
}

// otherLosses puts the settings of losses that a configuration trains by back to what they are by default, where they
// are off: all but the loss of the task itself and those that alone sets.
func otherLosses(task string, base config.Config) (sets []string) {
	changed, off := base.NotDefault(), map[string]bool{}
	for _, d := range changed {
		section, key := cutKey(d.Path)
		stays := slices.Contains([]string{"objective." + task, "objective.itc", "objective.itm", "objective.mlm"},
			section)
		if strings.HasPrefix(section, "objective.") && key == "weight" && !stays ||
			d.Path == "objective.distill_scores.teacher" {
			off[section] = true
		}
	}
	for _, d := range changed {
		if section, _ := cutKey(d.Path); off[section] {
			sets = append(sets, config.Reset(d.Path))
		}
	}
	return sets
}

// cutKey cuts a key behind its section.
func cutKey(path string) (section, key string) {
	i := strings.LastIndexByte(path, '.')
	if i < 0 {
		return "", path
	}
	return path[:i], path[i+1:]
}

// sourceOf are the settings by which the task of a configuration of scenes, with sets over it, is about scenes, which
// data of another kind is told, unless files to train on are named.
func sourceOf(base config.Config, sets []string) []string {
	if base.Data.Kind != "scenes" && !(base.Data.ReadsExamples() && base.Data.Drawn()) {
		return nil
	}
	kind, files := base.Data.Kind, false
	for _, set := range sets {
		key, value, _ := strings.Cut(set, "=")
		switch strings.TrimSpace(key) {
		case "data.kind":
			kind = strings.Trim(strings.TrimSpace(value), `"'`)
		case "data.examples.train_files":
			files = true
		}
	}
	from := source.ExamplesOfScenes
	if files || !(source.Data{Kind: kind}).ReadsExamples() {
		from = source.ExamplesOfFiles // the default, where nothing reads it
	}
	if from == base.Data.Examples.Source {
		return nil
	}
	return []string{"data.examples.source=" + from}
}

// settingsOf are the settings of a task over those of a configuration, under those of a user.
func settingsOf(task string, base config.Config, own ...string) (sets []string) {
	sets = withoutTask(task, base)
	t, _ := tasks.Find(all.List, task)
	if t.Finetune.Alone {
		sets = append(append(sets, otherLosses(task, base)...), alone...)
	}
	sets = append(sets, t.Finetune.Sets...)
	from := DefaultTask(base)
	switch {
	case t.Finetune.Tower:
		sets = append(sets, classificationSettings(base)...)
	case task != from && base.Train.KeepsByMetric() && strings.HasPrefix(base.Train.KeepBestBy, prefixOf(from)):
		sets = append(sets, config.Reset("train.keep_best_by")) // a number that the evaluation of another task lacks
	}
	return append(sets, sourceOf(base, slices.Concat(sets, own))...)
}

// FinetuneTasks lists the tasks that a checkpoint is fine-tuned for.
func FinetuneTasks() []string {
	return tasks.Names(all.List, func(t tasks.Task) bool { return t.Finetune != nil })
}

// FinetuneConfig returns the configuration of a run that fine-tunes the checkpoint at path for a task, empty for that
// of the configuration, or retrieval. That is trained as ALBEF does: contrast and matching without masked language
// modelling, and all captions of an image positives of each other. Other tasks have a loss of their own. The settings
// are those of o.File, or where it is empty of the checkpoint, with o.Set over them.
func FinetuneConfig(path, task string, o OpenOptions) (config.Config, error) {
	if task != "" && !slices.Contains(FinetuneTasks(), task) {
		return config.Config{}, console.Argument("no task %q to fine-tune for: the tasks are %s", task,
			strings.Join(FinetuneTasks(), ", "))
	}
	ck, err := setup.InitCheckpoint(path)
	if err != nil {
		return config.Config{}, err
	}
	defer ck.Close()
	base, err := ConfigOver(ck, OpenOptions{File: o.File})
	if err != nil {
		return base, err
	}
	if base.Has(section.OneEncoder) && task == "" {
		if base.Has(section.Words) {
			return finetuneEncoder(ck, path, base, o)
		}
		task = classes.Name
	}
	task = cmp.Or(task, base.Task(), retrieval.Name)
	if task != classes.Name && (base.Has(section.Sentences) || base.Has(section.ImagesAlone)) {
		return base, console.Argument(
			"the task %s needs images with texts, which model.system %q lacks: train on from it with trainer train --config FILE --set %s", task, base.Model.System, setup.ShellWord(config.Override("init.checkpoint", path)))
	}
	if task == classes.Name {
		own, err := setup.OwnConfig(ck)
		if err != nil {
			return base, err
		}
		if own.Has(section.Sentences) || own.Has(section.Stored) || own.Has(section.Regions) {
			return base, console.Argument(
				"the task %s needs a tower that reads pixels, and the model in %s (model.system %q) has none: fine-tune another checkpoint", task, ck.Path, own.Model.System)
		}
	}
	sets := slices.Concat(settingsOf(task, base, o.Set...),
		[]string{config.Override("init.checkpoint", path), "init.image.path=''", "init.text.path=''",
			"model.heads.start=''"})
	if o.File == "" { // what belongs to the run that the configuration is from
		sets = append(sets, "run.name=finetune", "run.out=''", "queue.start_steps=0")
	}
	o.Set = append(sets, o.Set...)
	cfg, err := ConfigOver(ck, o)
	if err != nil {
		return cfg, err
	}
	if cfg.Init.Checkpoint != path {
		return cfg, config.Errors{{Path: "init.checkpoint", Value: cfg.Init.Checkpoint,
			Msg:  "is what is fine-tuned, " + strconv.Quote(path),
			Hint: "leave it out, or name the other checkpoint with --checkpoint"}}
	}
	if err := setup.SameSplits(ck, cfg); err != nil {
		return cfg, err
	}
	return cfg, cfg.Validate() // of a stored one not everything is
}

// encoderSets are the settings that train the tower of an encoder of texts on sentences, as in SimCSE, where they are
// not of the encoder: a small learning rate from the first step on.
var encoderSets = append([]string{"model.system=simcse", "model.head.identity=''", "model.head.topology=sphere",
	"objective.simcse.weight=1", "objective.simcse.head=none", "objective.distill.alpha=0", "momentum.enabled=false",
	"optimizer.lr=3e-5", "schedule.warmup_steps=0", "schedule.min_lr=0", "train.max_epochs=1", "data.kind=sentences"},
	alone...)

// finetuneEncoder is FinetuneConfig of an encoder of texts. What stands behind its pool is not trained.
func finetuneEncoder(ck *checkpoint.Checkpoint, path string, base config.Config, o OpenOptions) (config.Config, error) {
	if n := len(base.Model.Head.Dense); n > 0 || !base.Model.Head.Whole("text") {
		return base, console.Argument("%s has layers behind its pool (model.head), which are not fine-tuned: train its tower by a system of your own, with init.checkpoint or with init.text.path", ck.Path)
	}
	sets := encoderSets
	if o.File != "" { // which says how it is trained
		sets = nil
	}
	o.Set = slices.Concat(sets, []string{config.Override("init.checkpoint", path), "run.name=finetune", "run.out=''"},
		o.Set)
	cfg, err := ConfigOver(ck, o)
	if err != nil {
		return cfg, err
	}
	return cfg, cfg.Validate()
}
