package vqa

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/internal/words"
	"github.com/geoalign/geoalign/tasks"
	"github.com/geoalign/geoalign/train/checkpoint"
)

// Scores are the outcome. Accuracies are in percent.
type Scores struct {
	Samples    data.Examples
	Heat       *tasks.Heat // of its page, nil without
	Candidates int         // that the model chose from; 0: it generated freely

	Questions int
	Unknown   int // without an answer by people, which the rest leaves out
	Outside   int // of which the heaviest answer is not a candidate
	Accuracy  float64
	Reachable float64           // of the best candidate for each question; 100 for a model that writes
	Majority  float64           // of the answer that is the best one for all questions
	ByKind    float64           // of the answers that are the best ones for all questions of a kind
	Chance    float64           // of a candidate that is drawn evenly; 0 for a model that writes
	Kinds     []tasks.KindScore // in the order of their names; nil where questions are of no kind
	KindBest  []float64         // of Kinds: of the answer that is the best one for all questions of the kind
	Answers   []string          // to each question
	Right     []float64         // accuracy of each, from 0 to 1; -1: unknown
}

// Task implements tasks.Scores.
func (s Scores) Task() string { return Name }

// Metric is the official accuracy in percent.
func (s Scores) Metric() checkpoint.Metric {
	return checkpoint.Metric{Name: tasks.Logged(Name, "accuracy"), Value: s.Accuracy}
}

// Values implements tasks.Scores: in percent, but for the number of answers that are not candidates.
func (s Scores) Values() map[string]float64 {
	v := map[string]float64{"accuracy": s.Accuracy, "majority": s.Majority, "majority_by_kind": s.ByKind}
	if s.Candidates > 0 {
		v["chance"], v["reachable"], v["outside"] = s.Chance, s.Reachable, float64(s.Outside)
	}
	tasks.AddKinds(v, s.Kinds)
	return v
}

// Line implements tasks.Scores.
func (s Scores) Line() string {
	return fmt.Sprintf("%s accuracy %.2f (majority %.2f, by kind %.2f)", Name, s.Accuracy, s.Majority, s.ByKind)
}

// Size implements tasks.Scores.
func (s Scores) Size() string { return words.Count(s.Questions, "question") }

// JSON implements tasks.Scores.
func (s Scores) JSON(split, path string) any {
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
	}{Name, split, path, s.Questions, s.Unknown, s.Candidates, s.Values(), s.Kinds, s.Metric().Name}
}

// Table implements tasks.Scores.
func (s Scores) Table() string {
	var b strings.Builder
	b.WriteString(s.Line() + "\n")
	if s.Unknown > 0 {
		fmt.Fprintf(&b, "%s whose answer nobody knows are left out of it\n", words.Count(s.Unknown, "question"))
	}
	if s.Candidates == 0 {
		b.WriteString("answers are written freely\n")
	} else {
		fmt.Fprintf(&b, "%s are ranked: %.2f by chance, at most %.2f can be reached",
			words.Count(s.Candidates, "candidate"), s.Chance, s.Reachable)
		if s.Outside > 0 {
			fmt.Fprintf(&b, ", since the commonest answer to %s is none of them", words.Count(s.Outside, "question"))
		}
		b.WriteString("\n")
	}
	b.WriteString(tasks.KindTable(s.Kinds))
	return b.String()
}

// WriteResults implements tasks.Resulted in the form of the evaluation server of VQA: [{"question_id", "answer"}].
func (s Scores) WriteResults(w io.Writer) error {
	type answer struct {
		ID     any    `json:"question_id"`
		Answer string `json:"answer"`
	}
	list := make([]answer, len(s.Answers))
	for i, given := range s.Answers {
		id := s.Samples.Example(i).ID
		list[i] = answer{id, given}
		if n, err := strconv.ParseInt(id, 10, 64); err == nil {
			list[i].ID = n
		}
	}
	return json.NewEncoder(w).Encode(list)
}
