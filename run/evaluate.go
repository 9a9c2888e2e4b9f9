package run

import (
	"context"
	"errors"
	"runtime"
	"strings"

	"github.com/geoalign/geoalign/compute"
	"github.com/geoalign/geoalign/compute/parallel"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/source"
	"github.com/geoalign/geoalign/data/tokenizer"
	"github.com/geoalign/geoalign/run/console"
	"github.com/geoalign/geoalign/tasks"
	"github.com/geoalign/geoalign/tasks/all"
	"github.com/geoalign/geoalign/tasks/retrieval"
)

// Scores are what an evaluation found.
type Scores = tasks.Scores

// EvalTasks lists the tasks that a model is evaluated on.
func EvalTasks() []string {
	return tasks.Names(all.List, func(t tasks.Task) bool { return t.Evaluate != nil })
}

// taskOf returns the task of a name, empty for that of the system. It refuses one that there is none of.
func taskOf(cfg config.Config, name string) (tasks.Task, error) {
	if name == "" {
		name = DefaultTask(cfg)
	}
	t, _ := tasks.Find(all.List, name)
	return t, CheckTask(name)
}

// CheckTask refuses a task that there is none of; empty is that of the system.
func CheckTask(name string) error {
	if t, _ := tasks.Find(all.List, name); name == "" || t.Evaluate != nil {
		return nil
	}
	list := EvalTasks()
	return console.Argument("no task %q: the tasks are %s and %s", name,
		strings.Join(list[:len(list)-1], ", "), list[len(list)-1])
}

// DefaultTask is the task that a system is evaluated on unless asked otherwise.
func DefaultTask(cfg config.Config) string {
	s := &tasks.Setup{System: systemOf(cfg), Settings: cfg.Settings()}
	if s.System.Tuned != "" {
		return s.System.Tuned
	}
	for _, t := range all.List {
		if t.Default != nil && t.Default(s) {
			return t.Name
		}
	}
	return all.List[0].Name
}

// ReadsSplit says whether a task, empty for that of the system, reads a split of images and texts, or other files
// alone.
func ReadsSplit(cfg config.Config, task string) bool {
	t, err := taskOf(cfg, task)
	return err == nil && OfSplit(cfg, task) && (t.Kind == "" || t.Kind != cfg.Data.Kind)
}

// OfSplit says whether a task, empty for that of the system, is about a split of the data, of examples and pairs of
// sentences too, and not about files of its own.
func OfSplit(cfg config.Config, task string) bool {
	t, err := taskOf(cfg, task)
	return err != nil || t.OwnFiles == nil || !t.OwnFiles(&tasks.Setup{System: systemOf(cfg), Settings: cfg.Settings()})
}

// systemOf is what tasks ask of the system of a configuration.
func systemOf(cfg config.Config) tasks.System {
	v := cfg.View()
	images, texts, stored := !v.Has(section.Sentences), !v.Has(section.ImagesAlone), v.Has(section.Stored)
	return tasks.System{
		Name: cfg.Model.System, Tuned: cfg.Task(), Images: images, Texts: texts, Words: texts && !stored,
		Stored: stored, Identities: v.Has(section.Identities), Pairs: v.Has(section.SentencePairs),
	}
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

// Evaluate runs a task on a split, without rows that cannot be read where data.max_bad_share allows it: these are left
// out of Evaluation.Set for good. It ends early with the error of ctx. Of several processes all call it, and the
// outcome of rank 0 counts: others may have none.
func Evaluate(ctx context.Context, e Evaluation) (s Scores, err error) {
	task, err := taskOf(e.Config, e.Task)
	if err != nil {
		return nil, err
	}
	return e.evaluate(ctx, task)
}

// evaluate is Evaluate of a task, which need not be listed.
func (e Evaluation) evaluate(ctx context.Context, task tasks.Task) (s Scores, err error) {
	e.Task = task.Name
	if e.Set == nil {
		e.Set = &Split{}
	}
	t := tolerant{limit: e.Config.Data.MaxBadShare, group: e.Group, say: e.Say, progress: e.Progress}
	for _, x := range append([]Evaluation{e}, e.With...) {
		t.sets = append(t.sets, screened{x.Set, x.Config, x.Model})
	}
	err = t.run(ctx, func() error {
		s, err = e.together(ctx, task)
		return err
	})
	return s, err
}

// together evaluates by all processes, which agree on the error.
func (e Evaluation) together(ctx context.Context, task tasks.Task) (s Scores, err error) {
	switch g := e.Group; {
	case g == nil || g.Size() == 1:
		return e.alone(ctx, task)
	case !task.Alone:
		s, err = e.alone(ctx, task)
		return s, parallel.Agree(g, err)
	default:
		e.Group = nil
		err = parallel.Alone(g, func() error {
			s, err = e.alone(ctx, task)
			return err
		})
		return s, err
	}
}

// alone evaluates as one process.
func (e Evaluation) alone(ctx context.Context, task tasks.Task) (Scores, error) {
	s := e.setup(task)
	err := task.Check(s)
	if err == nil {
		s.Opened, err = e.Set.open(ctx, task, s)
	}
	var scores Scores
	if err == nil {
		scores, err = task.Evaluate(ctx, s)
	}
	if m := (*tasks.MisfitError)(nil); errors.As(err, &m) {
		err = &console.ArgumentError{Err: err}
	}
	return scores, err
}

// setup is what a task is evaluated with.
func (e Evaluation) setup(task tasks.Task) *tasks.Setup {
	c := e.Config
	s := &tasks.Setup{
		Task: task.Name, System: systemOf(c), Engine: e.Engine, View: viewOf(c),
		Encoding: tasks.Encoding{BatchSize: c.Eval.BatchSize, Workers: runtime.GOMAXPROCS(0), Group: e.Group, Progress: e.Progress},
		Source:   c.Source(), Split: c.Eval.Split,
		Texts: textColumns(c, e.Tokenizer),
		Train: func(ctx context.Context, asWritten bool) (data.Stream, error) {
			return source.Stream(ctx, unaugmented(c, asWritten).Source(), source.Options{Progress: e.Progress})
		},
		Rows: func(x data.Examples) data.Gallery { return source.ExampleColumns(c.Source(), x, e.Tokenizer) },
	}
	s.System.Use = DefaultTask(c)
	s.Samples = func(ctx context.Context) (data.Examples, error) {
		of := c
		if of.Data.Kind == "scenes" { // which a model of scenes is asked about
			of.Data.Kind, of.Data.Examples.Source = task.Kind, source.ExamplesOfScenes
		}
		return openExamples(ctx, of)
	}
	if e.Set != nil {
		s.Galleries, s.Set, s.Kept = e.Set.Galleries, e.Set.Eval, e.Set.files()
	}
	if e.Model != nil {
		s.Model = partsOf(e.Model)
	}
	v := c.Eval
	of := retrieval.Options{MeanTies: v.Ties == config.TiesMean, RerankTop: v.RerankTop,
		RerankSum: v.RerankScore == config.RerankSum, Folds: v.Folds, KeepBy: c.Train.KeepBestBy}
	if c.View().Has(section.Leading) {
		of.Dims = c.Objective.Matryoshka.Dims
	}
	s.Settings = append(c.Settings(), of, v.Eval)
	for _, x := range e.With {
		s.With = append(s.With, x.setup(task))
	}
	return s
}

// viewOf is how the model of a configuration sees pictures.
func viewOf(c config.Config) tasks.View {
	im := c.Model.Image
	return tasks.View{Input: c.ImageInput(), Size: im.Size, Grid: im.Grid(), Depth: im.Depth,
		Fusion: c.Model.Text.FusionLayers}
}

// unaugmented is a configuration whose training images are resized and nothing else, without sentences between them;
// with captions as they are written, or cleaned.
func unaugmented(cfg config.Config, asWritten bool) config.Config {
	d := &cfg.Data
	d.Sentences.Batches = 0
	d.CropScaleMin, d.Flip, d.RandAugmentOps = 1, false, 0
	d.ColorJitter, d.Grayscale, d.Blur, d.Views = 0, 0, 0, 1
	if asWritten {
		d.Clean = data.CleanNone
	}
	return cfg
}

// textColumns says how captions become columns, nil for a system without texts.
func textColumns(cfg config.Config, tok *tokenizer.Tokenizer) *data.Texts {
	if tok == nil {
		return nil
	}
	prompt, _ := cfg.Data.PromptText() // of a configuration that was checked
	return &data.Texts{Tokenizer: tok, Tokens: cfg.Data.Tokens, Prompt: prompt}
}

// cleaner cleans a text as the captions of a configuration are.
func cleaner(cfg config.Config) func(string) string {
	return func(text string) string { return data.Clean(cfg.Data.Clean, text, cfg.Data.MaxWords) }
}

// Texts is a gallery of texts that no split has, cleaned as captions are: the columns of the tokenizer.
func Texts(cfg config.Config, texts []string, columns *data.Texts) data.Gallery {
	return tasks.List{Texts: texts, Clean: cleaner(cfg), Columned: columns}
}

// BlankTexts is Texts of which nothing may be left: what stands around a text is then all there is.
func BlankTexts(cfg config.Config, texts []string, columns *data.Texts) data.Gallery {
	return tasks.List{Texts: texts, Clean: cleaner(cfg), Columned: columns, Blank: true}
}

// logged returns the values of an outcome as metrics.jsonl names them.
func logged(o Scores) map[string]float64 {
	t, _ := tasks.Find(all.List, o.Task())
	t.Name = o.Task()
	values := map[string]float64{}
	for k, v := range o.Values() {
		values[t.Prefix()+k] = v
	}
	return values
}

// prefixOf stands before the numbers of a task in metrics.jsonl.
func prefixOf(task string) string {
	t, _ := tasks.Find(all.List, task)
	return t.Prefix()
}
