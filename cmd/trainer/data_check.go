package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"

	"github.com/spf13/cobra"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/account"
	"github.com/geoalign/geoalign/data/source"
	"github.com/geoalign/geoalign/internal/files"
	"github.com/geoalign/geoalign/internal/words"
	"github.com/geoalign/geoalign/run/setup"
	"github.com/geoalign/geoalign/tasks/sentencepairs"
)

func newCheckCommand() *cobra.Command {
	var flags configFlags
	var out outputFlags
	var o checkOptions
	c := &cobra.Command{
		Use:   "check",
		Short: "Find missing and damaged images, duplicates, leaks and long captions",
		Long: `check opens every image and reads every caption of each split. It reports missing and damaged
images, images without a caption, duplicates, images in two splits, and captions that will be
truncated. It exits with 1 when samples are lost or splits overlap.

Other kinds of data are checked by what they hold: regions for images that cannot be used; stored
features (pairs) for rows with NaN, infinity or zeros, and rows in two splits; sentences and
sentence_pairs for empty, unreadable, unlabelled or truncated rows, and rows in two splits.

--write FILE.csv writes the readable images of one --split with their captions and ids, for
data.kind = "csv" with data.csv.id = "image_id".`,
		Example: `  trainer data check --config configs/flickr8k.toml --set data.root=/data/flickr8k
  trainer data check --config my.toml --split val --examples 20
  trainer data check --config my.toml --captions-only --json
  trainer data check --config my.toml --split train --write clean.csv`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if o.examples < 1 {
				return usageError{fmt.Errorf("--examples must be > 0 (got %d)", o.examples)}
			}
			if o.write != "" && (o.captionsOnly || !slices.Contains(source.Splits, o.split)) {
				return usageError{errors.New(
					"--write is of one split whose images are opened: name it with --split, without --captions-only")}
			}
			cfg, err := flags.loadToUse(c)
			if err != nil {
				return err
			}
			if err := convertData(c, cfg, out.quiet || out.json); err != nil {
				return err
			}
			r, err := shown(c, out, func(ctx context.Context, progress func(phase string, done, of int)) (*checkReport,
				error) {
				return checkData(ctx, cfg, o, progress)
			})
			if err != nil {
				return err
			}
			if out.json {
				err = printJSON(c.OutOrStdout(), r)
			} else {
				r.print(c.OutOrStdout())
			}
			if err == nil && !r.OK && o.write == "" {
				err = errGrave
			}
			return err
		},
	}
	flags.add(c)
	out.add(c)
	c.Flags().StringVar(&o.split, "split", "all", "train, val, test or all")
	c.Flags().BoolVar(&o.captionsOnly, "captions-only", false, "do not open the images")
	c.Flags().StringVar(&o.write, "write", "",
		"`file` to write a table of usable images and captions to; then what is left out is not a failure")
	c.Flags().IntVar(&o.examples, "examples", 5, "examples shown of each finding")
	return c
}

var errGrave = errors.New("the data needs attention: see the findings that are marked")

type checkOptions struct {
	split        string
	captionsOnly bool
	examples     int
	write        string // table of the images that can be used; empty: none
}

// checkReport is what data check reports.
type checkReport struct {
	OK     bool          `json:"ok"` // nothing grave was found
	Splits []splitReport `json:"splits"`

	Table   string `json:"table,omitempty"`   // that was written
	Written int    `json:"written,omitempty"` // images in it
}

type splitReport struct {
	Split    string         `json:"split"`
	Images   int            `json:"images"`
	Pairs    int            `json:"pairs,omitempty"` // of stored features, which have no images
	Findings []data.Finding `json:"findings"`

	Inputs *account.Account `json:"inputs,omitempty"` // what became of the inputs
}

// checkData checks each split, and each pair of splits for common images.
func checkData(ctx context.Context, cfg config.Config, o checkOptions,
	progress func(phase string, done, of int)) (*checkReport, error) {
	if o.write != "" && (cfg.Data.Kind == storedPairs || cfg.Data.Kind == sentencepairs.Name) {
		return nil, usageError{fmt.Errorf(
			"--write is of images with captions, which data.kind %q lacks", cfg.Data.Kind)}
	}
	if cfg.Data.Kind == storedPairs {
		return checkPairs(ctx, cfg, o, progress)
	}
	if cfg.Data.Kind == sentencepairs.Name {
		return checkSentences(ctx, cfg, o, progress)
	}
	splits, err := openSplits(ctx, cfg, o.split, source.Options{Progress: progress})
	if err != nil {
		return nil, err
	}
	tok, err := setup.Tokenizer(ctx, cfg, nil, progress)
	if err != nil {
		return nil, err
	}
	workers := cfg.Data.Workers
	if workers == 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	r := &checkReport{OK: true}
	for i, s := range splits {
		others := map[string]data.Dataset{}
		if !cfg.Data.Drawn() { // scenes have no files; their splits are disjoint by construction
			for _, later := range splits[i+1:] {
				others[later.name] = later.ds
			}
		}
		bad := map[int]bool{}
		found, err := data.Check(ctx, s.ds, data.CheckConfig{
			Bad:       func(i int) { bad[i] = true },
			Tokenizer: tok,
			MaxWords:  cfg.Data.MaxWords,
			Clean:     cfg.Data.Clean,
			Tokens:    cfg.Data.Tokens,
			Images:    !o.captionsOnly,
			Others:    others,
			Workers:   workers,
			Examples:  o.examples,
			Progress:  func(done, of int) { progress(s.name, done, of) },
		})
		if err != nil {
			return nil, err
		}
		for _, f := range found {
			r.OK = r.OK && !f.Grave()
		}
		r.Splits = append(r.Splits, splitReport{Split: s.name, Images: s.ds.Len(),
			Findings: append([]data.Finding{}, found...), Inputs: account.Of(s.ds)})
		if o.write != "" {
			if r.Written, err = writeClean(o.write, s.ds, cfg.Data.Root, bad); err != nil {
				return nil, err
			}
			r.Table = o.write
		}
	}
	return r, nil
}

// writeClean writes a table of the images that are not bad, as a whole or not at all, and returns their number.
func writeClean(path string, ds data.Dataset, root string, bad map[int]bool) (n int, err error) {
	err = files.ReplaceFrom(path, func(w io.Writer) error {
		n, err = data.WriteCSV(w, ds, root, func(i int) bool { return !bad[i] })
		return err
	})
	if errors.Is(err, data.ErrNoFiles) {
		err = usageError{fmt.Errorf("--write: %w", err)}
	}
	return n, err
}

// print writes the findings for a person.
func (r *checkReport) print(w io.Writer) {
	for _, s := range r.Splits {
		size := words.Count(s.Images, "image")
		if s.Pairs > 0 {
			size = words.Count(s.Pairs, "pair")
		}
		fmt.Fprintf(w, "%s: %s, %s\n", s.Split, size, words.Count(len(s.Findings), "finding"))
		if s.Inputs != nil {
			fmt.Fprintf(w, "  inputs: %s\n", s.Inputs)
		}
		for _, f := range s.Findings {
			mark := " "
			if f.Grave() {
				mark = "!"
			}
			fmt.Fprintf(w, "%s %s: %s; %s\n", mark, f.Kind, words.Thousands(f.Count), f.Hint)
			for _, e := range f.Examples {
				fmt.Fprintf(w, "    %s\n", words.Inline(e))
			}
			if more := f.Count - len(f.Examples); more > 0 && len(f.Examples) > 0 {
				fmt.Fprintf(w, "    and %s more\n", words.Thousands(more))
			}
		}
	}
	if r.Table != "" {
		fmt.Fprintf(w, "%s: %s that can be read, for data.kind = \"csv\" with data.csv.id = %q\n", r.Table,
			words.Count(r.Written, "image"), data.CSVID)
	}
}
