package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/geoalign/geoalign/eval"
	"github.com/geoalign/geoalign/internal/words"
)

// evalSection draws the evaluations over steps and the final table.
func evalSection(d Data) section {
	s := section{ID: "evaluation", Title: "Evaluation"}
	groups := map[string][]string{}
	var order []string
	names := evalNames(d.Curves)
	for _, name := range names {
		if ranking, _ := splitRanking(name); ranking == eval.Random {
			continue // it does not change with the steps
		}
		if ofSentences(name) && !sentenceCurve(name) {
			continue // the tables of the section on sentence pairs have it
		}
		g := evalGroup(name)
		if groups[g] == nil {
			order = append(order, g)
		}
		groups[g] = append(groups[g], name)
	}
	slices.SortStableFunc(order, func(a, b string) int { return evalRank(a) - evalRank(b) })
	for _, g := range order {
		names := groups[g]
		slices.SortFunc(names, words.Natural)
		ch := chart{title: g, last: d.Curves.Last}
		if strings.Contains(g, "recall") && !strings.HasPrefix(g, "sum of recalls") ||
			strings.Contains(g, "accuracy") || strings.Contains(g, "precision") {
			ch.unit = "%"
		}
		var labels []string
		most := 0
		for i, name := range names {
			p := d.Curves.get(name)
			most = max(most, len(p))
			label := evalLabel(name)
			labels = append(labels, label)
			ch.curves = append(ch.curves, curve{name: label, points: p, colour: i, dots: true})
		}
		if most < 2 { // one evaluation is not a curve: the table has it
			continue
		}
		ch.wide = ofSentences(names[0]) && len(labels) > 4 // whose keys have no room beside the title
		ch.keys = len(labels) > 1 || strings.Contains(g, ": recall") || strings.Contains(g, ": precision") ||
			strings.Contains(g, ": rank")
		s.add(ch, "")
	}
	if d.Scores != nil {
		s.Tables = append(s.Tables, *d.Scores)
	} else {
		if d.Sentences != nil { // which has tables of its own
			names = slices.DeleteFunc(slices.Clone(names), ofSentences)
		}
		s.Tables = lastEvaluation(d.Curves, names)
	}
	if len(s.Panels) == 0 && len(s.Tables) == 0 {
		s.Missing = "The run was not evaluated."
	}
	return s
}

// evalGroup is the chart that a number of an evaluation stands in.
func evalGroup(name string) string {
	if ranking, metric := splitRanking(name); ranking != "" {
		return evalGroup(retrieval+metric) + ", " + rankingNames[ranking]
	}
	if group, _, ok := sentenceGroup(name); ok {
		return group
	}
	parts := strings.Split(strings.TrimPrefix(name, "eval/"), "/")
	last := parts[len(parts)-1]
	direction := ""
	switch {
	case strings.HasPrefix(last, "i2t_"):
		direction = "image to text"
	case strings.HasPrefix(last, "t2i_"):
		direction = "text to image"
	}
	switch {
	case direction != "" && strings.HasSuffix(last, "_rank"):
		return direction + ": rank"
	case direction != "" && strings.HasPrefix(last[len("i2t_"):], "p"):
		return direction + ": precision"
	case direction != "":
		return direction + ": recall"
	case last == "rsum":
		return "sum of recalls"
	case strings.HasSuffix(last, "r_mean"):
		return "means of recalls"
	case parts[0] == "probe" && last == "decay": // that eval.probe_hold chose
		return "linear probe: decay"
	case parts[0] == "probe":
		return "linear probe: accuracy"
	case name == "eval/vqa/outside": // a number of questions
		return "vqa: questions whose answer is not a candidate"
	case parts[0] == "zeroshot":
		return "zero-shot classes: accuracy"
	case parts[0] == "neighbours":
		return "nearest stored neighbours: rank"
	}
	return strings.Join(parts[:len(parts)-1], " ")
}

func evalRank(group string) int {
	for i, p := range []string{"image to text: recall", "text to image: recall", "linear", "means", "sum",
		"image to text: rank", "text to image: rank"} {
		if strings.HasPrefix(group, p) {
			return i
		}
	}
	if strings.HasPrefix(group, "isotropy") {
		return 200
	}
	return 100
}

// evalLabel names a line of such a chart.
func evalLabel(name string) string {
	if _, label, ok := sentenceGroup(name); ok {
		return label
	}
	last := name[strings.LastIndexByte(name, '/')+1:]
	for _, p := range []string{"i2t_", "t2i_"} {
		last = strings.TrimPrefix(last, p)
	}
	if n, ok := strings.CutPrefix(last, "r"); ok && n != "" && strings.Trim(n, "0123456789") == "" {
		return "R@" + n
	}
	if n, ok := strings.CutPrefix(last, "p"); ok && n != "" && strings.Trim(n, "0123456789") == "" {
		return "P@" + n
	}
	switch last {
	case "img_r_mean":
		return "images"
	case "txt_r_mean":
		return "texts"
	case "r_mean":
		return "both"
	case "mean_rank":
		return "mean"
	case "median_rank":
		return "median"
	}
	return strings.ReplaceAll(last, "_", " ")
}

// retrieval stands before what a log tells of image-text retrieval.
const retrieval = "eval/retrieval/"

// rankingNames are the columns of an evaluation of retrieval for people.
var rankingNames = map[string]string{eval.First: "pair score", eval.Reranked: "re-ranked", eval.Random: "chance"}

// splitRanking returns the ranking and the metric of eval/retrieval/<ranking>/<metric>, an
// empty ranking of any other name.
func splitRanking(name string) (ranking, metric string) {
	if rest, ok := strings.CutPrefix(name, retrieval); ok {
		if ranking, metric, ok := strings.Cut(rest, "/"); ok && rankingNames[ranking] != "" {
			return ranking, metric
		}
	}
	return "", ""
}

// evalNames lists the curves of evaluations, without those of the last ranking where the log
// has them by ranking too, which logs of earlier versions have not.
func evalNames(c *Curves) []string {
	return slices.DeleteFunc(c.Names("eval/"), func(name string) bool {
		metric, of := strings.CutPrefix(name, retrieval)
		return of && len(c.get(name)) <= len(c.get(retrieval+eval.First+"/"+metric))
	})
}

// lastEvaluation are tables of the last value of every number: of retrieval a column per
// ranking of its last evaluation, of others one with the values and their steps.
func lastEvaluation(c *Curves, names []string) (tables []Table) {
	ranked := Table{Title: "Last evaluation of retrieval"}
	other := Table{Title: "Last evaluation", Head: []string{"", "value", "step"}}
	for _, n := range names {
		if ranking, _ := splitRanking(n); ranking != "" {
			continue
		}
		last := lastOf(c.get(n))
		other.Rows = append(other.Rows, Texts(strings.TrimPrefix(n, "eval/"), short(last.Value),
			fmt.Sprintf("%.0f", last.Step)))
	}
	var columns []string
	step := lastRanked(c, names)
	now := func(name string) (Point, bool) { // a number of that step
		p := c.get(name)
		return lastOf(p), len(p) > 0 && lastOf(p).Step == step
	}
	for _, r := range []string{eval.First, eval.Reranked, eval.Random} {
		if slices.ContainsFunc(names, func(n string) bool {
			_, ok := now(n)
			return ok && strings.HasPrefix(n, retrieval+r+"/")
		}) {
			columns = append(columns, r)
			ranked.Head = append(ranked.Head, rankingNames[r])
		}
	}
	metrics := (eval.Metrics{}).Values()
	for _, p := range (eval.Precision{}).Values() { // where queries have several right answers
		if _, ok := now(retrieval + eval.First + "/" + p.Name); ok {
			metrics = append(metrics, p)
		}
	}
	for _, m := range metrics {
		row := []string{metricName(m.Name)}
		for _, r := range columns {
			cell := ""
			if p, ok := now(retrieval + r + "/" + m.Name); ok {
				cell = short(p.Value)
			}
			row = append(row, cell)
		}
		ranked.Rows = append(ranked.Rows, Texts(row...))
	}
	if columns != nil {
		ranked.Head = append([]string{""}, ranked.Head...)
		ranked.Title += fmt.Sprintf(", step %.0f", step)
		tables = append(tables, ranked)
	}
	if other.Rows != nil {
		tables = append(tables, other)
	}
	return tables
}

// lastRanked is the step of the last evaluation of retrieval by ranking. A ranking that it lacks was
// left out when the run went on, as re-ranking may be.
func lastRanked(c *Curves, names []string) (step float64) {
	for _, n := range names {
		if ranking, _ := splitRanking(n); ranking != "" {
			step = max(step, lastOf(c.get(n)).Step)
		}
	}
	return step
}

// lastOf is the last point of a curve, the zero point where it has none.
func lastOf(p []Point) (last Point) {
	if len(p) > 0 {
		last = p[len(p)-1]
	}
	return last
}

// metricName writes a metric of retrieval for people, such as image to text R@1.
func metricName(metric string) string {
	group, _, named := strings.Cut(evalGroup(retrieval+metric), ":")
	label := evalLabel(metric)
	switch {
	case !named && strings.HasPrefix(group, "means"):
		return "mean of recalls, " + label
	case !named:
		return group
	case strings.HasSuffix(metric, "_rank"):
		return group + ", " + label + " rank"
	}
	return group + ", " + label
}
