package ablation

import (
	"fmt"

	"github.com/geoalign/geoalign/config"
)

// spread makes each run one for every value of Across, named "NAME, paired=50". A run starts from
// that of the same value.
func (m *Matrix) spread() *config.Error {
	if m.Across.Key == "" && m.Across.Values == nil {
		return nil
	}
	if m.Across.Key == "" || len(m.Across.Values) == 0 {
		return &config.Error{Path: "across", Msg: "needs a key and values",
			Hint: `such as {key = "data.pairs.paired", values = [50, 100]}`}
	}
	if n := len(m.Runs) * len(m.Across.Values); n > mostRuns {
		return &config.Error{Path: "across.values", Value: n, Msg: fmt.Sprintf("must not make more than %d runs",
			mostRuns)}
	}
	named := label(m.Across.Key)
	var runs []Run
	for i, v := range m.Across.Values {
		at, ok := number(v)
		if !ok || i > 0 && at <= *runs[len(runs)-1].At {
			return &config.Error{Path: "across.values", Value: v, Msg: "must be numbers, rising"}
		}
		text, _ := literal(v) // a number has one
		for _, r := range m.Runs {
			one := r
			one.Method, one.At = r.Name, &at
			one.Name = fmt.Sprintf("%s, %s=%s", r.Name, named, short(v))
			if r.Start != "" {
				one.Start = fmt.Sprintf("%s, %s=%s", r.Start, named, short(v))
			}
			one.Set = append([]string{m.Across.Key + "=" + text}, r.Set...)
			runs = append(runs, one)
		}
	}
	m.Runs = runs
	return nil
}

// number is a value of a matrix file as a float64.
func number(v any) (float64, bool) {
	switch v := v.(type) {
	case int64:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}

// named says whether a run has a name in the file.
func (r Run) named(name string) bool { return r.Method == name || r.Method == "" && r.Name == name }
