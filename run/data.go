package run

import (
	"context"
	"fmt"
	"slices"

	"github.com/geoalign/geoalign/compute/parallel"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/source"
	"github.com/geoalign/geoalign/run/folder"
	"github.com/geoalign/geoalign/run/record"
	"github.com/geoalign/geoalign/tasks/sentencepairs"
	"github.com/geoalign/geoalign/tasks/sentences"
	"github.com/geoalign/geoalign/train/checkpoint"
)

// identifyData identifies the data that was opened.
func (b *opening) identifyData(ctx context.Context) (err error) {
	b.data, err = b.openedDataOf(ctx, b.trains)
	return err
}

// sameAsBefore compares the data with those of the run that is resumed. Rank 0 does: the others have the same.
func (b *opening) sameAsBefore(ctx context.Context) error {
	if b.from == nil {
		return nil
	}
	return parallel.Alone(b.group, func() error {
		known, err := record.ReadKnown(folder.Of(b.from), b.from)
		if err != nil {
			return fmt.Errorf("%w: remove the file to resume without a comparison of the data", err)
		}
		if known == nil {
			b.report.Say("the checkpoint does not say which data it was trained on, as those of earlier versions: these could not be compared with it")
			return nil
		}
		b.known = known
		all, err := known.CompareAll(ctx, b.data)
		if err != nil {
			return err
		}
		for _, d := range all {
			b.accepted = append(b.accepted, d.Split)
		}
		return b.changed(all)
	})
}

// changed is what a run does about data that have changed.
func (r *Run) changed(all []record.Difference) error {
	if len(all) == 0 {
		return nil
	}
	if r.cfg.Data.Changed != source.DataAccepted {
		return &record.ChangedError{Folder: r.known.Folder, Differences: all}
	}
	for _, d := range all {
		r.report.Say("changed since the checkpoint: data of %s, so the numbers are not those of a run in one piece", d)
	}
	return nil
}

// openedDataOf identifies the training data and what is evaluated on. train and set are nil where there are none.
func (r *Run) openedDataOf(ctx context.Context, train any) (*record.Opened, error) {
	var out record.Opened
	add := func(name string, x any, inputs []source.Input) error {
		e, ok := data.EntriesOf(x)
		if !ok {
			return nil
		}
		s, err := record.OpenSplit(ctx, r.cfg, name, e, inputs)
		if err == nil {
			out.Splits = append(out.Splits, s)
		}
		return err
	}
	if err := add("train", train, source.Inputs(r.cfg.Source(), "train")); err != nil {
		return nil, err
	}
	if r.set == nil || r.cfg.Eval.Split == "train" {
		return &out, nil
	}
	name, inputs := r.set.named(r.cfg)
	return &out, add(name, r.set.listed(), inputs)
}

// named is the name of the split in a DataRecord, and what it is read from.
func (s *Split) named(cfg config.Config) (string, []source.Input) {
	if _, ok := s.listed().(sentences.Tasks); ok {
		return record.SentencesSplit, cfg.Eval.Sentences.Inputs(cfg.Source())
	}
	return cfg.Eval.Split, source.Inputs(cfg.Source(), cfg.Eval.Split)
}

// listed is what has the entries of a split; nil: there is nothing.
func (s *Split) listed() any {
	switch {
	case s == nil:
		return nil
	case s.Eval != nil:
		return s.Eval
	case s.Galleries != nil:
		return s.Galleries
	}
	if x, _ := s.samples(); x != nil {
		return x
	}
	for _, task := range []string{sentencepairs.Name, sentences.Name} {
		if x := s.kept[task]; x != nil {
			return x
		}
	}
	return nil
}

// noteData says where a split is not the one that the run was trained or evaluated on under its name.
func (t *Trained) noteData(ctx context.Context, name string, set *Split) {
	if t.log == nil || t.Group.Rank() > 0 {
		return
	}
	known, err := record.ReadKnown(t.Folder(), nil)
	e, ok := data.EntriesOf(set.listed())
	if err != nil || known == nil || known.Record.Splits[name] == nil || !ok {
		return
	}
	s, err := record.OpenSplit(ctx, t.Config, name, e, source.Inputs(t.Config.Source(), name))
	if err == nil {
		known.Note(ctx, s, t.Say)
	}
}

// noteOtherSplit says the same of a run that starts from a checkpoint and evaluates on files of the same names.
func (r *Run) noteOtherSplit(ck *checkpoint.Checkpoint) {
	known, err := record.ReadKnown(folder.Of(ck), nil)
	if err != nil || known == nil || !r.first() || r.data == nil {
		return
	}
	for _, s := range r.data.Splits {
		was := known.Record.Splits[s.Name]
		if s.Name != "train" && was != nil &&
			slices.EqualFunc(was.Files, s.Record.Files, func(a, b record.File) bool { return a.Path == b.Path }) {
			known.Note(context.Background(), s, r.report.Say)
		}
	}
}
