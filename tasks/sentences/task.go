// Package sentences evaluates text towers on tasks of sentence pairs, without fine-tuning.
package sentences

import (
	"context"
	"fmt"
	"strings"

	"github.com/geoalign/geoalign/data/sentencepairs"
	"github.com/geoalign/geoalign/data/source"
	"github.com/geoalign/geoalign/internal/words"
	"github.com/geoalign/geoalign/tasks"
	"github.com/geoalign/geoalign/tasks/probe"
)

// Name is the name of the task.
const Name = "sentences"

// Task is tasks of sentence pairs, of files of their own.
var Task = tasks.Task{
	Name: Name, Title: "Sentence pairs", Beside: true, Bare: true,
	Needs:    []tasks.Need{tasks.NeedsWords},
	OwnFiles: func(*tasks.Setup) bool { return true },
	Default: func(s *tasks.Setup) bool {
		return s.System.Words && !s.System.Images && !s.System.Pairs && len(tasks.Of[Eval](s).Tasks) > 0
	},
	Inputs: func(s *tasks.Setup) []source.Input {
		e := tasks.Of[*Eval](s)
		return e.Inputs(s.Source)
	},
	Open: func(_ context.Context, s *tasks.Setup) (any, error) {
		list, err := tasks.Of[*Eval](s).Open(s.Source)
		return list, err
	},
	Evaluate: evaluate,
	// the first task's, which metrics.jsonl names
	Kept: func(*tasks.Setup, func(string) bool) []tasks.Kept { return nil },
}

// picturePairs is the number of pairs that are drawn.
const picturePairs = 250

func evaluate(ctx context.Context, s *tasks.Setup) (tasks.Scores, error) {
	o := tasks.Of[Eval](s)
	t := Sentences{
		Encoder: NewEncoder(s), Tasks: s.Opened.(Tasks), Rules: o.Rules, Isotropy: o.Isotropy, Pictured: picturePairs,
		Classifier: probe.NewClassifier(s),
	}
	scores, err := t.Run(ctx)
	m := sentencepairs.Measure{Tokenizer: s.Tokenizer(), Clean: s.Source.Data.Clean, MaxWords: s.Source.Data.MaxWords,
		Tokens: s.Source.Data.Tokens}
	for _, x := range t.Tasks {
		scores.Notes = append(scores.Notes, notesOf(x.Test, m)...)
	}
	return scores, err
}

// notesOf says what was left out of the pairs of a task, and how many sentences the model does not read whole.
func notesOf(set *sentencepairs.Set, m sentencepairs.Measure) (list []string) {
	say := func(format string, args ...any) { list = append(list, set.Task.Name+": "+fmt.Sprintf(format, args...)) }
	if text := set.Counts.String(); text != "" {
		say("%s", text)
	}
	if n := set.Counts.Ignored; n != nil {
		say("scores without sentences: %s", strings.Join(n, ", "))
	}
	all, long, blank := set.Distinct(), 0, 0
	for _, x := range all {
		n, _, cut := m.Length(x)
		if cut {
			long++
		}
		if n == 0 {
			blank++
		}
	}
	if long > 0 {
		say("the end of %s of %s sentences is cut (data.max_words, data.tokens)", words.Thousands(long),
			words.Thousands(len(all)))
	}
	if blank > 0 {
		say("nothing is left of %s by data.clean", words.Count(blank, "sentence"))
	}
	return list
}
