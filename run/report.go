package run

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data/source"
	"github.com/geoalign/geoalign/eval/ablation"
	"github.com/geoalign/geoalign/internal/files"
	"github.com/geoalign/geoalign/internal/words"
	pages "github.com/geoalign/geoalign/report"
	"github.com/geoalign/geoalign/run/console"
	"github.com/geoalign/geoalign/run/setup"
	"github.com/geoalign/geoalign/train/checkpoint"
	"github.com/geoalign/geoalign/train/runlog"
)

// ReportOptions say how a run is drawn.
type ReportOptions struct {
	Out        string    // file; empty: report.html of the run
	Checkpoint string    // run or step folder of the model; empty: the newest of the run
	NoModel    bool      // only what the logs hold
	File       string    // TOML file with the configuration to use; empty: the checkpoint's own
	Set        []string  // overrides of it
	Log        io.Writer // messages; nil: none
	FeatureOptions
}

// Reported is what Report did.
type Reported struct {
	Path  string `json:"path"`
	Bytes int    `json:"bytes"`
	Step  int    `json:"step"`             // last step of the log
	Model string `json:"model,omitempty"`  // checkpoint that was embedded
	N     int    `json:"images,omitempty"` // embedded
	Texts int    `json:"texts,omitempty"`  // instead of images, of a model of texts alone
	Color string `json:"color,omitempty"`
}

// Report draws the run in the folder dir as one HTML page: the curves of its log, and with a
// checkpoint the learned metric and the features of a split.
func Report(ctx context.Context, dir string, o ReportOptions) (Reported, error) {
	done := Reported{Path: o.Out}
	if done.Path == "" {
		done.Path = filepath.Join(dir, runlog.ReportFile)
	}
	if st, err := os.Stat(dir); err != nil || !st.IsDir() {
		return done, console.Argument("%s is not a folder: give the folder of a run, such as runs/quickstart", dir)
	}
	ck, none, err := o.checkpoint(dir)
	if err != nil {
		return done, err
	}
	if ck != nil {
		defer ck.Close()
	}
	d, err := o.curves(dir, ck == nil, none)
	if err != nil {
		return done, err
	}
	if ck == nil {
		err = o.describe(dir, d)
	} else {
		var t *Trained
		prepare := func(cfg config.Config) error { return source.Convert(ctx, cfg.Source(), o.Progress) }
		if t, err = OpenCheckpoint(ck, OpenOptions{File: o.File, Set: o.Set, Log: o.Log,
			Prepare: prepare}); err != nil {
			return done, err
		}
		defer t.Close() // pairs are scored while the page is drawn
		Describe(d, t.Config)
		err = t.Draw(ctx, d, o.FeatureOptions)
	}
	if err != nil {
		return done, err
	}
	if d.Features != nil {
		done.Model, done.N, done.Color = ck.Path, d.Features.N, d.Features.Attribute
		if d.Features.OfTexts {
			done.N, done.Texts = 0, d.Features.N
		}
	}
	if d.Curves != nil {
		done.Step = d.Curves.Last
	}
	done.Bytes, err = WritePage(done.Path, *d)
	return done, err
}

// checkpoint opens the checkpoint that is drawn: nil without the model, and where the run
// has none yet, for which none says why.
func (o ReportOptions) checkpoint(dir string) (ck *checkpoint.Checkpoint, none, err error) {
	if o.NoModel {
		return nil, nil, nil
	}
	ck, err = checkpoint.Open(cmp.Or(o.Checkpoint, dir), setup.ModelGroups...)
	switch {
	case err == nil:
		return ck, nil, nil
	case errors.Is(err, checkpoint.ErrNone) && o.Checkpoint == "":
		return nil, err, nil
	}
	return nil, nil, fmt.Errorf("%w\n(--no-model draws the curves alone)", err)
}

// curves reads the log of the run. One without a log and a checkpoint is not a run; none is
// why it has no checkpoint.
func (o ReportOptions) curves(dir string, noCheckpoint bool, none error) (*pages.Data, error) {
	d, err := PageData(dir)
	if err != nil {
		return nil, err
	}
	if d.Curves == nil && noCheckpoint {
		hint := ""
		if _, err := os.Stat(filepath.Join(dir, ablation.TableFile)); err == nil {
			hint = ": the folder of an ablation has its page already; give RUN/seed-N below it for that of a run"
		}
		return nil, console.Argument("%s holds neither %s nor a checkpoint: it is not a run folder%s", dir,
			runlog.MetricsFile, hint)
	}
	say := console.Lines(o.Log).Say
	if none != nil {
		say("note: only the curves are drawn: %v", none)
	}
	if d.Curves != nil && (d.Curves.Bad > 1 || d.Curves.Rows == 0) { // one may be half a last line
		say("note: %s of %s has %s and %s that were passed over",
			runlog.MetricsFile, dir, words.Count(d.Curves.Rows, "row"), words.Count(d.Curves.Bad, "other line"))
	}
	return d, nil
}

// describe adds what the configuration of a run says, if there is one, and why the page has
// no model.
func (o ReportOptions) describe(dir string, d *pages.Data) error {
	cfg, notices, err := o.config(filepath.Join(dir, runlog.ConfigFile))
	for _, n := range notices {
		console.Lines(o.Log).Say("note: %s", n)
	}
	switch {
	case err == nil:
		Describe(d, cfg)
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	why := "The run has no checkpoint so far"
	if o.NoModel {
		why = "The page was made without the model"
	}
	d.Notes = append(d.Notes, why+": there are only the curves.")
	return nil
}

// config reads the configuration of a run without a checkpoint, whose own file is at path.
func (o ReportOptions) config(path string) (config.Config, []string, error) {
	if o.File != "" {
		return config.LoadNoted(o.File, o.Set)
	}
	text, err := files.Read(path, files.MaxConfig)
	if err != nil {
		return config.Config{}, nil, err
	}
	return config.ParseStored(path, text, o.Set)
}

// WritePage draws and writes a page; a page that fails leaves the old one as it is.
func WritePage(path string, d pages.Data) (int, error) {
	var b bytes.Buffer
	if err := pages.Write(&b, d); err != nil {
		return 0, err
	}
	if err := files.Replace(path, b.Bytes()); err != nil {
		return 0, fmt.Errorf("%w: choose another file with --out", err)
	}
	return b.Len(), nil
}

// writePage draws the run at its end, with the model in hand. What goes wrong is told
// and nothing more: the run is saved already. The error is that of ctx.
func (r *Run) writePage(ctx context.Context) error {
	d, err := PageData(r.dir)
	if err == nil {
		Describe(d, r.cfg)
		d.Metrics = learnedMetrics(r.cfg, r.model)
		switch {
		case r.several:
			d.Notes = append(d.Notes, "One of several runs: trainer report draws its features too.")
		case r.set != nil && r.set.Galleries != nil:
			e := embedder{cfg: r.cfg, engine: r.engine, model: r.model, tok: r.tok, set: r.set, split: r.cfg.Eval.Split,
				points: DefaultPoints, progress: r.report.Phase}
			err = e.draw(ctx, d)
			r.report.PhasesDone()
		}
	}
	if err := ctx.Err(); err != nil { // an interrupted run gets no page
		return err
	}
	if err != nil && d != nil { // the curves are there all the same
		d.Notes = append(d.Notes, "The features could not be drawn: "+strings.TrimSpace(err.Error()))
		r.report.Say("warning: %s has no features: %v", runlog.ReportFile, err)
		err = nil
	}
	if err == nil {
		_, err = WritePage(filepath.Join(r.dir, runlog.ReportFile), *d)
	}
	if err != nil {
		r.report.Say("warning: no %s: %v", runlog.ReportFile, err)
	}
	return nil
}
