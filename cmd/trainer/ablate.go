package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/geoalign/geoalign/internal/words"
	"github.com/geoalign/geoalign/run/ablate"
	"github.com/geoalign/geoalign/run/console"
	"github.com/geoalign/geoalign/train/runlog"
)

// ablateFlags are the flags of an ablation.
type ablateFlags struct {
	file   string
	suite  suiteFlags
	out    string
	seeds  string
	sets   []string
	only   []string
	dryRun bool
	retry  bool
	output outputFlags
}

func newAblateCommand() *cobra.Command {
	var f ablateFlags
	c := &cobra.Command{
		Use:   "ablate",
		Short: "Train a matrix of runs over several seeds and compare them in a table",
		Long: `ablate trains a matrix of runs, each with several seeds, and prints a table with the mean and
standard deviation over seeds. It marks the best run and those that the seeds cannot tell apart
from it. The matrix file names a base configuration, what each run changes, the seeds and the
metrics:

  base = "../quickstart.toml"            # relative to this file
  seeds = [1, 2, 3]
  set = ["train.max_steps=300"]          # for every run
  metrics = ["eval/retrieval/rsum", "loss", "seconds"]
  baseline = "plain"                     # differences to it, with their p-values

  [[run]]
  name = "warm"                          # trained once per seed, not in the table
  hidden = true

  [[run]]
  name = "plain"
  start = "warm"                         # from warm's last checkpoint of the same seed

  [[sweep]]                              # one run per value: batch_size=16, ...
  key = "train.batch_size"
  values = [16, 64]
  start = "warm"

All configurations are checked before the first run. Runs go to OUT/RUN/seed-N, and OUT gets
table.md, table.csv, results.json with every value of every seed, and report.html with the table,
bars and curves.

Ctrl-C saves the current run, and the same command resumes. Finished runs are kept: a run whose
settings have changed is refused until its folder is removed. If a run fails, it is marked, the
others continue, and the exit code is 1. A run that ended with NaN would fail again, so it is
only repeated with --retry.

With trials and [tune] a run chooses its settings first: every trial is trained with seeds of its own
and evaluated on a validation part, and every run has the same number of them.

--suite FILE runs several matrices, makes the features that they lack, and tells of each claim of the
file whether it helps: the paired difference, BCa intervals over seeds and over test images, and p
corrected for all claims (Holm). docs/ablate.md explains the whole format.`,
		Example: `  trainer ablate --config configs/ablation/batch.toml --dry-run
  trainer ablate --config configs/ablation/batch.toml
  trainer ablate --config configs/ablation/batch.toml --seeds 5 --only 'batch_size=*'
  trainer ablate --config configs/ablation/batch.toml --set train.max_steps=20 --out runs/try
  trainer ablate --suite configs/suite/verdict.toml --set data.root=FEATURES
  trainer ablate --suite configs/suite/verdict.toml --from docs/results --page docs/verdict.md`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if f.suite.file != "" {
				return f.suite.run(c, &f)
			}
			if err := f.suite.check(c); err != nil {
				return err
			}
			if f.file == "" {
				return usageError{errors.New(
					"ablate needs --config: the matrix file, whose format trainer ablate --help shows")}
			}
			return ablateRun(c, &f)
		},
	}
	c.Flags().StringVar(&f.file, "config", "", "matrix `file`")
	f.suite.add(c)
	c.Flags().StringVar(&f.out, "out", "",
		"`folder` of the runs and of the table (default runs/ablation/NAME of the matrix file)")
	c.Flags().StringVar(&f.seeds, "seeds", "",
		"instead of the file's: a number `N` for seeds 1 to N, or a list such as 1,2,5 (one seed alone: 5,)")
	c.Flags().StringArrayVar(&f.sets, "set", nil,
		"override one key of every run, after the overrides of the file (repeatable; `path=value`)")
	c.Flags().StringArrayVar(&f.only, "only", nil,
		"make only runs whose name matches `GLOB`, and those they start from; the table has all that are done (repeatable)")
	c.Flags().BoolVar(&f.dryRun, "dry-run", false, "check everything, list the runs and what is done of them, and exit")
	c.Flags().BoolVar(&f.retry, "retry", false, "try runs again whose numbers were not finite")
	f.output.add(c)
	return c
}

// ablateRun makes the runs of a matrix file and prints their table.
func ablateRun(c *cobra.Command, f *ablateFlags) error {
	o, err := f.options(c)
	if err != nil {
		return err
	}
	a, err := ablate.Open(f.file, o)
	if err != nil {
		return err
	}
	if f.dryRun {
		if !f.output.json {
			listRuns(c.OutOrStdout(), a)
		} else if err := printJSON(c.OutOrStdout(), a.Results); err != nil {
			return err
		}
		return a.CheckInputs()
	}
	if err := a.Run(c.Context()); err != nil {
		return err
	}
	if f.output.json {
		err = printJSON(c.OutOrStdout(), a.Results)
	} else {
		_, err = fmt.Fprint(c.OutOrStdout(), a.Results.Markdown())
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(f.output.note(c), "\n%s, %s, %s and %s are in %s\n", ablate.TableFile, ablate.CSVFile,
		ablate.ResultsFile, runlog.ReportFile, a.Out)
	return a.Verdict()
}

// options are what the flags say of one matrix or several.
func (f *ablateFlags) options(c *cobra.Command) (o ablate.Options, err error) {
	o = ablate.Options{Out: f.out, Set: f.sets, Only: f.only, Retry: f.retry, Log: f.output.note(c),
		Reporter: func() console.Reporter { return newReporter(c.ErrOrStderr(), f.output.quiet) }}
	if f.seeds != "" {
		if o.Seeds, err = parseSeeds(f.seeds); err != nil {
			return o, usageError{err}
		}
	}
	return o, nil
}

// listRuns prints the runs with what they change and what is done of them.
func listRuns(w io.Writer, a *ablate.Ablation) {
	n, open := a.Jobs()
	fmt.Fprintf(w, "%s into %s, %d to be made; base %s\n", words.Count(n, "run"), a.Out, open, a.Base)
	if n, open := a.Trials(); n > 0 {
		fmt.Fprintf(w, "%s choose the settings first, %d to be made\n", words.Count(n, "trial"), open)
	}
	if s := a.Matrix.Set; len(s) > 0 {
		fmt.Fprintf(w, "every run: %s\n", strings.Join(s, " "))
	}
	for _, row := range a.Results.Rows {
		var states []string
		for _, t := range row.Trials {
			states = append(states, fmt.Sprintf("%d %s", t.Seed, t.State))
		}
		var about []string
		for _, s := range []struct{ text, value string }{{"group ", row.Group}, {"starts from ", row.Start},
			{"the same as ", row.Same}} {
			if s.value != "" {
				about = append(about, s.text+s.value)
			}
		}
		if row.Hidden {
			about = append(about, "hidden")
		}
		fmt.Fprintf(w, "\n%s", row.Name)
		if about != nil {
			fmt.Fprintf(w, "  (%s)", strings.Join(about, "; "))
		}
		fmt.Fprintf(w, "\n  %s\n  seeds: %s\n", cmp.Or(strings.Join(row.Set, " "), "nothing changed"),
			strings.Join(states, ", "))
	}
}

// parseSeeds reads the value of --seeds.
func parseSeeds(text string) ([]int64, error) {
	wrong := fmt.Errorf("--seeds must be a number of seeds or a list of different ones such as 1,2,5 (got %q)", text)
	if n, err := strconv.Atoi(strings.TrimSpace(text)); err == nil {
		const most = 1000
		if n < 1 || n > most {
			return nil, fmt.Errorf("--seeds must be between 1 and %d, or a list such as 1,2,5 (got %d)", most, n)
		}
		var list []int64
		for i := range n {
			list = append(list, int64(i+1))
		}
		return list, nil
	}
	var list []int64
	for s := range strings.SplitSeq(strings.TrimSuffix(strings.TrimSpace(text), ","), ",") {
		n, err := strconv.ParseInt(strings.TrimSpace(s), 10, 64)
		if err != nil || n < 0 || slices.Contains(list, n) {
			return nil, wrong
		}
		list = append(list, n)
	}
	return list, nil
}
