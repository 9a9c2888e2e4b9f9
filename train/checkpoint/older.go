package checkpoint

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/geoalign/geoalign/internal/files"
)

// The first version of state.json has a field format of 1, no parts, and one flat list of
// everything that is not a tensor; the tensors are in the same files. Fields that a folder
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
		Step   int                        `json:"step"`
		Metric *float64                   `json:"metric"`
		Files  map[string]int64           `json:"files"`
		State  map[string]json.RawMessage `json:"state"`
	}
	if err := decodeJSON(raw, &old); err != nil {
		return manifest{}, err
	}
	m := manifest{Version: version, Step: old.Step, Metric: old.Metric, Files: sizes(old.Files),
		Parts: map[string]partState{}, old: true}
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

// parseVersion2 translates a state.json of version 2: that of version 3 without checksums.
func parseVersion2(raw []byte) (manifest, error) {
	var old struct {
		Step   int                  `json:"step"`
		Metric *float64             `json:"metric"`
		Files  map[string]int64     `json:"files"`
		Parts  map[string]partState `json:"parts"`
	}
	err := decodeJSON(raw, &old)
	return manifest{Version: version, Step: old.Step, Metric: old.Metric, Files: sizes(old.Files), Parts: old.Parts},
		err
}

// sizes are files of which no more is known; nil stays nil.
func sizes(files map[string]int64) map[string]fileInfo {
	if files == nil {
		return nil
	}
	out := map[string]fileInfo{}
	for name, n := range files {
		out[name] = fileInfo{Bytes: n}
	}
	return out
}

// withMetric returns the state.json at path, of version 1 or 2, with another metric.
func withMetric(path string, metric *float64) (map[string]any, error) {
	raw, err := files.Read(path, files.MaxRecord)
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
