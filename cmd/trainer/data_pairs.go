package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/features"
	"github.com/geoalign/geoalign/data/source"
	"github.com/geoalign/geoalign/internal/words"
)

// storedPairs is the data.kind of stored features, which have no images and captions to
// look at but rows.
const storedPairs = "pairs"

// checkPairs is checkData for stored features.
func checkPairs(ctx context.Context, cfg config.Config, o checkOptions,
	progress func(phase string, done, of int)) (*checkReport, error) {
	names, err := finiteSplits(cfg, o.split)
	if err != nil {
		return nil, err
	}
	p, err := source.OpenPairs(cfg.Source())
	if err != nil {
		return nil, err
	}
	defer p.Close()
	r := &checkReport{OK: true}
	for i, name := range names {
		found, err := p.Check(ctx, name, features.CheckConfig{Others: names[i+1:], Examples: o.examples,
			Progress: func(done, of int) { progress(name, done, of) }})
		if err != nil {
			return nil, err
		}
		list, err := p.Split(name)
		if err != nil {
			return nil, err
		}
		for _, f := range found {
			r.OK = r.OK && !f.Grave()
		}
		r.Splits = append(r.Splits, splitReport{Split: name, Pairs: len(list),
			Findings: append([]data.Finding{}, found...), Inputs: p.Account()})
	}
	return r, nil
}

// pairsReport is what data stats reports of stored features.
type pairsReport struct {
	Kind           string            `json:"kind"`
	Splits         []pairsStats      `json:"splits"`
	UnpairedImages features.Unpaired `json:"unpaired_images"` // that training may see
	UnpairedTexts  features.Unpaired `json:"unpaired_texts"`
}

type pairsStats struct {
	Split string `json:"split"`
	features.Stats
}

// statisticsOfPairs is statistics for stored features.
func statisticsOfPairs(ctx context.Context, cfg config.Config, split string) (*pairsReport, error) {
	names, err := finiteSplits(cfg, split)
	if err != nil {
		return nil, err
	}
	p, err := source.OpenPairs(cfg.Source())
	if err != nil {
		return nil, err
	}
	defer p.Close()
	r := &pairsReport{Kind: cfg.Data.Kind}
	r.UnpairedImages, r.UnpairedTexts = p.Unpaired()
	for _, name := range names {
		s, err := p.Stats(ctx, name)
		if err != nil {
			return nil, err
		}
		r.Splits = append(r.Splits, pairsStats{name, s})
	}
	return r, nil
}

// print writes the report as a table, a column per split.
func (r *pairsReport) print(w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(name string, cell func(s pairsStats) string) {
		fmt.Fprint(tw, name)
		for _, s := range r.Splits {
			fmt.Fprint(tw, "\t", cell(s))
		}
		fmt.Fprintln(tw)
	}
	row(r.Kind, func(s pairsStats) string { return s.Split })
	row("pairs", func(s pairsStats) string { return words.Thousands(s.Pairs) })
	for _, side := range []struct {
		name string
		of   func(s pairsStats) features.SideStats
	}{{"image", func(s pairsStats) features.SideStats { return s.Image }},
		{"text", func(s pairsStats) features.SideStats { return s.Text }}} {
		row(side.name+" rows", func(s pairsStats) string { return words.Thousands(side.of(s).Rows) })
		row(side.name+" features", func(s pairsStats) string {
			return fmt.Sprintf("%d %s", side.of(s).Width,
				side.of(s).Type)
		})
		row(side.name+" norms, min / median / max", func(s pairsStats) string {
			n := side.of(s).Norms
			return fmt.Sprintf("%.4g / %.4g / %.4g", n.Min, n.Median, n.Max)
		})
		row(side.name+" rows that are not finite", func(s pairsStats) string { return words.Thousands(side.of(s).Bad) })
		row(side.name+" rows of zeros", func(s pairsStats) string { return words.Thousands(side.of(s).Zero) })
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	for _, side := range []struct {
		name string
		features.Unpaired
	}{{"images", r.UnpairedImages}, {"texts", r.UnpairedTexts}} {
		if n := side.Main + side.Pool; n > 0 {
			fmt.Fprintf(w, "unpaired %s of training: %s (%s of the file of the pairs, %s of data.pairs.%s_pool)\n",
				side.name, words.Thousands(n), words.Thousands(side.Main), words.Thousands(side.Pool),
				strings.TrimSuffix(side.name, "s"))
		}
	}
	return nil
}
