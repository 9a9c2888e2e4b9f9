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
		Use:   "explain",
		Short: "Show what the score of an image and a text rests on, by patch and by word",
		Long: `explain draws what the score of an image and a text rests on, and writes pictures and one
page (explain.html, which needs nothing beside it) to the folder --out:

  the score of the pair   heat over the patches and the words that it rests on, by Grad-CAM: the
                          gradient of the score to each token, times the token
  class tokens, spheres   the same for the score of each, with model.head.topology Multi or Ob
  the match head          of systems with fusion layers: the patches that each word looks at,
                          by attention times its gradient

Of systems of images alone the score is that of two images: --with takes the place of --text.
Of a model of statements about two pictures (data.kind "nlvr") it is the logit of the class that
the model tells, for --image, --with and --text or a statement of --split, and both pictures are
shown with the patches that the words look at.
Systems of stored features have no patches and no words, and are refused.

With --row the image is a row of the split --split, with its first text or --text. That is the
way to explain a model of regions: boxes of the regions are drawn over the picture of the image
where the data has both, else over an empty canvas, or as a numbered row. A model that compares
tokens (model.interaction) shows what its score is a sum of: which regions or patches each word
looks at, which words they look at, and a table of words by regions with the terms that add up
to the score.

--block, --layer and --fusion say where in the image tower, the text tower and the fusion
layers, counted from 0; the last block, the last layer and the middle of the fusion layers
hold without them. --formula says how gradient and token make the heat of a patch: their
product where it is above 0 in a channel (channels), where its sum over the channels is
(elementwise: sharper, and dark where a score is at its largest), or with the mean gradient of
all patches (gradcam, that of convolutions). Of an interaction the terms that it adds up are
shown (terms) unless another formula is asked for, or its kind does not say what they are.

With --split alone it explains right pairs of a split and writes
contributions.html: which class tokens, patches, words and places of a text add how much to
their scores.

A map shows what moves the score to first order. It is not a proof of what the model knows.
docs/explain.md has the formulas and how well maps find what a text names.`,
		Example: `  trainer explain --checkpoint runs/quickstart --image scene.png --text "a big red circle" --out why
  trainer explain --checkpoint runs/clip --image dog.jpg --text "a dog on the beach" --tokens 4
  trainer explain --checkpoint runs/gssf-scan --split test --row 12
  trainer explain --checkpoint runs/moco --image a.jpg --with b.jpg
  trainer explain --checkpoint runs/nlvr --split val --row 3
  trainer explain --checkpoint runs/quickstart --split val --pairs 500
  trainer explain --checkpoint runs/flickr8k --image dog.jpg --text "a dog" --block 8 --json`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error { return explainRun(c, &f) },
	}
	f.config.add(c)
	overCheckpoint(c)
	f.output.add(c)
	c.Flags().StringVar(&f.checkpoint, "checkpoint", "", "run or step `folder`")
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
		return usageError{errors.New("explain needs --checkpoint: a run or step folder")}
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
