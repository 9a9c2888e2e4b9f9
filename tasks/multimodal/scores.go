package multimodal

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"

	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/eval"
	"github.com/geoalign/geoalign/internal/words"
	"github.com/geoalign/geoalign/tasks"
	"github.com/geoalign/geoalign/train/checkpoint"
)

// Scores are the outcome of a model on samples with classes.
type Scores struct {
	Of        Variant
	Samples   data.Examples
	Examples  int
	Unknown   int               // without a class, which the rest leaves out
	PerClass  *eval.ClassTable  // classes with what was predicted of them
	Accuracy  float64           // in percent
	Majority  float64           // of the answer that is always the commonest class, in percent
	Kinds     []tasks.KindScore // by what is asked, in the order of their names; nil where samples are of no kind
	Predicted []int32           // class of each sample
	Logits    []float32         // (Examples, classes)
	Heat      *tasks.Heat       // of its page, nil without

	// Of a variant whose samples have groups.
	Sentences   int     // groups: samples with one sentence
	Consistency float64 // share of them of which the model is right for all pictures, in percent
}

// Task implements tasks.Scores.
func (s Scores) Task() string { return s.Of.Name }

// Metric is the accuracy in percent.
func (s Scores) Metric() checkpoint.Metric {
	return checkpoint.Metric{Name: tasks.Logged(s.Of.Name, "accuracy"), Value: s.Accuracy}
}

// Values implements tasks.Scores: in percent.
func (s Scores) Values() map[string]float64 {
	v := map[string]float64{"accuracy": s.Accuracy, "majority": s.Majority}
	if s.Of.Group != nil {
		v["consistency"] = s.Consistency
	}
	tasks.AddKinds(v, s.Kinds)
	return v
}

// Line implements tasks.Scores.
func (s Scores) Line() string {
	line := fmt.Sprintf("%s accuracy %.2f (majority %.2f)", s.Of.Name, s.Accuracy, s.Majority)
	if s.Of.Group != nil {
		line += fmt.Sprintf(", consistency %.2f of %s", s.Consistency, words.Count(s.Sentences, "sentence"))
	}
	return line
}

// ClassTable implements tasks.Classified.
func (s Scores) ClassTable() *eval.ClassTable { return s.PerClass }

// Size implements tasks.Scores.
func (s Scores) Size() string { return words.Count(s.Examples, "example") }

// JSON implements tasks.Scores.
func (s Scores) JSON(split, path string) any {
	return struct {
		Task     string             `json:"task"`
		Split    string             `json:"split"`
		Path     string             `json:"path"`
		Examples int                `json:"examples"`
		Unknown  int                `json:"unknown,omitempty"` // without a class
		Values   map[string]float64 `json:"values"`
		Kinds    []tasks.KindScore  `json:"kinds,omitempty"`
		Classes  any                `json:"classes"`
		Metric   string             `json:"metric"`
	}{s.Of.Name, split, path, s.Examples, s.Unknown, s.Values(), s.Kinds, s.PerClass, s.Metric().Name}
}

// Table implements tasks.Scores.
func (s Scores) Table() string {
	text := s.Line() + "\n"
	if s.Unknown > 0 {
		text += fmt.Sprintf("%s without a class are left out of it\n", words.Count(s.Unknown, "example"))
	}
	return text + "\n" + s.PerClass.Table() + tasks.KindTable(s.Kinds)
}

// Cautions implements tasks.Cautious: what is above chance is more than the commonest class gives.
func (s Scores) Cautions() []string {
	return tasks.AccuracyCautions(s.Accuracy, s.Majority, s.Examples, "examples")
}

// WriteResults implements tasks.Resulted: a list of {"id", "label"} with the names of the classes; of a variant with
// lines identifier,prediction on each, as the metrics.py of NLVR2 and of NLVR read them.
func (s Scores) WriteResults(w io.Writer) error {
	type answer struct {
		ID    string `json:"id"`
		Label string `json:"label"`
	}
	list, names := make([]answer, len(s.Predicted)), s.Samples.Labels()
	for i, k := range s.Predicted {
		list[i] = answer{s.Samples.Example(i).ID, names[k]}
	}
	if !s.Of.Lines {
		return json.NewEncoder(w).Encode(list)
	}
	var rows [][]string
	for _, x := range list {
		rows = append(rows, []string{x.ID, x.Label})
	}
	return csv.NewWriter(w).WriteAll(rows)
}
