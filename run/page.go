package run

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/internal/files"
	"github.com/geoalign/geoalign/internal/words"
	pages "github.com/geoalign/geoalign/report"
	"github.com/geoalign/geoalign/run/folder"
	"github.com/geoalign/geoalign/tasks"
	"github.com/geoalign/geoalign/train/runlog"
)

// ReadCurves reads the log of a run folder; nil without one.
func ReadCurves(dir string) (*pages.Curves, error) {
	in, _, err := files.Open(filepath.Join(dir, runlog.MetricsFile), 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer in.Close()
	return pages.ReadCurves(in)
}

// PageData reads what a run folder tells without its model.
func PageData(dir string) (*pages.Data, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	d := &pages.Data{Title: filepath.Base(abs)}
	if d.Curves, err = ReadCurves(dir); err != nil {
		return nil, err
	}
	d.Notes = append(d.Notes, curveCautions(d.Curves)...)
	if d.Classes, err = readClasses(dir); err != nil {
		return nil, err
	}
	if d.Sentences, err = readSentences(dir); err != nil {
		return nil, err
	}
	if e, ok := folder.Environment(dir); ok {
		d.Environment = machine(e)
	}
	return d, nil
}

// machine lists an environment for the page.
func machine(e runlog.Environment) (list []pages.Fact) {
	revision := e.Revision
	if e.Modified {
		revision += " with changes"
	}
	for _, f := range []pages.Fact{
		{Name: "program", Value: e.Program}, {Name: "revision", Value: revision}, {Name: "Go", Value: e.GoVersion}, {Name: "platform", Value: e.Platform},
		{Name: "processor", Value: fmt.Sprintf("%s, %s", e.CPU, words.Count(e.CPUs, "core"))}, {Name: "threads", Value: fmt.Sprint(e.Threads)},
		{Name: "kernels", Value: e.Kernels}, {Name: "command", Value: strings.Join(e.Args, " ")},
	} {
		if f.Value != "" {
			list = append(list, f)
		}
	}
	return list
}

// Describe fills in what the configuration says.
func Describe(d *pages.Data, cfg config.Config) {
	d.Title = cfg.Run.Name
	if !cfg.Has(section.ImagesAlone) {
		d.Batch = cfg.Train.BatchSize * cfg.HeldBatches()
		d.Queued = cfg.Queue.Size > 0
	}
	add := func(name, value string) {
		if value != "" {
			d.Facts = append(d.Facts, pages.Fact{Name: name, Value: value})
		}
	}
	add("system", cfg.Model.System)
	what := cfg.Data.Kind
	// of no name, or the one where the run was started
	if folder := filepath.Base(cfg.Data.Root); folder != "." && !cfg.Data.Drawn() {
		what += ", " + folder
	}
	add("data", what)
	if c := d.Curves; c != nil && c.Rows > 0 {
		if !cfg.Has(section.Fitted) { // at once, to all pairs
			add("steps", words.Thousands(c.Last))
			add("samples", words.Thousands(c.Last*cfg.Train.BatchSize*max(1, cfg.Train.AccumulateSteps)))
		}
		add("time", duration(c))
		add("best evaluation", bestEvaluation(c, cfg))
	}
	add("seed", fmt.Sprint(cfg.Run.Seed))
	for _, n := range cfg.NotDefault() {
		if n.Path != "run.out" {
			d.Settings = append(d.Settings, pages.Setting{Path: n.Path, Value: config.Show(n.Now),
				Default: config.Show(n.Was)})
		}
	}
}

// duration is the time between the first and the last row, of which breaks between
// sessions are a part.
func duration(c *pages.Curves) string {
	t := c.Values["time"]
	if len(t) < 2 {
		return ""
	}
	seconds := t[len(t)-1].Value - t[0].Value
	if !(seconds >= 0 && seconds < 1e9) {
		return ""
	}
	d := time.Duration(seconds * float64(time.Second))
	if d < time.Minute {
		return fmt.Sprintf("%.0f s", seconds)
	}
	if d < time.Hour {
		return fmt.Sprintf("%d min %02d s", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%d h %02d min", int(d.Hours()), int(d.Minutes())%60)
}

// bestEvaluation names the best value by which checkpoints are kept.
func bestEvaluation(c *pages.Curves, cfg config.Config) string {
	var best pages.Point
	var by tasks.Kept
	for _, m := range keptMetrics(c, cfg) {
		for _, p := range c.Values[m.Key] {
			if by.Name == "" || p.Value > best.Value {
				best, by = p, m
			}
		}
	}
	if by.Name == "" {
		return ""
	}
	value := fmt.Sprintf("%.1f %%", best.Value)
	if by.Unbounded { // no percentage, as far as is known
		value = fmt.Sprintf("%.4g", best.Value)
	}
	return fmt.Sprintf("%s %s at step %s", by.Name, value, words.Thousands(int(best.Step)))
}

// keptMetrics lists the curves by which checkpoints of a run are kept.
func keptMetrics(c *pages.Curves, cfg config.Config) []tasks.Kept {
	if cfg.Train.KeepsByMetric() {
		return []tasks.Kept{{Key: cfg.Train.KeepBestBy, Name: strings.TrimPrefix(cfg.Train.KeepBestBy, "eval/"),
			Unbounded: true}}
	}
	t, err := taskOf(cfg, "")
	if err != nil {
		return nil
	}
	return t.KeptMetrics(Evaluation{Config: cfg}.setup(t), func(name string) bool { return c.Values[name] != nil })
}
