package report

import (
	"fmt"
	"html/template"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/geoalign/geoalign/internal/words"
)

// MostPoints is the largest number of points of the scatter, images and texts together.
// Of more pairs an even choice is drawn.
const MostPoints = 1000

// scatterSection draws the features in the plane.
func scatterSection(d Data) (section, error) {
	s := section{ID: "embedding", Title: "Embedding"}
	f := d.Features
	if f == nil {
		if d.Pairs == nil { // else a note says what there is
			s.Missing = "No model was loaded, so there are no features."
		}
		return s, nil
	}
	f = f.thin()
	x, n := f.points()
	for _, v := range x {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			s.Missing = "The features are not finite numbers."
			return s, nil
		}
	}
	flat := slices.Clone(x)
	gap := 0.0
	if f.Texts != nil {
		gap = parted(flat, f.N, f.C)
	}
	xy, share, err := PCA(flat, n, f.C)
	if err != nil {
		return s, err
	}
	noun, what := "image", "Filled dots are images."
	switch {
	case f.OfTexts:
		noun, what = "text", "Filled dots are texts."
	case f.Texts != nil:
		what = "Filled dots are images, crosses their captions; a line joins each image with its caption."
	}
	s.Intro = fmt.Sprintf("%s of the %s split in the space where the model compares them. %s", words.Count(f.N, noun),
		f.Split, what)
	if f.Attribute != "" {
		s.Intro += " The colour is the attribute " + f.Attribute + "."
	}
	col := f.colouring()
	s.Legend = col.legend()
	caption := fmt.Sprintf("The two directions of the largest variance: %.0f %% and %.0f %% of all.", 100*share[0],
		100*share[1])
	if gap > 0 {
		caption += fmt.Sprintf(" The distance between the mean of the images and that of the captions is %.0f %% of the whole variance; it is taken away here, so that both lie on each other.", 100*gap)
	}
	s.Panels = append(s.Panels,
		panel{SVG: scatter("PCA", f, xy, col), Wide: true, Caption: caption},
		panel{SVG: scatter("t-SNE", f, TSNE(x, n, f.C, xy, TSNEOptions{Seed: f.Seed}), col), Wide: true,
			Caption: "Near points are near in the full space too; distances between groups and the sizes of groups mean nothing."})
	return s, nil
}

// largeGap is the share of the variance from which the distance between the means of both
// modalities is taken away before the PCA, which would show little else.
const largeGap = 0.2

// parted moves n images and n texts of c channels each onto a mean of 0 where the
// distance between their means makes a large share of the variance, which it returns;
// otherwise it changes nothing and returns 0.
func parted(x []float64, n, c int) float64 {
	moved := slices.Clone(x)
	within := centre(moved[:n*c], n, c) + centre(moved[n*c:], n, c)
	whole := centre(slices.Clone(x), 2*n, c)
	if whole == 0 || 1-within/whole < largeGap {
		return 0
	}
	copy(x, moved)
	return 1 - within/whole
}

// thin returns at most MostPoints points of f.
func (f *Features) thin() *Features {
	most := MostPoints
	if f.Texts != nil {
		most /= 2
	}
	if f.N <= most {
		return f
	}
	out := *f
	out.N, out.Images, out.Texts, out.Labels, out.Numbers, out.Captions = most, nil, nil, nil, nil, nil
	for k := range most {
		i := k * f.N / most
		out.Images = append(out.Images, f.Images[i*f.C:][:f.C]...)
		if f.Texts != nil {
			out.Texts = append(out.Texts, f.Texts[i*f.C:][:f.C]...)
		}
		if f.Labels != nil {
			out.Labels = append(out.Labels, f.Labels[i])
		}
		if f.Numbers != nil {
			out.Numbers = append(out.Numbers, f.Numbers[i])
		}
		if f.Captions != nil {
			out.Captions = append(out.Captions, f.Captions[i])
		}
	}
	return &out
}

// points returns images and then texts as rows.
func (f *Features) points() (x []float64, n int) {
	for _, list := range [][]float32{f.Images, f.Texts} {
		for _, v := range list {
			x = append(x, float64(v))
		}
	}
	return x, len(x) / f.C
}

// colouring says how points are drawn by their attribute.
type colouring struct {
	classes []string // by point; empty with fills
	fills   []string // by point: #rrggbb; empty: the class
	names   []string // of the legend
	samples []string // attributes of the legend's dots
	lo, hi  float64  // of a quantity
	number  bool
}

// colouring chooses a hue per label, the commonest eight; the rest is grey.
func (f *Features) colouring() colouring {
	c := colouring{classes: make([]string, f.N), fills: make([]string, f.N)}
	if f.Numbers != nil {
		return f.quantities(c)
	}
	if f.Labels == nil {
		for i := range c.classes {
			c.classes[i] = "c0"
		}
		return c
	}
	counts := map[string]int{}
	for _, l := range f.Labels {
		counts[l]++
	}
	names := slices.Sorted(maps.Keys(counts))
	slices.SortStableFunc(names, func(a, b string) int { return counts[b] - counts[a] })
	own := true
	for _, n := range names {
		own = own && f.Palette[n] != ""
	}
	rest := 0
	if !own && len(names) > colours {
		for _, n := range names[colours:] {
			rest += counts[n]
		}
		names = names[:colours]
	}
	slices.SortFunc(names, words.Natural)
	for i, l := range f.Labels {
		at := slices.Index(names, l)
		switch {
		case own:
			c.fills[i] = f.Palette[l]
		case at < 0:
			c.classes[i] = "none"
		default:
			c.classes[i] = "c" + strconv.Itoa(at)
		}
	}
	for i, n := range names {
		c.names = append(c.names, fmt.Sprintf("%s (%d)", n, counts[n]))
		if own {
			c.samples = append(c.samples, `class="im" fill="`+escape(f.Palette[n])+`"`)
		} else {
			c.samples = append(c.samples, `class="im c`+strconv.Itoa(i)+`"`)
		}
	}
	if rest > 0 {
		c.names = append(c.names, fmt.Sprintf("others (%d)", rest))
		c.samples = append(c.samples, `class="im none"`)
	}
	return c
}

// quantities colours numbers by a sequence from dark blue over green to yellow.
func (f *Features) quantities(c colouring) colouring {
	c.number, c.lo, c.hi = true, math.Inf(1), math.Inf(-1)
	for _, v := range f.Numbers {
		c.lo, c.hi = min(c.lo, v), max(c.hi, v)
	}
	for i, v := range f.Numbers {
		t := 0.5
		if c.hi > c.lo {
			t = (v - c.lo) / (c.hi - c.lo)
		}
		c.fills[i] = sequence(t)
	}
	for k := range 5 {
		t := float64(k) / 4
		c.names = append(c.names, short(roundTo(c.lo+t*(c.hi-c.lo), 3)))
		c.samples = append(c.samples, `class="im" fill="`+sequence(t)+`"`)
	}
	return c
}

// sequence is a scale of rising lightness for t from 0 to 1.
func sequence(t float64) string {
	stops := [][3]float64{{0x3b, 0x2a, 0x8c}, {0x2b, 0x6f, 0xa8}, {0x1f, 0x9e, 0x89}, {0x7c, 0xc4, 0x4a},
		{0xf0, 0xd0, 0x2c}}
	at := max(0, min(1, t)) * float64(len(stops)-1)
	i := min(int(at), len(stops)-2)
	var b [3]int
	for k := range b {
		b[k] = int(math.Round(stops[i][k] + (at-float64(i))*(stops[i+1][k]-stops[i][k])))
	}
	return fmt.Sprintf("#%02x%02x%02x", b[0], b[1], b[2])
}

func (c colouring) legend() template.HTML {
	if len(c.names) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString(`<ul class="legend">`)
	for i, n := range c.names {
		fmt.Fprintf(&b, `<li><svg viewBox="0 0 12 12" width="12" height="12" aria-hidden="true"><circle %s cx="6" cy="6" r="5"/></svg>%s</li>`, c.samples[i], escape(n))
	}
	b.WriteString(`</ul>`)
	return template.HTML(b.String())
}

// scatter draws images and texts at their places, of which the texts' follow the images'.
func scatter(title string, f *Features, xy [][2]float64, col colouring) template.HTML {
	const w, h, room = wideWidth, 560.0, 26.0
	c := newCanvas(w, h, title+" of the features")
	lo, hi := xy[0], xy[0]
	for _, p := range xy {
		for k := range 2 {
			lo[k], hi[k] = min(lo[k], p[k]), max(hi[k], p[k])
		}
	}
	// One scale for both axes, so that distances are what they are.
	unit := math.Inf(1)
	for k, length := range []float64{w - 2*8, h - room - 2*8} {
		if hi[k] > lo[k] {
			unit = min(unit, length/(hi[k]-lo[k])*0.96)
		}
	}
	if math.IsInf(unit, 1) {
		unit = 1
	}
	place := func(i int) (x, y float64) {
		return w/2 + (xy[i][0]-(lo[0]+hi[0])/2)*unit, room + (h-room)/2 - (xy[i][1]-(lo[1]+hi[1])/2)*unit
	}
	c.heading(title, "")
	c.rect("frame", 1, room-2, w-2, h-room)
	if f.Texts != nil {
		c.b.WriteString(`<path class="pair" d="`)
		for i := range f.N {
			x0, y0 := place(i)
			x1, y1 := place(i + f.N)
			fmt.Fprintf(&c.b, "M%.1f,%.1fL%.1f,%.1f", x0, y0, x1, y1)
		}
		c.b.WriteString(`"/>`)
		for i := range f.N {
			x, y := place(i + f.N)
			c.mark(col, i, "tx", fmt.Sprintf(`path d="M%.1f,%.1fl5,5m0,-5l-5,5"`, x-2.5, y-2.5), "path", f.caption(i))
		}
	}
	for i := range f.N {
		x, y := place(i)
		c.mark(col, i, "im", fmt.Sprintf(`circle cx="%.1f" cy="%.1f" r="3.4"`, x, y), "circle", f.caption(i))
	}
	return c.done()
}

// caption returns the caption of image i, cut where it is long.
func (f *Features) caption(i int) string {
	if f.Captions == nil {
		return ""
	}
	const most = 80
	if r := []rune(f.Captions[i]); len(r) > most {
		return string(r[:most-3]) + "..."
	}
	return f.Captions[i]
}

// mark draws one point with its caption as a tooltip.
func (c *canvas) mark(col colouring, i int, class, element, name, caption string) {
	style := ""
	if fill := col.fills[i]; fill != "" {
		style = ` fill="` + escape(fill) + `"`
		if class == "tx" {
			style = ` stroke="` + escape(fill) + `"`
		}
	} else {
		class += " " + col.classes[i]
	}
	fmt.Fprintf(&c.b, `<%s class="%s"%s`, element, class, style)
	if caption == "" {
		c.b.WriteString("/>")
		return
	}
	c.b.WriteString("><title>" + escape(caption) + "</title></" + name + ">")
}
