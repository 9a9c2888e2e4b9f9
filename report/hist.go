package report

import (
	"fmt"
	"html/template"
	"math"
	"slices"
	"strings"

	"github.com/geoalign/geoalign/internal/median"
)

// bins is the number of bars of a histogram.
const bins = 60

// pairScores are the scores of pairs that belong together and of those that do not.
type pairScores struct{ own, other []float64 }

// score evaluates all N x N pairs of f. Pairs whose captions are the same text, or whose
// images have the same id, count as neither unless they are own pairs.
func score(f *Features, s Scorer) (pairScores, error) {
	n := f.N
	all := make([]float32, n*n)
	if err := s(f.Images, n, f.Texts, n, all); err != nil {
		return pairScores{}, fmt.Errorf("report: scores of pairs: %w", err)
	}
	var p pairScores
	for i := range n {
		for j, v := range all[i*n : i*n+n] {
			x := float64(v)
			switch {
			case math.IsNaN(x) || math.IsInf(x, 0):
			case i == j:
				p.own = append(p.own, x)
			case len(f.Captions) == n && f.Captions[i] == f.Captions[j], len(f.IDs) == n && f.IDs[i] == f.IDs[j]:
			default:
				p.other = append(p.other, x)
			}
		}
	}
	return p, nil
}

// cosines is the Scorer of the cosine of whole rows.
func cosines(c int) Scorer {
	return func(images []float32, n int, texts []float32, t int, dst []float32) error {
		norms := func(x []float32, n int) []float64 {
			out := make([]float64, n)
			for i := range out {
				sum := 0.0
				for _, v := range x[i*c : i*c+c] {
					sum += float64(v) * float64(v)
				}
				out[i] = math.Sqrt(sum)
			}
			return out
		}
		a, b := norms(images, n), norms(texts, t)
		for i := range n {
			x := images[i*c : i*c+c]
			for j := range t {
				y := texts[j*c:][:c]
				var sum float32
				for k, v := range x {
					sum += v * y[k]
				}
				dst[i*t+j] = float32(float64(sum) / (a[i] * b[j]))
			}
		}
		return nil
	}
}

// above is the probability that an own pair scores higher than another, ties counted
// half: the area under the ROC curve (Mann and Whitney's U over its largest value).
func (p pairScores) above() float64 {
	if len(p.own) == 0 || len(p.other) == 0 {
		return math.NaN()
	}
	other := slices.Sorted(slices.Values(p.other))
	sum := 0.0
	for _, v := range p.own {
		lo, _ := slices.BinarySearch(other, v)
		hi := lo
		for hi < len(other) && other[hi] == v {
			hi++
		}
		sum += float64(lo) + float64(hi-lo)/2
	}
	return sum / float64(len(p.own)) / float64(len(other))
}

// pairSection draws the histograms of own and other pairs.
func pairSection(d Data) (section, error) {
	s := section{ID: "pairs", Title: "Scores of pairs"}
	f := d.Features
	if f == nil && d.Pairs != nil {
		f = d.Pairs
	}
	switch {
	case f == nil:
		s.Missing = "No model was loaded, so there are no scores of pairs."
		return s, nil
	case f.OfTexts:
		s.Missing = "The model has no image tower, so there are no pairs."
		return s, nil
	case f.Texts == nil && f != d.Pairs:
		s.Missing = "The model has no text tower, so there are no pairs."
		return s, nil
	}
	s.Intro = fmt.Sprintf("%d images of the %s split with one caption each: the %d own pairs against the other pairs of the same images and captions. The further apart the two hills, the better retrieval works. Each hill is drawn with the same height.", f.N, f.Split, f.N)
	draw := func(title string, sc Scorer) error {
		p, err := score(f, sc)
		if err != nil || len(p.own) == 0 || len(p.other) == 0 {
			return err
		}
		s.Panels = append(s.Panels, panel{SVG: histogram(title, p), Wide: true,
			Caption: fmt.Sprintf("An own pair scores higher than another one with a probability of %.4f. Median of own pairs %s, of the others %s.", p.above(), short(median.Of(p.own)), short(median.Of(p.other)))})
		return nil
	}
	if f.Score != nil {
		name := f.ScoreName
		if name == "" {
			name = "the model's own score"
		}
		if err := draw(name, f.Score); err != nil {
			return s, err
		}
	}
	if f != d.Pairs {
		if err := draw("cosine", cosines(f.C)); err != nil {
			return s, err
		}
	}
	if len(s.Panels) == 0 {
		s.Missing = "There are no scores of other pairs to set beside those of own pairs."
	}
	return s, nil
}

// histogram draws two histograms, each with a height of 1: narrow hills would dwarf wide
// ones otherwise.
func histogram(title string, p pairScores) template.HTML {
	return hills(title, "score", []hill{{"other pairs", p.other, "c1"}, {"own pairs", p.own, "c0"}}, wideWidth)
}

// hill is a histogram with its name, which may be empty, and its colour.
type hill struct {
	name   string
	values []float64
	hue    string
}

// hills draws histograms over one axis, each with a height of 1.
func hills(title, label string, list []hill, w float64) template.HTML {
	lo, hi := math.Inf(1), math.Inf(-1)
	for _, x := range list {
		lo, hi = min(lo, slices.Min(x.values)), max(hi, slices.Max(x.values))
	}
	if alike(lo, hi) {
		room := 0.5 * max(1, math.Abs(lo))
		lo, hi = lo-room, hi+room
	}
	width := (hi - lo) / bins
	count := func(x []float64) []float64 {
		h := make([]float64, bins)
		for _, v := range x {
			h[min(bins-1, int((v-lo)/width))]++
		}
		most := slices.Max(h)
		for i := range h {
			h[i] /= most
		}
		return h
	}

	h := 1.15 * chartHeight
	c := newCanvas(w, h, "histogram of "+label+"s: "+title)
	f := frame{c: c, left: 14, top: marginTop, width: w - 28, height: h - marginTop - marginFoot}
	f.x = axis{lo: lo, hi: hi, pixels: f.width}
	f.y = axis{lo: 0, hi: 1.08, pixels: f.height}
	f.bottom(label)
	c.heading(title, "")
	for _, x := range list {
		outline := [][2]float64{{f.left, f.top + f.height}}
		for i, v := range count(x.values) {
			y := f.atY(v)
			outline = append(outline, [2]float64{f.atX(lo + float64(i)*width), y},
				[2]float64{f.atX(lo + float64(i+1)*width), y})
		}
		outline = append(outline, [2]float64{f.left + f.width, f.top + f.height})
		c.path("hist "+x.hue, outline, true)
	}
	x := w - marginRight
	for _, l := range list {
		if l.name == "" {
			continue
		}
		c.text("key", "end", x, 15, l.name)
		x -= textWidth(l.name, 12) + 16
		c.rect("hist "+l.hue, x, 6, 10, 10)
		x -= 16
	}
	return c.done()
}

// legend draws a row of line samples as HTML; styles are indices of curveClass, by
// default 0, 1, and so on.
func legend(names []string, styles ...int) template.HTML {
	var b strings.Builder
	b.WriteString(`<ul class="legend">`)
	for i, n := range names {
		if i < len(styles) {
			i = styles[i]
		}
		fmt.Fprintf(&b, `<li><svg viewBox="0 0 26 10" width="26" height="10" aria-hidden="true"><line class="%s" x1="1" y1="5" x2="25" y2="5"/></svg>%s</li>`, curveClass(i), escape(n))
	}
	b.WriteString(`</ul>`)
	return template.HTML(b.String())
}
