package report

import (
	"fmt"
	"html/template"
	"math"
	"strconv"
	"strings"
)

// canvas collects the elements of an SVG. Colours come from the classes of the page's
// style, so that a picture follows light and dark.
type canvas struct{ b strings.Builder }

// newCanvas begins a picture of w x h units whose text alternative is label.
func newCanvas(w, h float64, label string) *canvas {
	c := &canvas{}
	fmt.Fprintf(&c.b, `<svg viewBox="0 0 %s %s" width="%s" height="%s" role="img" aria-label="%s">`, px(w), px(h),
		px(w), px(h), escape(label))
	return c
}

// done ends the picture.
func (c *canvas) done() template.HTML { return template.HTML(c.b.String() + "</svg>") }

// px writes a length with at most two decimals.
func px(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		v = 0
	}
	return trimZeros(strconv.FormatFloat(math.Round(v*100)/100, 'f', 2, 64))
}

// escape makes text safe within an element or an attribute; what XML cannot hold is
// replaced.
func escape(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < 0x20 && r != '\t' && r != '\n' || r == 0xFFFE || r == 0xFFFF {
			return 0xFFFD
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "'", "&#39;").Replace(s)
}

func (c *canvas) line(class string, x0, y0, x1, y1 float64) {
	fmt.Fprintf(&c.b, `<line class="%s" x1="%s" y1="%s" x2="%s" y2="%s"/>`, class, px(x0), px(y0), px(x1), px(y1))
}

func (c *canvas) rect(class string, x, y, w, h float64) {
	fmt.Fprintf(&c.b, `<rect class="%s" x="%s" y="%s" width="%s" height="%s"/>`, class, px(x), px(y), px(w), px(h))
}

// text writes s; anchor is start, middle or end.
func (c *canvas) text(class, anchor string, x, y float64, s string) {
	fmt.Fprintf(&c.b, `<text class="%s" text-anchor="%s" x="%s" y="%s">%s</text>`, class, anchor, px(x), px(y),
		escape(s))
}

// heading writes the title of a picture with what is beside it in a weaker face.
func (c *canvas) heading(title, unit string) {
	fmt.Fprintf(&c.b, `<text class="title" x="4" y="15">%s`, escape(title))
	if unit != "" {
		fmt.Fprintf(&c.b, `<tspan class="unit" dx="7">%s</tspan>`, escape(unit))
	}
	c.b.WriteString(`</text>`)
}

// path draws points joined by lines; closed joins the last to the first.
func (c *canvas) path(class string, points [][2]float64, closed bool) {
	if len(points) == 0 {
		return
	}
	c.b.WriteString(`<path class="` + class + `" d="`)
	for i, p := range points {
		switch i {
		case 0:
			c.b.WriteByte('M')
		case 1:
			c.b.WriteByte('L')
		default:
			c.b.WriteByte(' ')
		}
		c.b.WriteString(strconv.FormatFloat(p[0], 'f', 1, 64) + "," + strconv.FormatFloat(p[1], 'f', 1, 64))
	}
	if closed {
		c.b.WriteByte('Z')
	}
	c.b.WriteString(`"/>`)
}

// textWidth estimates the width of s in a sans-serif face of a size.
func textWidth(s string, size float64) float64 {
	w := 0.0
	for _, r := range s {
		switch {
		case strings.ContainsRune("iljtf.,:;'|!()[] ", r):
			w += 0.32
		case strings.ContainsRune("mwMW@%", r):
			w += 0.88
		case r >= 'A' && r <= 'Z':
			w += 0.68
		default:
			w += 0.56
		}
	}
	return w * size
}
