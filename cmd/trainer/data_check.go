package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/source"
	"github.com/geoalign/geoalign/internal/words"
	"github.com/geoalign/geoalign/run"
)

func newCheckCommand() *cobra.Command {
	var flags configFlags
	var out outputFlags
	var o checkOptions
	c := &cobra.Command{
		Use:   "check",
		Short: "Look for missing and damaged images, duplicates, leaks and captions too long",
		Long: `check opens every image and reads every caption of each split. It reports missing and
damaged images, images without a caption, duplicates, images that are in two splits, and
captions that are too long. Regions of images (data.kind = "regions") take the place of
pictures: it reads every image and reports those whose regions cannot be used. Of stored
features (data.kind = "pairs") it reads every row: it reports rows that are not finite or
zero, and image rows that are in two splits. Of sentences (data.kind = "sentences") it reports
rows that are empty or cannot be read, sentences that are cut, and those that are in two
splits. Of pairs of sentences (data.kind = "sentence_pairs") it reports rows without a label
or a sentence, those that cannot be read, sentences that are cut, and pairs that are in two
splits. It exits with 1 when samples are lost or splits overlap.`,
		Example: `  trainer data check --config configs/flickr8k.toml --set data.root=/data/flickr8k
  trainer data check --config my.toml --split val --examples 20
  trainer data check --config my.toml --captions-only --json`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if o.examples < 1 {
				return usageError{fmt.Errorf("--examples must be > 0 (got %d)", o.examples)}
			}
			cfg, err := flags.loadData(c)
			if err != nil {
				return err
			}
			if err := convert(c, cfg, out.quiet || out.json); err != nil {
				return err
			}
			r, err := shown(c, out, func(ctx context.Context, progress func(phase string, done, of int)) (*checkReport, error) {
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
			if err == nil && !r.OK {
				err = errGrave
			}
			return err
		},
	}
	flags.add(c)
	out.add(c)
	c.Flags().StringVar(&o.split, "split", "all", "train, val, test or all")
	c.Flags().BoolVar(&o.captionsOnly, "captions-only", false, "do not open the images")
	c.Flags().IntVar(&o.examples, "examples", 5, "examples shown of each finding")
	return c
}

var errGrave = errors.New("the data needs attention: see the findings that are marked")

type checkOptions struct {
	split        string
	captionsOnly bool
	examples     int
}

// checkReport is what data check reports.
type checkReport struct {
	OK     bool          `json:"ok"` // nothing grave was found
	Splits []splitReport `json:"splits"`
}

type splitReport struct {
	Split    string         `json:"split"`
	Images   int            `json:"images"`
	Pairs    int            `json:"pairs,omitempty"` // of stored features, which have no images
	Findings []data.Finding `json:"findings"`
}

// checkData checks each split, and each pair of splits for common images.
func checkData(ctx context.Context, cfg config.Config, o checkOptions, progress func(phase string, done, of int)) (*checkReport, error) {
	if cfg.Data.Kind == storedPairs {
		return checkPairs(ctx, cfg, o, progress)
	}
	if cfg.Data.Kind == config.SentencePairsKind {
		return checkSentences(ctx, cfg, o, progress)
	}
	splits, err := openSplits(ctx, cfg, o.split, source.Options{Progress: progress})
	if err != nil {
		return nil, err
	}
	tok, err := run.OpenTokenizer(ctx, cfg, nil, progress)
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
		found, err := data.Check(ctx, s.ds, data.CheckConfig{
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
		r.Splits = append(r.Splits, splitReport{Split: s.name, Images: s.ds.Len(), Findings: append([]data.Finding{}, found...)})
	}
	return r, nil
}

// print writes the findings for a person.
func (r *checkReport) print(w io.Writer) {
	for _, s := range r.Splits {
		size := words.Count(s.Images, "image")
		if s.Pairs > 0 {
			size = words.Count(s.Pairs, "pair")
		}
		fmt.Fprintf(w, "%s: %s, %s\n", s.Split, size, words.Count(len(s.Findings), "finding"))
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
}
