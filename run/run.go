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
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/source"
	"github.com/geoalign/geoalign/data/tokenizer"
	"github.com/geoalign/geoalign/internal/files"
	"github.com/geoalign/geoalign/model"
	"github.com/geoalign/geoalign/run/console"
	"github.com/geoalign/geoalign/run/folder"
	"github.com/geoalign/geoalign/run/record"
	"github.com/geoalign/geoalign/run/setup"
	"github.com/geoalign/geoalign/train"
	"github.com/geoalign/geoalign/train/checkpoint"
	"github.com/geoalign/geoalign/train/schedule"
)

// Options say how a run is made.
type Options struct {
	Resume   string           // Auto (also if empty), Never, or the path of a checkpoint to go on from
	Log      io.Writer        // messages; nil: none
	Reporter console.Reporter // shows how the run goes on; nil: Lines(Log)
	// Several marks one of several runs of a process: its report is drawn without
	// features, and the time since the start of the process is not told.
	Several bool
	// Group is the processes that train together, all with the same configuration and options; nil: this
	// one alone. Rank 0 alone writes and reports: Log and Reporter are its.
	Group parallel.Group
	// Warn is told what goes wrong on a rank other than 0 and stops nothing, with the rank; nil: nobody is.
	Warn io.Writer
}

// Run is a training run, opened: its folder, data, engine and session.
type Run struct {
	cfg     config.Config
	dir     string
	several bool
	report  console.Reporter // silent but on rank 0
	warn    func(format string, args ...any)
	group   parallel.Group

	engine   *compute.Engine
	towers   train.Towers         // of other programs that a new run starts from
	tok      *tokenizer.Tokenizer // nil for a system without texts
	set      *Split               // nil: nothing to evaluate on
	model    Model
	pairs    *model.Trainer // that is trained in steps; nil of a fit
	kept     []*keptTower   // that training does not run
	trains   any            // that has the entries of the training data
	data     *record.Opened
	known    *record.Known // of the data of the run that it goes on with; nil: nothing
	accepted []string      // splits that had changed when it was opened
	checked  bool          // what files of the data hold
	session  session
	store    *checkpoint.Store
	state    train.State // of the checkpoint that the run goes on from
	from     string      // its folder; empty for a new run
	// step of the newest checkpoint of this run: of an older step that it went on from, the folder has others
	saved int
	made  int // last step that was made, 0 before the first

	scores    Scores   // the newest evaluation, or nil
	beside    []Scores // of the same step, on other tasks
	scoreStep int
	evaluated bool              // at scoreStep; scores are those of rank 0
	told      int               // bad samples whose reason was told
	locked    *files.FolderLock // of the run folder; nil: of rank 0
	release   func()            // ends the hold on the process for steps that are not saved
	closers   []func() error
}

// session is what a run makes its steps with: a *train.Session, or of a system without steps
// the *train.Fitting of its fit.
type session interface {
	train.Stepper
	Span() schedule.Span
	Snapshot(e *train.Event) (checkpoint.Snapshot, error)
	Restore(c *checkpoint.Checkpoint) (train.State, error)
	Rollback(c *checkpoint.Checkpoint) (train.State, error)
	Close() error
}

// New opens a run: it chooses the folder and the checkpoint to go on from, opens tokenizer
// and data, keeps other processes from the folder and builds the session. Problems of the
// configuration are config.Errors. Between two of these it ends early with the error of
// ctx. Close the run after use. Of several processes all call it, and where one fails all do, with
// a *parallel.Failure.
func New(ctx context.Context, cfg config.Config, o Options) (*Run, error) {
	return openRun(ctx, cfg, o, false)
}

// openRun is New. A run that is dry writes nothing, and so can be planned alone.
func openRun(ctx context.Context, cfg config.Config, o Options, dry bool) (*Run, error) {
	b := newOpening(cfg, o, dry)
	defer func() {
		if b.from != nil { // or the space of its files is not free when it is pruned
			b.from.Close()
		}
	}()
	for _, stage := range b.stages() {
		err := ctx.Err()
		if err == nil {
			err = stage(ctx)
		}
		if err := parallel.Agree(b.group, err); err != nil {
			b.Close() // what failed first says why
			return nil, err
		}
	}
	return b.Run, nil
}

// stages are those of an opening, in their order.
func (b *opening) stages() []func(context.Context) error {
	return []func(context.Context) error{
		b.check, b.convert, b.resolve, b.sameWhere, b.lockEarly, b.place, b.start, b.openEngine, b.openTexts,
		b.openSplit, b.openStream, b.identifyData, b.sameData, b.sameAsBefore, b.lockLate,
		func(ctx context.Context) error { return b.build(ctx) },
		func(ctx context.Context) error { return b.begin(ctx, b.from) }, b.sameParameters, b.fillTowers,
		func(context.Context) error { return b.towers.Close() }, // what is read of them is read
	}
}

// closeAtEnd has Close close data that holds files open.
func (r *Run) closeAtEnd(data any) {
	if c, ok := data.(io.Closer); ok {
		r.closers = append(r.closers, c.Close)
	}
}

// openData opens the training data. build makes model and session over it; from is what the run goes on from, or nil.
// stream is nil of a fit.
func (r *Run) openData(ctx context.Context, from *checkpoint.Checkpoint) (stream data.Stream,
	build func(ctx context.Context) error, err error) {
	if r.cfg.Has(section.Fitted) {
		p, err := source.OpenPairs(r.cfg.Source())
		if err != nil {
			return nil, nil, err
		}
		r.closers = append(r.closers, p.Close)
		r.trains = p
		pairs, err := train.TrainingPairs(p)
		return nil, func(context.Context) error {
			a := model.NewAligned(r.cfg, r.engine)
			r.model, r.session = fitted{a}, newFit(r.cfg, a, pairs, r.report)
			return nil
		}, err
	}
	progress, end := console.Phases(r.report)
	defer end()
	defer func() { r.trains = stream }()
	stream, err = OpenStream(ctx, r.cfg, r.tok, source.Options{Engine: r.engine, Progress: progress,
		Warn: func(s string) { r.report.Say("%s", s) }})
	return stream, func(ctx context.Context) error { return r.buildSession(ctx, stream, from) }, err
}

// buildSession makes a model that is trained in steps, and its session.
func (r *Run) buildSession(ctx context.Context, stream data.Stream, from *checkpoint.Checkpoint) error {
	rows, err := r.wordRows(from)
	if err != nil {
		return err
	}
	if r.pairs, err = train.NewModel(r.cfg, train.ModelOptions{Engine: r.engine, Tokenizer: r.tok, Group: r.group,
		Stream: stream, Rows: rows, Start: r.towers}); err != nil {
		return err
	}
	r.model = towers{r.pairs.Model}
	r.closers = append(r.closers, r.pairs.Close)
	if err := r.keepTowers(stream); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	s, err := train.NewSession(r.cfg, train.Options{Engine: r.engine, Model: r.pairs, Stream: stream, Tokenizer: r.tok})
	if err != nil {
		return err
	}
	if r.data != nil {
		s.Loader().Identify(r.data.Trained())
	}
	r.session = s
	r.closers = append(r.closers, s.Close, r.releaseTowers)
	return nil
}

// wordRows returns the rows of the word embeddings that the run goes on from or starts from, of which there may be
// more than tokens; 0 where there are none.
func (r *Run) wordRows(from *checkpoint.Checkpoint) (int, error) {
	if r.tok == nil {
		return 0, nil
	}
	if from != nil {
		return train.TableRows(from, r.tok)
	}
	if path := r.cfg.Init.Checkpoint; path != "" {
		ck, err := setup.InitCheckpoint(path)
		if err != nil {
			return 0, fmt.Errorf("init.checkpoint: %w", err)
		}
		defer ck.Close()
		its, err := train.OpenTokenizer(ck)
		if err != nil {
			return 0, fmt.Errorf("init.checkpoint: %w", err)
		}
		rows, err := train.TableRows(ck, its)
		return max(rows, r.tok.Size()), err // r.tok has its tokens, and perhaps words of init.new_words
	}
	return r.towers.WordRows(), nil
}

// lock keeps other processes from dir until the run is closed or the process ends.
func (r *Run) lock(dir string) error {
	l, err := folder.Lock(dir, r.report.Say)
	if err == nil {
		r.locked = l
		r.closers = append(r.closers, l.Release)
	}
	return err
}

// lost returns an error once another process has taken over the run folder, which is not written to any more then.
func (r *Run) lost() error {
	if err := r.locked.Lost(); err != nil {
		return fmt.Errorf("run.out: %w: this run ends without another write to it", err)
	}
	return nil
}

// OpenStream opens the training data. tok is nil for a system without texts; of o the tokenizer and
// what a sample is are set here.
func OpenStream(ctx context.Context, cfg config.Config, tok *tokenizer.Tokenizer, o source.Options) (data.Stream,
	error) {
	o.PerCaption = cfg.Objective.ITC.Positives == "id"
	if tok != nil {
		o.Tokenizer = tok
	}
	return source.Stream(ctx, cfg.Source(), o)
}

// begin sets the session to the checkpoint that the run goes on from, or starts from.
func (r *Run) begin(ctx context.Context, from *checkpoint.Checkpoint) (err error) {
	switch {
	case from != nil:
		if r.state, err = r.session.Restore(from); err != nil {
			return fmt.Errorf("%w\n(start anew with --resume never)", err)
		}
		r.saved = r.state.Step
		r.report.Say("going on from step %d of %s", r.state.Step, from.Path)
		r.tellRanks(r.state)
		r.tellData()
		if len(r.state.Unread) > 0 {
			r.report.Say("this run has no use for these parts of the checkpoint, and its own checkpoints will not hold them: %s", strings.Join(r.state.Unread, ", "))
		}
	case r.cfg.Init.Checkpoint != "":
		return r.initModel()
	case r.towers != train.Towers{}:
		return setup.CheckTowers(r.cfg, r.towers, r.pairs.Params(), r.report.Say)
	case r.cfg.Has(section.FeatureHeads) && r.cfg.Model.Heads.Start != "":
		return r.startHeads(ctx)
	}
	return nil
}

// initModel copies the parameters of init.checkpoint into the fresh model.
func (r *Run) initModel() error {
	ck, err := setup.InitCheckpoint(r.cfg.Init.Checkpoint)
	if err != nil {
		return fmt.Errorf("init.checkpoint: %w", err)
	}
	defer ck.Close()
	if ck.Notice != "" {
		r.report.Say("%s", ck.Notice)
	}
	if err := r.takesOver(ck); err != nil {
		return err
	}
	r.noteOtherSplit(ck)
	took, err := train.InitModel(r.pairs, ck, r.cfg.Model)
	if err != nil {
		return setup.ShapeKeys(ck, r.cfg, err)
	}
	r.report.Say("parameters from %s: %s", ck.Path, took)
	return nil
}

// takesOver says by which keys the model cannot take over the parameters of a checkpoint. A run of texts alone takes
// the text tower of any system, and one that tells the classes of images the image tower.
func (r *Run) takesOver(ck *checkpoint.Checkpoint) error {
	old, err := setup.OwnConfig(ck, r.cfg.Added...)
	if err != nil {
		return err
	}
	list := []config.Conflict(nil)
	switch {
	case old.Model.System != r.cfg.Model.System && r.cfg.Has(section.Sentences):
		list = config.TextConflicts(old, r.cfg)
	case old.Model.System != r.cfg.Model.System && r.cfg.Has(section.Classes):
		list = config.ImageConflicts(old, r.cfg)
	default:
		return setup.SameKeys(ck, r.cfg, config.FixedMeaning)
	}
	var errs config.Errors
	for _, c := range list {
		hint := "use its value, or another checkpoint"
		if c.NoValue {
			hint = "use another checkpoint"
		}
		errs = append(errs, &config.Error{Path: c.Path, Value: c.Now,
			Msg: fmt.Sprintf("the checkpoint %s was made with %s", ck.Path, c.With), Hint: hint})
	}
	return errs.OrNil()
}

// Config returns the configuration of the run, with its folder as run.out.
func (r *Run) Config() config.Config { return r.cfg }

// Folder returns the run folder.
func (r *Run) Folder() string { return r.dir }

// Session returns the model in training with its optimiser and its data, nil of a fit.
func (r *Run) Session() *train.Session {
	s, _ := r.session.(*train.Session)
	return s
}

// Close ends what the run opened, the last first, and lets other processes train into its
// folder.
func (r *Run) Close() error {
	var errs []error
	for _, c := range slices.Backward(r.closers) {
		errs = append(errs, c())
	}
	r.closers = nil
	return errors.Join(errs...)
}
