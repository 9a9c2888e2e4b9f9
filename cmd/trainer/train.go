package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/geoalign/geoalign/internal/words"
	"github.com/geoalign/geoalign/train/schedule"

	"github.com/spf13/cobra"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/run"
	"github.com/geoalign/geoalign/run/embed"
	"github.com/geoalign/geoalign/run/explain"
	"github.com/geoalign/geoalign/tasks/retrieval"
	"github.com/geoalign/geoalign/train/runlog"
)

func newTrainCommand() *cobra.Command {
	var f runFlags
	c := &cobra.Command{
		Use:   "train",
		Short: "Train a model, with checkpoints and exact resume",
		Long: `train runs a configuration: it prepares the run folder, trains with a progress bar, saves
checkpoints and evaluates at the end.

Ctrl-C, SIGTERM or a closed terminal abandons the current step, saves and exits with 130. The
same command resumes the run, with the numbers it would have had without the interruption. A
second Ctrl-C stops at once. A run that fails, for example because a data file cannot be read or
the disk is full, also saves and exits with 1.

--set compute.device=cuda trains on a GPU (docs/gpu.md); trainer doctor says whether one is found.

A run may resume with changed settings, which are listed: more --max-steps (the learning rate
then follows the longer schedule), another batch size, learning rate or data. The architecture,
queue.size, the seed and init.checkpoint cannot change. A finished run is only evaluated.`,
		Example: `  trainer train --config quickstart                                 # built in: trainer configs
  trainer train --config configs/quickstart.toml --set train.batch_size=64 --out runs/small
  trainer train --config configs/flickr8k.toml --set data.root=flickr8k --dry-run
  trainer train --config configs/quickstart.toml --set compute.device=cuda`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if f.config.file == "" && !c.Flags().Changed("set") {
				return errNoConfig
			}
			cfg, err := f.config.load(c)
			if err != nil {
				return err
			}
			return trainRun(c, &f, cfg)
		},
	}
	f.add(c)
	return c
}

// withField is the JSON form of an object with a further field.
type withField struct {
	object any
	name   string
	value  any
}

// MarshalJSON implements json.Marshaler.
func (x withField) MarshalJSON() ([]byte, error) {
	own, err := json.Marshal(x.object)
	if err != nil {
		return nil, err
	}
	list, err := json.Marshal(x.value)
	if err != nil {
		return nil, err
	}
	return slices.Concat(bytes.TrimSuffix(own, []byte("}")), []byte(`,"`+x.name+`":`), list, []byte("}")), nil
}

// withNotes adds cautions as notes, where there are any.
func withNotes(object any, cautions []string) any {
	if len(cautions) == 0 {
		return object
	}
	return withField{object, "notes", cautions}
}

// printCautions writes cautions below a table, each a note.
func printCautions(w io.Writer, cautions []string) {
	for _, s := range cautions {
		fmt.Fprintf(w, "note: %s\n", s)
	}
}

// scoresJSON is the JSON form of what a run found: as that of trainer eval, with the tasks of eval.beside as beside
// where there are any.
func scoresJSON(r run.Result) any {
	own := withNotes(r.Scores.JSON(r.Split, r.Folder), r.Cautions())
	if r.Beside == nil {
		return own
	}
	var beside []any
	for _, s := range r.Beside {
		beside = append(beside, s.JSON(r.Split, r.Folder))
	}
	return withField{own, "beside", beside}
}

// trainRun is one session of a training run.
func trainRun(c *cobra.Command, f *runFlags, cfg config.Config) error {
	o := run.Options{Resume: f.resume, Log: f.output.note(c), Reporter: newReporter(c.ErrOrStderr(), f.output.quiet)}
	o.Group, o.Warn = groupOf(c), companyOf(c.Context()).warn
	w := c.OutOrStdout()
	if f.dryRun {
		p, err := run.DryRun(c.Context(), cfg, o)
		switch {
		case err != nil:
			return err
		case f.output.json:
			return printJSON(w, p)
		}
		printPlan(w, p)
		return nil
	}
	r, err := run.New(c.Context(), cfg, o)
	if err != nil {
		return err
	}
	defer r.Close()
	result, err := r.Train(c.Context())
	switch {
	case err != nil:
		return err
	case result.Scores == nil && f.output.json:
		return printJSON(w, withNotes(map[string]string{"path": result.Folder}, result.Cautions()))
	case result.Scores == nil:
		printCautions(w, result.Cautions())
		fmt.Fprintf(w, "run folder: %s\n", result.Folder)
	case f.output.json:
		return printJSON(w, scoresJSON(result))
	default:
		s := result.Scores
		fmt.Fprintf(w, "\n%s on %s: %s\n\n%s\n", s.Task(), result.Split, s.Size(), s.Table())
		for _, s := range result.Beside {
			fmt.Fprintln(w, s.Table())
		}
		printCautions(w, result.Cautions())
		fmt.Fprintf(w, "run folder: %s\n", result.Folder)
		printNext(f.output.note(c), cfg, result)
	}
	return nil
}

// printNext writes what can be done with a model of images and texts.
func printNext(w io.Writer, cfg config.Config, r run.Result) {
	if _, ok := r.Scores.(retrieval.Scores); !ok || explain.Explainable(cfg) != nil {
		return
	}
	gallery := embed.Folder(r.Folder, r.Split)
	fmt.Fprintf(w, "next: %s has curves, scores of pairs and the embedding\n", filepath.Join(r.Folder, runlog.ReportFile))
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "  trainer explain %s --row 0\t# what a score rests on\n", r.Folder)
	fmt.Fprintf(t, "  trainer embed %s\t# a gallery of its images and texts\n", r.Folder)
	fmt.Fprintf(t, "  trainer search %s --text \"A CAPTION\" --out hits.png\t# what is found, as a picture\n", gallery)
	fmt.Fprintf(t, "  trainer serve %s\t# a page to search it\n", gallery)
	t.Flush()
}

// printPlan writes the outcome of a dry run for a person.
func printPlan(w io.Writer, p run.Plan) {
	graphs := ""
	if p.Graphs {
		graphs = " with graphs"
	}
	fmt.Fprintf(w, "%s parameters, %s trained, vocabulary %s\n", words.Thousands(p.Parameters),
		words.Thousands(p.Trainable), words.Thousands(p.Vocabulary))
	fmt.Fprintf(w, "memory: %.1f MB parameters with gradients, moments and momentum encoder, %.1f MB queues%s, ",
		p.ParametersMB,
		p.QueueMB, graphs)
	if p.ConnectorMB > 0 {
		fmt.Fprintf(w, "%.1f MB connector, ", p.ConnectorMB)
	}
	if p.PlansMB > 0 {
		fmt.Fprintf(w, "%.1f MB transport plans, ", p.PlansMB)
	}
	if p.FeaturesMB > 0 {
		fmt.Fprintf(w, "%.1f MB features of micro-batches, ", p.FeaturesMB)
	}
	fmt.Fprintf(w, "%.1f MB planned buffers\n", p.BuffersMB)
	if p.DeviceMB > 0 {
		fmt.Fprintf(w, "memory of the device: %.1f MB at most in these steps, of %.1f MB that this program can have; evaluations take some more\n", p.DeviceMB, p.DeviceFreeMB)
	}
	if p.Processes > 0 {
		fmt.Fprintf(w, "%d processes with %s of each batch and this memory each, %.1f MB together\n", p.Processes,
			words.Count(p.RankRows, "row"), float64(p.Processes)*p.MemoryMB())
	}
	for rank, device := range p.Devices {
		fmt.Fprintf(w, "rank %d: %s\n", rank, device)
	}
	fmt.Fprintf(w, "%d nodes a step, %.3f s a step with %s", p.Nodes, p.StepSeconds, p.Engine)
	if p.Steps > 0 {
		fmt.Fprintf(w, ", about %s for %s of %s", schedule.Seconds(p.RunSeconds).Round(time.Second),
			words.Count(p.Steps, "step"), words.Count(p.Samples, "sample"))
	}
	fmt.Fprint(w, "\n\n")
	for _, s := range p.Shapes {
		fmt.Fprintf(w, "  %-52s %v\n", s...)
	}
}
