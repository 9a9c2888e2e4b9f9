package ablation

import (
	"maps"
	"slices"
	"strings"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/eval"
)

// Columns that are measured by the command and not logged by a run.
const (
	// from the first step to the end of the last one, evaluations between them included, over all sessions
	Seconds = "seconds"
	StepMS  = "step_ms" // mean time of a step in ms, the first 20 steps left out
	PeakMB  = "peak_mb" // largest resident memory of the process during the run, in MB of 2^20 bytes
)

// Column is a metric of the table.
type Column struct {
	Metric string `json:"metric"`
	Label  string `json:"label"`
	Better string `json:"better"` // higher, lower or none
}

// plain are the metrics without a slash in their name, and a few of others that are unlike those beside them, and which
// way is better.
var plain = map[string]string{
	Seconds: "lower", StepMS: "lower", PeakMB: "lower",
	"loss": "lower", "data_wait": "lower", "samples_per_second": "higher",
	"lr": "none", "temperature": "none", "grad_norm": "none", "epoch": "none", "online_weight": "none",

	// Measures of losses, but for accuracies.
	"itc_i2i": "lower", "itc_t2t": "lower", "itc_local_image": "lower", "itc_local_text": "lower",
	"klot_off": "lower", "siglip_scale": "none", "triplet_anchors": "none", "mafa_positives": "none",
	"mafa_replaced": "none", "vqa_left_out": "lower",

	"eval/probe/decay": "none", "eval/vqa/outside": "none", // no scores
}

// retrieval is where a run logs image-text retrieval.
const retrieval = "eval/retrieval/"

// rankings are what stands in the label of a column for the ranking that its metric names.
var rankings = map[string]string{eval.First: "pair score", eval.Reranked: "re-ranked", eval.Random: "chance"}

// splitRetrieval returns the ranking and the metric of eval/retrieval/<ranking>/<metric>; an
// empty ranking is the last one of the run. ok is false for other names.
func splitRetrieval(name string) (ranking, metric string, ok bool) {
	rest, ok := strings.CutPrefix(name, retrieval)
	if !ok {
		return "", "", false
	}
	if ranking, metric, ok := strings.Cut(rest, "/"); ok && rankings[ranking] != "" {
		return ranking, metric, true
	}
	return "", rest, true
}

// columnLabel is the head of the column of a metric.
func columnLabel(name string) string {
	ranking, metric, ok := splitRetrieval(name)
	switch {
	case !ok:
		return name
	case ranking != "":
		return metric + " (" + rankings[ranking] + ")"
	}
	return metric
}

// Columns returns the columns of the table. The error lists every metric that no run
// can have.
func (m *Matrix) Columns() ([]Column, config.Errors) {
	var list []Column
	var errs config.Errors
	fail := func(path string, value any, msg, hint string) {
		errs = append(errs, &config.Error{Path: path, Value: value, Msg: msg, Hint: hint})
	}
	if len(m.Metrics) == 0 {
		fail("metrics", nil, "must name at least one", `such as "`+retrieval+`rsum", "loss" or "`+Seconds+`"`)
	}
	for i, name := range m.Metrics {
		if slices.Contains(m.Metrics[:i], name) {
			fail("metrics", name, "is there twice", "")
			continue
		}
		better, known := direction(name)
		if !known {
			hint := "docs/ablate.md lists them"
			if near := nearest(name, knownMetrics()); near != "" {
				hint = "did you mean " + near + "?"
			}
			fail("metrics", name, "unknown metric", hint)
			continue
		}
		if b := m.Better[name]; b != "" {
			better = b
		}
		list = append(list, Column{name, columnLabel(name), better})
	}
	for _, name := range slices.Sorted(maps.Keys(m.Better)) {
		if !slices.Contains([]string{"higher", "lower", "none"}, m.Better[name]) {
			fail("better."+name, m.Better[name], "must be one of higher, lower, none", "")
		}
		if !slices.Contains(m.Metrics, name) {
			fail("better."+name, nil, "is not one of metrics", "")
		}
	}
	return list, errs
}

// Better says which way a metric is better: higher, lower or none; empty where no run can have it.
func Better(name string) string {
	better, _ := direction(name)
	return better
}

// direction says which way a metric is better, and whether a run can have it. What
// stands behind a slash depends on the run, except for retrieval.
func direction(name string) (better string, known bool) {
	if b, ok := plain[name]; ok {
		return b, true
	}
	lower := strings.HasSuffix(name, "rank") || strings.HasPrefix(name, "loss/") ||
		strings.HasPrefix(name, "eval/sentiment/") && strings.HasSuffix(name, "mae")
	if metric, ok := isotropyOf(name); ok {
		return isotropic[metric], isotropic[metric] != ""
	}
	switch ranking, metric, ok := splitRetrieval(name); {
	case ok && ranking == eval.First && isPrecision(metric):
	case ok:
		if _, known = (eval.Metrics{}).Map()[metric]; !known {
			return "", false
		}
	case strings.HasSuffix(name, "_accuracy"): // of a matching head
		return "higher", true
	case !strings.Contains(strings.Trim(name, "/"), "/"):
		return "", false
	}
	switch {
	case lower:
		return "lower", true
	case strings.HasPrefix(name, "eval/"):
		return "higher", true
	}
	return "none", true
}

// isotropic says which way the numbers of the isotropy of sentences are better.
var isotropic = map[string]string{"mean_cosine": "lower", "effective_rank": "higher", "participation_ratio": "higher",
	"isoscore": "higher", "uniformity": "lower", "alignment": "lower"}

// isotropyOf returns the number of eval/isotropy/<task>/<number>.
func isotropyOf(name string) (metric string, ok bool) {
	rest, ok := strings.CutPrefix(name, "eval/isotropy/")
	_, metric, ok2 := strings.Cut(rest, "/")
	return metric, ok && ok2
}

// isPrecision says whether a metric is logged for the pair score where queries have several right
// answers.
func isPrecision(metric string) bool {
	return slices.ContainsFunc((eval.Precision{}).Values(), func(v eval.Value) bool { return v.Name == metric })
}

// knownMetrics lists the names that can be known beforehand.
func knownMetrics() []string {
	list := slices.Sorted(maps.Keys(plain))
	for _, ranking := range []string{"", eval.First + "/", eval.Reranked + "/", eval.Random + "/"} {
		for _, v := range (eval.Metrics{}).Values() {
			list = append(list, retrieval+ranking+v.Name)
		}
	}
	return append(list, "loss/itc", "loss/itc_in_batch", "loss/itm", "loss/mlm")
}
