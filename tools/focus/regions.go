package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/geoalign/geoalign/data/regions"
	"github.com/geoalign/geoalign/data/scenes"
	"github.com/geoalign/geoalign/data/source"
	"github.com/geoalign/geoalign/run"
	"github.com/geoalign/geoalign/run/explain"
)

// pointing is how often the strongest region is the object that words name.
type pointing struct{ right, named int }

func (p *pointing) add(values []float64, object int) {
	if p.named++; strongest(values) == object {
		p.right++
	}
}

func (p pointing) share() float64 { return float64(p.right) / float64(p.named) }

// strongest is the place of the first of the largest values.
func strongest(values []float64) (best int) {
	for i, v := range values {
		if v > values[best] {
			best = i
		}
	}
	return best
}

// way is a way of pointing.
type way struct{ text, by string }

// ways are the ways in which a model of regions can point: with the name of an object as the whole text,
// by each formula, and with the name within the caption, by what its words look at and by what they add.
var ways = []way{
	{"name alone", explain.FormulaTerms}, {"name alone", explain.FormulaChannels}, {"name alone", explain.FormulaElementwise}, {"name alone", explain.FormulaGradCAM},
	{"in its caption", "attention"}, {"in its caption", explain.FormulaTerms},
}

// point measures how often the strongest region of a name is the object that it names, among n scenes of
// the test split, and how often chance would be right.
func point(dir string, n int) (found map[way]pointing, chance float64, err error) {
	t, err := run.Open(dir, run.OpenOptions{})
	if err != nil {
		return nil, 0, err
	}
	defer t.Close()
	w, err := source.World(t.Config)
	if err != nil {
		return nil, 0, err
	}
	set, err := run.OpenSplit(context.Background(), t.Config, "test", nil, nil)
	if err != nil {
		return nil, 0, err
	}
	n = min(n, set.Len())
	found = map[way]pointing{}
	named := 0
	for _, x := range ways {
		formula := x.by
		switch {
		case !t.Config.Model.Interacts() && (x.by == explain.FormulaTerms || x.text == "in its caption"):
			continue
		case x.by == "attention":
			formula = ""
		}
		e, err := explain.New(t, explain.Options{Formula: formula})
		if err != nil {
			return nil, 0, err
		}
		var p pointing
		for i := range n {
			scene := w.Test(i)
			if x.text == "in its caption" {
				err = p.caption(e, set, i, scene, x.by == "attention")
			} else {
				err = p.names(e, set, i, scene)
			}
			if err != nil {
				return nil, 0, err
			}
		}
		found[x] = p
	}
	for i := range n {
		objects := len(w.Test(i).Objects)
		chance, named = chance+1, named+objects
	}
	return found, chance / float64(named), nil
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
		for i, v := range r.WordMaps[word].Values {
			(*to)[i] += v
		}
		return
	}
	for _, t := range r.Compared.Terms {
		for i := range *to {
			(*to)[i] += t.Adds[t.At(token, i)]
		}
	}
}

// measurePointing prints a line for each run and way of pointing, and the mean over the runs.
func measurePointing(runs []string, n int) error {
	fmt.Printf("%-24s %-16s %-12s %8s %8s %8s\n", "run", "text", "by", "names", "right", "chance")
	sum, names, count := map[way][2]float64{}, map[way]float64{}, map[way]float64{}
	line := func(name string, w way, named int, right, chance float64) {
		fmt.Printf("%-24s %-16s %-12s %8d %7.2f%% %7.2f%%\n", name, w.text, w.by, named, 100*right, 100*chance)
	}
	for _, dir := range runs {
		found, chance, err := point(dir, n)
		if err != nil {
			return fmt.Errorf("%s: %w", dir, err)
		}
		for _, w := range ways {
			if p, ok := found[w]; ok {
				line(dir, w, p.named, p.share(), chance)
				sum[w], count[w] = [2]float64{sum[w][0] + p.share(), sum[w][1] + chance}, count[w]+1
				names[w] += float64(p.named)
			}
		}
	}
	for _, w := range ways {
		if c := count[w]; c > 1 {
			line("mean", w, int(names[w]/c), sum[w][0]/c, sum[w][1]/c)
		}
	}
	return nil
}

// ofRegions says whether the first run is a model of regions of scenes, and refuses a mixture.
func ofRegions(runs []string) (bool, error) {
	var of []bool
	for _, dir := range runs {
		t, err := run.Open(dir, run.OpenOptions{})
		if err != nil {
			return false, fmt.Errorf("%s: %w", dir, err)
		}
		c := t.Config
		t.Close()
		if !c.Data.Drawn() {
			return false, fmt.Errorf("%s: data.kind %q has no objects that are known: measure a run on the built-in scenes", dir, c.Data.Kind)
		}
		of = append(of, c.ReadsRegions())
	}
	if slices.Contains(of, !of[0]) {
		return false, errors.New("runs of regions and of pixels are measured apart (got both)")
	}
	return of[0], nil
}
