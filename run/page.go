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
	"github.com/geoalign/geoalign/eval"
	"github.com/geoalign/geoalign/internal/files"
	"github.com/geoalign/geoalign/internal/words"
	pages "github.com/geoalign/geoalign/report"
	"github.com/geoalign/geoalign/run/folder"
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
	if folder := filepath.Base(cfg.Data.Root); folder != "." && !cfg.Data.Drawn() { // of no name, or the one where the run was started
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
			d.Settings = append(d.Settings, pages.Setting{Path: n.Path, Value: config.Show(n.Now), Default: config.Show(n.Was)})
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
	name := ""
	for _, m := range keptMetrics(c, cfg) {
		for _, p := range c.Values[m.key] {
			if name == "" || p.Value > best.Value {
				best, name = p, m.name
			}
		}
	}
	if name == "" {
		return ""
	}
	value := fmt.Sprintf("%.1f %%", best.Value)
	if cfg.Train.KeepsByMetric() || name == ciderName { // no percentage, as far as is known
		value = fmt.Sprintf("%.4g", best.Value)
	}
	return fmt.Sprintf("%s %s at step %s", name, value, words.Thousands(int(best.Step)))
}

// keptMetric is a curve by which checkpoints are kept, with its name for people.
type keptMetric struct{ key, name string }

// ciderName is the name of CIDEr-D, which is beyond 100 of good captions.
const ciderName = "CIDEr"

// keptMetrics lists the curves by which checkpoints of a run are kept. Logs of earlier
// versions have one, of the last ranking.
func keptMetrics(c *pages.Curves, cfg config.Config) []keptMetric {
	if cfg.Train.KeepsByMetric() {
		return []keptMetric{{cfg.Train.KeepBestBy, strings.TrimPrefix(cfg.Train.KeepBestBy, "eval/")}}
	}
	switch task := DefaultTask(cfg); task {
	case TaskEntailment, TaskNLVR, TaskVQA, TaskGrounding:
		return []keptMetric{{logPrefix(task) + "accuracy", "accuracy"}}
	case TaskClassification:
		return []keptMetric{{logPrefix(task) + "top1", "top-1"}}
	case TaskCaptioning:
		return []keptMetric{{logPrefix(task) + "cider", ciderName}}
	case TaskProbe:
		return []keptMetric{{probeMetric, "linear probe"}}
	case TaskReID:
		return []keptMetric{{reIDMetric, "mAP"}}
	case TaskSiblings:
		return []keptMetric{{siblingsMetric, "mAP"}}
	case TaskSentencePairs:
		if cfg.Data.SentencePairs.Of().Scored() {
			return []keptMetric{{logPrefix(TaskSentencePairs) + "spearman", "Spearman"}}
		}
		return []keptMetric{{logPrefix(TaskSentencePairs) + "accuracy", "accuracy"}}
	case TaskSentences:
		return nil // the first task's, which metrics.jsonl names
	}
	first := keptMetric{retrievalMetric(eval.First), "mean recall by the pair score"}
	reranked := keptMetric{retrievalMetric(eval.Reranked), "mean recall, re-ranked"}
	switch {
	case c.Values[first.key] == nil:
		return []keptMetric{{retrievalMetric(""), "mean recall"}}
	case c.Values[reranked.key] == nil || cfg.Train.KeepBestBy == config.KeepByFirst:
		return []keptMetric{first}
	case cfg.Train.KeepBestBy == config.KeepByRerank:
		return []keptMetric{reranked}
	}
	return []keptMetric{first, reranked}
}
