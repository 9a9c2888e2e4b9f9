package sentences

import (
	"fmt"
	"io"

	"github.com/geoalign/geoalign/report"
)

// Page is what a page shows of the outcome; with places pairs are drawn in the plane too, which takes a second or two.
func (s Scores) Page(step int, places bool, seed uint64) (report.Sentences, error) {
	p := report.Sentences{Step: step, Feature: featureNames[s.Feature]}
	for _, t := range []struct {
		title string
		rows  [][]string
	}{{"Similarity, %", s.correlations()}, {"Accuracy, %", s.accuracies()}, {"Isotropy", s.isotropies()}} {
		if len(t.rows) > 1 {
			table := report.Table{Title: t.title, Head: append([]string{"task"}, t.rows[0][1:]...)}
			for _, row := range t.rows[1:] {
				table.Rows = append(table.Rows, report.Texts(row...))
			}
			p.Tables = append(p.Tables, table)
		}
	}
	for _, t := range s.Tasks {
		if t.Isotropy != nil {
			p.Spectra = append(p.Spectra, report.Spectrum{Task: t.Task, Values: t.Isotropy.Spectrum})
		}
	}
	if s.Picture == nil {
		return p, nil
	}
	p.Cosines = cosinesOf(s.Picture)
	if !places {
		return p, nil
	}
	x := s.Picture
	p.Places = &report.Places{Task: x.Task}
	for _, pair := range x.Pairs {
		p.Places.Texts = append(p.Places.Texts, pair.A+" | "+pair.B)
		if x.Spec.Scored() {
			p.Places.Numbers = append(p.Places.Numbers, pair.Score)
		} else {
			p.Places.Labels = append(p.Places.Labels, x.Spec.Classes[pair.Label])
		}
	}
	return p, p.Places.Place(x.First, x.Second, x.Width, seed)
}

// cosinesOf are those of each class of a task, or of each third of its scale.
func cosinesOf(x *Picture) []report.Cosines {
	var list []report.Cosines
	if !x.Spec.Scored() {
		for _, name := range x.Spec.Classes {
			list = append(list, report.Cosines{Name: name})
		}
		for i, c := range x.Cosines {
			at := &list[x.Labels[i]]
			at.Values = append(at.Values, c)
		}
		return list
	}
	const parts = 3
	third := (x.Spec.High - x.Spec.Low) / parts
	for k := range parts {
		list = append(list, report.Cosines{Name: fmt.Sprintf("score %.1f to %.1f", x.Spec.Low+float64(k)*third,
			x.Spec.Low+float64(k+1)*third)})
	}
	for i, c := range x.Cosines {
		at := &list[min(parts-1, int((x.Scores[i]-x.Spec.Low)/third))]
		at.Values = append(at.Values, c)
	}
	return list
}

// WritePage implements tasks.Drawn.
func (s Scores) WritePage(w io.Writer, title string, step int, facts []report.Fact) error {
	p, err := s.Page(step, true, 0)
	if err != nil {
		return err
	}
	return report.WriteSentences(w, report.SentencesPage{Title: title, Facts: facts, Sentences: p})
}
