package run

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"github.com/geoalign/geoalign/compute"
	"github.com/geoalign/geoalign/compute/parallel"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/source"
	"github.com/geoalign/geoalign/data/tokenizer"
	"github.com/geoalign/geoalign/eval/tasks"
)

// Tasks that a model is evaluated on.
const (
	TaskRetrieval  = "retrieval"
	TaskProbe      = "probe"
	TaskNeighbours = "neighbours" // of stored features: what an alignment keeps of their neighbourhoods
	TaskReID       = "reid"       // of images with identities: what each finds of its identity
	TaskMigration  = "migration"  // of stored features: what an index of the old model gives to queries of the new one
	TaskZeroShot   = "zeroshot"   // classification of images by texts that name their classes, see eval.zeroshot
	TaskSiblings   = "siblings"   // of a text tower: whether a caption finds the other captions of its image
	TaskTextProbe  = "textprobe"  // of a text tower: what it tells about pairs of texts, with eval.textprobe
	TaskSentences  = "sentences"  // of a text tower: tasks of sentence pairs without fine-tuning, with eval.sentences
	TaskSentiment  = "sentiment"  // of utterances: their sentiment from words, audio and vision, with eval.sentiment

	// Tasks that a model is fine-tuned for, each with a loss or data of its own; trainer finetune --task names them too.
	TaskEntailment = config.EntailmentKind // of pictures with sentences that they entail or contradict
	TaskGrounding  = source.GroundingKind  // of pictures with expressions: where what they name lies, by heat maps of pairs
	TaskNLVR       = config.NLVRKind       // of statements about two pictures
	TaskVQA        = source.VQAKind        // questions about pictures
	TaskCaptioning = "captioning"          // captions that a model writes
	// TaskClassification is of images: their classes, by a model that was fine-tuned to tell them.
	TaskClassification = config.ClassificationTask

	TaskSentencePairs = "sentence_pairs" // what a model that was fine-tuned on pairs of sentences says of those of a split
)

// EvalTasks lists them.
var EvalTasks = []string{
	TaskRetrieval, TaskProbe, TaskTextProbe, TaskSentences, TaskSentiment, TaskNeighbours, TaskZeroShot, TaskReID, TaskMigration, TaskSiblings, TaskSentencePairs,
	TaskEntailment,
	TaskGrounding,
	TaskNLVR,
	TaskVQA,
	TaskCaptioning,
	TaskClassification,
}

// CheckTask refuses a task that there is none of; empty is that of the system.
func CheckTask(task string) error {
	for _, t := range EvalTasks {
		if task == t || task == "" {
			return nil
		}
	}
	return &ArgumentError{fmt.Errorf("no task %q: the tasks are %s and %s", task, strings.Join(EvalTasks[:len(EvalTasks)-1], ", "), EvalTasks[len(EvalTasks)-1])}
}

// DefaultTask is the task that a system is evaluated on unless asked otherwise.
func DefaultTask(cfg config.Config) string {
	switch task := cfg.Task(); {
	case task != "":
		return task
	case cfg.Has(section.Identities):
		return TaskReID
	case cfg.Has(section.ImagesAlone):
		return TaskProbe
	case cfg.Has(section.SentencePairs):
		return TaskSentencePairs
	case cfg.Has(section.Sentences) && len(cfg.Eval.Sentences.Tasks) > 0:
		return TaskSentences
	case cfg.Has(section.Sentences):
		return TaskSiblings
	}
	return TaskRetrieval
}

// ReadsSplit says whether a task, empty for that of the system, reads a split of images and texts, or other files alone.
func ReadsSplit(cfg config.Config, task string) bool {
	task = cmp.Or(task, DefaultTask(cfg))
	return OfSplit(cfg, task) && task != TaskSentencePairs && !(cfg.Data.ReadsExamples() && task == cfg.Task())
}

// OfSplit says whether a task, empty for that of the system, is about a split of the data, of examples and pairs of sentences too, and
// not about files of its own.
func OfSplit(cfg config.Config, task string) bool {
	task = cmp.Or(task, DefaultTask(cfg))
	return task != TaskTextProbe && task != TaskSentences && task != TaskSentiment && (task != TaskZeroShot || !cfg.Has(section.Stored) && cfg.Eval.ZeroShot.Images == "")
}

// Evaluation is a model with what it is evaluated on.
type Evaluation struct {
	Task      string // empty: that of the system
	Config    config.Config
	Engine    *compute.Engine
	Model     Model
	Tokenizer *tokenizer.Tokenizer // nil for a system without texts
	Set       *Split               // nil for a task that reads files of its own
	With      []Evaluation         // models whose scores of the same pairs are averaged with this one's, of retrieval
	// Group is the processes that evaluate together, each with the same model and split; nil: this one alone.
	Group parallel.Group
	// Progress is told how much of a phase is done; may be nil.
	Progress func(phase string, done, total int)
	// Say is told what is left out because it cannot be read; nil: nobody is.
	Say func(format string, args ...any)
}

// sharedTasks are those of which several processes share the encoding, and of retrieval scores by tokens and the re-ranking; what
// follows, all compute. The others are run by rank 0 as a whole.
var sharedTasks = []string{TaskRetrieval, TaskProbe, TaskTextProbe, TaskSentences, TaskNeighbours, TaskZeroShot, TaskReID, TaskMigration, TaskSiblings}

// Evaluate runs a task on a split, without rows that cannot be read where data.max_bad_share allows it: these are left out of
// Evaluation.Set for good. It ends early with the error of ctx. Of several processes all call it, and the outcome of rank 0
// counts: others may have none.
func Evaluate(ctx context.Context, e Evaluation) (s Scores, err error) {
	if e.Task == "" {
		e.Task = DefaultTask(e.Config)
	}
	if e.Set == nil {
		e.Set = &Split{}
	}
	t := tolerant{limit: e.Config.Data.MaxBadShare, group: e.Group, say: e.Say, progress: e.Progress}
	for _, x := range append([]Evaluation{e}, e.With...) {
		t.sets = append(t.sets, screened{x.Set, x.Config, x.Model})
	}
	err = t.run(ctx, func() error {
		s, err = evaluateTogether(ctx, e)
		return err
	})
	return s, err
}

// evaluateTogether is evaluate by all processes, which agree on the error.
func evaluateTogether(ctx context.Context, e Evaluation) (s Scores, err error) {
	if e.Group == nil || e.Group.Size() == 1 {
		return evaluate(ctx, e)
	}
	if slices.Contains(sharedTasks, e.Task) {
		s, err = evaluate(ctx, e)
		return s, parallel.Agree(e.Group, err)
	}
	g := e.Group
	e.Group = nil
	err = parallel.Alone(g, func() error {
		s, err = evaluate(ctx, e)
		return err
	})
	return s, err
}

// evaluate runs the task that is named.
func evaluate(ctx context.Context, e Evaluation) (Scores, error) {
	switch e.Task {
	case TaskProbe:
		return e.probe(ctx)
	case TaskTextProbe:
		return e.textProbe(ctx)
	case TaskSentences:
		return e.sentences(ctx)
	case TaskSentiment:
		return e.sentiment(ctx)
	case TaskReID:
		return e.reID(ctx)
	case TaskSiblings:
		return e.siblings(ctx)
	case TaskSentencePairs:
		return e.sentencePairs(ctx)
	case TaskNeighbours:
		return e.neighbours(ctx)
	case TaskZeroShot:
		return e.zeroShot(ctx)
	case TaskMigration:
		return e.migration(ctx)
	case TaskCaptioning:
		return e.captioned(ctx)
	case TaskEntailment:
		return e.classified(ctx)
	case TaskNLVR:
		return e.nlvr(ctx)
	case TaskGrounding:
		return e.grounding(ctx)
	case TaskVQA:
		return e.answered(ctx)
	case TaskClassification:
		return e.classification(ctx)
	}
	if err := CheckTask(e.Task); err != nil {
		return nil, err
	}
	c := e.Config
	if c.Has(section.ImagesAlone) {
		return nil, &ArgumentError{fmt.Errorf("retrieval needs a model of images and texts: model.system %q has no text tower: use --task %s", c.Model.System, TaskProbe)}
	}
	if c.Has(section.Sentences) {
		return nil, noImages(c, TaskRetrieval)
	}
	own, err := e.member()
	if err != nil {
		return nil, err
	}
	var with []tasks.Member
	for _, x := range e.With {
		m, err := x.member()
		if err != nil {
			return nil, err
		}
		with = append(with, m)
	}
	s, err := tasks.Retrieval{
		Member: own, With: with, Matcher: e.Model.Matcher(), TextImage: e.Set.TextImage, ImageID: e.Set.ImageID, BatchSize: c.Eval.BatchSize,
		MeanTies: c.Eval.Ties == config.TiesMean, RerankTop: c.Eval.RerankTop, Folds: c.Eval.Folds, Workers: runtime.GOMAXPROCS(0), Group: e.Group, Progress: e.Progress,
	}.Run(ctx)
	return Retrieval{Scores: s, KeepBy: c.Train.KeepBestBy}, err
}

// encoding says how sides of the model are encoded.
func (e Evaluation) encoding() tasks.Encoding {
	return tasks.Encoding{BatchSize: e.Config.Eval.BatchSize, Workers: runtime.GOMAXPROCS(0), Group: e.Group, Progress: e.Progress}
}

// noImages refuses a task that needs images for a system of texts alone.
func noImages(cfg config.Config, task string) error {
	return &ArgumentError{fmt.Errorf("the task %s needs a model with an image encoder, and model.system %q has none: use --task %s", task, cfg.Model.System, DefaultTask(cfg))}
}

// noWords refuses a task that reads words for a system that does not; nil for one that does.
func (e Evaluation) noWords() error {
	if e.Tokenizer == nil || e.Config.Has(section.ImagesAlone) {
		return &ArgumentError{fmt.Errorf("the task %s needs a model that reads words, which model.system %q does not: use --task %s", e.Task, e.Config.Model.System, DefaultTask(e.Config))}
	}
	return nil
}

// textColumns says how captions become columns, nil for a system without texts.
func textColumns(cfg config.Config, tok *tokenizer.Tokenizer) *data.Texts {
	if tok == nil {
		return nil
	}
	return &data.Texts{Tokenizer: tok, Tokens: cfg.Data.Tokens}
}
