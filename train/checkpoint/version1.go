package checkpoint

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

// The first version of state.json has a field format of 1, no parts, and one flat list of
// everything that is no tensor; the tensors are in the same files. Fields that a folder
// lacks are zero, since the list grew over time.

// version1Fields says which counter of which part was which field of the list.
var version1Fields = []struct{ part, counter, field string }{
	{"run", "step", "step"},
	{"run", "seed", "seed"},
	{"run", "elapsed_seconds", "elapsed_seconds"},
	{"run", "values", "values"},
	{"data", "position", "position"},
	{"optimizer", "steps", "optimizer_steps"},
	{"queue", "pointer", "queue_pointer"},
	{"queue", "filled", "queue_filled"},
}

// parseVersion1 translates a state.json of version 1: a part for each file of tensors,
// run and data.
func parseVersion1(raw []byte) (manifest, error) {
	var old struct {
		Step   int
		Metric *float64
		Files  map[string]int64
		State  map[string]json.RawMessage
	}
	if err := json.Unmarshal(raw, &old); err != nil {
		return manifest{}, err
	}
	m := manifest{Version: version, Step: old.Step, Metric: old.Metric, Files: old.Files, Parts: map[string]partState{}, old: true}
	counters := map[string]map[string]json.RawMessage{}
	for file := range old.Files {
		if part, ok := strings.CutSuffix(file, extension); ok {
			counters[part] = nil
		}
	}
	if old.State != nil {
		counters["run"], counters["data"] = nil, nil
	}
	for _, f := range version1Fields {
		list, has := counters[f.part]
		value, ok := old.State[f.field]
		if !has || !ok {
			continue
		}
		if list == nil {
			list = map[string]json.RawMessage{}
			counters[f.part] = list
		}
		list[f.counter] = value
	}
	for part, list := range counters {
		p := partState{Version: 1}
		if list != nil {
			text, err := json.Marshal(list)
			if err != nil {
				return manifest{}, err
			}
			p.Counters = text
		}
		if part == "graph" {
			p.Counters = old.State["graphs"]
		}
		m.Parts[part] = p
	}
	return m, nil
}

// withMetric returns the state.json at path, of any version, with another metric.
func withMetric(path string, metric *float64) (map[string]any, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(raw, &fields); err != nil {
		return nil, fmt.Errorf("checkpoint: %s is damaged: %w", path, err)
	}
	out := map[string]any{}
	for name, value := range fields {
		out[name] = value
	}
	delete(out, "metric")
	if metric != nil {
		out["metric"] = metric
	}
	return out, nil
}
