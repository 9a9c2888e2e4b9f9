package setup

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/run/folder"
	"github.com/geoalign/geoalign/train"
	"github.com/geoalign/geoalign/train/checkpoint"
)

// OwnConfig returns the configuration that a checkpoint was made with, with sections of other modules.
func OwnConfig(ck *checkpoint.Checkpoint, added ...config.Added) (config.Config, error) {
	old, _, err := train.OpenConfig(ck, nil, added...)
	if err != nil {
		return old, fmt.Errorf("the checkpoint's own configuration: %w", err)
	}
	return old, nil
}

// SameKeys returns an error that lists the keys by which cfg cannot use ck.
func SameKeys(ck *checkpoint.Checkpoint, cfg config.Config, use config.Fixed) error {
	old, err := OwnConfig(ck, cfg.Added...)
	if err != nil {
		return err
	}
	return Conflicts(old, cfg, use, fmt.Sprintf("the checkpoint %s was made", ck.Path),
		"use its value, or another checkpoint")
}

// Conflicts returns an error that lists why a checkpoint made with old cannot be used with
// cfg. Each problem begins with was and ends with hint. Of another system only that is said.
func Conflicts(old, cfg config.Config, use config.Fixed, was, hint string) error {
	var errs config.Errors
	for _, c := range config.Conflicts(old, cfg, use) {
		e := &config.Error{Path: c.Path, Value: c.Now, Msg: was + " with " + c.With, Hint: hint}
		if c.Path == "model.system" {
			return config.Errors{e}
		}
		errs = append(errs, e)
	}
	return errs.OrNil()
}

// ShapeKeys is err, or where a parameter has another shape than in ck the keys that cfg changes
// of those that give it its shape: the ones that the error names, else those of its part of the
// model, else all of the model.
func ShapeKeys(ck *checkpoint.Checkpoint, cfg config.Config, err error) error {
	var shape *train.ShapeError
	if !errors.As(err, &shape) {
		return err
	}
	old, failed := OwnConfig(ck)
	if failed != nil {
		return errors.Join(err, failed)
	}
	part, _, _ := strings.Cut(shape.Param, "/")
	var found [3]config.Errors
	for _, d := range config.Differences(old, cfg) {
		was, _ := old.Get(d.Path)
		now, _ := cfg.Get(d.Path)
		if reflect.DeepEqual(was, now) { // 0, which stands for another value now
			continue
		}
		e := &config.Error{Path: d.Path, Value: now, Hint: "use its value, or another checkpoint",
			Msg: fmt.Sprintf("the checkpoint %s was made with %s, and %s has the shape %v there and %v here", ck.Path,
				config.Show(was), shape.Param, shape.Was, shape.Now)}
		for i, its := range []bool{strings.Contains(shape.Settings, d.Path),
			strings.HasPrefix(d.Path, "model."+part+"."), strings.HasPrefix(d.Path, "model.")} {
			if its {
				found[i] = append(found[i], e)
			}
		}
	}
	for _, errs := range found {
		if errs != nil {
			return errs
		}
	}
	return err
}

// CheckResume refuses to go on with what a run cannot change and tells what else
// has changed.
func CheckResume(from *checkpoint.Checkpoint, cfg config.Config, say func(format string, args ...any)) error {
	old, err := OwnConfig(from, cfg.Added...)
	if err != nil {
		return err
	}
	if !old.Has(section.Fitted) && !from.Has("optimizer") {
		dir := folder.Of(from)
		return fmt.Errorf("%s holds weights alone, as import, average and merge write them, and no run to go on with: train from them into another folder with\n"+
			"  trainer finetune --checkpoint %s --out FOLDER\nfor retrieval, or else with\n  trainer train --config FILE --set %s --out FOLDER\n"+
			"with a configuration of the same model (trainer inspect %s --print-config prints it)", from.Path,
			ShellWord(dir), ShellWord(config.Override("init.checkpoint", dir)), ShellWord(dir))
	}
	err = Conflicts(old, cfg, config.FixedRun, fmt.Sprintf("the run in %s was started", from.Path),
		"go on with that value, choose another folder with --out, or start anew with --resume never")
	if err != nil {
		return err
	}
	if err := SameSplits(from, cfg); err != nil {
		return err
	}
	for _, d := range config.Differences(old, cfg) {
		if d.Fixed == config.Free && !d.Silent {
			say("changed since the checkpoint: %s = %v (was %v)", d.Path, config.Show(d.Now), config.Show(d.Was))
		}
	}
	return nil
}

// InitCheckpoint opens a checkpoint to start from. All who ask for a part of it check the same
// files, so that they take the same checkpoint where the newest is damaged.
func InitCheckpoint(path string) (*checkpoint.Checkpoint, error) {
	return checkpoint.Open(path, "model", "momentum")
}

// ModelGroups are the files of tensors of which a checkpoint has one: the parameters of towers
// and heads, or a fitted map. Who uses a model checks the bytes of both.
var ModelGroups = []string{"model", "alignment"}
