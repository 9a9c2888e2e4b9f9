package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/geoalign/geoalign/internal/words"
	"github.com/geoalign/geoalign/run"
	"github.com/geoalign/geoalign/train/runlog"
)

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
		Long: `report draws a run as one self-contained HTML file: the parts of the loss, temperature, learning
rate, gradients and speed, evaluations, figures of the graphs over the queue, and from the newest
checkpoint histograms of the scores of matched and other pairs, the learned metric as a heat map,
and image and caption features in the plane (PCA and t-SNE). train writes the same page at its end;
this command draws it at any time, with other points or another colour.

--color colours the points by an attribute:
  length        words of the caption
  caption:WORD  whether the caption has the word
  class         the class of the image (data.kind folder or scenes)
  objects, colour, shape, size, place
                for scenes: the number of objects, and what the first one is

A run without a checkpoint has curves only, as with --no-model. --set changes the checkpoint's
configuration, such as where the data is. docs/report.md says how to read each picture.`,
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
	overCheckpoint(c)
	f.output.add(c)
	c.Flags().StringVar(&f.run, "run", "", "run `folder`; same as RUN")
	c.Flags().StringVar(&f.out, "out", "", "`file` to write (default RUN/"+runlog.ReportFile+")")
	c.Flags().StringVar(&f.checkpoint, "checkpoint", "",
		"run or step `folder` of the model, instead of the newest of RUN")
	c.Flags().StringVar(&f.colour, "color", "",
		"`attribute` that colours the points (default: colour for scenes, class for folders, else length)")
	c.Flags().IntVar(&f.points, "points", run.DefaultPoints,
		"images that are embedded, each with one caption; at most 500 are drawn in the plane")
	c.Flags().StringVar(&f.split, "split", "", "val or test; default: eval.split")
	c.Flags().BoolVar(&f.noModel, "no-model", false, "only what the logs hold; no model is loaded")
	return c
}

func reportRun(c *cobra.Command, f *reportFlags) error {
	switch {
	case f.points < 2 || f.points > mostReportPoints:
		return usageError{fmt.Errorf("--points must be between 2 and %d (got %d)", mostReportPoints, f.points)}
	case f.split != "" && f.split != "val" && f.split != "test":
		return usageError{fmt.Errorf("--split must be val or test (got %q)", f.split)}
	}
	if err := apart(c, "no-model", "checkpoint", "color", "points", "split", "config", "set", "seed"); err != nil {
		return err
	}
	bar := newPhaseBar(c.ErrOrStderr(), f.output.quiet)
	done, err := run.Report(c.Context(), f.run, run.ReportOptions{
		Out: f.out, Checkpoint: f.checkpoint, NoModel: f.noModel, File: f.config.file, Set: f.config.sets,
		Log:            f.output.note(c),
		FeatureOptions: run.FeatureOptions{Split: f.split, Points: f.points, Colour: f.colour, Progress: bar.show},
	})
	bar.done()
	if err != nil {
		return err
	}
	if f.output.json {
		return printJSON(c.OutOrStdout(), done)
	}
	fmt.Fprintf(c.OutOrStdout(), "report: %s (%s kB)\n", done.Path, words.Thousands((done.Bytes+999)/1000))
	return nil
}
