package run

import (
	"fmt"
	"path/filepath"

	"github.com/geoalign/geoalign/eval/tasks"
	pages "github.com/geoalign/geoalign/report"
	"github.com/geoalign/geoalign/train/runlog"
)

// page is what a page shows of the outcome; with places pairs are drawn in the plane too, which takes a second or two.
func (s Sentences) page(step int, places bool, seed uint64) (pages.Sentences, error) {
	p := pages.Sentences{Step: step, Feature: featureNames[s.Feature]}
	for _, t := range []struct {
		title string
		rows  [][]string
	}{{"Similarity, %", s.correlations()}, {"Accuracy, %", s.accuracies()}, {"Isotropy", s.isotropies()}} {
		if len(t.rows) > 1 {
			table := pages.Table{Title: t.title, Head: append([]string{"task"}, t.rows[0][1:]...)}
			for _, row := range t.rows[1:] {
				table.Rows = append(table.Rows, pages.Texts(row...))
			}
			p.Tables = append(p.Tables, table)
		}
	}
	for _, t := range s.Tasks {
		if t.Isotropy != nil {
			p.Spectra = append(p.Spectra, pages.Spectrum{Task: t.Task, Values: t.Isotropy.Spectrum})
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
	p.Places = &pages.Places{Task: x.Task}
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
func cosinesOf(x *tasks.SentencePicture) []pages.Cosines {
	var list []pages.Cosines
	if !x.Spec.Scored() {
		for _, name := range x.Spec.Classes {
			list = append(list, pages.Cosines{Name: name})
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
		list = append(list, pages.Cosines{Name: fmt.Sprintf("score %.1f to %.1f", x.Spec.Low+float64(k)*third, x.Spec.Low+float64(k+1)*third)})
	}
	for i, c := range x.Cosines {
		at := &list[min(parts-1, int((x.Scores[i]-x.Spec.Low)/third))]
		at.Values = append(at.Values, c)
	}
	return list
}

// writeSentences keeps what the last evaluation on sentence pairs found, for the page of the run.
func (r *Run) writeSentences(places bool) error {
	for _, s := range append([]Scores{r.scores}, r.beside...) {
		x, ok := s.(Sentences)
		if !ok {
			continue
		}
		p, err := x.page(r.scoreStep, places, r.cfg.Run.Seed)
		if err != nil {
			return err
		}
		return writePart(filepath.Join(r.dir, runlog.SentencesFile), p)
	}
	return nil
}

// readSentences reads what writeSentences wrote; nil without it.
func readSentences(dir string) (*pages.Sentences, error) {
	var s pages.Sentences
	if found, err := readPart(filepath.Join(dir, runlog.SentencesFile), &s, nil); !found {
		return nil, err
	}
	return &s, nil
}
