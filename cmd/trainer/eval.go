package main

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/geoalign/geoalign/internal/words"
	"github.com/geoalign/geoalign/run"
	"github.com/geoalign/geoalign/tasks"
	"github.com/geoalign/geoalign/tasks/retrieval"
)

func newEvalCommand() *cobra.Command {
	var f runFlags
	var path, task, split, out, results string
	var with []string
	var twin bool
	c := &cobra.Command{
		Use:   "eval RUN",
		Short: "Evaluate a checkpoint",
		Long: `eval measures image-text retrieval in both directions: recall at 1, 5 and 10, mean and median
rank. With eval.rerank_top = k the matching head re-scores the k best candidates of every query.
Images with the same id, such as those of a class folder, are positives of each other's texts. A
negative that ties with a positive counts as ranked before it, so a model that gives all pairs
the same score gets 0; --set eval.ties=mean averages over all orders of ties instead. Notes warn
about figures that mean little: at chance, from few images, moved by ties, from collapsed
features.

--task measures something else:

  zeroshot        classify images by prompts that name their classes (eval.zeroshot): accuracy of
                  the first and first five classes, beside chance, and the most frequent confusion
                  of each class. Images are those of the split (data.kind folder or scenes), or of
                  eval.zeroshot.images, a folder with a folder of images per class
  probe           a linear classifier and nearest neighbours on frozen image features, fitted to
                  training images without augmentation; the task of image-only systems.
                  eval.probe_hold = 0.1 chooses the weight decay on a tenth of the training images
  textprobe       the same for pairs of texts with labels (eval.textprobe.train and test)
  sentences       the text tower on sentence pairs without fine-tuning (eval.sentences):
                  correlations on STS, accuracies on MNLI, MRPC and others beside constant answers,
                  and isotropy (docs/sentences.md)
  sentiment       sentiment of utterances by a linear layer, as for CMU-MOSEI (eval.sentiment)
  siblings        each caption searches for the other captions of its image; the task of
                  text-only systems
  sentence_pairs  for a model fine-tuned on sentence pairs, those of the split
  reid            each image searches for others of its identity (docs/reid.md)
  neighbours      over stored features: the mean rank that the five nearest neighbours of a row
                  have after the alignment
  migration       images are rows of an old embedding model, texts rows of a new one: how many of
                  the ten neighbours under the new model the mapped old index finds
  grounding       find what expressions name, by a heat map of the matching head or the cosine
                  (eval.grounding); for any model with patches
  entailment, nlvr, classification, vqa, captioning
                  for models fine-tuned on them (trainer finetune --task): accuracy beside that of
                  the most frequent class, the official accuracy of answers, BLEU and CIDEr.
                  --results FILE writes the answers for the task's evaluation server

--with averages the scores with those of other models, equally weighted, on the split of the
first: an ensemble, for example of a model that attends from text to image and one that attends
from image to text.

--out FILE.html draws confusion matrices, right and wrong examples with their pictures, or, for
--task sentences, pairs in the plane and histograms of their cosines; --json has the matrices too.
--momentum-encoder evaluates the momentum encoder of the run, and of each --with.

Data and model are those of the checkpoint's configuration; --config and --set override it.`,
		Example: `  trainer eval runs/quickstart
  trainer eval runs/flickr8k --split val --set eval.rerank_top=0
  trainer eval runs/coco --set eval.folds=5      the COCO 1K protocol
  trainer eval runs/quickstart --json
  trainer eval runs/quickstart --task zeroshot --set 'eval.zeroshot.templates=["a {}"]'
  trainer eval runs/flickr8k --momentum-encoder
  trainer eval runs/filip --with runs/clip
  trainer eval runs/clip --task zeroshot --set eval.zeroshot.images=/data/imagenet/val \
      --set eval.zeroshot.classes=/data/imagenet/names.txt --set eval.zeroshot.templates_file=/data/prompts.txt
  trainer eval runs/moco --task probe --split test --set eval.probe_hold=0.1 --out probe.html
  trainer eval runs/clip --task textprobe --set eval.textprobe.train=train.tsv --set eval.textprobe.test=dev.tsv
  trainer eval runs/clip --task sentences --set data.root=/data/sentence_pairs \
      --set 'eval.sentences.tasks=["stsb", "sts12", "mrpc"]' --out sentences.html
  trainer eval runs/align --task neighbours
  trainer eval runs/migrate --task migration`,
		RunE: func(c *cobra.Command, _ []string) error {
			if path == "" {
				return usageError{fmt.Errorf("eval needs RUN: a run or step folder")}
			}
			if err := run.CheckTask(task); err != nil {
				return err
			}
			if len(with) > 0 && (out != "" || task != "" && task != retrieval.Name) {
				return usageError{fmt.Errorf("--with averages scores of retrieval: leave out --task and --out")}
			}
			return evalRun(c, &f, path, with, task, split, drawn{out, results}, twin)
		},
	}
	f.config.add(c)
	overCheckpoint(c)
	f.config.addPrompt(c)
	f.output.add(c)
	takesRun(c, &path)
	c.Flags().StringArrayVar(&with, "with", nil,
		"another run or step `folder`, whose scores of pairs are averaged with those of the checkpoint; may be given more than once")
	c.Flags().StringVar(&task, "task", "", "what to evaluate: "+strings.Join(run.EvalTasks(),
		", ")+"; default: that of the system, such as probe of images alone and siblings of texts alone")
	c.Flags().StringVar(&split, "split", "", "train (of data that ends), val or test; default: eval.split")
	c.Flags().StringVar(&out, "out", "",
		"HTML `file` to draw classes and their confusion, right and wrong examples, or pairs of sentences to, of a task that has any")
	c.Flags().StringVar(&results, "results", "",
		"`file` to write the answers of a downstream task to, as its evaluation server reads them")
	addTwin(c, &twin)
	return c
}

// drawn are files that an evaluation writes, empty for none.
type drawn struct{ page, results string }

func evalRun(c *cobra.Command, f *runFlags, path string, with []string, task, split string, out drawn,
	twin bool) error {
	opening := f.opening(c)
	opening.Twin = twin
	t, err := run.Open(path, opening)
	if err != nil {
		return err
	}
	defer t.Close()
	if out.page != "" {
		if err := run.CheckDrawn(t.Config, task); err != nil {
			return err
		}
	}
	if out.results != "" {
		if err := run.CheckResulted(t.Config, task); err != nil {
			return err
		}
	}
	of := run.OfSplit(t.Config, task)
	if split != "" && !of {
		return usageError{fmt.Errorf("the task %s reads files of its own and no split of the data: leave out --split",
			cmp.Or(task, run.DefaultTask(t.Config)))}
	}
	if of {
		split = cmp.Or(split, t.Config.Eval.Split)
	}
	var others []*run.Trained
	for _, folder := range with {
		x, err := run.Open(folder, opening)
		if err != nil {
			return err
		}
		defer x.Close()
		others = append(others, x)
	}
	bar := newPhaseBar(c.ErrOrStderr(), f.output.quiet)
	var scoring scoringTime
	progress := func(phase string, done, total int) {
		scoring.see(phase, done, total)
		bar.show(phase, done, total)
	}
	evaluate := func() (run.Scores, error) { return t.Evaluate(c.Context(), task, split, progress) }
	if len(others) > 0 {
		evaluate = func() (run.Scores, error) { return t.EvaluateWith(c.Context(), others, split, progress) }
	}
	scores, err := evaluate()
	bar.done()
	if err != nil || groupOf(c).Rank() > 0 {
		return err
	}
	if r, ok := scores.(retrieval.Scores); ok && scoring.times > 0 && !f.output.quiet {
		pairs := scoring.times * r.Images * r.Texts
		fmt.Fprintf(c.ErrOrStderr(), "scored %s pairs of an image and a text in %.1f s, %s a second\n",
			words.Thousands(pairs), scoring.took.Seconds(), words.Thousands(int(float64(pairs)/scoring.took.Seconds())))
	}
	var kept error // a file that cannot be written is told at the end: what was found is printed all the same
	if out.results != "" {
		kept = run.WriteResults(out.results, scores)
	}
	if out.page != "" {
		kept = errors.Join(kept, run.DrawScores(c.Context(), out.page, scores, t.Checkpoint.Step, split,
			t.Checkpoint.Path))
	}
	if f.output.json {
		return errors.Join(printJSON(c.OutOrStdout(),
			withLeftOut(withNotes(scores.JSON(split, t.Checkpoint.Path), tasks.Cautions(scores)), t.LeftOut())), kept)
	}
	on := ""
	if split != "" {
		on = " on " + split
	}
	fmt.Fprintf(c.OutOrStdout(), "%s%s: %s, step %d of %s\n\n%s", scores.Task(), on, scores.Size(), t.Checkpoint.Step,
		path, scores.Table())
	printCautions(c.OutOrStdout(), tasks.Cautions(scores))
	return kept
}

// withLeftOut adds "left_out" to an object where it is not 0.
func withLeftOut(object any, n int) any {
	if n == 0 {
		return object
	}
	return withField{object, "left_out", n}
}

// scoringTime is how long models took to score all images with all texts by their tokens.
type scoringTime struct {
	began time.Time
	took  time.Duration
	times int // models
}

func (s *scoringTime) see(phase string, done, total int) {
	switch {
	case phase != retrieval.ScoringPhase:
	case done == 0:
		s.began = time.Now()
	case done == total:
		s.took += time.Since(s.began)
		s.times++
	}
}
