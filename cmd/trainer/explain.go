package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	heat "github.com/geoalign/geoalign/explain"
	"github.com/geoalign/geoalign/internal/words"
	"github.com/geoalign/geoalign/run"
	"github.com/geoalign/geoalign/run/explain"
)

// explainFlags are the flags of explain.
type explainFlags struct {
	config configFlags
	output outputFlags

	checkpoint, out, split string
	block, layer, fusion   int
	pairs, row             int
	options                explain.Options
}

func newExplainCommand() *cobra.Command {
	var f explainFlags
	c := &cobra.Command{
		Use:   "explain RUN",
		Short: "Show what the score of an image and a text rests on, by patch and by word",
		Long: `explain draws what the score of an image and a text rests on. It writes pictures and one
self-contained page, explain.html, to the folder --out:

  the score                heat over patches and words by Grad-CAM: the gradient of the score with
                           respect to each token, times the token
  class tokens, spheres    the same for the score of each (model.head.topology Multi or Ob)
  the matching head        in systems with fusion layers: the patches each word looks at, by
                           attention times its gradient

For image-only systems the score is that of two images: --with takes the place of --text. For
statements about two pictures (data.kind "nlvr") it is the logit of the predicted class, for
--image, --with and --text or a statement of --split. Systems over stored features have no patches
or words and are refused.

--row N explains row N of --split, with its first text or --text. This is how models of regions
are explained: boxes are drawn over the picture if the data has both, else over an empty canvas.
Models that compare tokens (model.interaction) also show the terms that add up to the score: what
each word and each region looks at, and a table of words by regions.

--split alone explains matched pairs of a split and writes contributions.html: how much each class
token, patch, word and position adds to their scores.

--block, --layer and --fusion choose where to look in the image tower, the text tower and the
fusion layers, counted from 0. --formula chooses how gradient and token combine: their product
where positive per channel (channels), or where its sum is (elementwise: sharper, but dark where a
score is at its maximum), or with the mean gradient of all patches (gradcam). For interactions the
default is the terms of the sum (terms).

A map shows what moves the score to first order. It does not prove what the model knows.
docs/explain.md has the formulas, and how well maps find what a text names.`,
		Example: `  trainer explain runs/quickstart --image scene.png --text "a small red star and a big blue ring" --out why
  trainer explain runs/clip --image dog.jpg --text "a dog on the beach" --tokens 4
  trainer explain runs/gssf-scan --split test --row 12
  trainer explain runs/moco --image a.jpg --with b.jpg
  trainer explain runs/nlvr --split val --row 3
  trainer explain runs/quickstart --split val --pairs 500
  trainer explain runs/flickr8k --image dog.jpg --text "a dog" --block 8 --json`,
		RunE: func(c *cobra.Command, _ []string) error { return explainRun(c, &f) },
	}
	f.config.add(c)
	overCheckpoint(c)
	f.output.add(c)
	takesRun(c, &f.checkpoint)
	c.Flags().StringVar(&f.options.Image, "image", "", "image `file` (JPEG, PNG, WebP, GIF, BMP or TIFF)")
	c.Flags().StringVar(&f.options.Text, "text", "", "text to compare with the image")
	c.Flags().StringVar(&f.options.With, "with", "",
		"second image `file`, for systems of images alone, or the right picture of a statement about two")
	c.Flags().StringVar(&f.out, "out", "", "`folder` to write to (default RUN/explain)")
	c.Flags().StringVar(&f.split, "split", "",
		"explain right pairs of train (of data that ends), val or test; with --row one of them")
	c.Flags().IntVar(&f.row, "row", 0, "explain row `N` of the images of --split (default eval.split), from 0 on")
	c.Flags().IntVar(&f.pairs, "pairs", explain.DefaultPairs, "pairs of --split, at even distances")
	c.Flags().IntVar(&f.block, "block", 0, "block of the image tower, from 0 on (default the last)")
	c.Flags().IntVar(&f.layer, "layer", 0, "layer of the text tower, from 0 on (default the last)")
	c.Flags().IntVar(&f.fusion, "fusion", 0, "fusion layer, from 0 on (default the middle one)")
	c.Flags().StringVar(&f.options.Formula, "formula", "",
		"of patches and regions: channels, elementwise, gradcam, or terms of an interaction (default terms where there are some, else channels)")
	c.Flags().IntVar(&f.options.Tokens, "tokens", explain.DefaultTokens,
		"class tokens or spheres to show, those with the largest scores")
	return c
}

func explainRun(c *cobra.Command, f *explainFlags) error {
	if f.checkpoint == "" {
		return usageError{errors.New("explain needs RUN: a run or step folder")}
	}
	row := c.Flags().Changed("row")
	if row {
		f.options.Row, f.options.Split = &f.row, f.split
		if err := apart(c, "row", "image", "with", "pairs"); err != nil {
			return err
		}
	} else if err := apart(c, "split", "image", "text", "with", "tokens"); err != nil {
		return err
	}
	switch {
	case f.split == "" && f.options.Image == "" && !row:
		return usageError{errors.New("explain needs --image and --text, --row, or --split: what to explain")}
	case f.split == "" && c.Flags().Changed("pairs"):
		return usageError{errors.New("--pairs is of --split: leave it out")}
	case f.split != "" && !row && c.Flags().Changed("fusion"):
		return usageError{errors.New("--fusion is of one pair, and --split explains many without the match head: leave it out")}
	case f.pairs < 1:
		return usageError{fmt.Errorf("--pairs must be at least 1 (got %d)", f.pairs)}
	case f.options.Tokens < 1: // 0 is the default of the library alone
		return usageError{fmt.Errorf("--tokens must be at least 1 (got %d)", f.options.Tokens)}
	}
	for _, x := range []struct {
		name string
		v    *int
		to   **int
	}{{"block", &f.block, &f.options.Block}, {"layer", &f.layer, &f.options.Layer},
		{"fusion", &f.fusion, &f.options.Fusion}} {
		if c.Flags().Changed(x.name) {
			*x.to = x.v
		}
	}
	t, err := run.Open(f.checkpoint, opening(c, &f.config, f.output.quiet))
	if err != nil {
		return err
	}
	defer t.Close()
	out := f.out
	if out == "" {
		out = filepath.Join(t.Folder(), "explain")
	}
	if f.split != "" && !row {
		return f.contributions(c, t, out)
	}
	e, err := explain.Score(c.Context(), t, f.options)
	if err != nil {
		return err
	}
	names, err := e.Write(out)
	if err != nil {
		return err
	}
	if f.output.json {
		return printJSON(c.OutOrStdout(), e.JSON(out, names))
	}
	printExplanation(c.OutOrStdout(), e)
	fmt.Fprintf(c.OutOrStdout(), "\npage: %s, %s beside it\n", filepath.Join(out, names[0]),
		words.Count(len(names)-1, "picture"))
	return nil
}

// contributions explains a split.
func (f *explainFlags) contributions(c *cobra.Command, t *run.Trained, out string) error {
	bar := newPhaseBar(c.ErrOrStderr(), f.output.quiet)
	found, err := explain.WriteContributions(c.Context(), t, f.split, f.pairs, f.options, out, bar.show)
	bar.done()
	if err != nil {
		return err
	}
	if f.output.json {
		return printJSON(c.OutOrStdout(), found)
	}
	fmt.Fprintf(c.OutOrStdout(), "%s of %s: mean score %.3f (%s)\n", words.Count(found.Pairs, "right pair"),
		found.Split, found.Mean, found.Score)
	for _, w := range found.Words[:min(5, len(found.Words))] {
		fmt.Fprintf(c.OutOrStdout(), "  %-16s %4.1f %% of what words add, in %s\n", w.Name, 100*w.Mean,
			words.Count(w.Pairs, "text"))
	}
	fmt.Fprintf(c.OutOrStdout(), "\npage: %s\n", filepath.Join(out, found.Files[0]))
	return nil
}

// printExplanation prints the scores with the words that add most to each.
func printExplanation(w io.Writer, e *explain.Explanation) {
	for _, n := range e.Notes {
		fmt.Fprintf(w, "note: %s\n", n)
	}
	for _, r := range e.Scores {
		fmt.Fprintf(w, "%-10s %8.3f", r.Name, r.Score)
		var parts []string
		for i, s := range heat.Shares(r.Words) {
			if s > 0 {
				parts = append(parts, fmt.Sprintf("%s %.0f %%", r.Words[i].Text, 100*s))
			}
		}
		if len(parts) > 0 {
			fmt.Fprintf(w, "   %s", strings.Join(parts, ", "))
		}
		fmt.Fprintln(w)
	}
	if e.Said != "" {
		fmt.Fprintf(w, "%-10s %8s\n", "answer", e.Said)
	}
	if e.Truth != "" {
		fmt.Fprintf(w, "%-10s %8s\n", "right", e.Truth)
	}
	if e.Regions > 0 {
		fmt.Fprintf(w, "%-19s   %s\n", "regions", strongest(e.Scores[0].Image.Values))
	}
}

// mostPrinted is how many regions are printed.
const mostPrinted = 5

// strongest lists the regions with the largest shares of what is above 0, by their numbers.
func strongest(values []float64) string {
	list := make([]heat.Word, len(values))
	for i, v := range values {
		list[i] = heat.Word{Text: fmt.Sprint(i), Value: v}
	}
	shares := heat.Shares(list)
	order := make([]int, len(values))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(shares[b], shares[a]) })
	var parts []string
	for _, i := range order[:min(mostPrinted, len(order))] {
		if shares[i] > 0 {
			parts = append(parts, fmt.Sprintf("%d %.0f %%", i, 100*shares[i]))
		}
	}
	return strings.Join(parts, ", ")
}
