package bench

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/internal/memory"
	"github.com/geoalign/geoalign/internal/process"
	"github.com/geoalign/geoalign/model"
)

// Axis is a quantity that a cost table varies: the base configuration with one or
// several keys changed. ParseAxis makes one.
type Axis struct {
	Name   string
	Values []string
	sets   func(base config.Config, value string) []string
}

// axes are the quantities with a name of their own. Any key of the configuration can be
// varied too.
var axes = map[string]func(base config.Config, v string) []string{
	"batch":      oneKey("train.batch_size"),
	"tokens":     tokensAxis,
	"depth":      depthAxis,
	"queue":      oneKey("queue.size"),
	"vocabulary": oneKey("data.vocab_size"),
	"image":      oneKey("model.image.size"),
	"hidden":     oneKey("model.heads.hidden"),
	"threads":    oneKey("compute.threads"),
	"precision":  oneKey("compute.precision"),
}

func oneKey(path string) func(config.Config, string) []string {
	return func(_ config.Config, v string) []string { return []string{path + "=" + v} }
}

// tokensAxis lengthens the position table where it is too short.
func tokensAxis(base config.Config, v string) []string {
	sets := []string{"data.tokens=" + v}
	var n int
	if _, err := fmt.Sscan(v, &n); err == nil && n > base.Model.Text.Positions {
		sets = append(sets, "model.text.positions="+v)
	}
	return sets
}

// depthAxis gives both towers a depth; text and fusion layers keep their proportion.
func depthAxis(base config.Config, v string) []string {
	sets := []string{"model.image.depth=" + v}
	var n int
	if _, err := fmt.Sscan(v, &n); err != nil {
		return sets // which says what is wrong with v
	}
	text, fusion := n, 0
	if t := base.Model.Text; t.FusionLayers > 0 {
		fusion = max(1, n*t.FusionLayers/(t.Layers+t.FusionLayers))
		text = max(1, n-fusion)
	}
	return append(sets, fmt.Sprintf("model.text.layers=%d", text), fmt.Sprintf("model.text.fusion_layers=%d", fusion))
}

// ParseAxis reads name=value,value,...
func ParseAxis(s string) (Axis, error) {
	name, list, ok := strings.Cut(s, "=")
	a := Axis{Name: strings.TrimSpace(name)}
	if !ok {
		return a, fmt.Errorf("--vary %s: must have the form batch=8,16,32", s)
	}
	if a.sets = axes[a.Name]; a.sets == nil {
		if !strings.Contains(a.Name, ".") {
			var names []string
			for k := range axes {
				names = append(names, k)
			}
			slices.Sort(names)
			return a, fmt.Errorf("--vary %s: there is no %q: choose one of %s, or a key such as model.text.width", s,
				a.Name, strings.Join(names, ", "))
		}
		a.sets = oneKey(a.Name)
	}
	for v := range strings.SplitSeq(list, ",") {
		if v = strings.TrimSpace(v); v == "" {
			return a, fmt.Errorf("--vary %s: an empty value: give a list such as %s=8,16,32", s, a.Name)
		}
		if slices.Contains(a.Values, v) {
			return a, fmt.Errorf("--vary %s: %s is in the list twice", s, v)
		}
		a.Values = append(a.Values, v)
	}
	return a, nil
}

// Table is what steps cost as one quantity grows.
type Table struct {
	Vary string `json:"vary"`
	Rows []Row  `json:"rows"`
}

// Row is one value of a Table.
type Row struct {
	Value  string  `json:"value"`
	Error  string  `json:"error,omitempty"` // why there is no result: too large for the machine
	Speed  float64 `json:"speed,omitempty"` // samples per second over those of the first row
	Result *Result `json:"result,omitempty"`
}

// String is the row in short.
func (r Row) String() string {
	if r.Result == nil {
		return r.Value + ": too large"
	}
	return fmt.Sprintf("%s: %.1f ms a step", r.Value, r.Result.StepMS)
}

// Tables measures every value of every Axis. load reads the configuration with
// further overrides; all are read before the first is measured. With an error it returns
// what was measured before.
func Tables(ctx context.Context, list []Axis, load func(sets ...string) (config.Config, error), o Options) ([]Table,
	error) {
	base, err := load()
	if err != nil {
		return nil, err
	}
	configs := make([][]config.Config, len(list))
	for i, a := range list {
		for _, v := range a.Values {
			cfg, err := load(a.sets(base, v)...)
			if err != nil {
				return nil, blame(err, a.Name+"="+v)
			}
			configs[i] = append(configs[i], cfg)
		}
	}
	var tables []Table
	for i, a := range list {
		t := Table{Vary: a.Name}
		for k, cfg := range configs[i] {
			row := Row{Value: a.Values[k]}
			each := o
			each.Progress = func(phase string, done, total int) { o.tell(a.Name+"="+row.Value+": "+phase, done, total) }
			if err := row.measure(ctx, cfg, each); err != nil {
				if len(t.Rows) > 0 {
					tables = append(tables, t)
				}
				return tables, err
			}
			if len(tables)+len(t.Rows) == 0 { // rows are printed, whatever the next one waits for
				defer process.Hold()()
			}
			t.Rows = append(t.Rows, row)
			if row.Result != nil {
				t.Rows[k].Speed = row.Result.Samples / t.First().Samples
			}
			if o.Row != nil {
				o.Row(t.Vary + "=" + t.Rows[k].String())
			}
		}
		tables = append(tables, t)
	}
	return tables, nil
}

// blame says which value of an Axis the problems of a configuration come from.
func blame(err error, value string) error {
	var list config.Errors
	if errors.As(err, &list) {
		for _, e := range list {
			e.Where = "--vary " + value
		}
	}
	return err
}

// measure fills the row. A model that the machine cannot hold is a result too.
func (r *Row) measure(ctx context.Context, cfg config.Config, o Options) error {
	debug.FreeOSMemory() // what the row before held
	fresh := memory.ResetPeak()
	b, err := Measure(ctx, cfg, o)
	if full := (*model.MemoryError)(nil); errors.As(err, &full) {
		r.Error = err.Error()
		return nil
	}
	if err != nil {
		return err
	}
	if b.First = nil; !fresh {
		b.PeakMB = 0 // it may be that of another row
	}
	r.Result = &b
	return nil
}

// First returns the result that the others' speed is relative to.
func (t Table) First() *Result {
	for _, r := range t.Rows {
		if r.Result != nil {
			return r.Result
		}
	}
	return nil
}

// HasGraphs says whether any row has graphs over the queue.
func (t Table) HasGraphs() bool {
	return slices.ContainsFunc(t.Rows, func(r Row) bool { return r.Result != nil && r.Result.Graphs != nil })
}
