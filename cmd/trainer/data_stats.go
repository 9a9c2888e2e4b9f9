package main

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/account"
	"github.com/geoalign/geoalign/data/regions"
	"github.com/geoalign/geoalign/data/source"
	"github.com/geoalign/geoalign/internal/words"
	"github.com/geoalign/geoalign/run"
	"github.com/geoalign/geoalign/run/setup"
	"github.com/geoalign/geoalign/tasks/sentencepairs"
)

func newStatsCommand() *cobra.Command {
	var flags configFlags
	var out outputFlags
	var split string
	c := &cobra.Command{
		Use:   "stats",
		Short: "Count images, captions, words and tokens of each split",
		Long: `stats counts images, captions, words and tokens of each split, without opening images. The token
lengths show what data.tokens should be: longer captions are truncated. For stored features
(data.kind = "pairs") it shows widths and norms, for regions their width and their number in 1,000
images, for sentence_pairs the classes or scores.`,
		Example: `  trainer data stats --config configs/flickr8k.toml --set data.root=/data/flickr8k
  trainer data stats --config my.toml --split train --json`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, err := flags.loadToUse(c)
			if err != nil {
				return err
			}
			if err := convertData(c, cfg, out.quiet || out.json); err != nil {
				return err
			}
			if cfg.Data.Kind == storedPairs {
				r, err := untilCancelled(c.Context(),
					func() (*pairsReport, error) { return statisticsOfPairs(c.Context(), cfg, split) })
				if err != nil {
					return err
				}
				if out.json {
					return printJSON(c.OutOrStdout(), r)
				}
				return r.print(c.OutOrStdout())
			}
			if cfg.Data.Kind == sentencepairs.Name {
				r, err := shown(c, out, func(ctx context.Context,
					progress func(phase string, done, of int)) (*sentencesReport, error) {
					return statisticsOfSentences(ctx, cfg, split, progress)
				})
				if err != nil {
					return err
				}
				if out.json {
					return printJSON(c.OutOrStdout(), r)
				}
				return r.print(c.OutOrStdout())
			}
			r, err := shown(c, out, func(ctx context.Context, progress func(phase string, done, of int)) (*statsReport,
				error) {
				return statistics(ctx, cfg, split, progress)
			})
			if err != nil {
				return err
			}
			if out.json {
				return printJSON(c.OutOrStdout(), r)
			}
			return r.print(c.OutOrStdout())
		},
	}
	flags.add(c)
	out.add(c)
	c.Flags().StringVar(&split, "split", "all", "train, val, test or all")
	return c
}

// statsReport is what data stats reports.
type statsReport struct {
	Kind       string            `json:"kind"`
	Vocabulary int               `json:"vocabulary"` // tokens of the tokenizer
	Tokenizer  run.TokenizerInfo `json:"tokenizer"`
	Tokens     int               `json:"tokens"` // data.tokens
	Splits     []splitStats      `json:"splits"`
}

type splitStats struct {
	Split string `json:"split"`
	data.Stats
	// of tables with ids, and for model.system = "identities"
	Identities *data.IdentityStats `json:"identities,omitempty"`
	Regions    *regions.Stats      `json:"regions,omitempty"` // of data.kind = "regions"
	Classes    int                 `json:"classes"`           // of data with labels
	Cut        int                 `json:"captions_cut"`      // captions with more than data.tokens tokens
	Inputs     *account.Account    `json:"inputs,omitempty"`  // what became of the inputs
}

func statistics(ctx context.Context, cfg config.Config, split string,
	progress func(phase string, done, of int)) (*statsReport, error) {
	splits, err := openSplits(ctx, cfg, split, source.Options{Progress: progress})
	if err != nil {
		return nil, err
	}
	tok, err := setup.Tokenizer(ctx, cfg, nil, progress)
	if err != nil {
		return nil, err
	}
	r := &statsReport{Kind: cfg.Data.Kind, Vocabulary: tok.Size(), Tokenizer: run.DescribeTokenizer(tok),
		Tokens: cfg.Data.Tokens}
	for _, s := range splits {
		st := splitStats{Split: s.name, Stats: data.NewStats(s.ds, tok, cfg.Data.Clean), Inputs: account.Of(s.ds)}
		if l, ok := s.ds.(data.Labelled); ok {
			names, _ := l.Labels()
			st.Classes = len(names)
		}
		if cfg.Has(section.Identities) || cfg.Data.Kind == "csv" && cfg.Data.CSV.ID != "" {
			found := data.NewIdentityStats(s.ds)
			st.Identities = &found
		}
		if c, ok := s.ds.(data.Columned); ok && len(c.ImageColumns()) > 0 {
			found, err := regions.NewStats(ctx, c, regionsLooked)
			if err != nil {
				return nil, err
			}
			st.Regions = &found
		}
		for n, captions := range st.Histogram {
			if n > cfg.Data.Tokens {
				st.Cut += captions
			}
		}
		r.Splits = append(r.Splits, st)
	}
	return r, nil
}

// regionsLooked is the number of images whose regions are counted: their features have to be read.
const regionsLooked = 1000

// print writes the report as a table, a column per split.
func (r *statsReport) print(w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(name string, cell func(s splitStats) string) {
		fmt.Fprint(tw, name)
		for _, s := range r.Splits {
			fmt.Fprint(tw, "\t", cell(s))
		}
		fmt.Fprintln(tw)
	}
	lengths := func(q data.Quantiles) string {
		return fmt.Sprintf("%d / %d / %d / %d", q.Min, q.P50, q.P95, q.Max)
	}
	row(r.Kind, func(s splitStats) string { return s.Split })
	row("images", func(s splitStats) string { return words.Thousands(s.Images) })
	if len(r.Splits) > 0 && r.Splits[0].Classes > 0 {
		row("classes", func(s splitStats) string { return words.Thousands(s.Classes) })
	}
	if len(r.Splits) > 0 && r.Splits[0].Identities != nil {
		row("identities", func(s splitStats) string { return words.Thousands(s.Identities.Identities) })
		row("images per identity (min/p50/p95/max)",
			func(s splitStats) string { return lengths(s.Identities.PerIdentity) })
		row("cameras", func(s splitStats) string { return words.Thousands(s.Identities.Cameras) })
		row("queries, gallery", func(s splitStats) string {
			return words.Thousands(s.Identities.Queries) + ", " + words.Thousands(s.Identities.Gallery)
		})
		row("queries without a match", func(s splitStats) string { return words.Thousands(s.Identities.Unmatched) })
	}
	if len(r.Splits) > 0 && r.Splits[0].Regions != nil {
		row("regions of an image, min / median / 95% / max",
			func(s splitStats) string { return lengths(s.Regions.Number) })
		row("most regions x features", func(s splitStats) string {
			return fmt.Sprintf("%d x %d", s.Regions.Most,
				s.Regions.Width)
		})
		row("boxes", func(s splitStats) string { return map[bool]string{true: "yes", false: "no"}[s.Regions.Boxed] })
	}
	row("captions", func(s splitStats) string { return words.Thousands(s.Captions) })
	row("captions of an image, min / median / 95% / max", func(s splitStats) string { return lengths(s.PerImage) })
	row("different words", func(s splitStats) string { return words.Thousands(s.Distinct) })
	row("words of a caption", func(s splitStats) string { return lengths(s.WordLengths) })
	row("tokens of a caption", func(s splitStats) string { return lengths(s.TokenLengths) })
	row("unknown tokens", func(s splitStats) string { return words.Thousands(s.Unknown) })
	row("different words with unknown tokens",
		func(s splitStats) string { return words.Thousands(len(s.UnknownWords)) })
	row(fmt.Sprintf("captions cut at data.tokens = %d", r.Tokens), func(s splitStats) string {
		return fmt.Sprintf("%.2f%%", 100*float64(s.Cut)/float64(max(s.Captions, 1)))
	})
	if err := tw.Flush(); err != nil {
		return err
	}
	for _, s := range r.Splits {
		if s.Inputs != nil {
			fmt.Fprintf(w, "inputs of %s: %s\n", s.Split, s.Inputs)
		}
	}
	_, err := fmt.Fprintf(w, "tokenizer: %s\n", r.Tokenizer)
	return err
}
