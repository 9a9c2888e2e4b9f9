package run

import (
	"cmp"
	"context"
	"fmt"
	"runtime"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/evalfiles"
	"github.com/geoalign/geoalign/data/source"
	"github.com/geoalign/geoalign/eval"
	"github.com/geoalign/geoalign/eval/tasks"
	"github.com/geoalign/geoalign/train/checkpoint"
)

// probe runs the linear probe: trained on images of the training data as they are,
// tested on the split.
func (e Evaluation) probe(ctx context.Context) (Scores, error) {
	c := e.Config
	if c.Has(section.Sentences) {
		return nil, noImages(c, TaskProbe)
	}
	if e.Set.Eval == nil {
		return nil, &ArgumentError{fmt.Errorf("the probe needs a model with an image encoder: model.system %q has none", c.Model.System)}
	}
	stream, err := source.Stream(ctx, unaugmented(c).Source(), source.Options{Progress: e.Progress})
	if err != nil {
		return nil, err
	}
	s, err := tasks.Probe{
		Model: e.Model.Image(), Train: stream, Samples: c.Eval.ProbeSamples, Set: e.Set.Eval, Classifier: e.classifier(c.Eval.ProbeNeighbours),
		BatchSize: c.Eval.BatchSize, Workers: runtime.GOMAXPROCS(0), Group: e.Group, Progress: e.Progress,
	}.Run(ctx)
	return Probe{ProbeScores: s}, err
}

// textProbe runs the probe of pairs of texts, whatever the split.
func (e Evaluation) textProbe(ctx context.Context) (Scores, error) {
	c := e.Config
	if err := e.noWords(); err != nil {
		return nil, err
	}
	p, err := evalfiles.OpenTextProbe(c)
	if err != nil {
		return nil, err
	}
	gallery := func(pairs []data.TextPair, text func(p data.TextPair) string) data.Gallery {
		g := listedTexts{clean: cleaner(c), columns: textColumns(c, e.Tokenizer)}
		for _, p := range pairs {
			g.texts = append(g.texts, text(p))
		}
		return g
	}
	a, b := func(p data.TextPair) string { return p.A }, func(p data.TextPair) string { return p.B }
	s, err := tasks.TextProbe{
		Model:   e.Model.Text(),
		Train:   tasks.LabelledTexts{A: gallery(p.Train, a), B: gallery(p.Train, b), Labels: p.TrainLabel},
		Test:    tasks.LabelledTexts{A: gallery(p.Test, a), B: gallery(p.Test, b), Labels: p.TestLabel},
		Classes: p.Classes, Classifier: e.classifier(0), BatchSize: c.Eval.BatchSize, Workers: runtime.GOMAXPROCS(0), Group: e.Group, Progress: e.Progress,
	}.Run(ctx)
	return Probe{ProbeScores: s, Of: TaskTextProbe}, err
}

// classifier is that of the configuration, beside which so many neighbours vote.
func (e Evaluation) classifier(neighbours int) tasks.Classifier {
	c := e.Config.Eval
	return tasks.Classifier{Engine: e.Engine, Decay: c.ProbeDecay, Hold: c.ProbeHold, Neighbours: neighbours}
}

// unaugmented is a configuration whose training images are resized and nothing else, without sentences between them.
func unaugmented(cfg config.Config) config.Config {
	d := &cfg.Data
	d.Sentences.Batches = 0
	d.CropScaleMin, d.Flip, d.RandAugmentOps = 1, false, 0
	d.ColorJitter, d.Grayscale, d.Blur, d.Views = 0, 0, 0, 1
	return cfg
}

// probeMetric is the metric of checkpoints of a probe, as metrics.jsonl names it.
const probeMetric = "eval/" + TaskProbe + "/top1"

// Probe is the outcome of a linear probe.
type Probe struct {
	tasks.ProbeScores
	Of string // its task; empty: TaskProbe
}

// Task implements Scores.
func (p Probe) Task() string { return cmp.Or(p.Of, TaskProbe) }

// rows says what was classified.
func (p Probe) rows() string {
	if p.Of == TaskTextProbe {
		return "text pairs"
	}
	return "images"
}

// Metric is the accuracy of the linear classifier.
func (p Probe) Metric() checkpoint.Metric {
	return checkpoint.Metric{Name: logPrefix(p.Task()) + "top1", Value: p.Top1}
}

// Values implements Scores.
func (p Probe) Values() map[string]float64 { return p.Map() }

// Size implements Scores.
func (p Probe) Size() string {
	return fmt.Sprintf("%d training %s, %d %s, %d classes", p.Train, p.rows(), p.Test, p.rows(), p.Classes)
}

// Line implements Scores.
func (p Probe) Line() string {
	text := fmt.Sprintf("linear probe top-1 %.2f, ", p.Top1)
	if p.Voted {
		text += fmt.Sprintf("k-NN top-1 %.2f, ", p.Neighbours)
	}
	return text + fmt.Sprintf("chance %.2f", p.Chance)
}

// ClassTable implements Classified.
func (p Probe) ClassTable() *eval.ClassTable { return p.PerClass }

// JSON implements Scores.
func (p Probe) JSON(split, path string) any {
	x := probeJSON{Task: p.Task(), Split: split, Path: path, Train: p.Train, Classes: p.Classes, Top1: p.Top1, ClassTop1: p.MeanOfClasses, Chance: p.Chance, Decay: p.Decay,
		PerClass: p.PerClass.Classes(), Confusion: p.PerClass.Matrix(), Names: p.PerClass.Names}
	if p.Chosen {
		x.Held = &p.Held
	}
	if p.Voted {
		x.KNN = &p.Neighbours
	}
	if p.Of == TaskTextProbe {
		x.Split, x.Pairs = "", p.Test
	} else {
		x.Images = p.Test
	}
	return x
}

// probeJSON is the JSON form of Probe.
type probeJSON struct {
	Task      string               `json:"task"`
	Split     string               `json:"split,omitempty"`
	Path      string               `json:"path"`
	Train     int                  `json:"train"`
	Images    int                  `json:"images,omitempty"`
	Pairs     int                  `json:"pairs,omitempty"`
	Classes   int                  `json:"classes"`
	Top1      float64              `json:"top1"`
	ClassTop1 float64              `json:"class_top1"`
	KNN       *float64             `json:"knn_top1,omitempty"`
	Chance    float64              `json:"chance"`
	Decay     float64              `json:"decay"`
	Held      *float64             `json:"held_top1,omitempty"` // on the training rows on which the decay was chosen
	PerClass  []eval.ClassAccuracy `json:"per_class"`
	Names     []string             `json:"class_names"`
	Confusion [][]int32            `json:"confusion,omitempty"` // a row for each class, in the order of class_names, with what its images were taken for
}
