package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/geoalign/geoalign/compute"
	"github.com/geoalign/geoalign/compute/parallel"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/source"
	"github.com/geoalign/geoalign/data/tokenizer"
	"github.com/geoalign/geoalign/data/transform"
	"github.com/geoalign/geoalign/model"
	"github.com/geoalign/geoalign/run/console"
	"github.com/geoalign/geoalign/run/folder"
	"github.com/geoalign/geoalign/run/setup"
	"github.com/geoalign/geoalign/tasks"
	"github.com/geoalign/geoalign/tasks/probe"
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
	// Twin takes the momentum encoder instead of the trained parameters; a checkpoint without any is
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

	Twin  bool           // the momentum encoder takes the place of the parameters that have a copy there
	Group parallel.Group // of processes that use the checkpoint together

	log    io.Writer
	stored *Stored // of a model without checkpoint; nil: there is one

	evaluated *Split // by the last evaluation; nil before it
}

// Stored is a model that no checkpoint has, such as one of stored weights.
type Stored struct {
	Path string // of what it is read from
	Sum  string // identifies the parameters and how they are used; empty: not known
	// Open reads it; the tokenizer is nil for a system without texts.
	Open  func(engine *compute.Engine) (*model.Model, *tokenizer.Tokenizer, error)
	Close func() error // what it is read from
}

// Use returns a stored model as one that is opened to be used. It has no folder: what reads or writes there is for
// checkpoints. It owns what s is read from.
func Use(cfg config.Config, s Stored, log io.Writer) *Trained {
	return &Trained{Config: cfg, Group: parallel.Single{}, log: log, stored: &s}
}

// Open opens the checkpoint at path, a step folder or a run folder (its newest), for
// inference. Settings that change what the parameters compute must be those of the
// checkpoint. Close the result after use.
func Open(path string, o OpenOptions) (*Trained, error) {
	ck, err := setup.SharedCheckpoint(groupOf(o),
		func() (*checkpoint.Checkpoint, error) { return checkpoint.Open(path, setup.ModelGroups...) },
		func(path string) (*checkpoint.Checkpoint, error) { return checkpoint.Open(path, setup.ModelGroups...) })
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
	t := &Trained{Checkpoint: ck, log: o.Log, Twin: o.Twin, Group: groupOf(o)}
	if o.Twin && !ck.Has(train.MomentumGroup) {
		return nil, noTwins(ck)
	}
	if ck.Notice != "" {
		console.Lines(o.Log).Say("%s", ck.Notice)
	}
	var err error
	if t.Config, err = ConfigOver(ck, o); err != nil {
		return nil, err
	}
	if err := setup.SameKeys(ck, t.Config, config.FixedModel); err != nil {
		return nil, err
	}
	if err := setup.NeedsPairs(t.Config); err != nil {
		return nil, err
	}
	if err := setup.SameSplits(ck, t.Config); err != nil {
		return nil, err
	}
	return t, setup.SameProgram(t.Group, t.Config, "")
}

// noTwins says what to do about a checkpoint without momentum encoder.
func noTwins(ck *checkpoint.Checkpoint) error {
	cure := "or train with momentum.enabled = true"
	if own, err := setup.OwnConfig(ck); err == nil && (!own.Has(section.Momentum) || own.Has(section.TokenScores)) {
		cure = "a model of this kind is trained without"
	}
	return console.Argument("%s has no momentum encoder: leave out --momentum-encoder, %s", ck.Path, cure)
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
		console.Lines(o.Log).Say("note: %s", n)
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
func (t *Trained) Folder() string { return folder.Of(t.Checkpoint) }

// Path is where the model is read from: the step folder of its checkpoint, or stored weights.
func (t *Trained) Path() string {
	if t.stored != nil {
		return t.stored.Path
	}
	return t.Checkpoint.Path
}

// Step is that of the checkpoint, 0 of stored weights.
func (t *Trained) Step() int {
	if t.stored != nil {
		return 0
	}
	return t.Checkpoint.Step
}

// Weights identifies the parameters that are in use: the checksums of their files. It is empty for checkpoints of
// earlier versions.
func (t *Trained) Weights() string {
	if t.stored != nil {
		return t.stored.Sum
	}
	groups := setup.ModelGroups
	if t.Twin {
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
		if t.Engine, err = setup.EngineOf(t.Group, t.Config, t.Say); err != nil {
			return err
		}
	}
	if t.stored != nil {
		m, tok, err := t.stored.Open(t.Engine)
		if err == nil {
			t.Model, t.Tokenizer = towers{m}, tok
		}
		return err
	}
	if t.Config.Tokenizes() {
		if t.Tokenizer, err = train.OpenTokenizer(t.Checkpoint); err != nil {
			return err
		}
	}
	m, err := openModel(t.Config, t.Checkpoint, t.Tokenizer, t.Engine, t.Twin)
	if err == nil {
		t.Model = m
	}
	return err
}

// LoadForSplit is Load for what reads a split of the data: the features there must be of the widths
// that a closed form was fitted to.
func (t *Trained) LoadForSplit() error {
	if err := t.Load(); err != nil || !t.Config.Has(section.Fitted) {
		return err
	}
	return fitsFiles(t.Model, t.Config)
}

// Split opens a split for evaluation, see OpenSplit; empty is eval.split.
func (t *Trained) Split(ctx context.Context, split string, progress func(phase string, done, of int)) (*Split, error) {
	set, err := OpenSplit(ctx, t.Config, t.SplitName(split), t.log, progress)
	if err == nil {
		t.noteData(ctx, t.SplitName(split), set)
	}
	return set, err
}

// Unranked opens a split that is not ranked: as a whole, whatever eval.folds is.
func (t *Trained) Unranked(ctx context.Context, split string, progress func(phase string, done, of int)) (*Split,
	error) {
	cfg := t.Config
	cfg.Eval.Folds = 0
	return OpenSplit(ctx, cfg, t.SplitName(split), t.log, progress)
}

// Look notes where a split is not the one that the run was evaluated on under its name, and looks for its files,
// rather than when they are encoded.
func (t *Trained) Look(ctx context.Context, split string, set *Split, progress func(phase string, done, of int)) error {
	t.noteData(ctx, split, set)
	if t.Config.Has(section.Sentences) { // which reads no image
		return nil
	}
	return set.findFiles(ctx, t.Config, split, progress)
}

// SayUnknownWords tells which words of the captions of a split the vocabulary lacks.
func (t *Trained) SayUnknownWords(split string, set *Split) {
	sayUnknownWords(t.Say, split, set, t.Tokenizer)
}

// Pictures returns what decodes the images of a split by row and name: it fails for a row that the
// split has under another name.
func (t *Trained) Pictures(split string) (func(row int, name string) (*transform.Image, error), error) {
	set, err := t.Unranked(context.Background(), split, nil)
	if err != nil {
		return nil, err
	}
	if set.Eval == nil {
		return nil, fmt.Errorf("data.kind %q has no images to show", t.Config.Data.Kind)
	}
	return func(row int, name string) (*transform.Image, error) {
		if row >= set.Len() || set.Eval.ImageName(row) != name {
			return nil, fmt.Errorf("row %d of the split is not %s any more: embed it again", row, name)
		}
		return set.Eval.Image(row)
	}, nil
}

// SplitName is the name of a split; empty is eval.split.
func (t *Trained) SplitName(split string) string { return cmp.Or(split, t.Config.Eval.Split) }

// Say tells a line on OpenOptions.Log.
func (t *Trained) Say(format string, args ...any) { console.Lines(t.log).Say(format, args...) }

// TextColumns says how texts become columns, nil for a system without texts.
func (t *Trained) TextColumns() *data.Texts { return textColumns(t.Config, t.Tokenizer) }

// Caption cleans a text as the captions of the data are. It fails where nothing is left of it.
func (t *Trained) Caption(text string) (string, error) {
	return tasks.Caption(text, cleaner(t.Config), t.Tokenizer)
}

// Tolerate does work that reads the rows of a split, and again without those that cannot be read, as far as
// data.max_bad_share allows. Errors of do are agreed on by all processes.
func (t *Trained) Tolerate(ctx context.Context, set *Split, progress func(phase string, done, of int),
	do func() error) error {
	x := tolerant{sets: []screened{{set, t.Config, t.Model}}, limit: t.Config.Data.MaxBadShare, group: t.Group,
		say: t.Say, progress: progress}
	return x.run(ctx, do)
}

// Evaluate runs a task on a split; empty are that of the system and eval.split. A task that reads files of its own,
// as a probe of texts does, opens no split. Of several processes the outcome of rank 0 counts: others may have none.
// progress is told how much of a phase is done and may be nil.
func (t *Trained) Evaluate(ctx context.Context, task, split string,
	progress func(phase string, done, total int)) (Scores, error) {
	if err := CheckTask(task); err != nil {
		return nil, err
	}
	if err := source.CheckSplit(t.Config.Source(), t.SplitName(split)); err != nil {
		return nil, &console.ArgumentError{Err: err}
	}
	if err := t.LoadForSplit(); err != nil {
		return nil, err
	}
	var set *Split
	if ReadsSplit(t.Config, task) {
		var err error
		if set, err = t.Split(ctx, split, progress); err != nil {
			return nil, err
		}
		if !t.Config.Has(section.Sentences) { // which reads no image
			// rather than when the texts are encoded
			if err := set.findFiles(ctx, t.Config, t.SplitName(split), progress); err != nil {
				return nil, err
			}
		}
	}
	cfg := t.Config
	cfg.Eval.Split = t.SplitName(split) // of pairs of sentences
	if task == probe.Name && cfg.Eval.Split == "train" {
		t.Say("note: the probe is fitted to images of the split train and tested on them, so its figures say nothing of images that it has not seen: name another --split")
	}
	if set == nil {
		set = &Split{}
	}
	sayUnknownWords(t.Say, cfg.Eval.Split, set, t.Tokenizer)
	t.evaluated = set
	s, err := Evaluate(ctx, Evaluation{Task: task, Config: cfg, Engine: t.Engine, Model: t.Model,
		Tokenizer: t.Tokenizer, Set: set, Group: t.Group, Progress: progress, Say: t.Say})
	if err == nil && set.Galleries == nil { // else OpenSplit said it
		sayInputs(t.Say, cfg.Eval.Split, set)
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
	if t.stored != nil {
		return t.stored.Close()
	}
	return t.Checkpoint.Close()
}
