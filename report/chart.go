package report

import (
	"html/template"
	"math"
	"strconv"
)

// Lengths of a chart in units of the picture, which are pixels at its natural size.
const (
	chartWidth  = 400.0
	chartHeight = 230.0
	wideWidth   = 600.0
	marginLeft  = 48.0
	marginRight = 14.0
	marginTop   = 28.0
	marginFoot  = 36.0
	letter      = 11.0 // size of tick labels
	tickGap     = 6.0  // between those of the vertical axis and the plotting area
)

// colours is the number of hues, classes c0 to c7 of the page's style; dashes tell apart
// what has the same hue.
const (
	colours = 8
	dashes  = 3
)

// curveClass is the style of the i-th of several lines.
func curveClass(i int) string {
	return "ln c" + strconv.Itoa(i%colours) + " d" + strconv.Itoa(i/colours%dashes)
}

// curve is a line of a chart.
type curve struct {
	name   string
	points []Point
	low    []Point // lower edge of a band with the same steps as high; nil: none
	high   []Point
	faint  bool // drawn thin and pale: the raw values behind a smoothed line
	colour int
	dots   bool // a mark at every point
}

// level is a horizontal line with a meaning.
type level struct {
	value float64
	text  string
}

// chart is a picture of curves over steps.
type chart struct {
	title  string
	unit   string // behind the title
	x      string // of the horizontal axis; empty: step
	curves []curve
	levels []level
	log    bool // vertical axis, where all values are above 0
	logX   bool // likewise the horizontal axis
	wide   bool
	note   string // at the right of the title: the last value
	keys   bool   // names of the curves stand at the right of the title
	last   int    // step that the horizontal axis reaches from 0; 0: it has the range of the points
}

// bounds returns the ranges of both axes; ok is false without a finite point.
func (ch chart) bounds() (x0, x1, y0, y1 float64, ok bool) {
	x0, y0, x1, y1 = math.Inf(1), math.Inf(1), math.Inf(-1), math.Inf(-1)
	for _, c := range ch.curves {
		for _, list := range [][]Point{c.points, c.low, c.high} {
			for _, p := range list {
				x0, x1, y0, y1 = min(x0, p.Step), max(x1, p.Step), min(y0, p.Value), max(y1, p.Value)
				ok = true
			}
		}
	}
	for _, l := range ch.levels {
		if ok {
			y0, y1 = min(y0, l.value), max(y1, l.value)
		}
	}
	return x0, x1, y0, y1, ok
}

// draw returns the picture; it is empty without points.
func (ch chart) draw() template.HTML {
	x0, x1, y0, y1, ok := ch.bounds()
	if !ok {
		return ""
	}
	w, h := chartWidth, chartHeight
	if ch.wide {
		w, h = wideWidth, 1.3*chartHeight
	}
	c := newCanvas(w, h, ch.title)
	f := frame{c: c, top: marginTop, height: h - marginTop - marginFoot}
	if ch.last > 0 {
		x0, x1 = 0, max(x1, float64(ch.last))
	}
	if x0 == x1 {
		x0, x1 = x0-1, x1+1
	}
	f.y = linear(y0, y1, f.height)
	if ch.log && y0 > 0 && y1 > y0 {
		f.y = axis{lo: y0 / 1.1, hi: y1 * 1.1, log: true, pixels: f.height}
	}
	f.left = max(marginLeft, f.labels()+tickGap+2)
	f.width = w - f.left - marginRight
	f.x = axis{lo: x0, hi: x1, log: ch.logX && x0 > 0, pixels: f.width}
	x := ch.x
	if x == "" {
		x = "step"
	}
	f.grid(x)
	c.heading(ch.title, ch.unit)
	if ch.note != "" {
		c.text("unit", "end", w-marginRight, 15, ch.note)
	}
	if ch.keys {
		ch.drawKeys(c, w-marginRight)
	}
	for _, l := range ch.levels {
		y := f.atY(l.value)
		c.line("level", f.left, y, f.left+f.width, y)
		c.text("leveltext", "end", f.left+f.width-3, f.above(y), l.text)
	}
	for _, k := range ch.curves {
		f.curve(k)
	}
	return c.done()
}

// frame is the plotting area of a picture.
type frame struct {
	c                        *canvas
	left, top, width, height float64
	x, y                     axis
}

func (f frame) atX(v float64) float64 { return f.left + f.x.at(v) }
func (f frame) atY(v float64) float64 { return f.top + f.height - f.y.at(v) }

// above returns the base line of a text over a line at y, under it where there is no room.
func (f frame) above(y float64) float64 {
	if y < f.top+14 {
		return y + 12
	}
	return y - 4
}

// vertical returns the ticks of the vertical axis with their labels.
func (f frame) vertical() ([]float64, []string) {
	ticks := f.y.ticks(4)
	return ticks, tickTexts(ticks, f.y.log)
}

// labels is the width of the widest label of the vertical axis, which is wide where values are near each other and far
// from 0.
func (f frame) labels() (w float64) {
	_, texts := f.vertical()
	for _, t := range texts {
		w = max(w, textWidth(t, letter))
	}
	return w
}

// grid draws both axes with their labels; label names the horizontal one.
func (f frame) grid(label string) {
	ticks, texts := f.vertical()
	for i, v := range ticks {
		y := f.atY(v)
		f.c.line("grid", f.left, y, f.left+f.width, y)
		f.c.text("tick", "end", f.left-tickGap, y+3.8, texts[i])
	}
	f.bottom(label)
}

// bottom draws the horizontal axis.
func (f frame) bottom(label string) {
	base := f.top + f.height
	f.c.line("axis", f.left, base, f.left+f.width, base)
	n := int(f.width / 70)
	ticks := f.x.ticks(n)
	texts := tickTexts(ticks, f.x.log)
	for i, v := range ticks {
		x, text := f.atX(v), texts[i]
		f.c.line("axis", x, base, x, base+4)
		half := textWidth(text, letter) / 2
		f.c.text("tick", "middle", min(x, f.left+f.width+marginRight-half-1), base+16, text)
	}
	f.c.text("label", "middle", f.left+f.width/2, base+31, label)
}

// curve draws a line with its band. A single point becomes a dot.
func (f frame) curve(k curve) {
	place := func(list []Point) [][2]float64 {
		out := make([][2]float64, len(list))
		for i, p := range list {
			out[i] = [2]float64{f.atX(p.Step), f.atY(p.Value)}
		}
		return out
	}
	hue := "c" + strconv.Itoa(k.colour%colours)
	if len(k.low) > 1 {
		area := place(k.high)
		low := place(k.low)
		for i := len(low) - 1; i >= 0; i-- {
			area = append(area, low[i])
		}
		f.c.path("band "+hue, area, true)
	}
	points := place(k.points)
	if len(points) > 1 {
		class := curveClass(k.colour)
		if k.faint {
			class = "raw " + hue
		}
		f.c.path(class, points, false)
	}
	if (k.dots && len(points) <= 60) || len(points) == 1 {
		for _, p := range points {
			f.c.b.WriteString(`<circle class="dot ` + hue + `" cx="` + px(p[0]) + `" cy="` + px(p[1]) + `" r="2.6"/>`)
		}
	}
}

// drawKeys writes the names of the curves with a sample of each, ending at x.
func (ch chart) drawKeys(c *canvas, x float64) {
	for i := len(ch.curves) - 1; i >= 0; i-- {
		k := ch.curves[i]
		if k.faint || k.name == "" {
			continue
		}
		c.text("key", "end", x, 15, k.name)
		x -= textWidth(k.name, 12) + 22
		c.line(curveClass(k.colour), x, 11, x+16, 11)
		x -= 10
	}
}
