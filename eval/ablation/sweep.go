package ablation

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/geoalign/geoalign/config"
)

// Sweep stands for one run per value of a key, or per combination of the values of
// several.
type Sweep struct {
	Key    string   `toml:"key"` // of the configuration; short for one axis
	Values []any    `toml:"values"`
	Axes   []Axis   `toml:"axes"`  // instead of key and values: every combination, the last axis fastest
	Name   string   `toml:"name"`  // before the values in the runs' names; empty: nothing
	Group  string   `toml:"group"` // table of the runs and name of the value; empty: the last part of the key
	Start  string   `toml:"start"`
	Set    []string `toml:"set"`
}

// Axis is a key with the values that it takes.
type Axis struct {
	Key    string `toml:"key"`
	Values []any  `toml:"values"`
}

// mostRuns bounds the combinations of a sweep.
const mostRuns = 1000

// expand returns the runs of a sweep, named clusters=128 or neighbours=4,size=1024.
func (s Sweep) expand() ([]Run, *config.Error) {
	axes := s.Axes
	switch {
	case s.Key != "" && len(axes) > 0:
		return nil, &config.Error{Path: "axes", Msg: "must not stand beside key", Hint: "make the key an axis"}
	case s.Key != "":
		axes = []Axis{{s.Key, s.Values}}
	case len(axes) == 0:
		return nil, &config.Error{Path: "key", Msg: "must name a key of the configuration",
			Hint: `such as key = "queue.size" with values = [1024, 4096]`}
	}
	group := s.Group
	if group == "" {
		var labels []string
		for _, a := range axes {
			labels = append(labels, label(a.Key))
		}
		group = strings.Join(labels, ", ")
	}
	runs := []Run{{Group: group, Start: s.Start, Set: s.Set}}
	for i, a := range axes {
		if a.Key == "" || len(a.Values) == 0 {
			return nil, &config.Error{Path: "values", Msg: "every axis needs a key and at least one value"}
		}
		name := label(a.Key)
		if len(axes) == 1 && s.Group != "" {
			name = s.Group
		}
		var next []Run
		for _, r := range runs {
			for _, v := range a.Values {
				text, err := literal(v)
				if err != nil {
					return nil, &config.Error{Path: "values", Value: v,
						Msg: "must be numbers, strings, true, false or lists of them"}
				}
				one := r
				one.Set = append(slices.Clone(r.Set), a.Key+"="+text)
				if i > 0 {
					one.Name += ","
				}
				one.Name += name + "=" + short(v)
				next = append(next, one)
			}
		}
		if runs = next; len(runs) > mostRuns {
			return nil, &config.Error{Path: "axes", Value: len(runs),
				Msg: fmt.Sprintf("must not make more than %d runs", mostRuns)}
		}
	}
	if s.Name != "" {
		for i := range runs {
			runs[i].Name = s.Name + " " + runs[i].Name
		}
	}
	return runs, nil
}

// label is the last part of a key.
func label(key string) string { return key[strings.LastIndexByte(key, '.')+1:] }

// literal writes a value as TOML.
func literal(v any) (string, error) {
	switch v := v.(type) {
	case string:
		return strconv.Quote(v), nil
	case bool, int64:
		return fmt.Sprint(v), nil
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64), nil
	case []any:
		var items []string
		for _, item := range v {
			text, err := literal(item)
			if err != nil {
				return "", err
			}
			items = append(items, text)
		}
		return "[" + strings.Join(items, ", ") + "]", nil
	}
	return "", fmt.Errorf("ablation: a value of type %T has no place in a configuration", v)
}

// short writes a value for the name of a run, which is a folder: lists as 16-256 and
// what separates folders as a dash.
func short(v any) string {
	if list, ok := v.([]any); ok {
		var items []string
		for _, item := range list {
			items = append(items, short(item))
		}
		return strings.Join(items, "-")
	}
	return strings.NewReplacer("/", "-", `\`, "-", ":", "-").Replace(fmt.Sprint(v))
}
