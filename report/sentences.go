package report

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/geoalign/geoalign/internal/words"
)

// Sentences is what an evaluation on tasks of sentence pairs found.
type Sentences struct {
	Step    int        `json:"step"`    // of the model
	Feature string     `json:"feature"` // what stood for a sentence
	Tables  []Table    `json:"tables"`
	Spectra []Spectrum `json:"spectra,omitempty"`
	Cosines []Cosines  `json:"cosines,omitempty"` // of one task, a list for each class or range of scores
	Places  *Places    `json:"places,omitempty"`
}

// Spectrum is the singular values of the sentences of a task, the largest first.
type Spectrum struct {
	Task   string    `json:"task"`
	Values []float64 `json:"values"`
}

// Cosines are those of pairs that have one name.
type Cosines struct {
	Name   string    `json:"name"`
	Values []float64 `json:"values"`
}

// Places is where pairs of sentences lie in the plane: the first sentences, then the second ones.
type Places struct {
	Task    string       `json:"task"`
	PCA     [][2]float64 `json:"pca"`
	Share   [2]float64   `json:"share"` // of the variance, of both directions
	TSNE    [][2]float64 `json:"tsne"`
	Labels  []string     `json:"labels,omitempty"`  // class of each pair
	Numbers []float64    `json:"numbers,omitempty"` // or its score
	Texts   []string     `json:"texts"`             // of each pair
}

// Place finds the places of n pairs of vectors, first (n, c) and second (n, c), by their directions: PCA and t-SNE,
// whose jitter seed draws.
func (p *Places) Place(first, second []float32, c int, seed uint64) error {
	var x []float64
	for _, list := range [][]float32{first, second} {
		for i := 0; i < len(list); i += c {
			sum := 0.0
			for _, v := range list[i : i+c] {
				sum += float64(v) * float64(v)
			}
			for _, v := range list[i : i+c] {
				x = append(x, float64(v)/max(math.Sqrt(sum), 1e-30))
			}
		}
	}
	for _, v := range x {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Errorf("report: the vectors of %s are not finite numbers", p.Task)
		}
	}
	n := len(x) / c
	var err error
	if p.PCA, p.Share, err = PCA(x, n, c); err != nil {
		return err
	}
	p.TSNE = TSNE(x, n, c, p.PCA, TSNEOptions{Seed: seed})
	return nil
}

// check reports places that do not fit.
func (p *Places) check() error {
	n := len(p.Texts)
	if n == 0 || len(p.PCA) != 2*n || len(p.TSNE) != 2*n || len(p.Labels) != n && len(p.Numbers) != n {
		return fmt.Errorf("report: %d pairs of sentences need two places each and a label (got %d, %d, %d and %d)", n,
			len(p.PCA), len(p.TSNE), len(p.Labels), len(p.Numbers))
	}
	return nil
}

// SentencesPage is the page of one evaluation on tasks of sentence pairs.
type SentencesPage struct {
	Title     string
	Facts     []Fact
	Sentences Sentences
}

// WriteSentences writes such a page.
func WriteSentences(w io.Writer, x SentencesPage) error {
	p := page{Title: x.Title, Kind: "evaluation on sentence pairs", Facts: x.Facts}
	s, err := sentenceSection(Data{Sentences: &x.Sentences})
	if err != nil {
		return err
	}
	p.show(s)
	return p.write(w)
}

// sentenceSection draws an evaluation on sentence pairs.
func sentenceSection(d Data) (section, error) {
	s := section{ID: "sentences", Title: "Sentence pairs"}
	x := d.Sentences
	if x == nil {
		return s, nil
	}
	s.Intro = fmt.Sprintf("Step %d, without fine-tuning: the cosine of two sentences by the %s.", x.Step, x.Feature)
	s.Tables = x.Tables
	if p := x.Places; p != nil {
		if err := p.check(); err != nil {
			return s, err
		}
		f := &Features{N: len(p.Texts), Texts: []float32{}, Captions: p.Texts, Labels: p.Labels}
		what := "class"
		if len(p.Labels) == 0 {
			f.Numbers, what = p.Numbers, "score"
		}
		col := f.colouring()
		s.Legend = col.legend()
		s.Panels = append(s.Panels,
			panel{SVG: scatter(p.Task+", PCA", f, p.PCA, col), Wide: true,
				Caption: fmt.Sprintf("%d pairs of %s: dots are first sentences, crosses second ones, a line joins both; the colour is the %s. The two directions of the largest variance: %.0f %% and %.0f %% of all.",
					f.N, p.Task, what, 100*p.Share[0], 100*p.Share[1])},
			panel{SVG: scatter(p.Task+", t-SNE", f, p.TSNE, col), Wide: true,
				Caption: "Near points are near in the full space too; distances between groups and the sizes of groups mean nothing."})
	}
	if svg := cosineHills(x.Cosines); svg.SVG != "" {
		s.Panels = append(s.Panels, svg)
	}
	if svg := spectra(x.Spectra); svg.SVG != "" {
		s.Panels = append(s.Panels, svg)
	}
	return s, nil
}

// cosineHills draws a histogram for each list of cosines, in the colours that classes have in a scatter.
func cosineHills(list []Cosines) panel {
	var all []hill
	var names []string
	for _, c := range list {
		names = append(names, c.Name)
	}
	slices.SortFunc(names, words.Natural)
	for _, c := range list {
		if len(c.Values) > 0 {
			all = append(all, hill{c.Name, c.Values, fmt.Sprintf("c%d", slices.Index(names, c.Name)%colours)})
		}
	}
	if all == nil {
		return panel{}
	}
	return panel{SVG: hills("cosines of pairs", "cosine", all, wideWidth), Wide: true,
		Caption: "The further apart the hills, the more a cosine tells. Each hill is drawn with the same height."}
}

// spectra draws singular values as shares of the largest.
func spectra(list []Spectrum) panel {
	ch := chart{title: "singular values", unit: "share of the largest", x: "number", wide: true, log: true, keys: true}
	for i, x := range list {
		var points []Point
		for k, v := range x.Values {
			if share := v / x.Values[0]; share > 1e-6 { // else it is rounding
				points = append(points, Point{float64(k + 1), share})
			}
		}
		if points != nil {
			ch.curves = append(ch.curves, curve{name: x.Task, points: points, colour: i})
		}
	}
	if ch.curves == nil {
		return panel{}
	}
	return panel{SVG: ch.draw(), Wide: true,
		Caption: "Of the sentences with their mean taken away: the slower the fall, the more directions are in use."}
}

// ofSentences says whether a number is one of tasks of sentence pairs.
func ofSentences(name string) bool {
	_, _, ok := sentenceGroup(name)
	return ok
}

// sentenceCurve says whether such a number has a curve: of STS tasks Spearman's correlation over all pairs, of others
// all but a constant.
func sentenceCurve(name string) bool {
	return !strings.HasPrefix(name, "eval/sts/") && !strings.HasSuffix(name, "/constant") ||
		strings.Count(name, "/") == 3 && strings.HasSuffix(name, "/spearman")
}

// sentenceGroup is the chart that a number of tasks of sentence pairs stands in, and its label there; ok is false for
// another number.
func sentenceGroup(name string) (group, label string, ok bool) {
	parts := strings.Split(strings.TrimPrefix(name, "eval/"), "/")
	last := len(parts) - 1
	if last < 2 {
		return "", "", false
	}
	switch task := strings.Join(parts[1:last], " "); parts[0] {
	case "sts":
		return "STS: " + strings.ReplaceAll(parts[last], "_", " "), task, true
	case "pairs":
		return task + ": accuracy", parts[last], true
	case "isotropy":
		return "isotropy: " + strings.ReplaceAll(parts[last], "_", " "), task, true
	}
	return "", "", false
}
