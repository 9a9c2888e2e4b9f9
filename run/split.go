package run

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/account"
	"github.com/geoalign/geoalign/data/source"
	"github.com/geoalign/geoalign/run/console"
	"github.com/geoalign/geoalign/tasks/probe"
	"github.com/geoalign/geoalign/tasks/reid"
)

// Split is a split for evaluation: a gallery for each side. Galleries are nil where an evaluation reads files of its
// own alone.
type Split struct {
	data.Galleries
	Eval *data.Eval     // the images and captions behind the galleries; nil of stored features
	kept map[string]any // what tasks read besides, by their names

	leftOut int // images that cannot be read
}

// Account is what became of the inputs of the galleries or samples, nil where nobody counts.
func (s *Split) Account() *account.Account {
	if s == nil {
		return nil
	}
	for _, x := range s.kept {
		if _, images := x.(*data.Eval); images { // of a folder of its own
			continue
		}
		if a := account.Of(x); a != nil {
			return a
		}
	}
	return account.Of(s.Galleries)
}

// LeftOut is the number of images or samples that evaluations leave out because they cannot be read.
func (s *Split) LeftOut() int {
	if s == nil {
		return 0
	}
	return s.leftOut
}

// Len returns the rows of the gallery of images.
func (s *Split) Len() int { return s.Images().Len() }

// OpenSplit opens a split for evaluation: train (of data that is finite), val or test.
// What is left out of its files is told. progress is told how far an opening that takes long is, and may be nil.
func OpenSplit(ctx context.Context, cfg config.Config, split string, note io.Writer,
	progress func(phase string, done, of int)) (*Split, error) {
	return openSplit(ctx, cfg, split, console.Lines(note).Say, progress)
}

func openSplit(ctx context.Context, cfg config.Config, split string, say func(format string, args ...any),
	progress func(phase string, done, of int)) (*Split, error) {
	g, err := source.Galleries(ctx, cfg.Source(), split, source.Options{Progress: progress})
	if err != nil {
		return nil, err
	}
	s := &Split{Galleries: g}
	if e, ok := g.(*data.Eval); ok {
		s.Eval = e
	}
	sayInputs(say, split, s)
	return s, nil
}

// openFinalSplit opens the split that a training run evaluates on and looks for its files,
// so that none is found missing after hours of training. It is nil where the configuration
// names no files for it, and where a probe has no classes.
func openFinalSplit(ctx context.Context, cfg config.Config, report console.Reporter) (*Split, error) {
	t, err := taskOf(cfg, "")
	if err != nil || source.Unnamed(cfg.Source(), cfg.Eval.Split) && OfSplit(cfg, t.Name) {
		return nil, err
	}
	if !ReadsSplit(cfg, t.Name) {
		set := &Split{}
		if _, err := set.open(ctx, t, Evaluation{Config: cfg, Set: set}.setup(t)); err != nil {
			return set, err
		}
		if !cfg.Data.ReadsExamples() {
			return set, nil
		}
		return set, checkBeside(ctx, cfg, set)
	}
	progress, done := console.Phases(report)
	defer done()
	set, err := openSplit(ctx, cfg, cfg.Eval.Split, report.Say, progress)
	if err != nil {
		return nil, err
	}
	if err := checkBeside(ctx, cfg, set); err != nil || set.Eval == nil { // stored features are mapped as a whole
		return set, err
	}
	if _, ok := set.Eval.Labels(); !ok && t.Name == probe.Name {
		report.Say("the data has no classes: there is no evaluation")
		return nil, nil
	}
	if t.Name == reid.SiblingsName {
		if all, err := set.Eval.Rephrased(); err != nil || !all.HasSiblings() {
			if err != nil {
				return nil, err
			}
			report.Say("no image of the data has several captions: there is no evaluation")
			return nil, nil
		}
		return set, nil // images are not read
	}
	if err := set.findFiles(ctx, cfg, cfg.Eval.Split, progress); err != nil {
		return nil, fmt.Errorf("eval.split %q: %w", cfg.Eval.Split, err)
	}
	return set, nil
}

// findFiles looks for the files of the images of a split that a model is about to encode. The
// error is that of data.Eval.FindFiles where more are missing than data.max_bad_share allows. progress may be nil.
func (s *Split) findFiles(ctx context.Context, cfg config.Config, split string,
	progress func(phase string, done, of int)) error {
	if s.Eval == nil {
		return nil
	}
	return allowed(cfg, s.Eval.FindFiles(ctx, findWorkers, func(done, of int) {
		if progress != nil && of >= findShown && (done%findShown == 0 || done == of) {
			progress("looking for the files of "+split, done, of)
		}
	}))
}

// allowed is err without missing files that are no more than data.max_bad_share allows: an evaluation leaves them out.
func allowed(cfg config.Config, err error) error {
	if m := (*data.MissingError)(nil); errors.As(err, &m) && float64(m.Count) <= cfg.Data.MaxBadShare*float64(m.Of) {
		return nil
	}
	return err
}

// How files are looked for: at a network file system several at a time, and on a terminal
// each thousandth is shown.
const (
	findWorkers = 16
	findShown   = 1000
)
