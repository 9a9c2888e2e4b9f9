package report

import (
	"encoding/base64"
	"fmt"
	"html/template"
	"image/color"
	"io"
	"math"
	"path/filepath"
	"strings"

	"github.com/geoalign/geoalign/explain"
)

// Explanation is what a page shows of the scores of one pair.
type Explanation struct {
	Title  string
	Facts  []Fact
	Notes  []string
	Seen   []Picture // what the model sees of the images
	Parts  []ExplainedScore
	Beside []string // names of the files of pictures in the folder of the page, without spaces: Beside reads them
}

// Picture is a picture within a page.
type Picture struct {
	PNG     []byte
	Alt     string // what it shows, for those who do not see it
	Caption string
	Words   []explain.Word // under it; nil: none
}

// ExplainedScore is a score with the pictures of what it rests on, a section of the page.
type ExplainedScore struct {
	ID, Title, Intro string
	Words            []explain.Word // nil: none
	Pictures         []Picture
	Tables           []HeatTable
	Small            bool // many pictures
}

// HeatTable is a table of a page whose cells have colours.
type HeatTable struct {
	explain.Heatmap
	Title, Caption string
}

// WriteExplanation writes the page of an explained pair.
func WriteExplanation(w io.Writer, e Explanation) error {
	p := page{Title: e.Title, Kind: "what a score rests on", Beside: strings.Join(e.Beside, " "), Facts: e.Facts,
		Notes: e.Notes}
	seen := section{ID: "seen", Title: "Pair"}
	seen.show(e.Seen)
	p.show(seen)
	for _, x := range e.Parts {
		s := section{ID: x.ID, Title: x.Title, Intro: x.Intro, Small: x.Small, Legend: heatScale()}
		if len(x.Words) > 0 {
			s.Legend += wordStrip(x.Words, true)
		}
		s.show(x.Pictures)
		for _, t := range x.Tables {
			s.Panels = append(s.Panels, panel{SVG: t.draw(), Caption: t.Caption})
		}
		s.Single = len(x.Tables) > 0
		p.show(s)
	}
	return p.write(w)
}

// Beside returns the names of the files of pictures beside a page that WriteExplanation wrote; none of another page.
func Beside(page []byte) (names []string) {
	_, rest, _ := strings.Cut(string(page), `<meta name="pictures" content="`)
	list, _, _ := strings.Cut(rest, `"`)
	for _, name := range strings.Fields(list) {
		if filepath.Base(name) == name && filepath.Ext(name) == ".png" {
			names = append(names, name)
		}
	}
	return names
}

// denseColumns are so many that a table has smaller letters.
const denseColumns = 20

// draw draws the table, which scrolls within its panel.
func (t HeatTable) draw() template.HTML {
	var b strings.Builder
	cell := func(class, s string) { fmt.Fprintf(&b, `<td class="%s">%s</td>`, class, s) }
	b.WriteString(`<h3>` + escape(t.Title) + `</h3><div class="scroll"><table class="heatmap`)
	columns, decimals := len(t.Columns), 4
	if columns > denseColumns {
		b.WriteString(` dense`)
		decimals = 3
	}
	b.WriteString(`"><thead><tr><th></th>`)
	for j, name := range t.Columns {
		if !t.Wide() && j%4 != 0 {
			name = ""
		}
		b.WriteString(`<th>` + escape(name) + `</th>`)
	}
	for _, x := range t.Beside {
		b.WriteString(`<th>` + escape(x.Name) + `</th>`)
	}
	b.WriteString(`</tr></thead><tbody>`)
	marked := map[int]bool{}
	for _, at := range t.Marked {
		marked[at] = true
	}
	for i, name := range t.Rows {
		b.WriteString(`<tr><th scope="row">` + escape(name) + `</th>`)
		for j := range columns {
			at := i*columns + j
			c, figure, class := t.Colour(at), "", "narrow"
			if t.Wide() {
				figure, class = t.Cell(at), "cell"
			}
			if marked[at] {
				class += " marked"
			}
			fmt.Fprintf(&b, `<td class="%s" style="background:%s;color:%s" title="%s, %s: %s">%s</td>`, class, hex(c),
				hex(explain.Letters(c)), escape(name), escape(t.Columns[j]), explain.Figure(t.Values[at], 4), figure)
		}
		for _, x := range t.Beside {
			cell("figure", explain.Figure(x.Values[i], 4))
		}
		b.WriteString(`</tr>`)
	}
	for _, x := range t.Below {
		if !t.Wide() {
			break
		}
		b.WriteString(`<tr><th scope="row">` + escape(x.Name) + `</th>`)
		for _, v := range x.Values {
			cell("figure", explain.Figure(v, decimals))
		}
		b.WriteString(`</tr>`)
	}
	b.WriteString(`</tbody></table></div>`)
	return template.HTML(b.String())
}

func hex(c color.RGBA) string { return fmt.Sprintf("#%02x%02x%02x", c.R, c.G, c.B) }

// show adds pictures as panels.
func (s *section) show(list []Picture) {
	for _, x := range list {
		q := panel{SVG: x.img(), Caption: x.Caption}
		if len(x.Words) > 0 {
			q.Below = wordStrip(x.Words, false)
		}
		s.Panels = append(s.Panels, q)
	}
}

// img is the element of a picture.
func (x Picture) img() template.HTML {
	return template.HTML(`<img alt="` + escape(x.Alt) + `" src="data:image/png;base64,` +
		base64.StdEncoding.EncodeToString(x.PNG) + `">`)
}

// wordStrip is words on a colour as strong as their share of the largest one, with figures or without.
func wordStrip(list []explain.Word, figures bool) template.HTML {
	shares, most := explain.Shares(list), 0.0
	for _, s := range shares {
		most = max(most, s)
	}
	var b strings.Builder
	b.WriteString(`<div class="words">`)
	for i, w := range list {
		switch {
		case w.Special:
			fmt.Fprintf(&b, `<span class="special">%s</span>`, escape(w.Text))
			continue
		case most > 0 && shares[i] > 0:
			fmt.Fprintf(&b, `<span style="background:color-mix(in srgb,var(--c1) %.0f%%,transparent)" title="%.1f %% of what words add">%s`, 80*shares[i]/most, 100*shares[i], escape(w.Text))
		default:
			fmt.Fprintf(&b, `<span title="adds nothing">%s`, escape(w.Text))
		}
		if figures {
			fmt.Fprintf(&b, `<small>%.0f %%</small>`, 100*shares[i])
		}
		b.WriteString(`</span>`)
	}
	b.WriteString(`</div>`)
	return template.HTML(b.String())
}

// heatScale is the legend of the colours of maps.
func heatScale() template.HTML {
	var stops []string
	for i := range 7 {
		stops = append(stops, hex(explain.Heat(float64(i)/6)))
	}
	return template.HTML(`<div class="heat">nothing <i style="background:linear-gradient(90deg,` + strings.Join(stops,
		",") + `)"></i> most</div>`)
}

// Contributions is what class tokens, patches and words add to the scores of the right pairs of a
// split.
type Contributions struct {
	Title   string
	Facts   []Fact
	Notes   []string
	Tokens  []Bar // scores of class tokens or spheres, mean and standard deviation over pairs; nil: there is one
	Tokened bool  // class tokens, else spheres
	// Patches is the mean share of each patch, and Places that of each place of a text.
	Patches explain.Map
	Regions []Bar // instead of patches: of each number of a region, over the images that have it
	Words   []Bar
	Places  []Bar
}

// WriteContributions writes the page of a split.
func WriteContributions(w io.Writer, c Contributions) error {
	p := page{Title: c.Title, Kind: "what the scores of right pairs rest on", Facts: c.Facts, Notes: c.Notes}
	tokens := section{ID: "tokens", Title: "Class tokens",
		Missing: "The space has one class token, so there are no scores of single ones."}
	name := "class token"
	if !c.Tokened {
		tokens.Title, name = "Spheres", "sphere"
	}
	if len(c.Tokens) > 0 {
		tokens.Intro = "Each " + name + " compares its own channels of image and text; the score is their sum. Bars are means over the pairs, with one standard deviation to both sides. One that is high for every pair tells pairs apart as little as one that is near 0."
		tokens.Panels = []panel{{SVG: Bars{Title: "score of each " + name, Bars: c.Tokens}.draw(), Wide: true}}
	}
	patches := patchSection(c)
	words := section{ID: "words", Title: "Words",
		Intro: "Mean share that a word has of what words add to the score of its text, over the texts that have it, with one standard deviation to both sides. The number of texts stands behind the word."}
	if len(c.Words) > 0 {
		words.Panels = append(words.Panels, panel{SVG: Bars{Title: "by word", Bars: c.Words}.draw(), Wide: true})
	}
	if len(c.Places) > 0 {
		words.Panels = append(words.Panels, panel{SVG: Bars{Title: "by place in the text", Bars: c.Places}.draw(),
			Wide: true})
	}
	p.show(tokens, patches, words)
	return p.write(w)
}

// patchSection shows what patches or regions add.
func patchSection(c Contributions) section {
	if len(c.Regions) > 0 {
		return section{ID: "regions", Title: "Regions",
			Intro:  "Mean share that a region has of what the regions of an image add to a score, by its number in the data, over the images that have so many, with one standard deviation to both sides.",
			Panels: []panel{{SVG: Bars{Title: "by number of the region", Bars: c.Regions}.draw(), Wide: true}}}
	}
	s := section{ID: "patches", Title: "Patches",
		Intro: "Mean share that each patch has of what patches add to a score. Images differ, so a map of one bright place means that the model looks there whatever the image shows.", Legend: heatScale()}
	s.Panels = []panel{{SVG: heatGrid(c.Patches), Wide: true,
		Caption: fmt.Sprintf("An even map has %s %% everywhere. The largest share is %s %%.",
			short(100/float64(len(c.Patches.Values))), short(roundTo(100*c.Patches.Most(), 3)))}}
	return s
}

// heatGrid draws a map as squares.
func heatGrid(m explain.Map) template.HTML {
	const side = 420.0
	cell := math.Min(side/float64(m.Rows), side/float64(m.Columns))
	w, h := cell*float64(m.Columns), cell*float64(m.Rows)
	c := newCanvas(wideWidth, h+36, "mean share of each patch")
	c.heading("by patch", "share of the score")
	left := (wideWidth - w) / 2
	most := m.Most()
	for i, v := range m.Values {
		heat := 0.0
		if most > 0 {
			heat = max(v, 0) / most
		}
		k := explain.Heat(heat)
		x, y := left+cell*float64(i%m.Columns), 28+cell*float64(i/m.Columns)
		fmt.Fprintf(&c.b, `<rect fill="#%02x%02x%02x" shape-rendering="crispEdges" x="%s" y="%s" width="%s" height="%s"><title>row %d, column %d: %.2f %%</title></rect>`,
			k.R, k.G, k.B, px(x), px(y), px(cell+0.3), px(cell+0.3), i/m.Columns, i%m.Columns, 100*v)
	}
	c.rect("frame", left, 28, w, h)
	return c.done()
}
