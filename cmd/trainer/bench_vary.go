package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/internal/memory"
	"github.com/geoalign/geoalign/model"
)

// axis is a quantity that a cost table varies: the base configuration with one or
// several keys changed.
type axis struct {
	name   string
	values []string
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

// parseAxis reads name=value,value,...
func parseAxis(s string) (axis, error) {
	name, list, ok := strings.Cut(s, "=")
	a := axis{name: strings.TrimSpace(name)}
	if !ok {
		return a, fmt.Errorf("--vary %s: must have the form batch=8,16,32", s)
	}
	if a.sets = axes[a.name]; a.sets == nil {
		if !strings.Contains(a.name, ".") {
			var names []string
			for k := range axes {
				names = append(names, k)
			}
			slices.Sort(names)
			return a, fmt.Errorf("--vary %s: there is no %q: choose one of %s, or a key such as model.text.width", s, a.name, strings.Join(names, ", "))
		}
		a.sets = oneKey(a.name)
	}
	for v := range strings.SplitSeq(list, ",") {
		if v = strings.TrimSpace(v); v == "" {
			return a, fmt.Errorf("--vary %s: an empty value: give a list such as %s=8,16,32", s, a.name)
		}
		if slices.Contains(a.values, v) {
			return a, fmt.Errorf("--vary %s: %s is in the list twice", s, v)
		}
		a.values = append(a.values, v)
	}
	return a, nil
}

// costTable is what steps cost as one quantity grows.
type costTable struct {
	Vary string    `json:"vary"`
	Rows []costRow `json:"rows"`
}

type costRow struct {
	Value  string     `json:"value"`
	Error  string     `json:"error,omitempty"` // why there is no result: too large for the machine
	Speed  float64    `json:"speed,omitempty"` // samples per second over those of the first row
	Result *benchmark `json:"result,omitempty"`
}

// String is the row in short.
func (r costRow) String() string {
	if r.Result == nil {
		return r.Value + ": too large"
	}
	return fmt.Sprintf("%s: %.1f ms a step", r.Value, r.Result.StepMS)
}

// costTables measures every value of every axis. load reads the configuration with
// further overrides; all are read before the first is measured. With an error it returns
// what was measured before.
func costTables(ctx context.Context, list []axis, load func(sets ...string) (config.Config, error), o benchOptions) ([]costTable, error) {
	base, err := load()
	if err != nil {
		return nil, err
	}
	configs := make([][]config.Config, len(list))
	for i, a := range list {
		for _, v := range a.values {
			cfg, err := load(a.sets(base, v)...)
			if err != nil {
				return nil, blame(err, a.name+"="+v)
			}
			configs[i] = append(configs[i], cfg)
		}
	}
	var tables []costTable
	for i, a := range list {
		t := costTable{Vary: a.name}
		for k, cfg := range configs[i] {
			row := costRow{Value: a.values[k]}
			each := o
			each.progress = func(phase string, done, total int) { o.progress(a.name+"="+row.Value+": "+phase, done, total) }
			if err := row.measure(ctx, cfg, each); err != nil {
				if len(t.Rows) > 0 {
					tables = append(tables, t)
				}
				return tables, err
			}
			t.Rows = append(t.Rows, row)
			if row.Result != nil {
				t.Rows[k].Speed = row.Result.Samples / t.first().Samples
			}
			if o.row != nil {
				o.row(t.Vary + "=" + t.Rows[k].String())
			}
		}
		tables = append(tables, t)
	}
	return tables, nil
}

// blame says which value of an axis the problems of a configuration come from.
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
func (r *costRow) measure(ctx context.Context, cfg config.Config, o benchOptions) error {
	debug.FreeOSMemory() // what the row before held
	fresh := memory.ResetPeak()
	b, err := bench(ctx, cfg, o)
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

// first returns the result that the others' speed is relative to.
func (t costTable) first() *benchmark {
	for _, r := range t.Rows {
		if r.Result != nil {
			return r.Result
		}
	}
	return nil
}

// graphs says whether any row has graphs over the queue.
func (t costTable) graphs() bool {
	return slices.ContainsFunc(t.Rows, func(r costRow) bool { return r.Result != nil && r.Result.Graphs != nil })
}

// print writes the table for a person.
func (t costTable) print(w io.Writer) {
	if f := t.first(); f != nil {
		fmt.Fprintf(w, "%s: what a step costs by %s, %s\n\n", f.Config, t.Vary, f.Engine)
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	graphs := t.graphs()
	fmt.Fprintf(tw, "%s\tstep ms\tsamples/s\tspeed-up\tGFLOP\tGFLOP/s\tof peak\tpeak MB\tplanned MB\t", t.Vary)
	if graphs {
		fmt.Fprint(tw, "graph rebuild s\t")
	}
	fmt.Fprintln(tw)
	for _, r := range t.Rows {
		b := r.Result
		if b == nil {
			fmt.Fprintf(tw, "%s\ttoo large\t\t\t\t\t\t\t\t\n", r.Value)
			continue
		}
		fmt.Fprintf(tw, "%s\t%.1f\t%.1f\t%s\t%.1f\t%.1f\t%.1f %%\t%s\t%.0f\t", r.Value, b.StepMS, b.Samples, known(r.Speed, "%.3f"),
			b.GFLOP, b.GFLOPS, 100*b.Share, known(b.PeakMB, "%.0f"), b.StateMB+b.BufferMB)
		if graphs {
			seconds := 0.
			if b.Graphs != nil {
				seconds = b.Graphs.Each
			}
			fmt.Fprintf(tw, "%s\t", known(seconds, "%.3f"))
		}
		fmt.Fprintln(tw)
	}
	tw.Flush()
	for _, r := range t.Rows {
		if r.Error != "" {
			fmt.Fprintf(w, "%s=%s: %s\n", t.Vary, r.Value, r.Error)
		}
	}
}
