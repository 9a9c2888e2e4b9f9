package tasks

import (
	"context"
	"fmt"
	"slices"

	"github.com/geoalign/geoalign/data/source"
)

// Task is something that a model is evaluated on, or fine-tuned for. A function that a task does without is nil.
type Task struct {
	Name string // as --task has it
	// Title is that of its page, for people; empty: it draws none.
	Title string
	// Metric is the number by which checkpoints are kept, as the log names it behind Prefix; empty: see Kept.
	Metric, MetricTitle string
	// Unbounded says that the metric is not a percentage.
	Unbounded bool
	// Bare says that its numbers are logged without the name of the task before them: they name their own.
	Bare bool
	// Results says that its Scores write a file for an evaluation server (Resulted).
	Results bool
	// Needs is what it asks of a model.
	Needs []Need
	// Alone says that rank 0 of several processes evaluates it as a whole; else they share the encoding.
	Alone bool
	// Kind is the data.kind that has its samples; empty: any that has images and texts.
	Kind string
	// OwnFiles says that it reads files of its own whatever the split; nil: it does not.
	OwnFiles func(s *Setup) bool
	// Default says that it is the task of a model unless asked otherwise; nil: of none.
	Default func(s *Setup) bool
	Beside  bool // eval.beside can name it
	// Open opens what it reads besides images and texts of the split, so that nothing is found missing later. The
	// result is kept for other evaluations of the split, as Setup.Opened; nil: it reads nothing else.
	Open func(ctx context.Context, s *Setup) (any, error)
	// Inputs lists the files and folders that it reads besides those of the split; nil: there are none.
	Inputs func(s *Setup) []source.Input
	// Ready says what is missing for an evaluation beside the task of a run, before the run begins.
	Ready func(s *Setup) error
	// Evaluate runs it. It ends early with the error of ctx. nil: a model is trained for it to start from.
	Evaluate func(ctx context.Context, s *Setup) (Scores, error)
	// Kept lists the numbers by which checkpoints of a run are compared, of which logged says that a run has them; nil:
	// Metric alone.
	Kept func(s *Setup, logged func(name string) bool) []Kept
	// Numbers are those that the log of any evaluation has; nil: they depend on the data.
	Numbers func() map[string]float64
	// Finetune is how a checkpoint is fine-tuned for it; nil: it is not.
	Finetune *Finetune
}

// Kept is a number by which checkpoints are kept, with its name for people.
type Kept struct {
	Key, Name string
	Unbounded bool // no percentage
}

// Finetune are the settings of a configuration that fine-tunes a checkpoint for a task.
type Finetune struct {
	Sets  []string // over those of the checkpoint
	Alone bool     // the loss of the task is trained without others
	Tower bool     // the image tower alone is taken over, of any system
}

// Prefix stands before the numbers of a task in metrics.jsonl.
func (t Task) Prefix() string {
	if t.Bare {
		return "eval/"
	}
	return Logged(t.Name, "")
}

// Logged is the name in metrics.jsonl of a number of a task.
func Logged(task, number string) string { return "eval/" + task + "/" + number }

// KeptMetrics are the numbers by which checkpoints of a run are compared.
func (t Task) KeptMetrics(s *Setup, logged func(name string) bool) []Kept {
	if t.Kept != nil {
		return t.Kept(s, logged)
	}
	return []Kept{{t.Prefix() + t.Metric, t.MetricTitle, t.Unbounded}}
}

// Check refuses a model or data that lack what the task needs, with a *MisfitError.
func (t Task) Check(s *Setup) error {
	for _, need := range t.Needs {
		if m := need(s); m != nil {
			return m
		}
	}
	return nil
}

// MisfitError says that a task is not one of a model, or of its data.
type MisfitError struct{ Task, Needs, Cure string }

func (e *MisfitError) Error() string {
	return fmt.Sprintf("the task %s needs %s: %s", e.Task, e.Needs, e.Cure)
}

// Misfit says what the task of a setup needs. Its cure is another task.
func (s *Setup) Misfit(format string, args ...any) *MisfitError {
	return &MisfitError{s.Task, fmt.Sprintf(format, args...), "use --task " + s.System.Use}
}

// Need is something that a task asks of a model and its data; the misfit is nil where they have it.
type Need func(s *Setup) *MisfitError

// has returns a Need whose words have a place for the name of the system.
func has(has func(s *Setup) bool, what string) Need {
	return func(s *Setup) *MisfitError {
		if has(s) {
			return nil
		}
		return s.Misfit(what, s.System.Name)
	}
}

// Needs of several tasks.
var (
	NeedsImages = has(func(s *Setup) bool { return s.System.Images }, noImages)
	NeedsWords  = has(func(s *Setup) bool { return s.System.Words },
		"a model that reads words, which model.system %q does not")
	NeedsStored = has(func(s *Setup) bool { return s.System.Stored },
		"stored features, which model.system %q does not read")
	NeedsTexts = has(func(s *Setup) bool { return s.System.Texts },
		"a model of images and texts, and model.system %q has no text tower")
	// NeedsEncoder asks for images of the split, and not features of them.
	NeedsEncoder = has(func(s *Setup) bool { return s.System.Images && s.Set != nil }, noImages)
)

const noImages = "a model with an image encoder, and model.system %q has none"

// NeedsTuned asks for a model that was fine-tuned for the task.
func NeedsTuned(s *Setup) *MisfitError {
	if s.System.Tuned == s.Task {
		return nil
	}
	return s.Misfit("a model that was fine-tuned for it (trainer finetune --task %s), and its data", s.Task)
}

// Find returns the task of a name among a list.
func Find(list []Task, name string) (Task, bool) {
	i := slices.IndexFunc(list, func(t Task) bool { return t.Name == name })
	if i < 0 {
		return Task{}, false
	}
	return list[i], true
}

// Names lists the tasks that fit.
func Names(list []Task, fits func(t Task) bool) (names []string) {
	for _, t := range list {
		if fits(t) {
			names = append(names, t.Name)
		}
	}
	return names
}
