package ablate

import (
	"bytes"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/geoalign/geoalign/eval/ablation"
	"github.com/geoalign/geoalign/internal/files"
	pages "github.com/geoalign/geoalign/report"
	"github.com/geoalign/geoalign/run"
	"github.com/geoalign/geoalign/train/runlog"
)

// page draws the results of an ablation with the curves of the runs that are done.
func (a *Ablation) page() ([]byte, error) {
	r := &a.Results
	p := pages.Ablation{Title: r.Title}
	if p.Title == "" {
		p.Title = filepath.Base(a.Out)
	}
	for _, row := range r.Rows {
		if row.Hidden {
			continue
		}
		drawn := pages.Run{Name: row.Name}
		for _, t := range row.Trials {
			// Of a run that is the same as another the curves are those of the other, and across values there are too many.
			if t.State != ablation.Done || row.Same != "" || row.At != nil {
				continue
			}
			c, err := run.ReadCurves(t.Folder)
			if err != nil {
				return nil, err
			}
			if c != nil {
				drawn.Seeds = append(drawn.Seeds, c)
			}
		}
		if len(drawn.Seeds) > 0 {
			p.Runs = append(p.Runs, drawn)
		}
	}
	for _, row := range r.Rows { // told by the legend, as they have the line of the other run
		if i := slices.IndexFunc(p.Runs, func(d pages.Run) bool { return d.Name == row.Same }); i >= 0 && !row.Hidden {
			p.Runs[i].Also = append(p.Runs[i].Also, row.Name)
		}
	}
	seeds := make([]string, len(r.Seeds))
	for i, s := range r.Seeds {
		seeds[i] = fmt.Sprint(s)
	}
	p.Facts = []pages.Fact{{Name: "base", Value: filepath.Base(r.Base)},
		{Name: "seeds", Value: strings.Join(seeds, ", ")}, {Name: "runs done", Value: r.Progress()}}
	if r.Baseline != "" {
		p.Facts = append(p.Facts, pages.Fact{Name: "baseline", Value: r.Baseline})
	}
	for i, t := range r.Tables {
		table := a.pageTable(t)
		if i == len(r.Tables)-1 {
			table.Note = pageLegend(r)
		}
		p.Tables = append(p.Tables, table)
		if t.Column != nil {
			p.Across = append(p.Across, pageAcross(t))
			continue
		}
		for j, c := range r.Columns {
			p.Bars = append(p.Bars, a.pageBars(t, j, c, p.Runs))
		}
	}
	var b bytes.Buffer
	err := pages.WriteAblation(&b, p)
	return b.Bytes(), err
}

// pageLegend is the legend of the tables with the marks that the page has: a difference stands
// in small type there, not in parentheses.
func pageLegend(r *ablation.Results) string {
	return strings.NewReplacer("**Bold**", "Bold on green", "*italic*", "italic", "In parentheses:",
		"In small type:").Replace(r.Legend())
}

// pageTable is a table with the texts of table.md.
func (a *Ablation) pageTable(t ablation.Table) pages.Table {
	out := pages.Table{Title: t.Title(), Head: append([]string{"run"}, a.Results.Heads(t)...)}
	noted := slices.ContainsFunc(t.Lines, func(l ablation.Line) bool { return l.Note != "" })
	if noted {
		out.Head = append(out.Head, "")
	}
	for i, l := range t.Lines {
		line := pages.Texts(l.Name)
		for j, c := range l.Cells {
			value, difference := a.Results.Texts(t, i, j)
			line.Cells = append(line.Cells, pages.Cell{Text: value, Minor: difference, Best: c.Best, Tied: c.Tied})
		}
		if noted {
			line.Cells = append(line.Cells, pages.Cell{Text: l.Note})
		}
		out.Rows = append(out.Rows, line)
	}
	return out
}

// pageAcross is a table of one metric.
func pageAcross(t ablation.Table) pages.Across {
	out := pages.Across{Title: t.Title(), Key: t.Across}
	for _, l := range t.Lines {
		line := pages.AcrossLine{Name: l.Name}
		for k, c := range l.Cells {
			if c.Mean == nil {
				continue
			}
			spread := math.NaN()
			if c.SD != nil {
				spread = *c.SD
			}
			line.Points = append(line.Points, pages.AcrossPoint{At: t.Values[k], Mean: *c.Mean, Spread: spread})
		}
		out.Lines = append(out.Lines, line)
	}
	return out
}

// pageBars is column j of a table; runs without a value have no bar.
func (a *Ablation) pageBars(t ablation.Table, j int, c ablation.Column, runs []pages.Run) pages.Bars {
	b := pages.Bars{Title: c.Heading()}
	if t.Group != "" {
		b.Title = t.Group + ": " + b.Title
	}
	for _, l := range t.Lines {
		cell := l.Cells[j]
		if cell.Mean == nil {
			continue
		}
		bar := pages.Bar{Name: l.Name, Mean: *cell.Mean, Spread: math.NaN(), Best: cell.Best}
		if cell.SD != nil {
			bar.Spread = *cell.SD
		}
		name := l.Name // or of the run that it is the same as, whose colour it has
		for _, row := range a.Results.Rows {
			if row.Name == l.Name && row.Same != "" {
				name = row.Same
			}
		}
		bar.Run = max(0, slices.IndexFunc(runs, func(r pages.Run) bool { return r.Name == name }))
		b.Bars = append(b.Bars, bar)
	}
	return b
}

// savePage writes the page. What goes wrong with it is told: table.md has the numbers.
func (a *Ablation) savePage() {
	text, err := a.page()
	if err == nil {
		err = files.Replace(filepath.Join(a.Out, runlog.ReportFile), text)
	}
	if err != nil && a.note != nil {
		fmt.Fprintf(a.note, "warning: no %s: %v\n", runlog.ReportFile, err)
	}
}
