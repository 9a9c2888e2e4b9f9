package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/geoalign/geoalign/compute/parallel"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/source"
	"github.com/geoalign/geoalign/model"
	"github.com/geoalign/geoalign/train"
	"github.com/geoalign/geoalign/train/checkpoint"
)

// opening is a run that is being opened, stage by stage. All ranks go through the same stages and agree on the error of
// each, so that what is missing on one machine ends the run on all before its first step.
type opening struct {
	*Run
	o      Options
	dry    bool
	locked bool                   // by rank 0
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
		b.report = Lines(nil)
		b.warn = func(format string, args ...any) {
			Lines(o.Warn).Say("rank %d: "+format, append([]any{b.group.Rank()}, args...)...)
		}
		return b
	case b.report == nil:
		b.report = Lines(o.Log)
	}
	b.warn = b.report.Say
	return b
}

// first says whether this is the process that writes.
func (r *Run) first() bool { return r.group.Rank() == 0 }

// check looks at the configuration, which must be that of all ranks: they go other ways else.
func (b *opening) check(context.Context) error {
	err := b.cfg.Validate()
	if err == nil {
		err = needsPairs(b.cfg)
	}
	if err := parallel.Agree(b.group, err); err != nil {
		return err
	}
	return sameProgram(b.group, b.cfg, b.o.Resume)
}

// convert makes copies of files that are read in another form, of which others may use those of rank 0.
func (b *opening) convert(ctx context.Context) error {
	progress, end := phases(b.report)
	defer end()
	return parallel.First(b.group, func() error { return source.Convert(ctx, b.cfg, progress) })
}

// resolve completes the configuration from the data, and looks whether there is memory for it before the data takes
// what there is.
func (b *opening) resolve(context.Context) (err error) {
	if b.cfg, err = Resolve(b.cfg); err != nil {
		return err
	}
	if !b.cfg.Model.Fitted() {
		if err = model.Fits(b.cfg); err != nil {
			return err
		}
	}
	return checkTraining(b.cfg)
}

// sameWhere makes sure that what the data completes is the same on all ranks.
func (b *opening) sameWhere(context.Context) error { return sameProgram(b.group, b.cfg, b.o.Resume) }

// lockEarly keeps other processes from a folder that is there before a look at its checkpoints, which a process
// that trains there replaces.
func (b *opening) lockEarly(context.Context) error {
	dir := folder(b.cfg)
	if b.dry || !b.first() || b.o.Resume == Never || !isFolder(dir) {
		return nil
	}
	b.locked = true
	return b.lock(dir)
}

// placed is where rank 0 has decided to train.
type placed struct{ Dir, From string }

// place has rank 0 decide on the folder and the checkpoint to go on from, which all open.
func (b *opening) place(context.Context) error {
	var p placed
	var err error
	if b.first() {
		if p.Dir, b.from, err = place(&b.cfg, b.o.Resume, b.report.Say); b.from != nil {
			p.From = b.from.Path
		}
	}
	if err := parallel.Agree(b.group, err); err != nil {
		return err
	}
	text, err := json.Marshal(p)
	if err == nil {
		text, err = parallel.Told(b.group, text)
	}
	if err == nil {
		err = json.Unmarshal(text, &p)
	}
	if err != nil {
		return err
	}
	b.dir, b.cfg.Run.Out = p.Dir, p.Dir
	if b.from == nil && p.From != "" {
		if b.from, err = checkpoint.Load(p.From); err != nil {
			err = fmt.Errorf("the checkpoint that rank 0 goes on from cannot be read here: %w\n(all ranks read it: keep the run folder where every machine sees it, or copy the step folder to the same path on each)", err)
		}
	}
	if err := parallel.Agree(b.group, err); err != nil || b.from == nil {
		return err
	}
	return sameCheckpoint(b.group, b.from)
}

// start looks at what the run goes on from, or starts from.
func (b *opening) start(context.Context) (err error) {
	if b.from != nil {
		b.Run.from = b.from.Path
		return checkResume(b.from, b.cfg, b.report.Say)
	}
	if err := source.CheckInputs(startInputs(b.cfg)); err != nil {
		return err
	}
	if b.towers, err = openTowers(b.cfg); err != nil {
		return err
	}
	b.closers = append(b.closers, b.towers.Close)
	return nil
}

// openEngine starts the kernels of each rank.
func (b *opening) openEngine(context.Context) (err error) {
	if b.engine, err = OpenEngineOf(b.group, b.cfg, b.report.Say); err != nil {
		return err
	}
	b.closers = append(b.closers, func() error { b.engine.Close(); return nil })
	if b.from != nil {
		b.tellKernels(b.from)
	}
	return nil
}

// openTexts opens the tokenizer, which each rank learns where there is no file of it.
func (b *opening) openTexts(ctx context.Context) (err error) {
	progress, end := phases(b.report)
	defer end()
	b.tok, err = OpenTokenizer(ctx, b.cfg, b.from, progress)
	return err
}

// openSplit opens what is evaluated on, of which others may use the index that rank 0 makes.
func (b *opening) openSplit(ctx context.Context) error {
	return parallel.First(b.group, func() (err error) {
		b.set, err = openFinalSplit(ctx, b.cfg, b.report)
		return err
	})
}

// openStream opens the training data in the same way.
func (b *opening) openStream(ctx context.Context) error {
	return parallel.First(b.group, func() (err error) {
		b.stream, b.build, err = b.openData(ctx, b.from)
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
	var err error
	if b.first() {
		err = b.makeFolder()
	}
	if err := parallel.Agree(b.group, err); err != nil {
		return err
	}
	return b.seesFolder()
}

func (b *opening) makeFolder() error {
	if err := Writable(b.dir); err != nil || b.locked {
		return err
	}
	if err := b.lock(b.dir); err != nil {
		return err
	}
	if HasRun(b.dir) {
		return fmt.Errorf("run.out: another process began to train into %s meanwhile: start again, or choose another folder with --out", b.dir)
	}
	return nil
}

// seesFolder finds out which ranks see the run folder of rank 0, by a file that it writes there. Those that do not can train: they read
// it to go on with a run, which fails then, and to roll back, which is refused before the first step.
func (b *opening) seesFolder() error {
	if b.group.Size() == 1 {
		return nil
	}
	var token string
	var err error
	if b.first() {
		var f *os.File
		if f, err = os.CreateTemp(b.dir, ".tmp-ranks-"); err == nil {
			token, err = f.Name(), f.Close()
			defer os.Remove(token)
		}
	}
	if err := parallel.Agree(b.group, err); err != nil {
		return err
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

// choose has rank 0 find a checkpoint, and all open the one that it found.
func (r *Run) choose(find func() (*checkpoint.Checkpoint, error)) (*checkpoint.Checkpoint, error) {
	if r.group.Size() == 1 {
		return find()
	}
	var ck *checkpoint.Checkpoint
	path := ""
	var err error
	if r.first() {
		if ck, err = find(); err == nil {
			path = ck.Path
		}
	}
	if err := parallel.Agree(r.group, err); err != nil {
		return nil, err
	}
	text, err := parallel.Told(r.group, []byte(path))
	if err != nil {
		return nil, err
	}
	if !r.first() {
		ck, err = checkpoint.Load(string(text))
	}
	if err := parallel.Agree(r.group, err); err != nil {
		if ck != nil {
			ck.Close()
		}
		return nil, err
	}
	return ck, nil
}

// tellRanks says where a run goes on with another number of processes, which sum in another order.
func (r *Run) tellRanks(was train.State) {
	if old, now := max(1, was.Ranks), r.group.Size(); old != now {
		r.report.Say("changed since the checkpoint: processes = %d (was %d), so the numbers are those of the same run but for rounding, not bit by bit", now, old)
	}
}
