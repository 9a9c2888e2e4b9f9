package run

import (
	"fmt"
	"io"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/source"
	"github.com/geoalign/geoalign/internal/words"
)

// OpenSplit opens a split for evaluation: train (of data that is finite), val or test.
// Images without a caption are left out, with a note.
func OpenSplit(cfg config.Config, split string, note io.Writer) (*data.Eval, error) {
	return openSplit(cfg, split, Lines(note).Say)
}

func openSplit(cfg config.Config, split string, say func(format string, args ...any)) (*data.Eval, error) {
	ds, err := source.Split(cfg, split)
	if err != nil {
		return nil, err
	}
	set, err := data.NewEval(ds, data.EvalConfig{ImageSize: cfg.Model.Image.Size, MaxWords: cfg.Data.MaxWords, MaxImages: cfg.Eval.MaxImages})
	if err != nil {
		return nil, err
	}
	if n := cfg.Eval.Folds; n > 1 && set.NumImages()%n != 0 {
		return nil, config.Errors{{Path: "eval.folds", Value: n, Msg: fmt.Sprintf("must divide the %d images of the split", set.NumImages()),
			Hint: "choose a divisor, or the size of the gallery with eval.max_images"}}
	}
	if n := set.Skipped(); n > 0 {
		say("%s of %s have no caption and are left out", words.Count(n, "image"), split)
	}
	return set, nil
}

// openFinalSplit opens the split that a training run evaluates on. It is nil where the
// configuration names no files for it, and where a probe has no classes.
func openFinalSplit(cfg config.Config, say func(format string, args ...any)) (*data.Eval, error) {
	files := map[string][]string{"val": cfg.Data.ValFiles, "test": cfg.Data.TestFiles}
	if cfg.Data.Kind == "captions" && len(files[cfg.Eval.Split]) == 0 {
		return nil, nil
	}
	set, err := openSplit(cfg, cfg.Eval.Split, say)
	if err != nil || DefaultTask(cfg) != TaskProbe {
		return set, err
	}
	if _, ok := set.Labels(); !ok {
		say("the data has no classes: there is no evaluation")
		return nil, nil
	}
	return set, nil
}
