package setup

import (
	"fmt"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/data/source"
	"github.com/geoalign/geoalign/train/checkpoint"
)

// NeedsPairs refuses the configuration of alignment heads or of a closed form without stored features. bench
// makes features up and does not ask.
func NeedsPairs(cfg config.Config) error {
	if !cfg.Has(section.Stored) || cfg.Data.Kind == "pairs" {
		return nil
	}
	return config.Errors{{Path: "data.kind", Value: cfg.Data.Kind,
		Msg:  fmt.Sprintf(`must be "pairs" to train or evaluate model.system %q`, cfg.Model.System),
		Hint: "name the files of features in data.pairs.image and data.pairs.text"}}
}

// SameSplits refuses to draw the splits of stored features anew for a checkpoint that was
// trained on a part of their rows: its training rows would stand in the splits that it is
// evaluated on. Other files have rows of their own.
func SameSplits(ck *checkpoint.Checkpoint, cfg config.Config) error {
	if cfg.Data.Kind != "pairs" {
		return nil
	}
	old, err := OwnConfig(ck)
	if err != nil {
		return err
	}
	was, now := old.Data.Pairs, cfg.Data.Pairs
	if old.Data.Kind != "pairs" || was.Image != now.Image || was.Text != now.Text {
		return nil
	}
	const hint = "rows that it was trained on would be evaluated: use its value"
	var errs config.Errors
	bad := func(path string, value any, format string, args ...any) {
		errs = append(errs, &config.Error{Path: path, Value: value, Msg: ck.Path + " " + fmt.Sprintf(format, args...),
			Hint: hint})
	}
	if was.Index != now.Index {
		bad("data.pairs.index", now.Index, "was made with %q", was.Index)
		return errs
	}
	if !source.DrawsSplits(cfg.Source()) {
		return nil
	}
	held, holds := was.ValSamples+was.TestSamples, now.ValSamples+now.TestSamples
	if holds > held {
		bad("data.pairs.test_samples", now.TestSamples,
			"held %d rows back, for data.pairs.val_samples and this together", held)
	}
	if holds > 0 && was.Hold != now.Hold {
		bad("data.pairs.hold", now.Hold, "was made with %q", was.Hold)
	}
	key, seed := splitSeed(old)
	if nowKey, nowSeed := splitSeed(cfg); holds > 0 && now.Hold == "random" && seed != nowSeed {
		bad(nowKey, nowSeed, "was made with %s = %d, by which the splits of data.kind \"pairs\" are drawn", key, seed)
	}
	return errs.OrNil()
}

// splitSeed returns the seed that the splits of stored features are drawn by, and its key.
func splitSeed(cfg config.Config) (key string, seed uint64) {
	if s := cfg.Data.Pairs.Seed; s != 0 {
		return "data.pairs.seed", s
	}
	return "run.seed", cfg.Run.Seed
}
