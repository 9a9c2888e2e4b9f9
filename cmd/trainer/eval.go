package main

import (
	"fmt"
	"io"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data"
)

func newEvalCommand() *cobra.Command {
	var f runFlags
	var path, task, split string
	c := &cobra.Command{
		Use:   "eval",
		Short: "Evaluate a checkpoint",
		Long: `eval measures image-text retrieval of a checkpoint in both directions: recall at 1, 5
and 10, mean and median rank. With eval.rerank_top = k the matching head re-scores the k
best candidates of every query. A wrong candidate that ties with a right one counts as
ranked before it, so a model that gives every pair the same score gets 0.

With --task probe it measures instead what the frozen image features tell about classes:
the accuracy of a linear classifier on them, fitted to training images without
augmentation, and of the vote of nearest neighbours. The data must have classes
(data.kind folder or scenes). It is the task of systems of images alone.

The checkpoint's own configuration says which data and model; --config and --set
override it.`,
		Example: `  trainer eval --checkpoint runs/quickstart
  trainer eval --checkpoint runs/flickr8k --split val --set eval.rerank_top=0
  trainer eval --checkpoint runs/coco --set eval.folds=5      the COCO 1K protocol
  trainer eval --checkpoint runs/quickstart --json
  trainer eval --checkpoint runs/moco --task probe --split test`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if path == "" {
				return usageError{fmt.Errorf("eval needs --checkpoint: a run or step folder")}
			}
			if err := checkTask(task); err != nil {
				return err
			}
			return evalRun(c, &f, path, task, split)
		},
	}
	f.config.add(c)
	f.output.add(c)
	c.Flags().StringVar(&path, "checkpoint", "", "run or step `folder`")
	c.Flags().StringVar(&task, "task", "", "what to evaluate: retrieval or probe; default: probe for systems of images alone, else retrieval")
	c.Flags().StringVar(&split, "split", "", "val or test; default: eval.split")
	return c
}

func evalRun(c *cobra.Command, f *runFlags, path, task, split string) error {
	ck, cfg, err := openCheckpoint(c, f, path)
	if err != nil {
		return err
	}
	defer ck.Close()
	if split == "" {
		split = cfg.Eval.Split
	}
	if task == "" {
		task = defaultTask(cfg)
	}
	engine, err := newEngine(cfg)
	if err != nil {
		return err
	}
	defer engine.Close()
	m, tok, err := openModel(cfg, ck, engine)
	if err != nil {
		return err
	}
	defer m.Close()
	set, err := openEval(cfg, split, f.output.note(c))
	if err != nil {
		return err
	}
	bar := newPhaseBar(c.ErrOrStderr(), f.output.quiet)
	scores, err := evaluate(c.Context(), task, cfg, engine, m, tok, set, bar.show)
	bar.done()
	if err != nil {
		return err
	}
	if f.output.json {
		return printJSON(c.OutOrStdout(), scores.report(split, ck.Path))
	}
	fmt.Fprintf(c.OutOrStdout(), "%s on %s: %s, step %d of %s\n\n%s", task, split, scores.size(), ck.Step, path, scores.table())
	return nil
}

// openEval opens a split for evaluation.
func openEval(cfg config.Config, split string, note io.Writer) (*data.Eval, error) {
	ds, err := openSplit(cfg, split)
	if err != nil {
		return nil, err
	}
	set, err := data.NewEval(ds, data.EvalConfig{ImageSize: cfg.Model.Image.Size, MaxWords: cfg.Data.MaxWords, MaxImages: cfg.Eval.MaxImages})
	if err != nil {
		return nil, err
	}
	if n := cfg.Eval.Folds; n > 1 && set.NumImages()%n != 0 {
		return nil, config.Errors{{Path: "eval.folds", Value: n, Msg: fmt.Sprintf("must divide the %d images of the split", set.NumImages()),
			Hint: "choose a divisor, or the size of the gallery with eval.max_images"}}
	}
	if n := set.Skipped(); n > 0 {
		fmt.Fprintf(note, "%s of %s have no caption and are left out\n", count(n, "image"), split)
	}
	return set, nil
}

// openFinalSet opens the split that a training run evaluates on. It is nil where
// the configuration names no files for it, and where a probe has no classes.
func openFinalSet(cfg config.Config, note io.Writer) (*data.Eval, error) {
	if cfg.Data.Kind == "captions" && len(cfg.Data.Captions.Split(cfg.Eval.Split)) == 0 {
		return nil, nil
	}
	set, err := openEval(cfg, cfg.Eval.Split, note)
	if err != nil || defaultTask(cfg) != taskProbe {
		return set, err
	}
	if _, ok := set.Labels(); !ok {
		fmt.Fprintln(note, "the data has no classes: there is no evaluation")
		return nil, nil
	}
	return set, nil
}

// phaseBar shows the phases of an evaluation on a terminal.
type phaseBar struct {
	out   io.Writer
	phase string
	bar   *progressbar.ProgressBar
}

func newPhaseBar(out io.Writer, quiet bool) *phaseBar {
	if quiet || !isTerminal(out) {
		return &phaseBar{}
	}
	return &phaseBar{out: out}
}

func (b *phaseBar) show(phase string, done, total int) {
	if b.out == nil {
		return
	}
	if phase != b.phase {
		b.done()
		b.phase = phase
		b.bar = progressbar.NewOptions(total, progressbar.OptionSetWriter(b.out), progressbar.OptionSetDescription(phase),
			progressbar.OptionSetWidth(24), progressbar.OptionShowCount(), progressbar.OptionClearOnFinish())
	}
	b.bar.Set(done)
}

func (b *phaseBar) done() {
	if b.bar != nil {
		b.bar.Finish()
		b.bar = nil
	}
}
