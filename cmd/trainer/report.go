package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/internal/kernel"
	pages "github.com/geoalign/geoalign/report"
	"github.com/geoalign/geoalign/train/checkpoint"
	"github.com/geoalign/geoalign/train/runlog"
)

// reportPoints is the number of images that are embedded unless asked otherwise.
const reportPoints = 500

// mostReportPoints bounds --points: all pairs of them are scored.
const mostReportPoints = 5000

// reportFlags are the flags of a report.
type reportFlags struct {
	config     configFlags
	output     outputFlags
	run        string
	out        string
	checkpoint string
	colour     string
	points     int
	split      string
	noModel    bool
}

func newReportCommand() *cobra.Command {
	var f reportFlags
	c := &cobra.Command{
		Use:   "report [RUN]",
		Short: "Draw a run as one HTML page: curves, scores of pairs, learned metric, embedding",
		Long: `report draws what a run folder holds as one HTML file that needs nothing beside it: the
parts of the loss, temperature, learning rate, gradients and speed, evaluations, the
figures of the graphs over the queue, and with the newest checkpoint histograms of the
scores of own and other pairs, the learned metric as a heat map and the features of images
and captions in the plane (PCA and t-SNE). train writes the same page at its end; this
command draws it anew, at any time of a run, with other points or another colour.

--color colours the points by an attribute:
  length        words of the caption
  caption:WORD  whether the caption has the word
  class         the class of the image (data.kind folder or scenes)
  objects, colour, shape, size, place
                of scenes: the number of objects, and what the first one is

A run without a checkpoint gets the curves alone, as with --no-model. --set changes the
configuration that the checkpoint was made with, such as where the data is.
docs/report.md says how to read each picture.`,
		Example: `  trainer report runs/quickstart
  trainer report runs/quickstart --color shape --points 300
  trainer report runs/flickr8k --color caption:dog --split test --set data.root=flickr8k
  trainer report --run runs/geomm --no-model --out geomm.html
  trainer report runs/quickstart --checkpoint runs/quickstart/checkpoints/step-00000100 --out early.html`,
		Args: func(c *cobra.Command, args []string) error {
			if f.run != "" {
				args = append(args, f.run)
			}
			if len(args) != 1 {
				return fmt.Errorf("%s needs one RUN, the folder of a run (got %d)", c.CommandPath(), len(args))
			}
			f.run = args[0]
			return nil
		},
		RunE: func(c *cobra.Command, _ []string) error { return reportRun(c, &f) },
	}
	f.config.add(c)
	f.output.add(c)
	c.Flags().StringVar(&f.run, "run", "", "run `folder`; same as RUN")
	c.Flags().StringVar(&f.out, "out", "", "`file` to write (default RUN/"+runlog.ReportFile+")")
	c.Flags().StringVar(&f.checkpoint, "checkpoint", "", "run or step `folder` of the model, instead of the newest of RUN")
	c.Flags().StringVar(&f.colour, "color", "", "`attribute` that colours the points (default: colour for scenes, class for folders, else length)")
	c.Flags().IntVar(&f.points, "points", reportPoints, "images that are embedded, each with one caption; at most 500 are drawn in the plane")
	c.Flags().StringVar(&f.split, "split", "", "val or test; default: eval.split")
	c.Flags().BoolVar(&f.noModel, "no-model", false, "only what the logs hold; no model is loaded")
	return c
}

// reported is the JSON form of what report did.
type reported struct {
	Path  string `json:"path"`
	Bytes int    `json:"bytes"`
	Step  int    `json:"step"`             // last step of the log
	Model string `json:"model,omitempty"`  // checkpoint that was embedded
	N     int    `json:"images,omitempty"` // embedded
	Color string `json:"color,omitempty"`
}

func reportRun(c *cobra.Command, f *reportFlags) error {
	switch {
	case f.points < 2 || f.points > mostReportPoints:
		return usageError{fmt.Errorf("--points must be between 2 and %d (got %d)", mostReportPoints, f.points)}
	case f.split != "" && f.split != "val" && f.split != "test":
		return usageError{fmt.Errorf("--split must be val or test (got %q)", f.split)}
	case f.noModel && f.checkpoint != "":
		return usageError{errors.New("--no-model and --checkpoint contradict each other: leave one out")}
	}
	if st, err := os.Stat(f.run); err != nil || !st.IsDir() {
		return usageError{fmt.Errorf("%s is no folder: give the folder of a run, such as runs/quickstart", f.run)}
	}
	path := f.checkpoint
	if path == "" {
		path = f.run
	}
	var ck *checkpoint.Checkpoint
	var none error // why there is no checkpoint
	if !f.noModel {
		var err error
		if ck, err = checkpoint.Load(path); err != nil && !(errors.Is(err, checkpoint.ErrNone) && f.checkpoint == "") {
			return fmt.Errorf("%w\n(--no-model draws the curves alone)", err)
		}
		none = err
	}
	if ck != nil {
		defer ck.Close()
		if ck.Notice != "" {
			fmt.Fprintln(f.output.note(c), ck.Notice)
		}
	}
	d, err := logData(f.run)
	if err != nil {
		return err
	}
	if d.Curves == nil && ck == nil {
		hint := ""
		if _, err := os.Stat(filepath.Join(f.run, tableFile)); err == nil {
			hint = ": the folder of an ablation has its page already; give RUN/seed-N below it for that of a run"
		}
		return usageError{fmt.Errorf("%s holds neither %s nor a checkpoint: it is no run folder%s", f.run, runlog.MetricsFile, hint)}
	}
	if none != nil {
		fmt.Fprintf(f.output.note(c), "note: only the curves are drawn: %v\n", none)
	}
	if d.Curves != nil && (d.Curves.Bad > 1 || d.Curves.Rows == 0) { // one may be half a last line
		fmt.Fprintf(f.output.note(c), "note: %s of %s has %s and %s that were passed over\n",
			runlog.MetricsFile, f.run, count(d.Curves.Rows, "row"), count(d.Curves.Bad, "other line"))
	}
	cfg, known, err := reportConfig(c, f, ck)
	if err != nil {
		return err
	}
	if known {
		describeRun(d, cfg)
	}
	done := reported{Path: f.out}
	if ck == nil {
		why := "The run has no checkpoint so far"
		if f.noModel {
			why = "The page was made without the model"
		}
		d.Notes = append(d.Notes, why+": there are only the curves.")
	} else {
		engine, err := newEngine(cfg)
		if err != nil {
			return err
		}
		defer engine.Close() // pairs are scored while the page is drawn
		if err := modelData(c, f, cfg, ck, engine, d); err != nil {
			return err
		}
		done.Model, done.N = ck.Path, d.Features.N
		done.Color = d.Features.Attribute
	}
	if done.Path == "" {
		done.Path = filepath.Join(f.run, runlog.ReportFile)
	}
	if d.Curves != nil {
		done.Step = d.Curves.Last
	}
	if done.Bytes, err = writePage(done.Path, *d); err != nil {
		return err
	}
	if f.output.json {
		return printJSON(c.OutOrStdout(), done)
	}
	fmt.Fprintf(c.OutOrStdout(), "report: %s (%s kB)\n", done.Path, thousands((done.Bytes+999)/1000))
	return nil
}

// writePage draws and writes a page; a page that fails leaves the old one as it is.
func writePage(path string, d pages.Data) (int, error) {
	var b bytes.Buffer
	if err := pages.Write(&b, d); err != nil {
		return 0, err
	}
	if err := runlog.WriteFile(path, b.Bytes()); err != nil {
		return 0, fmt.Errorf("%w: choose another file with --out", err)
	}
	return b.Len(), nil
}

// reportConfig returns the configuration of the run, and whether it is known.
func reportConfig(c *cobra.Command, f *reportFlags, ck *checkpoint.Checkpoint) (config.Config, bool, error) {
	flags := &runFlags{config: f.config}
	if ck != nil {
		cfg, err := flags.loadOver(c, ck)
		return cfg, err == nil, err
	}
	if f.config.file != "" {
		cfg, err := flags.load(c)
		return cfg, err == nil, err
	}
	path := filepath.Join(f.run, runlog.ConfigFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return config.Config{}, false, nil
	}
	if err != nil {
		return config.Config{}, false, err
	}
	cfg, notices, err := config.ParseStored(path, text, f.config.overrides(c)...)
	tell(f.output.note(c), notices)
	return cfg, err == nil, err
}

// modelData loads the model of a checkpoint and adds what the page shows of it.
func modelData(c *cobra.Command, f *reportFlags, cfg config.Config, ck *checkpoint.Checkpoint, engine *kernel.Engine, d *pages.Data) error {
	cfg, err := checkpointConfig(cfg, ck)
	if err != nil {
		return err
	}
	if f.split == "" {
		f.split = cfg.Eval.Split
	}
	m, tok, err := openModel(cfg, ck, engine)
	if err != nil {
		return err
	}
	defer m.Close()
	set, err := openEval(cfg, f.split, f.output.note(c))
	if err != nil {
		return fmt.Errorf("%w\n(--no-model draws the curves alone)", err)
	}
	bar := newPhaseBar(c.ErrOrStderr(), f.output.quiet)
	defer bar.done()
	d.Metrics = learnedMetrics(cfg, m.Params())
	e := embedder{cfg: cfg, engine: engine, model: m, tok: tok, set: set, split: f.split, points: f.points, colour: f.colour, progress: bar.show}
	d.Features, err = e.run(c.Context())
	return err
}

// writeReport draws the run at its end, with the model in hand. What goes wrong is told
// and nothing more: the run is saved already.
func (r *trainSession) writeReport(ctx context.Context) {
	d, err := logData(r.dir)
	if err == nil {
		describeRun(d, r.cfg)
		d.Metrics = learnedMetrics(r.cfg, r.session.Model().Params())
		switch {
		case r.several:
			d.Notes = append(d.Notes, "One of several runs: trainer report draws its features too.")
		case r.set != nil:
			bar := newPhaseBar(r.stderr, r.quiet)
			e := embedder{cfg: r.cfg, engine: r.engine, model: r.session.Model(), tok: r.tok, set: r.set, split: r.cfg.Eval.Split, points: reportPoints, progress: bar.show}
			d.Features, err = e.run(ctx)
			bar.done()
		}
	}
	if err != nil && d != nil { // the curves are there all the same
		d.Notes = append(d.Notes, "The features could not be drawn: "+strings.TrimSpace(err.Error()))
		r.progress.Printf("warning: %s has no features: %v", runlog.ReportFile, err)
		err = nil
	}
	if err == nil {
		_, err = writePage(filepath.Join(r.dir, runlog.ReportFile), *d)
	}
	if err != nil {
		r.progress.Printf("warning: no %s: %v", runlog.ReportFile, err)
	}
}
