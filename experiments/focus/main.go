// Command focus measures whether models that were trained on the built-in scenes look at the object
// that a text names. For every scene of the test split and every object of it, the text names the
// object alone, without its place, as in "a small red circle". Of the map that explains the score,
// it takes the share of its mass within the box of the object, against the share of the picture that
// the box has, and the same for the boxes of the other objects. Of the words of a caption it measures how
// their shares go with what the score loses when a word is replaced by an unknown one.
//
// Of models of regions, which are the objects of a scene, it measures how often the strongest region of a
// name is the object that it names, beside chance: of the name as a text of its own, and by what its words
// look at and add within the caption.
//
//	for s in 1 2 3; do bin/trainer train --config experiments/focus/focus.toml --seed $s --out runs/focus-$s; done
//	go -C experiments run ./focus runs/focus-1 runs/focus-2 runs/focus-3
//	go -C experiments run ./focus -scenes 1000 runs/gssf-scan
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"math"
	"slices"

	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/data/scenes"
	"github.com/geoalign/geoalign/data/source"
	"github.com/geoalign/geoalign/data/transform"
	heat "github.com/geoalign/geoalign/explain"
	"github.com/geoalign/geoalign/run"
	"github.com/geoalign/geoalign/run/explain"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("focus: ")
	n := flag.Int("scenes", 100, "scenes of the test split")
	flag.Parse()
	if flag.NArg() < 1 || *n < 1 {
		log.Fatal("want run folders, and -scenes above 0")
	}
	var lines []line // sums over the runs
	for _, dir := range flag.Args() {
		found, err := measure(dir, *n)
		if err != nil {
			log.Fatalf("%s: %v", dir, err)
		}
		for _, x := range found {
			fmt.Println(dir, x)
			at := slices.IndexFunc(lines, func(l line) bool { return l.what == x.what })
			if at < 0 {
				lines = append(lines, line{x.what, x.heads, make([]float64, len(x.values))})
				at = len(lines) - 1
			}
			floats.AddScaled(lines[at].values, 1/float64(flag.NArg()), x.values)
		}
	}
	for _, x := range lines {
		fmt.Println("mean", x)
	}
}

// line is what was measured in one way.
type line struct {
	what   string
	heads  []string // of the values
	values []float64
}

func (l line) String() string {
	s := l.what + ":"
	for i, v := range l.values {
		s += fmt.Sprintf(" %s %.2f", l.heads[i], v)
	}
	return s
}

// measure measures a run on n scenes.
func measure(dir string, n int) ([]line, error) {
	t, err := run.Open(dir, run.OpenOptions{})
	if err != nil {
		return nil, err
	}
	defer t.Close()
	w, err := source.World(t.Config.Source())
	if err != nil {
		return nil, err
	}
	if t.Config.Has(section.Regions) {
		return point(t, w, n)
	}
	var lines []line
	for _, formula := range []string{explain.FormulaChannels, explain.FormulaElementwise, explain.FormulaGradCAM} {
		found, worth, err := look(t, w, n, formula)
		if err != nil {
			return nil, err
		}
		add := func(what string, f focus) {
			lines = append(lines, line{what, []string{"in box %", "of area %", "times", "in others' %",
				"peak in box %"}, []float64{100 * f.inside, 100 * f.area, f.inside / f.area, 100 * f.others,
				100 * f.most}})
		}
		add(formula, found[explain.PairScore])
		if match, ok := found[explain.MatchScore]; ok && formula == explain.FormulaChannels {
			add("match head", match)
		}
		if formula == explain.FormulaChannels {
			lines = append(lines, line{"words", []string{"correlation with what the score loses without them"},
				[]float64{worth}})
		}
	}
	return lines, nil
}

// focus is where maps look, in means over objects: shares of the mass within the box of the named
// object, of the picture that the box has, and of the mass within the box of another one; and the
// share of maps whose largest patch has its middle within the box.
type focus struct{ inside, area, others, most float64 }

// tally sums the focus of objects up: of n of them, beside of which are not alone in their scene.
type tally struct {
	sum       focus
	n, beside float64
}

// add counts the map of object k of a scene.
func (t *tally) add(m heat.Map, objects []scenes.Object, k int) {
	inside, area, most := within(m, objects[k].Box())
	t.sum.inside, t.sum.area, t.n = t.sum.inside+inside, t.sum.area+area, t.n+1
	if most {
		t.sum.most++
	}
	if len(objects) == 1 {
		return
	}
	t.beside++
	for j, other := range objects {
		if j != k {
			v, _, _ := within(m, other.Box())
			t.sum.others += v / float64(len(objects)-1)
		}
	}
}

// mean is the focus of an object, and what is in the boxes of others where there are any.
func (t *tally) mean() focus {
	return focus{t.sum.inside / t.n, t.sum.area / t.n, t.sum.others / max(1, t.beside), t.sum.most / t.n}
}

// look explains n scenes of the test split to a run.
func look(t *run.Trained, w *scenes.World, n int, formula string) (found map[string]focus, worth float64, err error) {
	x, err := explain.New(t, explain.Options{Formula: formula})
	if err != nil {
		return nil, 0, err
	}
	var all []float64
	tallies := map[string]*tally{}
	for i := range min(n, w.NumTest()) {
		s := w.Test(i)
		img := transform.NewImage(t.Config.Model.Image.Size, t.Config.Model.Image.Size)
		s.RenderRGB(img.Pix, img.W)
		if c, err := words(x, img, s.Caption(nil)); err != nil {
			return nil, 0, err
		} else if !math.IsNaN(c) {
			all = append(all, c)
		}
		for k, named := range s.Objects {
			if err := x.Set(img, "a "+named.FullName()); err != nil {
				return nil, 0, err
			}
			found, err := x.All(context.Background())
			if err != nil {
				return nil, 0, err
			}
			for _, r := range found {
				if tallies[r.Name] == nil {
					tallies[r.Name] = &tally{}
				}
				tallies[r.Name].add(*r.Image, s.Objects, k)
			}
		}
	}
	out := map[string]focus{}
	for name, t := range tallies {
		out[name] = t.mean()
	}
	return out, stat.Mean(all, nil), nil
}

// within returns the share of the mass of a map that lies in a box, each patch counted as even, the
// share of the picture that the box has, and whether the middle of the largest patch lies in it.
func within(m heat.Map, b scenes.Box) (mass, area float64, most bool) {
	total, best, at := 0.0, math.Inf(-1), 0
	for i, v := range m.Values {
		v = max(v, 0)
		if v > best {
			best, at = v, i
		}
		row, column := float64(i/m.Columns)/float64(m.Rows), float64(i%m.Columns)/float64(m.Columns)
		h, w := 1/float64(m.Rows), 1/float64(m.Columns)
		over := max(min(b.X1, column+w)-max(b.X0, column), 0) * max(min(b.Y1, row+h)-max(b.Y0, row), 0)
		total += v
		mass += v * over / (h * w)
	}
	area = (b.X1 - b.X0) * (b.Y1 - b.Y0)
	if total == 0 {
		return area, area, false
	}
	x, y := (float64(at%m.Columns)+0.5)/float64(m.Columns), (float64(at/m.Columns)+0.5)/float64(m.Rows)
	return mass / total, area, x >= b.X0 && x < b.X1 && y >= b.Y0 && y < b.Y1
}
