package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/geoalign/geoalign/compute"
	"github.com/geoalign/geoalign/compute/parallel"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data/source"
	"github.com/geoalign/geoalign/data/tokenizer"
	"github.com/geoalign/geoalign/data/transform"
	"github.com/geoalign/geoalign/train"
	"github.com/geoalign/geoalign/train/checkpoint"
)

// OpenOptions say how a checkpoint is opened.
type OpenOptions struct {
	File string    // TOML file with the configuration to use; empty: the checkpoint's own
	Set  []string  // overrides of it, as in eval.split=test
	Log  io.Writer // messages; nil: none
	// Added are sections of other modules that the checkpoint was trained with.
	Added []config.Added
	// Twin takes the momentum twins in the place of the parameters that have one; a checkpoint without any is
	// an error.
	Twin bool
	// Prepare is called with the configuration before data is read, as source.Convert may be, and its
	// error ends the opening; nil: nothing is.
	Prepare func(cfg config.Config) error
	// Group is the processes that use the checkpoint together, all with the same options; nil: this one alone.
	Group parallel.Group
}

// Trained is a checkpoint opened to be used. Configuration and data are there at once,
// the model from Load on.
type Trained struct {
	Checkpoint *checkpoint.Checkpoint
	Config     config.Config // of the run, with what OpenOptions change

	Engine    *compute.Engine // nil before Load
	Model     Model
	Tokenizer *tokenizer.Tokenizer // nil for a system without texts

	log   io.Writer
	twin  bool
	group parallel.Group

	evaluated *Split // by the last evaluation; nil before it
}

// Open opens the checkpoint at path, a step folder or a run folder (its newest), for
// inference. Settings that change what the parameters compute must be those of the
// checkpoint. Close the result after use.
func Open(path string, o OpenOptions) (*Trained, error) {
	ck, err := choose(groupOf(o), func() (*checkpoint.Checkpoint, error) { return checkpoint.Open(path, modelGroups...) },
		func(path string) (*checkpoint.Checkpoint, error) { return checkpoint.Open(path, modelGroups...) })
	if err != nil {
		return nil, err
	}
	t, err := OpenCheckpoint(ck, o)
	if err != nil {
		return nil, errors.Join(err, ck.Close())
	}
	return t, nil
}

// groupOf are the processes of o.
func groupOf(o OpenOptions) parallel.Group {
	if o.Group == nil {
		return parallel.Single{}
	}
	return o.Group
}

// OpenCheckpoint is Open for a checkpoint that is open already. It is closed with the
// result, and stays the caller's where there is an error.
func OpenCheckpoint(ck *checkpoint.Checkpoint, o OpenOptions) (*Trained, error) {
	t := &Trained{Checkpoint: ck, log: o.Log, twin: o.Twin, group: groupOf(o)}
	if o.Twin && !ck.Has(train.MomentumGroup) {
		return nil, noTwins(ck)
	}
	if ck.Notice != "" {
		Lines(o.Log).Say("%s", ck.Notice)
	}
	var err error
	if t.Config, err = ConfigOver(ck, o); err != nil {
		return nil, err
	}
	if err := sameKeys(ck, t.Config, config.FixedModel); err != nil {
		return nil, err
	}
	if err := needsPairs(t.Config); err != nil {
		return nil, err
	}
	if err := sameSplits(ck, t.Config); err != nil {
		return nil, err
	}
	return t, sameProgram(t.group, t.Config, "")
}

// noTwins says what to do about a checkpoint without momentum twins.
func noTwins(ck *checkpoint.Checkpoint) error {
	cure := "or train with momentum.enabled = true"
	if own, err := ownConfig(ck); err == nil && !own.Model.HasTeacher() {
		cure = "a model of this kind is trained without"
	}
	return &ArgumentError{fmt.Errorf("%s has no momentum twins: leave out --twin, %s", ck.Path, cure)}
}

// ConfigOver reads the TOML file of o, or where it is empty the configuration of a
// checkpoint, with overrides. o.Log is told what was translated of an
// earlier version. What only training asks of a configuration is not asked.
func ConfigOver(ck *checkpoint.Checkpoint, o OpenOptions) (cfg config.Config, err error) {
	var notices []string
	if o.File != "" {
		cfg, notices, err = config.LoadNoted(o.File, o.Set, o.Added...)
	} else {
		cfg, notices, err = train.OpenConfig(ck, o.Set, o.Added...)
	}
	for _, n := range notices {
		Lines(o.Log).Say("note: %s", n)
	}
	if problems := (config.Errors)(nil); errors.As(err, &problems) {
		err = problems.Using()
	}
	if err == nil && o.Prepare != nil {
		err = o.Prepare(cfg)
	}
	if err != nil {
		return cfg, err
	}
	return Resolve(cfg)
}

// Folder returns the run folder of the checkpoint.
func (t *Trained) Folder() string { return folderOf(t.Checkpoint) }

// weights tells the parameters that are in use from others: the checksums of their files. It is empty of checkpoints of
// earlier versions.
func (t *Trained) weights() string {
	groups := modelGroups
	if t.twin {
		groups = append(slices.Clone(groups), train.MomentumGroup)
	}
	var sums []string
	for _, g := range groups {
		if s := t.Checkpoint.GroupSum(g); s != "" {
			sums = append(sums, s)
		}
	}
	return strings.Join(sums, "-")
}

// Load starts the engine and reads tokenizer and model; a second call does nothing.
func (t *Trained) Load() (err error) {
	if t.Model != nil {
		return nil
	}
	if t.Engine == nil {
		if t.Engine, err = OpenEngineOf(t.group, t.Config, Lines(t.log).Say); err != nil {
			return err
		}
	}
	if !t.Config.Model.Stored() {
		if t.Tokenizer, err = train.OpenTokenizer(t.Checkpoint); err != nil {
			return err
		}
	}
	m, err := openModel(t.Config, t.Checkpoint, t.Tokenizer, t.Engine, t.twin)
	if err == nil {
		t.Model = m
	}
	return err
}

// loadForSplit is Load for what reads a split of the data: the features there must be of the widths
// that a closed form was fitted to.
func (t *Trained) loadForSplit() error {
	if err := t.Load(); err != nil || !t.Config.Model.Fitted() {
		return err
	}
	return fitsFiles(t.Model, t.Config)
}

// Split opens a split for evaluation, see OpenSplit; empty is eval.split.
func (t *Trained) Split(ctx context.Context, split string, progress func(phase string, done, of int)) (*Split, error) {
	set, err := OpenSplit(ctx, t.Config, t.split(split), t.log, progress)
	if err == nil {
		t.noteData(ctx, t.split(split), set)
	}
	return set, err
}

// Pictures returns what decodes the images of a split by row and name: it fails for a row that the
// split has under another name.
func (t *Trained) Pictures(split string) (func(row int, name string) (*transform.Image, error), error) {
	cfg := t.Config
	cfg.Eval.Folds = 0 // the split is not ranked
	set, err := OpenSplit(context.Background(), cfg, split, t.log, nil)
	if err != nil {
		return nil, err
	}
	if set.Eval == nil {
		return nil, fmt.Errorf("data.kind %q has no images to show", cfg.Data.Kind)
	}
	return func(row int, name string) (*transform.Image, error) {
		if row >= set.Len() || set.Eval.ImageName(row) != name {
			return nil, fmt.Errorf("row %d of the split is not %s any more: embed it again", row, name)
		}
		return set.Eval.Image(row)
	}, nil
}

func (t *Trained) split(split string) string {
	if split == "" {
		return t.Config.Eval.Split
	}
	return split
}

// Evaluate runs a task on a split; empty are that of the system and eval.split. A task that reads files of its own, as
// a probe of texts does, opens no split. Of several processes the outcome of rank 0 counts: others may have none. progress is told how much of a phase is done and may be nil.
func (t *Trained) Evaluate(ctx context.Context, task, split string, progress func(phase string, done, total int)) (Scores, error) {
	if err := CheckTask(task); err != nil {
		return nil, err
	}
	if err := source.CheckSplit(t.Config.Source(), t.split(split)); err != nil {
		return nil, &ArgumentError{err}
	}
	if err := t.loadForSplit(); err != nil {
		return nil, err
	}
	var set *Split
	if ReadsSplit(t.Config, task) {
		var err error
		if set, err = t.Split(ctx, split, progress); err != nil {
			return nil, err
		}
		if !t.Config.Model.TextsOnly() { // which reads no image
			if err := set.findFiles(ctx, t.Config, t.split(split), progress); err != nil { // rather than when the texts are encoded
				return nil, err
			}
		}
	}
	cfg := t.Config
	cfg.Eval.Split = t.split(split) // of pairs of sentences
	if task == TaskProbe && cfg.Eval.Split == "train" {
		Lines(t.log).Say("note: the probe is fitted to images of the split train and tested on them, so its figures say nothing of images that it has not seen: name another --split")
	}
	if set == nil {
		set = &Split{}
	}
	sayUnknownWords(Lines(t.log).Say, cfg.Eval.Split, set, t.Tokenizer)
	t.evaluated = set
	s, err := Evaluate(ctx, Evaluation{Task: task, Config: cfg, Engine: t.Engine, Model: t.Model, Tokenizer: t.Tokenizer, Set: set, Group: t.group, Progress: progress, Say: Lines(t.log).Say})
	if err == nil && set.Galleries == nil { // else OpenSplit said it
		sayInputs(Lines(t.log).Say, cfg.Eval.Split, set)
	}
	return s, err
}

// LeftOut is the number of images or samples that the last evaluation left out because they cannot be read.
func (t *Trained) LeftOut() int { return t.evaluated.LeftOut() }

// Close ends the engine and closes the checkpoint.
func (t *Trained) Close() error {
	if t.Engine != nil {
		t.Engine.Close()
	}
	return t.Checkpoint.Close()
}
