package report

import (
	"fmt"
	"html/template"
	"io"
	"math"
	"slices"
	"sort"
	"strings"

	"github.com/geoalign/geoalign/eval"
	"github.com/geoalign/geoalign/internal/words"
)

// Ablation is the comparison of several runs that a page shows.
type Ablation struct {
	Title  string
	Facts  []Fact
	Tables []Table
	Bars   []Bars
	Across []Across
	Runs   []Run
}

// Run is a configuration with the curves of its seeds.
type Run struct {
	Name  string
	Seeds []*Curves
	Also  []string // further names of it
}

// Bars is a metric of every run.
type Bars struct {
	Title string
	Bars  []Bar
}

// Bar is the mean of a metric over the seeds of a run; Spread is the standard deviation,
// NaN with one seed. Run is its place in Ablation.Runs, which gives it its colour.
type Bar struct {
	Name         string
	Mean, Spread float64
	Run          int
	Best         bool
}

// WriteAblation writes the page of a comparison.
func WriteAblation(w io.Writer, a Ablation) error {
	p := page{Title: a.Title, Kind: "comparison of training runs", Facts: a.Facts}
	tables := section{ID: "table", Title: "Table", Tables: a.Tables}
	if len(a.Tables) == 0 {
		tables.Missing = "No run is in the table so far."
	}
	bars := section{ID: "metrics", Title: "Metrics",
		Intro: "Mean over the seeds; the bar at its end is one standard deviation to both sides. The best run is marked with a star."}
	for _, b := range a.Bars {
		if svg := b.draw(); svg != "" {
			bars.Panels = append(bars.Panels, panel{SVG: svg, Wide: true})
		}
	}
	if len(bars.Panels) == 0 {
		bars.Missing = "No run has a metric so far."
	}
	sections := []section{tables}
	if len(a.Across) > 0 {
		sections = append(sections, a.across())
	}
	if len(a.Bars) > 0 || len(a.Across) == 0 { // methods times values times seeds are too many curves
		sections = append(sections, bars, a.curves("loss", "Loss", "loss", "a loss"),
			a.curves("evaluation", "Evaluation", "eval/", "an evaluation"))
	}
	p.show(sections...)
	return p.write(w)
}

// curves draws every curve whose name begins with prefix, all runs in one chart. of names one of them.
func (a Ablation) curves(id, title, prefix, of string) section {
	s := section{ID: id, Title: title, Intro: "Lines are means over the seeds of a run, bands reach from the smallest to the largest seed."}
	if prefix == "loss" {
		s.Intro += " Single losses are local means over steps."
	}
	var names, runs []string
	last := 0
	for _, r := range a.Runs {
		runs = append(runs, strings.Join(append([]string{r.Name}, r.Also...), ", "))
		for _, c := range r.Seeds {
			listed := c.Names(prefix)
			if prefix == "eval/" {
				listed = evalNames(c)
			}
			for _, n := range listed {
				if ranking, _ := splitRanking(n); ranking == eval.Random {
					continue // it does not change with the steps
				}
				if !slices.Contains(names, n) {
					names = append(names, n)
				}
			}
			if c != nil {
				last = max(last, c.Last)
			}
		}
	}
	slices.SortFunc(names, words.Natural)
	for _, name := range names {
		ch := chart{title: strings.TrimPrefix(strings.TrimPrefix(name, "loss/"), "eval/"), last: last}
		if ranking, metric := splitRanking(name); ranking != "" {
			ch.title = metricName(metric) + ", " + rankingNames[ranking]
		}
		if name == "loss" {
			ch.title = "total"
		}
		most := 0
		for i, r := range a.Runs {
			k := r.over(name, prefix == "loss")
			k.colour, k.dots = i, prefix != "loss"
			most = max(most, len(k.points))
			ch.curves = append(ch.curves, k)
		}
		if most < 2 {
			continue // the bars show it
		}
		s.add(ch, "")
	}
	if len(s.Panels) > 0 {
		s.Legend = legend(runs)
	} else {
		s.Missing = fmt.Sprintf("No run has logged %s more than once, so there are no curves of it over the steps.", of)
	}
	return s
}

// over returns the mean of a curve over the seeds that have it, with the range as band.
// At a step that one seed lacks its line is read between its neighbours; beyond its ends
// it does not count.
func (r Run) over(name string, smooth bool) curve {
	var seeds [][]Point
	var steps []float64
	for _, c := range r.Seeds {
		p := c.get(name)
		if len(p) == 0 {
			continue
		}
		if smooth {
			p = c.local(name)
		}
		seeds = append(seeds, p)
		for _, x := range p {
			steps = append(steps, x.Step)
		}
	}
	sort.Float64s(steps)
	steps = slices.Compact(steps)
	var k curve
	for _, s := range steps {
		lo, hi, sum, n := math.Inf(1), math.Inf(-1), 0.0, 0
		for _, p := range seeds {
			if v, ok := between(p, s); ok {
				lo, hi, sum, n = min(lo, v), max(hi, v), sum+v, n+1
			}
		}
		if n == 0 {
			continue
		}
		k.points = append(k.points, Point{s, sum / float64(n)})
		if len(seeds) > 1 {
			k.low, k.high = append(k.low, Point{s, lo}), append(k.high, Point{s, hi})
		}
	}
	k.points, k.low, k.high = thin(k.points, MaxPoints), thin(k.low, MaxPoints), thin(k.high, MaxPoints)
	return k
}

// between reads a curve at a step within its range.
func between(p []Point, step float64) (float64, bool) {
	i := sort.Search(len(p), func(i int) bool { return p[i].Step >= step })
	switch {
	case i == len(p):
		return 0, false
	case p[i].Step == step:
		return p[i].Value, true
	case i == 0:
		return 0, false
	}
	a, b := p[i-1], p[i]
	return a.Value + (b.Value-a.Value)*(step-a.Step)/(b.Step-a.Step), true
}

// draw returns horizontal bars, one below the other.
func (b Bars) draw() template.HTML {
	if len(b.Bars) == 0 {
		return ""
	}
	const row, size, mostName = 22.0, 12.0, 200.0
	names, lo, hi := 40.0, 0.0, 0.0
	for _, x := range b.Bars {
		names = max(names, min(mostName, textWidth(x.Name, size)))
		spread := 0.0
		if x.Spread > 0 {
			spread = x.Spread
		}
		lo, hi = min(lo, x.Mean-spread), max(hi, x.Mean+spread)
	}
	const w = wideWidth
	h := marginTop + row*float64(len(b.Bars)) + marginFoot
	c := newCanvas(w, h, b.Title)
	f := frame{c: c, left: names*1.12 + 18, top: marginTop, height: row * float64(len(b.Bars))}
	f.width = w - f.left - 74
	if lo == hi {
		hi = 1
	}
	f.x = axis{lo: lo, hi: hi * 1.02, pixels: f.width}
	if hi == 0 {
		f.x.hi = -lo * 0.02
	}
	c.heading(b.Title, "")
	ticks := f.x.ticks(5)
	for i, text := range tickTexts(ticks, false) {
		x := f.atX(ticks[i])
		c.line("grid", x, f.top, x, f.top+f.height)
		c.text("tick", "middle", x, f.top+f.height+16, text)
	}
	for i, x := range b.Bars {
		y := f.top + row*float64(i)
		from, to := f.atX(min(0, x.Mean)), f.atX(max(0, x.Mean))
		name := x.Name
		for r := []rune(name); textWidth(name, size) > mostName && len(r) > 4; {
			r = r[:len(r)-1]
			name = string(r) + "..."
		}
		c.text("key", "end", f.left-8, y+row/2+4, name)
		c.rect(fmt.Sprintf("bar c%d", x.Run%colours), from, y+4, max(to-from, 0.5), row-8)
		end := f.atX(x.Mean)
		if x.Spread > 0 {
			l, r := f.atX(x.Mean-x.Spread), f.atX(x.Mean+x.Spread)
			mid := y + row/2
			c.line("err", l, mid, r, mid)
			c.line("err", l, mid-4, l, mid+4)
			c.line("err", r, mid-4, r, mid+4)
			end = max(end, r)
		}
		text := short(roundTo(x.Mean, 4))
		if x.Best {
			text += " \u2605"
		}
		c.text("key", "start", max(end, f.atX(0))+6, y+row/2+4, text)
	}
	c.line("axis", f.atX(0), f.top, f.atX(0), f.top+f.height)
	return c.done()
}
