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
		Use:   "eval",
		Short: "Evaluate a checkpoint",
		Long: `eval measures image-text retrieval of a checkpoint in both directions: recall at 1, 5
and 10, mean and median rank. With eval.rerank_top = k the matching head re-scores the k
best candidates of every query. Images of one id, such as those of a class folder, are
right answers for each other's texts. A wrong candidate that ties with a right one counts
as ranked before it, so a model that gives every pair the same score gets 0; --set
eval.ties=mean takes the mean over all orders of what ties. A note says of figures that they
are not a result: at chance, of few images, moved by ties, of features that are one point.

With --task zeroshot it classifies images by prompts that name their classes: "a photo of a
dog." and others, by the templates of eval.zeroshot.templates. Images and classes are those of
the split (data.kind folder or scenes), or of a folder with a folder of images for each class,
eval.zeroshot.images; eval.zeroshot.classes is a text file with better names than those of the
folders. A class is the mean of its prompts in the shared space, or its score is the mean of
theirs (eval.zeroshot.average). It prints the accuracy of the first and of the first five
classes beside that of guessing, and each class with what it is most often taken for. Of stored
features eval.zeroshot.image and text name files of features.

With --task probe it measures what the frozen image features tell about classes: the accuracy
of a linear classifier on them, fitted to training images without augmentation, and of the vote
of nearest neighbours. The data must have classes. With eval.probe_hold = 0.1 the weight decay
is chosen on a tenth of the training images. It is the task of systems of images alone. --task
textprobe does the same with pairs of texts and their labels, eval.textprobe.train and test,
by |u-v| and u*v of their features.

With --task sentences it evaluates the text tower on tasks of sentence pairs (eval.sentences)
without fine-tuning: Spearman and Pearson of the cosine with the scores of the STS tasks, and
the accuracy by rules on MNLI, MRPC and others, with constant answers beside it, and how
isotropic the sentences are. docs/sentences.md says which files and rules there are. --task
sentiment predicts the sentiment of utterances (eval.sentiment) from their modalities by one
linear layer, as of CMU-MOSEI.

With --task siblings each caption searches for the others of its image: the task of systems of
texts alone. --task sentence_pairs asks a model that was fine-tuned on pairs of sentences about
those of the split, and is its own task.

With --task reid each image searches for others of its identity (docs/reid.md): the task of
systems of identities.

Of systems over stored features --task neighbours measures what the alignment keeps of their
neighbourhoods: the mean rank that the five nearest stored neighbours of a row have after it.
--task migration takes the images for rows of an old embedding model and the texts for
rows of a new one, of the same items: how many of the ten neighbours that an item has by the
new model its query finds in the mapped index of the old one.

With --with the scores of pairs are the mean of those of several models, weights equal: ensembles,
such as one that attends from texts to images and one that does the reverse. All are evaluated on
the split of the first, which must be that of the others.

Tasks that a model was fine-tuned for (trainer finetune --task) are those of such a model:
entailment, nlvr and classification give the accuracy of classes beside that of the commonest
one, vqa the official accuracy of answers, captioning BLEU and CIDEr of what the model writes.
--results FILE writes the answers in the form of the task's evaluation server.

grounding is also a task of any model of images and texts with patches: it finds what
expressions name in pictures, by a heat map of the match head or of the cosine
(eval.grounding), without having seen boxes. A model of scenes looks at scenes.

--out FILE.html draws classes with their confusion matrix, of tasks that a model was fine-tuned for
with right and wrong examples and their pictures, and with --task sentences pairs in the
plane and histograms of their cosines; --json has the matrix too.
--momentum-encoder evaluates the momentum encoder of a run that has one, and of each of --with.

The checkpoint's own configuration says which data and model; --config and --set
override it.`,
		Example: `  trainer eval --checkpoint runs/quickstart
  trainer eval --checkpoint runs/flickr8k --split val --set eval.rerank_top=0
  trainer eval --checkpoint runs/coco --set eval.folds=5      the COCO 1K protocol
  trainer eval --checkpoint runs/quickstart --json
  trainer eval --checkpoint runs/quickstart --task zeroshot --set 'eval.zeroshot.templates=["a {}"]'
  trainer eval --checkpoint runs/flickr8k --momentum-encoder
  trainer eval --checkpoint runs/filip --with runs/clip
  trainer eval --checkpoint runs/clip --task zeroshot --set eval.zeroshot.images=/data/imagenet/val \
      --set eval.zeroshot.classes=/data/imagenet/names.txt --set eval.zeroshot.templates_file=/data/prompts.txt
  trainer eval --checkpoint runs/moco --task probe --split test --set eval.probe_hold=0.1 --out probe.html
  trainer eval --checkpoint runs/clip --task textprobe --set eval.textprobe.train=train.tsv --set eval.textprobe.test=dev.tsv
  trainer eval --checkpoint runs/clip --task sentences --set data.root=/data/sentence_pairs \
      --set 'eval.sentences.tasks=["stsb", "sts12", "mrpc"]' --out sentences.html
  trainer eval --checkpoint runs/align --task neighbours
  trainer eval --checkpoint runs/migrate --task migration`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if path == "" {
				return usageError{fmt.Errorf("eval needs --checkpoint: a run or step folder")}
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
	c.Flags().StringVar(&path, "checkpoint", "", "run or step `folder`")
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
