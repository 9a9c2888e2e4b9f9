package report

import (
	"fmt"
	"html/template"
	"io"
	"unicode/utf8"

	"github.com/geoalign/geoalign/eval"
)

// Classes is what a task that tells classes took the images, or pairs of texts, of each class for.
type Classes struct {
	Title string           `json:"title"` // of the task
	Step  int              `json:"step"`  // of the model
	Split string           `json:"split,omitempty"`
	Table *eval.ClassTable `json:"table"`
}

// ClassesPage is the page of one evaluation that tells classes.
type ClassesPage struct {
	Title   string
	Facts   []Fact
	Classes Classes
}

// WriteClasses writes such a page.
func WriteClasses(w io.Writer, c ClassesPage) error {
	p := page{Title: c.Title, Kind: "evaluation of classes", Facts: c.Facts}
	s, err := classSection(Data{Classes: []Classes{c.Classes}})
	if err != nil {
		return err
	}
	p.show(s)
	return p.write(w)
}

// mostNamed is the largest number of classes whose names stand at the matrix, mostHardest that of the
// lines of the table.
const (
	mostNamed   = 40
	mostHardest = 50
)

// classSection draws the confusion matrices and lists the classes.
func classSection(d Data) (section, error) {
	s := section{ID: "classes", Title: "Classes",
		Intro: "Each row of a matrix is a class, its columns are what the images, or pairs of texts, of the class were taken for: the darker, the larger their share. Right ones are on the diagonal."}
	for _, c := range d.Classes {
		t := c.Table
		if err := t.Check(); err != nil {
			return s, err
		}
		title := fmt.Sprintf("%s, step %d", c.Title, c.Step)
		if c.Split != "" {
			title = fmt.Sprintf("%s on %s, step %d", c.Title, c.Split, c.Step)
		}
		if t.Confused != nil && t.All() > 0 {
			caption := fmt.Sprintf("%d of %d right, mean of classes %.1f %%.", right(t), t.All(), t.MeanOfClasses())
			if k := len(t.Names); k > mostCells {
				caption += fmt.Sprintf(" %d classes in %d rows and columns: a cell shows the largest share of those that fall in it.", k, mostCells)
			}
			s.Panels = append(s.Panels, panel{SVG: confusion(title, t), Wide: true, Caption: caption})
		}
		table := Table{Title: title, Head: []string{"class", "number", "top-1", "most often taken for"}}
		for _, line := range t.Hardest(mostHardest) {
			taken := ""
			if line.Wrong > 0 {
				taken = fmt.Sprintf("%s (%d)", line.Most, line.Wrong)
			}
			table.Rows = append(table.Rows, Texts(line.Class, fmt.Sprint(line.Images), fmt.Sprintf("%.1f", line.Top1),
				taken))
		}
		if n := len(t.Names) - t.Empty(); n > mostHardest {
			table.Note = fmt.Sprintf("The %d classes of %d with the lowest accuracy.", mostHardest, n)
		}
		if n := t.Empty(); n > 0 {
			table.Note += fmt.Sprintf(" %d of %d classes have no image.", n, len(t.Names))
		}
		s.Tables = append(s.Tables, table)
	}
	return s, nil
}

// right is the number of images that got their class.
func right(t *eval.ClassTable) (n int) {
	for _, r := range t.Right {
		n += r
	}
	return n
}

// confusion draws the matrix of a table, thinned to mostCells classes a side.
func confusion(title string, t *eval.ClassTable) template.HTML {
	k := len(t.Names)
	cells := min(k, mostCells)
	share := make([]float64, cells*cells)
	for i := range k {
		for j := range k {
			if n := t.Confused[i*k+j]; n > 0 {
				at := i*cells/k*cells + j*cells/k
				share[at] = max(share[at], float64(n)/float64(t.Images[i]))
			}
		}
	}
	const side = 430.0
	margin := 20.0 // with names as wide as they are, at most 18 letters
	if k <= mostNamed {
		longest := 0
		for _, name := range t.Names {
			longest = max(longest, utf8.RuneCountInString(shorten(name)))
		}
		margin += 6 * float64(longest)
	}
	c := newCanvas(wideWidth, side+margin+40, "confusion of classes, "+title)
	c.heading(title, "")
	left, top := margin+(wideWidth-side-margin)/2, 30.0
	cell := side / float64(cells)
	cellsAt(c, left, top, cell, cells, func(i, j int) float64 { return share[i*cells+j] })
	if k > mostNamed {
		c.text("label", "middle", left+side/2, top+side+17, "taken for")
		return c.done()
	}
	for i, name := range t.Names {
		at := (float64(i) + 0.5) * cell
		c.text("tick", "end", left-6, top+at+4, shorten(name))
		fmt.Fprintf(&c.b, `<text class="tick" text-anchor="end" transform="translate(%s %s) rotate(-60)">%s</text>`,
			px(left+at+3), px(top+side+12), escape(shorten(name)))
	}
	return c.done()
}

// shorten cuts a name to what has room beside a matrix.
func shorten(name string) string {
	if r := []rune(name); len(r) > 18 {
		return string(r[:17]) + "~"
	}
	return name
}
