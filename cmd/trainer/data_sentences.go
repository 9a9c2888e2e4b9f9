package main

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/sentencepairs"
	"github.com/geoalign/geoalign/data/source"
	"github.com/geoalign/geoalign/internal/words"
	"github.com/geoalign/geoalign/run/setup"
)

// sentenceSplits opens the splits of sentence pairs that are asked for, and how their sentences are measured.
func sentenceSplits(ctx context.Context, cfg config.Config, split string,
	progress func(phase string, done, of int)) (names []string, sets map[string]*sentencepairs.Set,
	m sentencepairs.Measure, err error) {
	if names, err = finiteSplits(cfg, split); err != nil {
		return nil, nil, m, err
	}
	if len(names) == 0 {
		return nil, nil, m, config.Errors{{Path: "data.sentence_pairs.train_files",
			Value: cfg.Data.SentencePairs.TrainFiles, Msg: "must name at least one file",
			Hint: "or name val_files or test_files"}}
	}
	sets = map[string]*sentencepairs.Set{}
	for _, name := range names {
		if sets[name], err = source.OpenSentencePairs(cfg.Source(), name); err != nil {
			return nil, nil, m, err
		}
	}
	m = sentencepairs.Measure{Clean: cfg.Data.Clean, MaxWords: cfg.Data.MaxWords, Tokens: cfg.Data.Tokens}
	// else there is nothing to learn a vocabulary from
	if cfg.Data.Vocab != "" || len(cfg.Data.SentencePairs.TrainFiles) > 0 {
		tok, err := setup.Tokenizer(ctx, cfg, nil, progress)
		if err != nil {
			return nil, nil, m, err
		}
		m.Tokenizer = tok
	}
	return names, sets, m, nil
}

// checkSentences is checkData of sentence pairs.
func checkSentences(ctx context.Context, cfg config.Config, o checkOptions,
	progress func(phase string, done, of int)) (*checkReport, error) {
	names, sets, m, err := sentenceSplits(ctx, cfg, o.split, progress)
	if err != nil {
		return nil, err
	}
	r := &checkReport{OK: true}
	for i, name := range names {
		others := map[string]*sentencepairs.Set{}
		for _, later := range names[i+1:] {
			others[later] = sets[later]
		}
		found := sets[name].Check(m, others, o.examples)
		for _, f := range found {
			r.OK = r.OK && !f.Grave()
		}
		r.Splits = append(r.Splits, splitReport{Split: name, Pairs: len(sets[name].Pairs),
			Findings: append([]data.Finding{}, found...), Inputs: sets[name].Account()})
	}
	return r, nil
}

// sentencesReport is what data stats reports of sentence pairs.
type sentencesReport struct {
	Kind   string           `json:"kind"`
	Task   string           `json:"task"`
	Tokens int              `json:"tokens"` // data.tokens
	Splits []sentencesStats `json:"splits"`
}

type sentencesStats struct {
	Split string `json:"split"`
	sentencepairs.Stats
}

// statisticsOfSentences is statistics of sentence pairs.
func statisticsOfSentences(ctx context.Context, cfg config.Config, split string,
	progress func(phase string, done, of int)) (*sentencesReport, error) {
	names, sets, m, err := sentenceSplits(ctx, cfg, split, progress)
	if err != nil {
		return nil, err
	}
	r := &sentencesReport{Kind: cfg.Data.Kind, Task: cfg.Data.SentencePairs.Task, Tokens: cfg.Data.Tokens}
	for _, name := range names {
		r.Splits = append(r.Splits, sentencesStats{name, sets[name].Stats(m)})
	}
	return r, nil
}

// print writes the report as a table, a column per split.
func (r *sentencesReport) print(w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(name string, cell func(s sentencesStats) string) {
		fmt.Fprint(tw, name)
		for _, s := range r.Splits {
			fmt.Fprint(tw, "\t", cell(s))
		}
		fmt.Fprintln(tw)
	}
	lengths := func(q data.Quantiles) string { return fmt.Sprintf("%d / %d / %d / %d", q.Min, q.P50, q.P95, q.Max) }
	row(r.Kind+", "+r.Task, func(s sentencesStats) string { return s.Split })
	row("pairs", func(s sentencesStats) string { return words.Thousands(s.Pairs) })
	for k, class := range r.Splits[0].Classes {
		row("  of "+class.Class, func(s sentencesStats) string { return words.Thousands(s.Classes[k].Pairs) })
	}
	if r.Splits[0].Scores != nil {
		row("scores, min / mean / max", func(s sentencesStats) string {
			return fmt.Sprintf("%.3g / %.3g / %.3g", s.Scores.Min, s.Scores.Mean, s.Scores.Max)
		})
	}
	row("left out: unlabelled, empty, bad", func(s sentencesStats) string {
		return fmt.Sprintf("%s, %s, %s", words.Thousands(s.Counts.Unlabelled), words.Thousands(s.Counts.Empty),
			words.Thousands(s.Counts.Bad))
	})
	row("different sentences", func(s sentencesStats) string { return words.Thousands(s.Sentences) })
	row("different words", func(s sentencesStats) string { return words.Thousands(s.Distinct) })
	row("words of a sentence, min / median / 95% / max",
		func(s sentencesStats) string { return lengths(s.WordLengths) })
	row("tokens of a sentence", func(s sentencesStats) string { return lengths(s.TokenLengths) })
	row("unknown tokens", func(s sentencesStats) string { return words.Thousands(s.Unknown) })
	row(fmt.Sprintf("sentences cut at data.max_words or data.tokens = %d", r.Tokens), func(s sentencesStats) string {
		return fmt.Sprintf("%.2f%%", 100*float64(s.Cut)/float64(max(s.Sentences, 1)))
	})
	return tw.Flush()
}

// sentenceTable prints the first n pairs of a split of sentence pairs.
func sentenceTable(c *cobra.Command, cfg config.Config, split string, n int, asJSON bool) error {
	set, err := source.OpenSentencePairs(cfg.Source(), split)
	if err != nil {
		return err
	}
	type pair struct {
		A     string `json:"a"`
		B     string `json:"b"`
		Label any    `json:"label"`
	}
	var list []pair
	for _, p := range set.Pairs[:min(n, len(set.Pairs))] {
		x := pair{A: p.A, B: p.B, Label: p.Score}
		if !set.Task.Scored() {
			x.Label = set.Task.Classes[p.Label]
		}
		list = append(list, x)
	}
	if asJSON {
		return printJSON(c.OutOrStdout(), map[string]any{"split": split, "task": set.Task.Name, "pairs": list})
	}
	t := tabwriter.NewWriter(c.OutOrStdout(), 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "label\tfirst sentence\tsecond sentence")
	for _, x := range list {
		fmt.Fprintf(t, "%v\t%s\t%s\n", x.Label, words.Shown(x.A), words.Shown(x.B))
	}
	return t.Flush()
}
