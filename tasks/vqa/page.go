package vqa

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/geoalign/geoalign/report"
	"github.com/geoalign/geoalign/tasks"
)

// mostMistakes is the number of rows of the table of mistakes.
const mostMistakes = 20

// ExamplesPage implements tasks.Pictured: questions of all kinds in turn, so that a page shows each.
func (s Scores) ExamplesPage(ctx context.Context) (report.ExamplesPage, error) {
	p := report.ExamplesPage{Tables: []report.Table{s.mistakes()}}
	for i, k := range s.Kinds {
		p.Kinds = append(p.Kinds, report.KindAccuracy{Kind: k.Kind, Number: k.Examples, Accuracy: k.Accuracy,
			Baseline: s.KindBest[i]})
	}
	return p, s.Heat.Cards(ctx, &p, s.shown(), s.card)
}

// shown are the questions of the page.
func (s Scores) shown() (rows []int) {
	all, ofKind := map[bool]int{}, map[string]int{} // by whether the answer is right
	each := max(1, tasks.MostShown/max(1, len(s.Kinds)))
	for i, accuracy := range s.Right {
		right := accuracy >= .5
		kind := fmt.Sprint(right, s.Samples.Example(i).Kind)
		if accuracy >= 0 && all[right] < tasks.MostShown && ofKind[kind] < each {
			all[right]++
			ofKind[kind]++
			rows = append(rows, i)
		}
	}
	return rows
}

// card shows question i.
func (s Scores) card(i int) (c tasks.Card, err error) {
	e := s.Samples.Example(i)
	var truth []string
	for _, a := range e.Answers {
		text := a.Text
		if len(e.Answers) > 1 {
			text += fmt.Sprintf(" (%.0f %%)", 100*a.Weight)
		}
		truth = append(truth, text)
	}
	c.Example = report.Example{
		Name: s.Samples.PictureName(i, 0), Kind: e.Kind, Text: e.Text, Answer: s.Answers[i],
		Truth: strings.Join(truth, ", "), Right: s.Right[i] >= .5,
	}
	return c, c.AddPictures(s.Samples, i)
}

// mistakes counts the commonest wrong answers by kind.
func (s Scores) mistakes() report.Table {
	type mistake struct{ kind, truth, said string }
	count := map[mistake]int{}
	for i, right := range s.Right {
		if right >= 0 && right < .5 {
			e := s.Samples.Example(i)
			count[mistake{e.Kind, e.Answers[0].Text, s.Answers[i]}]++
		}
	}
	list := make([]mistake, 0, len(count))
	for m := range count {
		list = append(list, m)
	}
	slices.SortFunc(list, func(a, b mistake) int {
		return cmp.Or(cmp.Compare(count[b], count[a]), cmp.Compare(a.kind, b.kind), cmp.Compare(a.truth, b.truth),
			cmp.Compare(a.said, b.said))
	})
	t := report.Table{Head: []string{"kind", "commonest answer of people", "said", "questions"}}
	for _, m := range list[:min(len(list), mostMistakes)] {
		t.Rows = append(t.Rows, report.Texts(m.kind, m.truth, m.said, fmt.Sprint(count[m])))
	}
	return t
}
