package ablation

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// TableFile is the name of the file with the table in the folder of an ablation.
const TableFile = "table.md"

// note says what is wrong with the trials of a row.
func (r *Row) note() string {
	var parts []string
	for _, s := range []struct{ state, text string }{{Failed, "failed"}, {Stopped, "interrupted"},
		{Missing, "not run"}} {
		var seeds []string
		for _, t := range r.Trials {
			if t.State == s.state {
				seeds = append(seeds, strconv.FormatInt(t.Seed, 10))
			}
		}
		switch {
		case len(seeds) == len(r.Trials) && len(seeds) > 0:
			parts = append(parts, s.text)
		case len(seeds) > 0:
			parts = append(parts, "seed "+strings.Join(seeds, ", ")+" "+s.text)
		}
	}
	if r.Same != "" {
		parts = append(parts, "the same as "+strconv.Quote(r.Same))
	}
	return strings.Join(parts, "; ")
}

// Markdown writes the tables with a legend, ending in a line break.
func (r *Results) Markdown() string {
	var b strings.Builder
	if r.Title != "" {
		fmt.Fprintf(&b, "# %s\n\n", r.Title)
	}
	for _, t := range r.Tables {
		if title := t.Title(); title != "" {
			fmt.Fprintf(&b, "## %s\n\n", title)
		}
		b.WriteString(r.grid(t))
		b.WriteByte('\n')
	}
	b.WriteString(r.legend())
	for _, row := range r.Rows {
		for _, t := range row.Trials {
			if t.State == Failed && row.Same == "" {
				fmt.Fprintf(&b, "\nFailed: %s, seed %d: %s\n", row.Name, t.Seed, oneLine(t.Error))
			}
			if row.Same == "" {
				for _, n := range t.Notes {
					fmt.Fprintf(&b, "\nNote: %s, seed %d: %s\n", row.Name, t.Seed, oneLine(n))
				}
			}
		}
	}
	return b.String()
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// plainCell is a text as a cell of Markdown.
func plainCell(s string) string { return strings.ReplaceAll(s, "|", `\|`) }

// grid writes one table with its columns in line.
func (r *Results) grid(t Table) string {
	head := append([]string{"run"}, r.Heads(t)...)
	noted := false
	for _, l := range t.Lines {
		noted = noted || l.Note != ""
	}
	if noted {
		head = append(head, "")
	}
	rows := [][]string{head}
	for _, l := range t.Lines {
		row := []string{plainCell(l.Name)}
		for j, c := range l.Cells {
			row = append(row, c.text(r.digits(t, j)))
		}
		if noted {
			row = append(row, plainCell(l.Note))
		}
		rows = append(rows, row)
	}
	width := make([]int, len(head))
	for _, row := range rows {
		for j, s := range row {
			width[j] = max(width[j], len([]rune(s)), 4)
		}
	}
	var b strings.Builder
	for i, row := range rows {
		for j, s := range row {
			pad := strings.Repeat(" ", width[j]-len([]rune(s)))
			if j == 0 || noted && j == len(row)-1 {
				s += pad
			} else {
				s = pad + s
			}
			b.WriteString("| " + s + " ")
		}
		b.WriteString("|\n")
		if i > 0 {
			continue
		}
		for j := range row {
			rule := strings.Repeat("-", width[j]+1)
			if j == 0 || noted && j == len(row)-1 {
				b.WriteString("|" + rule + "-")
			} else {
				b.WriteString("|" + rule + ":")
			}
		}
		b.WriteString("|\n")
	}
	return b.String()
}

// text is a cell as 26.3 +- 1.2 (+1.4, p 0.03), the best in bold and what is not told
// apart from it in italics.
func (c Cell) text(digits int) string {
	if c.N == 0 {
		return "-"
	}
	s, difference := c.parts(digits)
	switch {
	case c.Best:
		s = "**" + s + "**"
	case c.Tied:
		s = "*" + s + "*"
	}
	if difference != "" {
		s += " (" + difference + ")"
	}
	return s
}

// parts are the mean with its spread and the difference to the baseline, which may be
// empty.
func (c Cell) parts(digits int) (s, difference string) {
	number := func(v float64) string { return strconv.FormatFloat(v, 'f', digits, 64) }
	s = number(*c.Mean)
	if c.SD != nil {
		s += " \u00b1 " + number(*c.SD)
	}
	if c.Difference != nil {
		d := number(*c.Difference)
		if *c.Difference >= 0 {
			d = "+" + d
		}
		if c.ToBaseline != nil {
			d += ", " + probability(*c.ToBaseline.shown())
		}
		difference = d
	}
	return s, difference
}

// Texts returns column j of a line of t as it stands in the Markdown table, without its
// marks: the mean with its spread, and the difference to the baseline.
func (r *Results) Texts(t Table, line, j int) (value, difference string) {
	c := t.Lines[line].Cells[j]
	if c.N == 0 {
		return "-", ""
	}
	return c.parts(r.digits(t, j))
}

// Title is the heading of a table: its group, and of one metric its label and the key.
func (t Table) Title() string {
	title := t.Group
	if t.Column != nil {
		title = strings.TrimPrefix(title+": "+t.Column.Heading()+" across "+label(t.Across), ": ")
	}
	return title
}

// Heads are the headings of the columns of t behind the first.
func (r *Results) Heads(t Table) (heads []string) {
	for _, v := range t.Values {
		heads = append(heads, strconv.FormatFloat(v, 'g', -1, 64))
	}
	if t.Column == nil {
		for _, c := range r.Columns {
			heads = append(heads, c.Heading())
		}
	}
	return heads
}

// Heading is the label of a column with an arrow to where it is better.
func (c Column) Heading() string {
	switch c.Better {
	case "higher":
		return c.Label + " \u2191"
	case "lower":
		return c.Label + " \u2193"
	}
	return c.Label
}

// Legend says what the numbers and marks of the tables are, in Markdown.
func (r *Results) Legend() string { return strings.TrimSpace(r.legend()) }

func probability(p float64) string {
	switch {
	case p < 0.001:
		return "p < 0.001"
	case p < 0.1:
		return fmt.Sprintf("p %.3f", p)
	}
	return fmt.Sprintf("p %.2f", p)
}

// digits chooses the decimals of column j, or of all columns of one metric: one for recalls, which
// are percent, otherwise by the largest mean.
func (r *Results) digits(t Table, j int) int {
	c, from, to := t.Column, 0, len(t.Values)
	if c == nil {
		c, from, to = &r.Columns[j], j, j+1
	}
	if strings.HasPrefix(c.Metric, retrieval) {
		return 1
	}
	largest := 0.0
	for _, l := range t.Lines {
		for _, cell := range l.Cells[from:to] {
			if cell.Mean != nil {
				largest = max(largest, math.Abs(*cell.Mean))
			}
		}
	}
	switch {
	case largest >= 1000:
		return 0
	case largest >= 10:
		return 1
	case largest >= 0.01 || largest == 0:
		return 3
	}
	return min(12, 2-int(math.Floor(math.Log10(largest))))
}

// legend says what the numbers and marks are.
func (r *Results) legend() string {
	var b strings.Builder
	if len(r.Seeds) > 1 {
		var seeds []string
		for _, s := range r.Seeds {
			seeds = append(seeds, strconv.FormatInt(s, 10))
		}
		fmt.Fprintf(&b, "Mean \u00b1 standard deviation over seeds %s. **Bold**: the best of its column; *italic*: seeds do not tell it apart from the best "+
			"(two-sided t-test at %g %%, paired where the seeds are the same, Welch's otherwise; not corrected for the number of comparisons).", strings.Join(seeds, ", "), 100*Level)
		switch {
		case r.Baseline == "":
		case r.Correct == Holm:
			fmt.Fprintf(&b, " In parentheses: difference to %q and the p of the same test, corrected for all comparisons of a metric with it (Holm).", r.Baseline)
		default:
			fmt.Fprintf(&b, " In parentheses: difference to %q and the p of the same test.", r.Baseline)
		}
	} else {
		fmt.Fprintf(&b, "One seed (%d), so nothing can be said about chance. **Bold**: the best of its column.",
			r.Seeds[0])
		if r.Baseline != "" {
			fmt.Fprintf(&b, " In parentheses: difference to %q.", r.Baseline)
		}
	}
	b.WriteString(r.lastRanking())
	if slices.ContainsFunc(r.Rows, func(row Row) bool { return !row.whole() }) {
		b.WriteString(" A run that failed with a seed is not marked.")
	}
	if slices.ContainsFunc(r.Rows, Row.open) {
		b.WriteString(" Not all runs are done.")
	}
	return b.String() + "\n"
}

// lastRanking says of the columns that name no ranking of retrieval which one the runs of the
// tables compare in them.
func (r *Results) lastRanking() string {
	var columns, reranked []string
	for _, c := range r.Columns {
		if ranking, metric, ok := splitRetrieval(c.Metric); ok && ranking == "" {
			columns = append(columns, metric)
		}
	}
	rows := 0
	for _, row := range r.Rows {
		if row.Hidden {
			continue
		}
		if rows++; row.Rerank {
			reranked = append(reranked, strconv.Quote(row.Name))
		}
	}
	switch what := strings.Join(columns, ", "); {
	case columns == nil:
		return ""
	case reranked == nil:
		return " By the pair score: " + what + "."
	case len(reranked) == rows:
		return " Re-ranked by the matching head: " + what + "."
	default:
		return fmt.Sprintf(" Re-ranked by the matching head in %s, by the pair score in the others: %s.",
			strings.Join(reranked, ", "), what)
	}
}

// CSV writes a line per run of each table: group, run, note, and of each metric its
// number of values, mean, standard deviation, mark (best or tied), difference to the
// baseline and p of that difference, corrected where Correct says so. What is not known is empty.
func (r *Results) CSV() string {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	head := []string{"group", "run", "note"}
	for _, c := range r.Columns {
		for _, s := range []string{"n", "mean", "sd", "mark", "difference", "p"} {
			head = append(head, c.Metric+" "+s)
		}
	}
	w.Write(head) // an error of a buffer there is none
	add := func(group, name, note string, cells []Cell) {
		row := []string{group, name, note}
		for _, c := range cells {
			mark := ""
			switch {
			case c.Best:
				mark = "best"
			case c.Tied:
				mark = "tied"
			}
			p := ""
			if c.ToBaseline != nil {
				p = full(c.ToBaseline.shown())
			}
			row = append(row, strconv.Itoa(c.N), full(c.Mean), full(c.SD), mark, full(c.Difference), p)
		}
		w.Write(row)
	}
	for n, t := range r.Tables {
		switch {
		case t.Column == nil:
			for _, l := range t.Lines {
				add(t.Group, l.Name, l.Note, l.Cells)
			}
		case t.Column.Metric == r.Columns[0].Metric: // with the tables of the other metrics, which follow
			for k, v := range t.Values {
				for i, l := range t.Lines {
					var cells []Cell
					for j := range r.Columns {
						cells = append(cells, r.Tables[n+j].Lines[i].Cells[k])
					}
					add(t.Group, fmt.Sprintf("%s, %s=%g", l.Name, label(t.Across), v), l.Note, cells)
				}
			}
		}
	}
	w.Flush()
	return b.String()
}

// full writes all digits of a number that may be missing.
func full(v *float64) string {
	if v == nil {
		return ""
	}
	return strconv.FormatFloat(*v, 'g', -1, 64)
}
