package run

import "testing"

// A checkpoint of an earlier version has a metric without a name.
func TestMetricOfOldCheckpoints(t *testing.T) {
	v := 12.5
	for system, want := range map[string]string{"albef": "eval/retrieval/r_mean", "moco": "eval/probe/top1", "": ""} {
		r := Inspection{Metric: &v, Config: map[string]any{"model": map[string]any{"system": system}}}
		if system == "" {
			r.Config = nil
		}
		if r.nameMetric(); r.Measure != want {
			t.Errorf("%q: %q, want %q", system, r.Measure, want)
		}
	}
	r := Inspection{Metric: &v, Measure: "m", Config: map[string]any{"model": map[string]any{"system": "clip"}}}
	if r.nameMetric(); r.Measure != "m" {
		t.Errorf("a name is overwritten with %q", r.Measure)
	}
}
