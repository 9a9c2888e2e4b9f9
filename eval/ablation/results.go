package ablation

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/geoalign/geoalign/eval"
	"github.com/geoalign/geoalign/internal/words"
)

// States of a trial.
const (
	Done    = "done"
	Failed  = "failed"
	Stopped = "stopped" // interrupted: it goes on
	Missing = "missing" // not run so far
)

// Results is what an ablation found. Its JSON form is results.json.
type Results struct {
	Title    string   `json:"title,omitempty"`
	Base     string   `json:"base"`
	Seeds    []int64  `json:"seeds"`
	Baseline string   `json:"baseline,omitempty"`
	Correct  string   `json:"correct,omitempty"` // holm: the p of differences to the baseline are corrected
	Across   string   `json:"across,omitempty"`  // key that every run was made with several values of
	Columns  []Column `json:"columns"`
	Complete bool     `json:"complete"` // every run is done
	Rows     []Row    `json:"runs"`
	Tables   []Table  `json:"tables"` // filled by Tabulate
}

// Row is a run with its trials.
type Row struct {
	Name   string   `json:"name"`
	Group  string   `json:"group,omitempty"`
	Start  string   `json:"start,omitempty"`
	Same   string   `json:"same_as,omitempty"` // run with the same configuration, whose trials these are
	Set    []string `json:"set,omitempty"`     // overrides after those of all runs
	Hidden bool     `json:"hidden,omitempty"`
	Rerank bool     `json:"rerank,omitempty"` // the run re-ranks, so its last ranking is that of the matching head
	Trials []Trial  `json:"trials"`

	Method string   `json:"method,omitempty"` // run of the file that this one is at a value of Results.Across
	At     *float64 `json:"at,omitempty"`     // that value
}

// Trial is a run with one seed.
type Trial struct {
	Seed   int64  `json:"seed"`
	State  string `json:"state"`
	Error  string `json:"error,omitempty"`
	Folder string `json:"folder,omitempty"`
	Steps  int    `json:"steps,omitempty"`
	Values Values `json:"values,omitempty"` // finite
	// Notes say which of the numbers are not results, such as those of an evaluation at chance.
	Notes []string `json:"notes,omitempty"`
}

// Values are numbers by metric.
type Values map[string]float64

// MarshalJSON writes the metrics sorted, those of one kind by number: r1, r5, r10.
func (v Values) MarshalJSON() ([]byte, error) {
	var list eval.Values
	for _, name := range slices.SortedFunc(maps.Keys(v), words.Natural) {
		list = append(list, eval.Value{Name: name, Value: v[name]})
	}
	return list.MarshalJSON()
}

// Table is the comparison of the runs of a group: a column per metric, or of one metric a column
// per value of a key.
type Table struct {
	Group  string    `json:"group,omitempty"`
	Column *Column   `json:"column,omitempty"` // the one metric; nil: a column per metric
	Across string    `json:"across,omitempty"` // the key
	Values []float64 `json:"values,omitempty"` // of the key, rising
	Lines  []Line    `json:"lines"`
}

// Line is a run in a table.
type Line struct {
	Name  string `json:"name"`
	Cells []Cell `json:"cells"` // one per column
	Note  string `json:"note,omitempty"`
}

// Cell is a metric of a run over its seeds.
type Cell struct {
	N    int      `json:"n"`
	Mean *float64 `json:"mean,omitempty"`
	SD   *float64 `json:"sd,omitempty"` // from two seeds on

	Best   bool  `json:"best,omitempty"`
	Tied   bool  `json:"tied,omitempty"`    // not told apart from the best
	ToBest *Test `json:"to_best,omitempty"` // nil for the best and where there are too few seeds

	Difference *float64 `json:"difference,omitempty"`  // to the baseline
	ToBaseline *Test    `json:"to_baseline,omitempty"` // of that difference

	compared [2]string // runs whose trials ToBaseline compares
}

// values returns the metric of the trials that are done, by seed.
func (r *Row) values(metric string) map[int64]float64 {
	m := map[int64]float64{}
	for _, t := range r.Trials {
		if v, ok := t.Values[metric]; ok && t.State == Done {
			m[t.Seed] = v
		}
	}
	return m
}

// is reports whether two rows hold the same trials.
func (r *Row) is(o *Row) bool {
	return o.Name == r.Name || o.Same == r.Name || r.Same == o.Name || r.Same != "" && r.Same == o.Same
}

// whole reports whether no seed failed. A run that fails with some seeds is not a best one,
// whatever the others reach.
func (r *Row) whole() bool {
	return !slices.ContainsFunc(r.Trials, func(t Trial) bool { return t.State == Failed })
}

// open reports whether a trial has neither ended nor failed.
func (r Row) open() bool {
	return slices.ContainsFunc(r.Trials, func(t Trial) bool { return t.State != Done && t.State != Failed })
}

// Progress says how many trials are done of how many, and how many have failed. A run that is
// the same as another one is not counted again; those that are hidden from the table are.
func (r *Results) Progress() string {
	done, failed, all := 0, 0, 0
	for _, row := range r.Rows {
		if row.Same != "" {
			continue
		}
		for _, t := range row.Trials {
			all++
			switch t.State {
			case Done:
				done++
			case Failed:
				failed++
			}
		}
	}
	text := fmt.Sprintf("%d of %d", done, all)
	if failed > 0 {
		text += fmt.Sprintf(", %d failed", failed)
	}
	return text
}

// Tabulate fills Tables and Complete from the trials: a table per group in the order of
// the runs, each with the baseline on top, unless a run of it is the same.
// The baseline alone makes no table where there are others. Runs that were made with each value of a
// key have a table per metric instead, a column per value.
func (r *Results) Tabulate() {
	r.Tables, r.Complete = nil, true
	var groups []string
	for _, row := range r.Rows {
		for _, t := range row.Trials {
			r.Complete = r.Complete && t.State == Done
		}
		if !row.Hidden && !slices.Contains(groups, row.Group) {
			groups = append(groups, row.Group)
		}
	}
	for _, g := range groups {
		var rows []*Row
		for i := range r.Rows {
			if row := &r.Rows[i]; row.Group == g && !row.Hidden {
				rows = append(rows, row)
			}
		}
		if rows[0].At != nil {
			r.Tables = append(r.Tables, r.acrossTables(g, rows)...)
			continue
		}
		baseline := r.baseline(nil)
		if baseline != nil && !slices.ContainsFunc(rows, baseline.is) {
			rows = slices.Insert(rows, 0, baseline)
		}
		if alone := len(rows) == 1 && rows[0] == baseline; alone && len(groups) > 1 {
			continue // it stands in the others
		}
		r.Tables = append(r.Tables, r.table(g, rows, baseline))
	}
	if r.Correct == Holm {
		r.holm()
	}
}

// baseline returns the row of the baseline, at a value where there are several; nil without one.
func (r *Results) baseline(at *float64) *Row {
	for i := range r.Rows {
		row := &r.Rows[i]
		switch {
		case r.Baseline == "":
		case at == nil && row.At == nil && row.Name == r.Baseline, at != nil && row.At != nil &&
			row.Method == r.Baseline && *row.At == *at:
			return row
		}
	}
	return nil
}

// table is a table of runs with a column per metric.
func (r *Results) table(group string, rows []*Row, baseline *Row) Table {
	t := Table{Group: group}
	for _, row := range rows {
		t.Lines = append(t.Lines, Line{Name: row.Name, Note: row.note(), Cells: make([]Cell, len(r.Columns))})
	}
	for j, c := range r.Columns {
		for i, cell := range compare(rows, baseline, c) {
			t.Lines[i].Cells[j] = cell
		}
	}
	return t
}

// acrossTables are a table per metric with a line per method and a column per value.
func (r *Results) acrossTables(group string, rows []*Row) []Table {
	var values []float64
	for _, row := range rows {
		if !slices.Contains(values, *row.At) {
			values = append(values, *row.At)
		}
	}
	slices.Sort(values)
	var list []Table
	for j := range r.Columns {
		c := &r.Columns[j]
		t := Table{Group: group, Column: c, Across: r.Across, Values: values}
		for _, row := range rows {
			if !slices.ContainsFunc(t.Lines, func(l Line) bool { return l.Name == row.Method }) {
				t.Lines = append(t.Lines, Line{Name: row.Method, Cells: make([]Cell, len(values))})
			}
		}
		for k, v := range values {
			var at []*Row
			for _, row := range rows {
				if *row.At == v {
					at = append(at, row)
				}
			}
			for i, cell := range compare(at, r.baseline(&v), *c) {
				line := &t.Lines[slices.IndexFunc(t.Lines, func(l Line) bool { return l.Name == at[i].Method })]
				line.Cells[k] = cell
				if note := at[i].note(); note != "" && cell.N < len(at[i].Trials) {
					line.Note = strings.TrimPrefix(line.Note+"; "+at[i].Name+": "+note, "; ")
				}
			}
		}
		list = append(list, t)
	}
	return list
}

// compare returns the cells of a metric of some runs, compared with each other and the baseline.
func compare(rows []*Row, baseline *Row, c Column) []Cell {
	cells := make([]Cell, len(rows))
	best := -1
	for i, row := range rows {
		cell := &cells[i]
		*cell = describe(row.values(c.Metric))
		if cell.N == 0 {
			continue
		}
		if baseline != nil && !row.is(baseline) {
			b := baseline.values(c.Metric)
			if s := describe(b); s.N > 0 {
				d := *cell.Mean - *s.Mean
				cell.Difference, cell.ToBaseline = &d, Compare(row.values(c.Metric), b)
				cell.compared = [2]string{cmp.Or(row.Same, row.Name), cmp.Or(baseline.Same, baseline.Name)}
			}
		}
		if row.whole() && (best < 0 || c.beats(*cell.Mean, *cells[best].Mean)) {
			best = i
		}
	}
	if best < 0 || c.Better == "none" || len(rows) < 2 {
		return cells
	}
	cells[best].Best = true
	top := rows[best].values(c.Metric)
	for i, row := range rows {
		cell := &cells[i]
		if i == best || cell.N == 0 || !row.whole() {
			continue
		}
		cell.ToBest = Compare(row.values(c.Metric), top)
		equal := *cell.Mean == *cells[best].Mean
		cell.Tied = equal || cell.ToBest != nil && !cell.ToBest.Differs()
	}
	return cells
}

// beats reports whether the mean a is better than b.
func (c Column) beats(a, b float64) bool {
	return c.Better == "lower" && a < b || c.Better != "lower" && a > b
}

// describe is a cell without its comparisons.
func describe(values map[int64]float64) Cell {
	var x []float64
	for _, s := range sortedSeeds(values) {
		x = append(x, values[s])
	}
	s := Summarise(x)
	c := Cell{N: s.N}
	if s.N > 0 {
		c.Mean = &s.Mean
	}
	if s.N > 1 {
		c.SD = &s.SD
	}
	return c
}
