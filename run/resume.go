package run

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/train"
	"github.com/geoalign/geoalign/train/checkpoint"
)

// ownConfig returns the configuration that a checkpoint was made with, with sections of other modules.
func ownConfig(ck *checkpoint.Checkpoint, added ...config.Added) (config.Config, error) {
	old, _, err := train.OpenConfig(ck, nil, added...)
	if err != nil {
		return old, fmt.Errorf("the checkpoint's own configuration: %w", err)
	}
	return old, nil
}

// sameKeys returns an error that lists the keys by which cfg cannot use ck.
func sameKeys(ck *checkpoint.Checkpoint, cfg config.Config, use config.Fixed) error {
	old, err := ownConfig(ck, cfg.Added...)
	if err != nil {
		return err
	}
	return conflicts(old, cfg, use, fmt.Sprintf("the checkpoint %s was made", ck.Path), "use its value, or another checkpoint")
}

// conflicts returns an error that lists why a checkpoint made with old cannot be used with
// cfg. Each problem begins with was and ends with hint. Of another system only that is said.
func conflicts(old, cfg config.Config, use config.Fixed, was, hint string) error {
	var errs config.Errors
	for _, c := range config.Conflicts(old, cfg, use) {
		e := &config.Error{Path: c.Path, Value: c.Now, Msg: was + " with " + c.With, Hint: hint}
		if c.Path == "model.system" {
			return config.Errors{e}
		}
		errs = append(errs, e)
	}
	if errs != nil {
		return errs
	}
	return nil
}

// shapeKeys is err, or where a parameter has another shape than in ck the keys that cfg changes
// of those that give it its shape: the ones that the error names, else those of its part of the
// model, else all of the model.
func shapeKeys(ck *checkpoint.Checkpoint, cfg config.Config, err error) error {
	var shape *train.ShapeError
	if !errors.As(err, &shape) {
		return err
	}
	old, failed := ownConfig(ck)
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
			Msg: fmt.Sprintf("the checkpoint %s was made with %s, and %s has the shape %v there and %v here", ck.Path, config.Show(was), shape.Param, shape.Was, shape.Now)}
		for i, its := range []bool{strings.Contains(shape.Settings, d.Path), strings.HasPrefix(d.Path, "model."+part+"."), strings.HasPrefix(d.Path, "model.")} {
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

// checkResume refuses to go on with what a run cannot change and tells what else
// has changed.
func checkResume(from *checkpoint.Checkpoint, cfg config.Config, say func(format string, args ...any)) error {
	old, err := ownConfig(from)
	if err != nil {
		return err
	}
	if !old.Model.Fitted() && !from.Has("optimizer") {
		dir := folderOf(from)
		return fmt.Errorf("%s holds weights alone, as import, average and merge write them, and no run to go on with: train from them into another folder with\n"+
			"  trainer finetune --checkpoint %s --out FOLDER\nfor retrieval, or else with\n  trainer train --config FILE --set %s --out FOLDER\n"+
			"with a configuration of the same model (trainer inspect %s --print-config prints it)", from.Path, shellWord(dir), shellWord(config.Override("init.checkpoint", dir)), shellWord(dir))
	}
	err = conflicts(old, cfg, config.FixedRun, fmt.Sprintf("the run in %s was started", from.Path),
		"go on with that value, choose another folder with --out, or start anew with --resume never")
	if err != nil {
		return err
	}
	if err := sameSplits(from, cfg); err != nil {
		return err
	}
	for _, d := range config.Differences(old, cfg) {
		if d.Fixed == config.Free && !d.Silent {
			say("changed since the checkpoint: %s = %v (was %v)", d.Path, config.Show(d.Now), config.Show(d.Was))
		}
	}
	return nil
}
