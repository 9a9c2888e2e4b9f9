package report

import (
	"fmt"
	"html/template"
	"math"
	"strconv"
	"strings"
)

// size returns the number of weights that a metric must have.
func (m Metric) size() (n int, ok bool) {
	switch {
	case m.C < 1:
		return 0, false
	case m.Form == Diag:
		return m.C, true
	case m.Form == Dense:
		return m.C * m.C, true
	case m.Form == BlockDiag && m.Blocks > 0 && m.C%m.Blocks == 0:
		return m.C * (m.C / m.Blocks), true
	}
	return 0, false
}

// departures returns the weights minus those of the identity, at which training begins.
func (m Metric) departures() []float64 {
	out := make([]float64, len(m.Weights))
	side := 1
	switch m.Form {
	case Dense:
		side = m.C
	case BlockDiag:
		side = m.C / m.Blocks
	}
	for i, w := range m.Weights {
		out[i] = float64(w)
		if r := i % (side * side); r/side == r%side && (m.Rank == 0 || r/side < m.Rank) {
			out[i]--
		}
	}
	return out
}

// metricSection draws the learned metrics.
func metricSection(d Data) section {
	s := section{ID: "metric", Title: "Learned metric"}
	if len(d.Metrics) == 0 {
		s.Missing = "The model has no learned metric of pairs."
		return s
	}
	s.Intro = "Weights of the metric, minus the identity that training begins with: white is unchanged, orange is more, blue is less. Rows are channels of the image, columns channels of the text. A metric of low rank begins with the first channels of the identity alone."
	for _, m := range d.Metrics {
		x := m.departures()
		lo, hi, most, bad := 0.0, 0.0, 0.0, 0
		for i, v := range x {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				x[i], bad = 0, bad+1
				continue
			}
			lo, hi, most = min(lo, v), max(hi, v), max(most, math.Abs(v))
		}
		text := fmt.Sprintf("%s, %s: departures from the identity between %s and %s.", m.Name,
			strings.ReplaceAll(m.Form, "_", "-"), short(lo), short(hi))
		if bad > 0 {
			text += fmt.Sprintf(" %d weights are no finite numbers.", bad)
		}
		if most == 0 {
			most = 1
			text += " It is the identity still."
		}
		p := panel{Wide: true}
		switch m.Form {
		case Diag:
			p.SVG = bars(m.Name, x)
		case BlockDiag:
			p.SVG = blocks(m.Name, x, m.Blocks, m.C/m.Blocks, most)
		default:
			var cells int
			p.SVG, cells = matrix(m.Name, x, m.C, most)
			if cells < m.C {
				text += fmt.Sprintf(" Drawn in %d x %d cells, each with the largest departure within it.", cells, cells)
			}
		}
		p.Caption = text
		s.Panels = append(append(s.Panels, p), weightPanels(m, x)...)
	}
	return s
}

// bars draws the departures of a diagonal as a bar per channel.
func bars(name string, x []float64) template.HTML {
	w, h := wideWidth, chartHeight
	c := newCanvas(w, h, "weights of "+name)
	f := frame{c: c, left: marginLeft, top: marginTop, width: w - marginLeft - marginRight,
		height: h - marginTop - marginFoot}
	lo, hi := 0.0, 0.0
	for _, v := range x {
		lo, hi = min(lo, v), max(hi, v)
	}
	f.x = axis{lo: 0, hi: float64(len(x)), pixels: f.width}
	f.y = linear(lo, hi, f.height)
	f.grid("channel")
	c.heading(name, "weight - 1")
	zero := f.atY(0)
	for _, sign := range []struct {
		class string
		up    bool
	}{{"bar c1", true}, {"bar c0", false}} {
		var d strings.Builder
		for i, v := range x {
			if (v > 0) != sign.up || v == 0 {
				continue
			}
			left, right := f.atX(float64(i)+0.1), f.atX(float64(i)+0.9)
			fmt.Fprintf(&d, "M%s,%sH%sV%sH%sZ", px(left), px(zero), px(right), px(f.atY(v)), px(left))
		}
		if d.Len() > 0 {
			c.b.WriteString(`<path class="` + sign.class + `" d="` + d.String() + `"/>`)
		}
	}
	c.line("axis", f.left, zero, f.left+f.width, zero)
	return c.done()
}

// shades is the number of steps of the diverging scale to one side of its middle.
const shades = 20

// shade returns the colour of t from -1 to 1: blue, white, orange.
func shade(t float64) string {
	t = max(-1, min(1, t))
	end := [3]float64{0xc4, 0x4e, 0x00}
	if t < 0 {
		end = [3]float64{0x00, 0x5a, 0xa0}
	}
	a := math.Pow(math.Abs(t), 0.8)
	var b [3]int
	for i := range b {
		b[i] = int(math.Round(255 + a*(end[i]-255)))
	}
	return fmt.Sprintf("#%02x%02x%02x", b[0], b[1], b[2])
}

// cellsAt draws a square of n x n values at (x, y) as one path per shade.
func cellsAt(c *canvas, x, y, cell float64, n int, value func(i, j int) float64) {
	c.b.WriteString(`<g shape-rendering="crispEdges" transform="translate(` + px(x) + ` ` + px(y) + `) scale(` +
		strconv.FormatFloat(cell, 'f', 4, 64) + `)">`)
	fmt.Fprintf(&c.b, `<rect fill="#ffffff" width="%d" height="%d"/>`, n, n)
	paths := make([]strings.Builder, 2*shades+1)
	for i := range n {
		for j := 0; j < n; {
			k := int(math.Round(value(i, j) * shades))
			run := 1
			for j+run < n && int(math.Round(value(i, j+run)*shades)) == k {
				run++
			}
			if k != 0 {
				fmt.Fprintf(&paths[max(0, min(2*shades, k+shades))], "M%d,%dh%dv1h-%dz", j, i, run, run)
			}
			j += run
		}
	}
	for k := range paths {
		if paths[k].Len() > 0 {
			fmt.Fprintf(&c.b, `<path fill="%s" d="%s"/>`, shade(float64(k-shades)/shades), paths[k].String())
		}
	}
	c.b.WriteString(`</g>`)
	c.rect("frame", x, y, cell*float64(n), cell*float64(n))
}

// scale draws the colours from -most to most at (x, y), h high.
func scale(c *canvas, x, y, h, most float64) {
	const w = 14.0
	for k := shades; k >= -shades; k-- {
		top := y + h*float64(shades-k)/(2*shades+1)
		fmt.Fprintf(&c.b, `<rect fill="%s" x="%s" y="%s" width="%s" height="%s"/>`, shade(float64(k)/shades), px(x),
			px(top), px(w), px(h/(2*shades+1)+0.4))
	}
	c.rect("frame", x, y, w, h)
	for _, l := range []struct{ at, v float64 }{{0, most}, {0.5, 0}, {1, -most}} {
		text := short(l.v)
		if l.v > 0 {
			text = "+" + text
		}
		c.text("tick", "start", x+w+6, y+4+(h-1)*l.at, text)
	}
}

// mostCells is the side of a drawn matrix in cells.
const mostCells = 96

// matrix draws a square of side n, thinned to at most mostCells a side.
func matrix(name string, x []float64, n int, most float64) (template.HTML, int) {
	cells := min(n, mostCells)
	small := make([]float64, cells*cells)
	for i := range n {
		for j := range n {
			at := i*cells/n*cells + j*cells/n
			if v := x[i*n+j]; math.Abs(v) > math.Abs(small[at]) {
				small[at] = v
			}
		}
	}
	const side = 430.0
	w, h := wideWidth, side+52
	c := newCanvas(w, h, "weights of "+name)
	c.heading(name, "")
	left := (w - side - 50) / 2
	cellsAt(c, left, 30, side/float64(cells), cells, func(i, j int) float64 { return small[i*cells+j] / most })
	c.text("label", "middle", left+side/2, 30+side+17, "text channel")
	fmt.Fprintf(&c.b, `<text class="label" text-anchor="middle" transform="translate(%s %s) rotate(-90)">image channel</text>`, px(left-9), px(30+side/2))
	scale(c, left+side+24, 30, side, most)
	return c.done(), cells
}

// blocks draws n blocks of side d in rows.
func blocks(name string, x []float64, n, d int, most float64) template.HTML {
	const w = wideWidth
	const scaleWidth, gap = 84.0, 12.0
	columns := min(n, max(1, int(math.Ceil(math.Sqrt(2*float64(n))))))
	rows := (n + columns - 1) / columns
	side := min(170, (w-scaleWidth-8)/float64(columns)-gap)
	h := 30 + float64(rows)*(side+gap+15)
	c := newCanvas(w, h, "weights of "+name)
	c.heading(name, "")
	left := max(4, (w-scaleWidth-float64(columns)*(side+gap))/2)
	for b := range n {
		px0 := left + float64(b%columns)*(side+gap)
		py0 := 42 + float64(b/columns)*(side+gap+15)
		block := x[b*d*d:][:d*d]
		cellsAt(c, px0, py0, side/float64(d), d, func(i, j int) float64 { return block[i*d+j] / most })
		if side >= 40 {
			c.text("tick", "start", px0, py0-4, "block "+strconv.Itoa(b))
		}
	}
	scale(c, left+float64(columns)*(side+gap)+14, 42, min(200, h-54), most)
	return c.done()
}
