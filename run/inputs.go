package run

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/data/source"
	"github.com/geoalign/geoalign/model"
	"github.com/geoalign/geoalign/tasks"
	"github.com/geoalign/geoalign/tasks/all"
	"github.com/geoalign/geoalign/tasks/retrieval"
	"github.com/geoalign/geoalign/tasks/zeroshot"
)

// CheckInputs looks for every file and folder that a configuration names: its lists, images,
// features and vocabulary, those of tasks, and the checkpoints that it starts from or learns from. Those that are
// missing or of the wrong kind are config.Errors with their key.
func CheckInputs(cfg config.Config) error {
	return source.CheckInputs(slices.Concat(source.Inputs(cfg.Source(), source.Splits...),
		taskInputs(cfg, func(tasks.Task) bool { return true }), startInputs(cfg), frozenInputs(cfg)))
}

// CheckFolds opens the split that eval.folds cuts, if it cuts any, and says whether it does. Other errors of the data
// are those of whoever reads it.
func CheckFolds(ctx context.Context, cfg config.Config) error {
	if cfg.Eval.Folds < 2 || DefaultTask(cfg) != retrieval.Name {
		return nil
	}
	set, err := source.Galleries(ctx, cfg.Source(), cfg.Eval.Split, source.Options{})
	if c, ok := set.(io.Closer); ok && err == nil {
		return c.Close()
	}
	if _, ok := errors.AsType[config.Errors](err); ok {
		return err
	}
	return nil
}

// checkTraining is CheckInputs of what every training run reads: its data, that of the tasks beside its own, and frozen
// models.
func checkTraining(cfg config.Config) error {
	list := append(source.Inputs(cfg.Source(), "train", cfg.Eval.Split), frozenInputs(cfg)...)
	list = append(list, taskInputs(cfg, func(t tasks.Task) bool {
		return slices.Contains(cfg.Eval.Beside, t.Name) || t.Name == zeroshot.Name && cfg.Has(section.Stored)
	})...)
	return source.CheckInputs(list)
}

// taskInputs lists what tasks read besides the splits, as far as the system is one for them.
func taskInputs(cfg config.Config, fits func(t tasks.Task) bool) (list []source.Input) {
	for _, t := range all.List {
		if t.Inputs == nil || !fits(t) {
			continue
		}
		if s := (Evaluation{Config: cfg}).setup(t); t.Check(s) == nil {
			list = append(list, t.Inputs(s)...)
		}
	}
	return list
}

// towerInputs are the files or folders of init.image and init.text.
func towerInputs(cfg config.Config) (list []source.Input) {
	image, text := cfg.Towers()
	for key, path := range map[string]string{"init.image.path": image, "init.text.path": text} {
		if path != "" {
			st, err := os.Stat(path)
			list = append(list, source.Input{Key: key, Value: path, Path: path, Folder: err == nil && st.IsDir()})
		}
	}
	slices.SortFunc(list, func(a, b source.Input) int { return strings.Compare(a.Key, b.Key) })
	return list
}

// frozenInputs are the folders of the frozen models that losses ask, which a run that goes on reads too.
func frozenInputs(cfg config.Config) (list []source.Input) {
	if cfg.Has(section.Fitted) {
		return nil // no loss is there to ask
	}
	o := cfg.Objective
	for _, x := range []source.Input{{Key: model.TeacherKey, Path: o.DistillScores.Teacher},
		{Key: model.ConnectorKey, Path: o.MAFA.Connector}} {
		if x.Path != "" {
			x.Value, x.Folder = x.Path, true
			list = append(list, x)
		}
	}
	return list
}

// startInputs is what only a new run reads.
func startInputs(cfg config.Config) []source.Input {
	path := cfg.Init.Checkpoint
	if path == "" {
		return append(towerInputs(cfg), source.Vocabulary(cfg.Source())...)
	}
	// which has a vocabulary of its own
	return []source.Input{{Key: "init.checkpoint", Value: path, Path: path, Folder: true}}
}
