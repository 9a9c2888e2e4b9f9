package run

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/source"
	"github.com/geoalign/geoalign/eval"
	"github.com/geoalign/geoalign/eval/tasks"
	"github.com/geoalign/geoalign/internal/words"
	"github.com/geoalign/geoalign/model"
	"github.com/geoalign/geoalign/train/checkpoint"
)

// answered asks a model that was fine-tuned to answer questions those of eval.split.
func (e Evaluation) answered(ctx context.Context) (Scores, error) {
	x, err := e.examples(ctx)
	if err != nil {
		return nil, err
	}
	m := decoder(e.Model)
	if m == nil {
		return nil, &ArgumentError{fmt.Errorf("the task %s needs a model that was fine-tuned for it (trainer finetune --task %s)", e.Task, e.Task)}
	}
	t := tasks.Answered{Columns: m.Columns(), Examples: x, Gallery: source.ExampleColumns(e.Config.Source(), x, e.Tokenizer), Encoding: e.encoding()}
	if e.Config.Eval.VQA.Generate {
		t.Answer = e.writer(m)
	} else if t.Candidates, t.Answer, err = e.chooser(ctx, m); err != nil {
		return nil, err
	}
	s, err := t.Run(ctx)
	return Answered{s, len(t.Candidates), x, e.writtenHeat(s.Said, e.answers(), t.Gallery)}, err
}

// writer answers freely.
func (e Evaluation) writer(m *model.Writer) func(ctx context.Context, b *batch.Batch) ([]string, error) {
	o := model.GenerateOptions{Beams: e.Config.Eval.VQA.Beams, MaxTokens: e.Config.Objective.VQA.Tokens - 1}
	return func(ctx context.Context, b *batch.Batch) ([]string, error) {
		ids, err := m.Generate(ctx, b, o)
		if err != nil {
			return nil, err
		}
		out := make([]string, len(ids))
		for i, text := range ids {
			out[i] = e.Tokenizer.Decode(text)
		}
		return out, nil
	}
}

// answers says how answers become tokens.
func (e Evaluation) answers() data.Answers {
	return data.Answers{Tokens: e.Config.Objective.VQA.Tokens, Clean: data.CleanLower}
}

// chooser ranks candidates, which it returns.
func (e Evaluation) chooser(ctx context.Context, m *model.Writer) ([]string, func(ctx context.Context, b *batch.Batch) ([]string, error), error) {
	c := e.Config
	candidates, err := e.Set.files().openCandidates(ctx, c)
	if err != nil {
		return nil, nil, err
	}
	as := e.answers()
	var ids [][]int32
	kept := candidates[:0:0]
	for _, a := range candidates {
		if said := as.Encode(a, e.Tokenizer); said != nil {
			ids, kept = append(ids, said), append(kept, a)
		}
	}
	if len(kept) == 0 {
		return nil, nil, config.Errors{{Path: "eval.vqa.candidates", Value: c.Eval.VQA.Candidates, Msg: "has no answer of at least one word"}}
	}
	r, err := m.Ranker(ids, c.Eval.VQA.Top)
	if err != nil {
		return nil, nil, err
	}
	return kept, func(ctx context.Context, b *batch.Batch) ([]string, error) {
		scores, err := r.Rank(ctx, b)
		if err != nil {
			return nil, err
		}
		out := make([]string, b.Rows())
		for i := range out {
			best, err := eval.Likeliest(scores[i*len(kept) : (i+1)*len(kept)])
			if err != nil {
				return nil, fmt.Errorf("candidates of %s: %w", TaskVQA, err)
			}
			out[i] = kept[best]
		}
		return out, nil
	}, nil
}

// Answered is the outcome of a model on questions about pictures.
type Answered struct {
	tasks.AnsweredScores
	Candidates int // that the model chose from; 0: it wrote freely
	Examples   data.Examples
	Heat       *seenHeat // of its pages, nil without
}

// Task implements Scores.
func (s Answered) Task() string { return TaskVQA }

// Metric is the official accuracy in percent.
func (s Answered) Metric() checkpoint.Metric {
	return checkpoint.Metric{Name: logPrefix(TaskVQA) + "accuracy", Value: s.Accuracy}
}

// Values implements Scores: in percent, but for the number of answers that are no candidates.
func (s Answered) Values() map[string]float64 {
	v := map[string]float64{"accuracy": s.Accuracy, "majority": s.Majority, "majority_by_kind": s.ByKind}
	if s.Candidates > 0 {
		v["chance"], v["reachable"], v["outside"] = s.Chance, s.Reachable, float64(s.Outside)
	}
	for _, k := range s.Kinds {
		v["accuracy/"+k.Kind] = k.Accuracy
	}
	return v
}

// Line implements Scores.
func (s Answered) Line() string {
	return fmt.Sprintf("%s accuracy %.2f (majority %.2f, by kind %.2f)", TaskVQA, s.Accuracy, s.Majority, s.ByKind)
}

// Size implements Scores.
func (s Answered) Size() string { return words.Count(s.Questions, "question") }

// JSON implements Scores.
func (s Answered) JSON(split, path string) any {
	return struct {
		Task       string             `json:"task"`
		Split      string             `json:"split"`
		Path       string             `json:"path"`
		Questions  int                `json:"questions"`
		Unknown    int                `json:"unknown,omitempty"`    // nobody knows the answer
		Candidates int                `json:"candidates,omitempty"` // that were ranked
		Values     map[string]float64 `json:"values"`
		Kinds      []tasks.KindScore  `json:"kinds,omitempty"`
		Metric     string             `json:"metric"`
	}{TaskVQA, split, path, s.Questions, s.Unknown, s.Candidates, s.Values(), s.Kinds, s.Metric().Name}
}

// Table implements Scores.
func (s Answered) Table() string {
	var b strings.Builder
	b.WriteString(s.Line() + "\n")
	if s.Unknown > 0 {
		fmt.Fprintf(&b, "%s whose answer nobody knows are left out of it\n", words.Count(s.Unknown, "question"))
	}
	if s.Candidates == 0 {
		b.WriteString("answers are written freely\n")
	} else {
		fmt.Fprintf(&b, "%s are ranked: %.2f by chance, at most %.2f can be reached", words.Count(s.Candidates, "candidate"), s.Chance, s.Reachable)
		if s.Outside > 0 {
			fmt.Fprintf(&b, ", since the commonest answer to %s is none of them", words.Count(s.Outside, "question"))
		}
		b.WriteString("\n")
	}
	b.WriteString(kindTable(s.Kinds))
	return b.String()
}

// WriteResults implements Resulted in the form of the evaluation server of VQA: [{"question_id", "answer"}].
func (s Answered) WriteResults(w io.Writer) error {
	type answer struct {
		ID     any    `json:"question_id"`
		Answer string `json:"answer"`
	}
	list := make([]answer, len(s.Said))
	for i, said := range s.Said {
		id := s.Examples.Example(i).ID
		list[i] = answer{id, said}
		if n, err := strconv.ParseInt(id, 10, 64); err == nil {
			list[i].ID = n
		}
	}
	return json.NewEncoder(w).Encode(list)
}
