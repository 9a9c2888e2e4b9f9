package main

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/geoalign/geoalign/align"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/internal/words"
	"github.com/geoalign/geoalign/run"
)

// mostForecastRows bounds --rows: all pairs of them are compared, 32 bytes each.
const mostForecastRows = 5000

func newAlignForecastCommand() *cobra.Command {
	var flags configFlags
	var out outputFlags
	var o run.ForecastOptions
	c := &cobra.Command{
		Use:   "align-forecast [IMAGE TEXT]",
		Short: "Measure how alike two files of features are, before anything is fitted",
		Long: `align-forecast compares the neighbourhoods of paired rows in two feature spaces: the share of
common nearest neighbours (mutual k-NN), centred kernel alignment (CKA), and how near the
neighbours in one space are in the other, each beside its level under shuffled pairs. It ends with
one sentence of advice; docs/forecast.md says what that is based on.

IMAGE and TEXT are files of features (.npy, .safetensors and others) whose rows correspond. With
--config they are those of data.kind = "pairs": its training pairs, each image with its first
text. At most --rows pairs are read, evenly spaced, so large files need no more memory.`,
		Example: `  trainer align-forecast image.npy text.npy
  trainer align-forecast image.npy text.npy --out forecast.html
  trainer align-forecast --config configs/align.toml --set data.root=FEATURES --rows 3000 --json`,
		Args: func(c *cobra.Command, args []string) error {
			switch {
			case len(args) == 2 && flags.file == "":
				return nil
			case len(args) == 0 && flags.file != "":
				return nil
			}
			return fmt.Errorf("%s needs two files, IMAGE and TEXT, or --config alone (got %d files)", c.CommandPath(),
				len(args))
		},
		RunE: func(c *cobra.Command, args []string) error {
			if err := checkForecast(o); err != nil {
				return usageError{err}
			}
			cfg, err := flags.load(c, forecastSets(args)...)
			if err != nil {
				return err
			}
			if cfg.Data.Kind != storedPairs {
				return config.Errors{{Path: "data.kind", Value: cfg.Data.Kind, Msg: `must be "pairs" for a forecast`,
					Hint: "name the files of features in data.pairs.image and data.pairs.text"}}
			}
			if err := run.CheckInputs(cfg); err != nil {
				return err
			}
			if err := convertData(c, cfg, out.quiet || out.json); err != nil {
				return err
			}
			f, err := untilCancelled(c.Context(),
				func() (run.Forecasted, error) { return run.Forecast(c.Context(), cfg, o) })
			switch {
			case err != nil:
				return err
			case out.json:
				return printJSON(c.OutOrStdout(), f)
			}
			return printForecast(c.OutOrStdout(), f)
		},
	}
	flags.add(c)
	out.add(c)
	c.Flags().IntVar(&o.Rows, "rows", 1000, "pairs that are looked at, evenly spaced over all")
	c.Flags().IntVar(&o.K, "neighbours", 10, "nearest neighbours of a row that are compared")
	c.Flags().IntVar(&o.Permutations, "shuffles", 100, "times that the pairs are shuffled")
	c.Flags().StringVar(&o.Out, "out", "", "HTML `file` to draw the measures to")
	return c
}

// checkForecast refuses settings of a forecast.
func checkForecast(o run.ForecastOptions) error {
	switch {
	case o.Rows < 4 || o.Rows > mostForecastRows:
		return fmt.Errorf("--rows must be between 4 and %d, as all pairs of rows are compared (got %d)",
			mostForecastRows, o.Rows)
	case o.K < 1 || o.K > o.Rows-2:
		return fmt.Errorf("--neighbours must be between 1 and --rows less 2 (got %d)", o.K)
	case o.Permutations < align.LeastPermutations || o.Permutations > 100_000:
		return fmt.Errorf("--shuffles must be between %d and 100000, as of fewer no share can be below 5 %% (got %d)",
			align.LeastPermutations, o.Permutations)
	case o.Out != "" && strings.ToLower(filepath.Ext(o.Out)) != ".html":
		return fmt.Errorf("--out must name an .html file (got %q)", o.Out)
	}
	return nil
}

// forecastSets are the overrides of two files of features.
func forecastSets(args []string) []string {
	if len(args) == 0 {
		return nil
	}
	return []string{"model.system=align", "data.kind=pairs", "data.root=.", "data.pairs.val_samples=0",
		"data.pairs.test_samples=0", config.Override("data.pairs.image", args[0]),
		config.Override("data.pairs.text", args[1])}
}

// printForecast writes a forecast for a person.
func printForecast(w io.Writer, f run.Forecasted) error {
	fmt.Fprintf(w, "%s and %s: %s", f.Image, f.Text, words.Count(f.Pairs, "pair"))
	if f.Looked < f.Pairs {
		fmt.Fprintf(w, ", of which %s were looked at, evenly spaced", words.Thousands(f.Looked))
	}
	fmt.Fprint(w, "\n\n")
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "\tpairs\tshuffled\tdeviation\tshare of shuffles that reach it")
	for _, m := range f.Measures() {
		fmt.Fprintf(tw, "%s\t%.3f\t%.3f\t%.3f\t%.2f\n", m.Name, m.Value, m.Null, m.Deviation, m.P)
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\n%s: %s\n", f.Likeness, f.Advice)
	printCautions(w, f.Notes)
	if f.Path != "" {
		fmt.Fprintf(w, "page: %s\n", f.Path)
	}
	return err
}
