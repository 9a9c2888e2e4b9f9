package run

import (
	"context"
	"encoding/csv"
	"fmt"
	"io"

	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/examples"
	"github.com/geoalign/geoalign/internal/words"
)

// nlvr asks a model that was fine-tuned on statements about two pictures about those of eval.split.
func (e Evaluation) nlvr(ctx context.Context) (Scores, error) {
	s, err := e.classified(ctx)
	if err != nil {
		return nil, err
	}
	x := JudgedStatements{JudgedExamples: s.(JudgedExamples)}
	x.Consistency, x.Sentences = consistency(x.Examples, x.Said)
	return x, nil
}

// JudgedStatements is the outcome of a model on statements about two pictures.
type JudgedStatements struct {
	JudgedExamples
	Sentences   int     // statements with one text (examples.NLVRGroup) are one
	Consistency float64 // share of them of which the model is right for all pictures, in percent
}

// consistency returns the share in percent of the sentences of which all answers are right, and how many sentences there are.
func consistency(x data.Examples, said []int32) (share float64, sentences int) {
	wrong := map[string]bool{}
	for i, class := range said {
		e := x.Example(i)
		if e.Label == data.UnknownLabel {
			continue
		}
		group := examples.NLVRGroup(e)
		wrong[group] = wrong[group] || class != e.Label
	}
	for _, w := range wrong {
		if !w {
			share++
		}
	}
	return 100 * share / float64(max(1, len(wrong))), len(wrong)
}

// Values implements Scores: in percent.
func (s JudgedStatements) Values() map[string]float64 {
	v := s.JudgedExamples.Values()
	v["consistency"] = s.Consistency
	return v
}

// Line implements Scores.
func (s JudgedStatements) Line() string {
	return fmt.Sprintf("%s, consistency %.2f of %s", s.JudgedExamples.Line(), s.Consistency, words.Count(s.Sentences, "sentence"))
}

// JSON implements Scores.
func (s JudgedStatements) JSON(split, path string) any { return s.json(split, path, s.Values()) }

// Table implements Scores.
func (s JudgedStatements) Table() string { return s.table(s.Line()) }

// WriteResults implements Resulted: identifier,prediction on each line, as the metrics.py of NLVR2 and of NLVR read them.
func (s JudgedStatements) WriteResults(w io.Writer) error {
	c, names := csv.NewWriter(w), s.Examples.Labels()
	for i, class := range s.Said {
		if err := c.Write([]string{s.Examples.Example(i).ID, names[class]}); err != nil {
			return err
		}
	}
	c.Flush()
	return c.Error()
}
