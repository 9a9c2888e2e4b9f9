package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/eval/ablation"
	"github.com/geoalign/geoalign/train/runlog"
)

// ablateFlags are the flags of an ablation.
type ablateFlags struct {
	file   string
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
		Short: "Train a matrix of runs with several seeds and compare them in a table",
		Long: `ablate reads a matrix file: a base configuration, the runs that change something of it,
the seeds and the metrics to compare. It checks every run's configuration, trains them one
after another as train does, and prints a table with mean and standard deviation over the
seeds, the best run and those that the seeds cannot tell apart from it.

  base = "../quickstart.toml"            # relative to this file
  seeds = [1, 2, 3]
  set = ["train.max_steps=300"]          # of every run
  metrics = ["eval/retrieval/rsum", "loss", "seconds"]
  baseline = "plain"                     # differences to it, with their p

  [[run]]
  name = "warm"                          # trained once a seed, not in the table
  hidden = true

  [[run]]
  name = "plain"
  start = "warm"                         # from warm's last checkpoint of the same seed

  [[sweep]]                              # a run per value: batch_size=16, ...
  key = "train.batch_size"
  values = [16, 64]
  start = "warm"

A run's folder is OUT/RUN/seed-N. Ctrl-C saves the run in progress; the same command goes
on. Finished runs stay as they are: a run whose settings have changed is refused until its
folder is removed. A run that fails is marked and the others go on; the exit code is then
1. One whose numbers were not finite would fail again and is only tried with --retry.
OUT gets table.md, table.csv, results.json, which has every value of every seed, and
report.html with the table, bars and the curves of all runs.
docs/ablate.md explains the whole format.`,
		Example: `  trainer ablate --config configs/ablation/batch.toml --dry-run
  trainer ablate --config configs/ablation/batch.toml
  trainer ablate --config configs/ablation/batch.toml --seeds 5 --only 'batch_size=*'
  trainer ablate --config configs/ablation/batch.toml --set train.max_steps=20 --out runs/try`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if f.file == "" {
				return usageError{errors.New("ablate needs --config: the matrix file, whose format trainer ablate --help shows")}
			}
			return ablate(c, &f)
		},
	}
	c.Flags().StringVar(&f.file, "config", "", "matrix `file`")
	c.Flags().StringVar(&f.out, "out", "", "`folder` of the runs and of the table (default runs/ablation/NAME of the matrix file)")
	c.Flags().StringVar(&f.seeds, "seeds", "", "instead of the file's: a number `N` for seeds 1 to N, or a list such as 1,2,5 (one seed alone: 5,)")
	c.Flags().StringArrayVar(&f.sets, "set", nil, "override one key of every run, after the overrides of the file (repeatable; `path=value`)")
	c.Flags().StringArrayVar(&f.only, "only", nil, "make only runs whose name matches `GLOB`, and those they start from; the table has all that are done (repeatable)")
	c.Flags().BoolVar(&f.dryRun, "dry-run", false, "check everything, list the runs and what is done of them, and exit")
	c.Flags().BoolVar(&f.retry, "retry", false, "try runs again whose numbers were not finite")
	f.output.add(c)
	return c
}

// ablate makes the runs of a matrix file and prints their table.
func ablate(c *cobra.Command, f *ablateFlags) error {
	a, err := loadAblation(f)
	if err != nil {
		return err
	}
	a.note = f.output.note(c)
	if err := a.checkFolders(); err != nil {
		return err
	}
	if f.dryRun {
		a.tabulate()
		if f.output.json {
			return printJSON(c.OutOrStdout(), a.results)
		}
		a.list(c.OutOrStdout())
		return nil
	}
	if err := writable(a.out); err != nil {
		return err
	}
	unlock, err := lockFolder(a.out)
	if err != nil {
		return err
	}
	defer unlock() // the end of the process does so too
	if err := a.run(c, f); err != nil {
		return err
	}
	if f.output.json {
		err = printJSON(c.OutOrStdout(), a.results)
	} else {
		_, err = fmt.Fprint(c.OutOrStdout(), a.results.Markdown())
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(a.note, "\n%s, table.csv, results.json and %s are in %s\n", tableFile, runlog.ReportFile, a.out)
	return a.verdict()
}

// loadAblation reads the matrix file and resolves the configuration of every run.
func loadAblation(f *ablateFlags) (*ablationRun, error) {
	text, err := os.ReadFile(f.file)
	if err != nil {
		return nil, config.Errors{{Msg: err.Error(), Hint: "give an existing matrix file with --config"}}
	}
	m, err := ablation.Parse(f.file, text)
	if err != nil {
		return nil, err
	}
	if f.seeds != "" {
		if m.Seeds, err = parseSeeds(f.seeds); err != nil {
			return nil, usageError{err}
		}
	}
	base := m.Base
	if !filepath.IsAbs(base) {
		base = filepath.Join(filepath.Dir(f.file), base)
	}
	if _, err := os.Stat(base); err != nil {
		return nil, config.Errors{{Path: "base", Value: m.Base, Msg: err.Error(), Hint: "the path is relative to the matrix file", Where: f.file}}
	}
	a := &ablationRun{matrix: m, base: base, out: f.out, retry: f.retry}
	if a.out == "" {
		name := filepath.Base(f.file)
		a.out = filepath.Join("runs", "ablation", strings.TrimSuffix(name, filepath.Ext(name)))
	}
	if err := a.resolve(f.sets); err != nil {
		return nil, err
	}
	if err := a.choose(f.only); err != nil {
		return nil, usageError{err}
	}
	return a, nil
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
