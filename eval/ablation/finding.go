package ablation

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// SuiteResults is what the runs of a matrix of a suite found: the values of every seed, and what follows for its
// claims. Its JSON form is the result file of the matrix.
type SuiteResults struct {
	Matrix   string     `json:"matrix"` // name of its file, without the ending
	Title    string     `json:"title,omitempty"`
	Where    string     `json:"where"`
	Metrics  []string   `json:"metrics"`
	Findings []Finding  `json:"findings"`
	Runs     []SuiteRun `json:"runs"`
}

// SuiteRun is a run with its values: Values[metric][i] is of Seeds[i].
type SuiteRun struct {
	Name   string               `json:"name"`
	Method string               `json:"method,omitempty"` // without the value of across
	At     *float64             `json:"at,omitempty"`
	Set    []string             `json:"set,omitempty"` // overrides, with the trial that was chosen
	Seeds  []int64              `json:"seeds"`
	Values map[string][]float64 `json:"values"`
}

// Finding is a claim with the paired difference of its run to its baseline.
type Finding struct {
	Claim
	Means  [2]float64 `json:"means"` // of the run and of the baseline, over the seeds that both have
	Effect float64    `json:"effect"`
	Seeds  int        `json:"seeds"`
	BySeed *Interval  `json:"by_seed,omitempty"` // BCa over seeds, nil for fewer than three
	// ByQuery is BCa over test images of the mean over seeds, nil where ranks are not kept.
	ByQuery *Interval `json:"by_query,omitempty"`
	// P is of the paired t-test over seeds, or over test images where all seeds agree; nil for fewer than three seeds.
	P *float64 `json:"p,omitempty"`

	Holm *float64 `json:"-"` // P corrected for all findings of a suite
}

// NewSuiteResults keeps the values of the runs that are done and tests the claims.
func NewSuiteResults(matrix, where string, r *Results, claims []Claim) *SuiteResults {
	s := &SuiteResults{Matrix: matrix, Title: r.Title, Where: where}
	for _, c := range r.Columns {
		s.Metrics = append(s.Metrics, c.Metric)
	}
	for _, row := range r.Rows {
		run := SuiteRun{Name: row.Name, Method: row.Method, At: row.At, Set: row.Set, Values: map[string][]float64{}}
		for _, t := range row.Trials {
			if t.State != Done {
				continue
			}
			run.Seeds = append(run.Seeds, t.Seed)
			for _, c := range r.Columns {
				if v, ok := t.Values[c.Metric]; ok {
					run.Values[c.Metric] = append(run.Values[c.Metric], v)
				}
			}
		}
		if !row.Hidden && run.Seeds != nil {
			s.Runs = append(s.Runs, run)
		}
	}
	for _, c := range claims {
		if f, ok := s.Find(c); ok {
			s.Findings = append(s.Findings, f)
		}
	}
	return s
}

// Find tests a claim with the values of the runs. It is not ok as long as its runs have no seed in common.
func (s *SuiteResults) Find(c Claim) (f Finding, ok bool) {
	f.Claim = c
	run, base := s.run(c.Run, c), s.run(c.Baseline, c)
	if run == nil || base == nil {
		return f, false
	}
	a, b := run.bySeed(c.Metric), base.bySeed(c.Metric)
	var x, y, d []float64
	for _, seed := range sortedSeeds(a) {
		if v, both := b[seed]; both {
			x, y, d = append(x, a[seed]), append(y, v), append(d, a[seed]-v)
		}
	}
	if f.Seeds = len(d); f.Seeds == 0 {
		return f, false
	}
	f.Means = [2]float64{Summarise(x).Mean, Summarise(y).Mean}
	f.Effect = Summarise(d).Mean
	if f.Seeds >= fewest && slices.Max(d) > slices.Min(d) { // of closed forms of all pairs the seeds say nothing
		p := Paired(x, y).P
		f.BySeed, f.P = BCa(d), &p
	}
	return f, true
}

// OverQueries adds the interval over test images of x and y, what each adds to the metric of the run and of its
// baseline as mean over seeds.
func (f *Finding) OverQueries(x, y []float64) {
	d := make([]float64, len(x))
	for i := range d {
		d[i] = x[i] - y[i]
	}
	f.ByQuery = BCa(d)
	if f.P == nil && f.Seeds >= fewest && f.ByQuery != nil {
		p := Paired(x, y).P
		f.P = &p
	}
}

// run returns the run of a name at the value of a claim, nil without one.
func (s *SuiteResults) run(name string, c Claim) *SuiteRun {
	i := slices.IndexFunc(s.Runs, func(r SuiteRun) bool {
		return cmp.Or(r.Method, r.Name) == name && sameAt(r.At, c.At)
	})
	if i < 0 {
		return nil
	}
	return &s.Runs[i]
}

func (r *SuiteRun) bySeed(metric string) map[int64]float64 {
	m := map[int64]float64{}
	if v := r.Values[metric]; len(v) == len(r.Seeds) {
		for i, s := range r.Seeds {
			m[s] = v[i]
		}
	}
	return m
}

// Verdict is one of helps, hurts and cannot be told. The first two ask for a corrected p below Level and for intervals,
// over seeds and over test images where there are these, that leave out 0.
func (f Finding) Verdict() string {
	told := f.Holm != nil && *f.Holm < Level
	for _, i := range []*Interval{f.BySeed, f.ByQuery} {
		told = told && (i == nil || i.Excludes())
	}
	effect := f.Effect
	if Better(f.Metric) == "lower" {
		effect = -effect
	}
	switch {
	case f.Seeds < fewest:
		return fmt.Sprintf("cannot be told from %d of at least %d seeds", f.Seeds, fewest)
	case !told:
		return "cannot be told"
	case effect > 0:
		return "helps"
	}
	return "hurts"
}

// SuiteTable is the table of all findings as Markdown, with the p corrected for their number (Holm).
func SuiteTable(list []*SuiteResults) string {
	head, rows := SuiteRows(list)
	var b strings.Builder
	line := func(cells []string) { fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | ")) }
	line(head)
	b.WriteString(strings.Repeat("|---", len(head)) + "|\n")
	for _, r := range rows {
		line(r)
	}
	return b.String()
}

// SuiteRows are the head and the rows of SuiteTable.
func SuiteRows(list []*SuiteResults) (head []string, rows [][]string) {
	var p []float64
	for _, s := range list {
		for _, f := range s.Findings {
			if f.P != nil {
				p = append(p, *f.P)
			}
		}
	}
	holm := HolmAdjust(p)
	head = []string{"idea", "where", "effect", "95 % over seeds; over test images", "seeds", "p (Holm)", "verdict", "runs"}
	for _, s := range list {
		for _, f := range s.Findings {
			if f.P != nil {
				f.Holm, holm = &holm[0], holm[1:]
			}
			rows = append(rows, f.cells(s))
		}
	}
	return head, rows
}

// cells are the row of a finding.
func (f Finding) cells(s *SuiteResults) []string {
	idea, where, test := "**"+plainCell(f.Idea)+"**", s.Where, "-"
	if f.Paper != "" {
		idea += " (" + plainCell(f.Paper) + ")"
	}
	if f.At != nil {
		where += ", " + strconv.FormatFloat(*f.At, 'f', -1, 64) + " pairs"
	}
	if f.Holm != nil {
		test = strings.TrimPrefix(probability(*f.Holm), "p ")
	}
	verdict := f.Verdict()
	if f.More != "" {
		verdict = "[" + verdict + "](" + f.More + ")"
	}
	return []string{idea, plainCell(where), fmt.Sprintf("%+.1f %s (%.1f, %s %.1f)", f.Effect, metricName(f.Metric),
		f.Means[0], f.Baseline, f.Means[1]), f.BySeed.text() + "; " + f.ByQuery.text(), strconv.Itoa(f.Seeds), test,
		verdict, "`" + s.Matrix + "`"}
}

// text is an interval of percent points, a dash without one.
func (i *Interval) text() string {
	if i == nil {
		return "-"
	}
	return fmt.Sprintf("%+.1f to %+.1f", i.Low, i.High)
}

// metricName is a metric in a sentence.
func metricName(metric string) string {
	switch _, name, ok := splitRetrieval(metric); {
	case !ok:
		return strings.ReplaceAll(strings.TrimPrefix(metric, "eval/"), "/", " ")
	case name == "r_mean":
		return "mean of recalls"
	default:
		return strings.NewReplacer("i2t_r", "R@", "t2i_r", "R@").Replace(name) + map[bool]string{true: " i2t",
			false: " t2i"}[strings.HasPrefix(name, "i2t")]
	}
}
