package run

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/geoalign/geoalign/compute/parallel"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/account"
	"github.com/geoalign/geoalign/data/source"
	"github.com/geoalign/geoalign/internal/files"
	"github.com/geoalign/geoalign/model"
	"github.com/geoalign/geoalign/run/console"
	"github.com/geoalign/geoalign/run/folder"
	"github.com/geoalign/geoalign/run/setup"
	"github.com/geoalign/geoalign/train"
	"github.com/geoalign/geoalign/train/checkpoint"
)

// opening is a run that is being opened, stage by stage. All ranks go through the same stages and agree on the error of
// each, so that what is missing on one machine ends the run on all before its first step.
type opening struct {
	*Run
	o      Options
	dry    bool
	from   *checkpoint.Checkpoint // that the run goes on from; nil: none
	stream data.Stream            // of training; nil of a fit
	build  func(ctx context.Context) error
}

func newOpening(cfg config.Config, o Options, dry bool) *opening {
	b := &opening{Run: &Run{cfg: cfg, several: o.Several, release: func() {}, group: o.Group, report: o.Reporter}, o: o, dry: dry}
	if b.group == nil {
		b.group = parallel.Single{}
	}
	if b.cfg.Ranks = b.group.Size(); b.cfg.Ranks == 1 {
		b.cfg.Ranks = 0
	}
	switch {
	case b.group.Rank() > 0:
		b.report = console.Lines(nil)
		b.warn = func(format string, args ...any) {
			console.Lines(o.Warn).Say("rank %d: "+format, append([]any{b.group.Rank()}, args...)...)
		}
		return b
	case b.report == nil:
		b.report = console.Lines(o.Log)
	}
	b.warn = b.report.Say
	return b
}

// first says whether this is the process that writes.
func (r *Run) first() bool { return r.group.Rank() == 0 }

// check looks at the configuration, which must be that of all ranks: they go other ways else.
func (b *opening) check(context.Context) error {
	err := b.cfg.Validate()
	if err == nil && b.cfg.Has(section.OneEncoder) {
		err = console.Argument("model.system %q is not trained: it is used as it is; trainer finetune --checkpoint RUN trains from it, and trainer train --config FILE with init.checkpoint", b.cfg.Model.System)
	}
	if err == nil {
		err = setup.NeedsPairs(b.cfg)
	}
	if err := parallel.Agree(b.group, err); err != nil {
		return err
	}
	if err := setup.SameProgram(b.group, b.cfg, b.o.Resume); err != nil {
		return err
	}
	return SetGroup(b.group, b.cfg.Parallel)
}

// SetGroup sets what a configuration says of exchanges, where the group can.
func SetGroup(g parallel.Group, c config.Parallel) error {
	if p, ok := parallel.As[parallel.Patient](g); ok {
		p.SetTimeout(time.Duration(c.TimeoutSeconds * float64(time.Second)))
	}
	if w, ok := parallel.As[parallel.Wired](g); ok {
		return w.SetWire(c.Wire)
	}
	return nil
}

// convert makes copies of files that are read in another form, of which others may use those of rank 0.
func (b *opening) convert(ctx context.Context) error {
	progress, end := console.Phases(b.report)
	defer end()
	return parallel.First(b.group, func() error { return source.Convert(ctx, b.cfg.Source(), progress) })
}

// resolve completes the configuration from the data, and looks whether there is memory for it before the data takes
// what there is.
func (b *opening) resolve(context.Context) (err error) {
	if b.cfg, err = Resolve(b.cfg); err != nil {
		return err
	}
	if !b.cfg.Has(section.Fitted) {
		if err = model.Fits(b.cfg); err != nil {
			return err
		}
	}
	return checkTraining(b.cfg)
}

// sameWhere makes sure that what the data completes is the same on all ranks.
func (b *opening) sameWhere(context.Context) error {
	return setup.SameProgram(b.group, b.cfg, b.o.Resume)
}

// lockEarly keeps other processes from a folder that is there before a look at its checkpoints, which a process
// that trains there replaces.
func (b *opening) lockEarly(context.Context) error {
	dir := runFolder(b.cfg)
	if b.dry || !b.first() || b.o.Resume == Never || !isFolder(dir) {
		return nil
	}
	return b.lock(dir)
}

// place has rank 0 decide on the folder and the checkpoint to go on from, which all open.
func (b *opening) place(context.Context) error {
	if err := b.onFirst(func() (err error) {
		b.dir, b.from, err = place(&b.cfg, b.o.Resume, b.report.Say)
		return err
	}); err != nil || b.group.Size() == 1 {
		return err
	}
	text, err := parallel.Told(b.group, []byte(b.dir))
	if err != nil {
		return err
	}
	b.dir, b.cfg.Run.Out = string(text), string(text)
	found, err := b.group.All(b.from != nil || !b.first())
	if err != nil || !found { // rank 0 starts a new run
		return err
	}
	b.from, err = setup.SharedCheckpoint(b.group, func() (*checkpoint.Checkpoint, error) { return b.from, nil },
		checkpoint.Load)
	return err
}

// start looks at what the run goes on from, or starts from.
func (b *opening) start(context.Context) (err error) {
	if b.from != nil {
		b.Run.from = b.from.Path
		return setup.CheckResume(b.from, b.cfg, b.report.Say)
	}
	if err := source.CheckInputs(startInputs(b.cfg)); err != nil {
		return err
	}
	if b.towers, err = setup.Towers(b.cfg); err != nil {
		return err
	}
	b.closers = append(b.closers, b.towers.Close)
	return nil
}

// openEngine starts the kernels of each rank.
func (b *opening) openEngine(context.Context) (err error) {
	if b.engine, err = setup.EngineOf(b.group, b.cfg, b.report.Say); err != nil {
		return err
	}
	b.closers = append(b.closers, func() error { b.engine.Close(); return nil })
	if b.from != nil {
		b.tellKernels(b.from)
		b.tellDecoder(b.from)
	}
	return nil
}

// openTexts opens the tokenizer, which each rank learns where there is no file of it.
func (b *opening) openTexts(ctx context.Context) (err error) {
	progress, end := console.Phases(b.report)
	defer end()
	b.tok, err = setup.Tokenizer(ctx, b.cfg, b.from, progress)
	return err
}

// openSplit opens what is evaluated on, of which others may use the index that rank 0 makes.
func (b *opening) openSplit(ctx context.Context) error {
	return parallel.First(b.group, func() (err error) {
		if b.set, err = openFinalSplit(ctx, b.cfg, b.report); err == nil && b.set != nil {
			b.closeAtEnd(b.set.Galleries)
			sayUnknownWords(b.report.Say, b.cfg.Eval.Split, b.set, b.tok)
			if b.set.Galleries == nil { // else openSplit said it
				sayInputs(b.report.Say, b.cfg.Eval.Split, b.set)
			}
		}
		return err
	})
}

// sayInputs says what was left out of the inputs of a split, and nothing where all was used.
func sayInputs(say func(format string, args ...any), split string, x any) {
	if a := account.Of(x); !a.Whole() {
		say("data, %s: %s", split, a)
	}
}

// openStream opens the training data in the same way.
func (b *opening) openStream(ctx context.Context) error {
	return parallel.First(b.group, func() (err error) {
		if b.stream, b.build, err = b.openData(ctx, b.from); err == nil {
			b.closeAtEnd(b.stream)
			sayInputs(b.report.Say, "train", b.stream)
		}
		return err
	})
}

// sameData makes sure that all ranks train on the same samples with the same vocabulary.
func (b *opening) sameData(context.Context) error {
	own, err := b.dataOf(b.stream)
	if err := parallel.Agree(b.group, err); err != nil {
		return err
	}
	return own.same(b.group)
}

// lockLate makes the run folder, and keeps other processes from one that was not there before.
func (b *opening) lockLate(context.Context) error {
	if b.dry {
		return nil
	}
	if err := b.onFirst(b.makeFolder); err != nil {
		return err
	}
	return b.seesFolder()
}

func (b *opening) makeFolder() error {
	if err := folder.Writable(b.dir); err != nil || b.locked != nil {
		return err
	}
	if err := b.lock(b.dir); err != nil {
		return err
	}
	if folder.HasRun(b.dir) {
		return fmt.Errorf("run.out: another process began to train into %s meanwhile: start again, or choose another folder with --out", b.dir)
	}
	return nil
}

// ranksPrefix begins the name of the file by which ranks find out whether they see one folder.
const ranksPrefix = ".tmp-ranks-"

// seesFolder finds out which ranks see the run folder of rank 0, by a file that it writes there. Those that do not
// can train: they read it to go on with a run, which fails then, and to roll back, which is refused before the first
// step.
func (b *opening) seesFolder() error {
	if b.group.Size() == 1 {
		return nil
	}
	token := ""
	if err := b.onFirst(func() error {
		// of a process that was killed: this one has the folder
		left, err := filepath.Glob(filepath.Join(files.Literal(b.dir), ranksPrefix+"*"))
		for _, path := range left {
			err = errors.Join(err, os.Remove(path))
		}
		if err != nil {
			return err
		}
		f, err := os.CreateTemp(b.dir, ranksPrefix)
		if err != nil {
			return err
		}
		token = f.Name()
		return f.Close()
	}); err != nil {
		return err
	}
	if b.first() {
		defer os.Remove(token)
	}
	name, err := parallel.Told(b.group, []byte(filepath.Base(token)))
	if err != nil {
		return err
	}
	_, err = os.Stat(filepath.Join(b.dir, string(name)))
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("the run folder %s is not that of rank 0 here", b.dir)
	}
	unseen := (*parallel.Failure)(nil)
	switch err := parallel.Agree(b.group, err); {
	case err == nil:
		return nil
	case !errors.As(err, &unseen):
		return err
	case b.cfg.Train.OnNaN == "rollback":
		return fmt.Errorf("run.out: %w: train.on_nan = \"rollback\" reads checkpoints on all ranks: put the folder where every machine sees it, or set train.on_nan to \"stop\" or \"skip\"", err)
	}
	b.report.Say("note: %v: to go on with this run later, put the folder where every machine sees it, or copy the newest checkpoint to the same path on each", unseen)
	return nil
}

// fillTowers completes the files of frozen towers in turns, as two ranks of a machine have the same one.
func (b *opening) fillTowers(ctx context.Context) error {
	if len(b.kept) == 0 {
		return nil
	}
	return parallel.Turns(b.group, func() error { return b.Run.fillTowers(ctx, b.dry) })
}

// tellRanks says where a run goes on with another number of processes, which sum in another order.
func (r *Run) tellRanks(was train.State) {
	if old, now := max(1, was.Ranks), r.group.Size(); old != now {
		r.report.Say("changed since the checkpoint: processes = %d (was %d), so the numbers are those of the same run but for rounding, not bit by bit", now, old)
	}
}
