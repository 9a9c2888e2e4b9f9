package main

import (
	"context"
	"fmt"

	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/data/regions"
	"github.com/geoalign/geoalign/data/scenes"
	"github.com/geoalign/geoalign/run"
	"github.com/geoalign/geoalign/run/explain"
	"gonum.org/v1/gonum/floats"
)

// pointing is how often the strongest region is the object that words name.
type pointing struct{ right, named int }

func (p *pointing) add(values []float64, object int) {
	if p.named++; floats.MaxIdx(values) == object {
		p.right++
	}
}

// way is a way of pointing.
type way struct{ text, by string }

// inCaption is the text of a way that has the name within the caption.
const inCaption = "in its caption"

// ways are the ways in which a model of regions can point: with the name of an object as the whole text,
// by each formula, and with the name within the caption, by what its words look at and by what they add.
var ways = []way{
	{"name alone", explain.FormulaTerms}, {"name alone", explain.FormulaChannels}, {"name alone", explain.FormulaElementwise}, {"name alone", explain.FormulaGradCAM},
	{inCaption, "attention"}, {inCaption, explain.FormulaTerms},
}

// point measures how often the strongest region of a name is the object that it names, among n scenes of
// the test split, and how often chance would be right.
func point(t *run.Trained, w *scenes.World, n int) (lines []line, err error) {
	set, err := run.OpenSplit(context.Background(), t.Config, "test", nil, nil)
	if err != nil {
		return nil, err
	}
	n = min(n, set.Len())
	objects := 0.0
	for i := range n {
		objects += float64(len(w.Test(i).Objects))
	}
	for _, x := range ways {
		formula := x.by
		switch {
		case !t.Config.Has(section.TokenScores) && (x.by == explain.FormulaTerms || x.text == inCaption):
			continue
		case x.by == "attention":
			formula = ""
		}
		e, err := explain.New(t, explain.Options{Formula: formula})
		if err != nil {
			return nil, err
		}
		var p pointing
		for i := range n {
			if x.text == inCaption {
				err = p.caption(e, set, i, w.Test(i), x.by == "attention")
			} else {
				err = p.names(e, set, i, w.Test(i))
			}
			if err != nil {
				return nil, err
			}
		}
		right := 100 * float64(p.right) / float64(p.named)
		lines = append(lines, line{x.text + ", " + x.by, []string{"right %", "chance %", "names"},
			[]float64{right, 100 * float64(n) / objects, float64(p.named)}})
	}
	return lines, nil
}

// names points with the name of each object of a scene as the text.
func (p *pointing) names(e *explain.Explainer, set *run.Split, row int, scene scenes.Scene) error {
	for k, o := range scene.Objects {
		if err := e.SetRow(set, row, "a "+o.FullName()); err != nil {
			return err
		}
		r, err := e.Pair(context.Background())
		if err != nil {
			return err
		}
		p.add(r.Image.Values, k)
	}
	return nil
}

// caption points with each name within the caption of a scene.
func (p *pointing) caption(e *explain.Explainer, set *run.Split, row int, scene scenes.Scene, attention bool) error {
	text := set.Eval.Text(set.Eval.ImageTexts(row)[0])
	if err := e.SetRow(set, row, text); err != nil {
		return err
	}
	r, err := e.Pair(context.Background())
	if err != nil {
		return err
	}
	words, objects := regions.NamedObjects(scene, text)
	values := make([][]float64, len(scene.Objects)) // of the regions, for the words of each object
	at, token := 0, -1
	for i, w := range r.Words {
		if w.Special {
			continue
		}
		token++
		if w.Text == "," || w.Text == ":" {
			continue
		}
		if at >= len(words) || words[at] != w.Text {
			return fmt.Errorf("the caption %q has the words %q, and the model reads %q", text, words, w.Text)
		}
		for _, k := range objects[at] {
			add(&values[k], r, i, token, attention)
		}
		at++
	}
	for k, v := range values {
		if v != nil {
			p.add(v, k)
		}
	}
	return nil
}

// add adds what regions are to a word: what it looks at, or what it adds with them.
func add(to *[]float64, r explain.Relevance, word, token int, attention bool) {
	if *to == nil {
		*to = make([]float64, len(r.Image.Values))
	}
	if attention {
		floats.Add(*to, r.WordMaps[word].Values)
		return
	}
	for _, t := range r.Compared.Terms {
		for i := range *to {
			(*to)[i] += t.Adds[t.At(token, i)]
		}
	}
}
