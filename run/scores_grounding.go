package run

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/source"
	"github.com/geoalign/geoalign/eval"
	"github.com/geoalign/geoalign/eval/tasks"
	"github.com/geoalign/geoalign/internal/words"
	"github.com/geoalign/geoalign/model"
	"github.com/geoalign/geoalign/train/checkpoint"
)

// explained is a model with heat maps of pairs.
type explained interface{ Explainer() *model.Explainer }

// grounding looks for what the expressions of eval.split name. Of a model of scenes they are about scenes.
func (e Evaluation) grounding(ctx context.Context) (Scores, error) {
	c := e.Config
	bad := func(format string, args ...any) error { return &ArgumentError{fmt.Errorf(format, args...)} }
	if c.Data.Kind == "scenes" {
		c.Data.Kind, c.Data.Examples.Source = source.GroundingKind, source.ExamplesOfScenes
	}
	m, ok := e.Model.(explained)
	switch {
	case !ok || e.Tokenizer == nil:
		return nil, bad("the task %s needs a model of images and texts: use --task %s for model.system %q", TaskGrounding, DefaultTask(e.Config), c.Model.System)
	case c.Data.Kind != source.GroundingKind:
		return nil, bad("the task %s reads pictures with expressions and boxes, which data.kind %q has not: set data.kind = %q and the files of data.examples", TaskGrounding, c.Data.Kind, source.GroundingKind)
	case c.Model.Image.Resize == "crop":
		return nil, bad("the task %s needs heat maps of whole pictures, and model.image.resize is %q: set it to \"squash\"", TaskGrounding, c.Model.Image.Resize)
	}
	of := heatOf(c.Eval.Grounding, m.Explainer().DefaultBlocks(), c.Model.Image.Depth)
	if err := m.Explainer().CheckHeat(of); err != nil {
		return nil, &ArgumentError{fmt.Errorf("eval.grounding: %w", err)}
	}
	x, err := e.Set.files().openExamples(ctx, c)
	if err != nil {
		return nil, err
	}
	rows := source.ExampleColumns(c.Source(), x, e.Tokenizer)
	if n := c.Eval.MaxImages; n > 0 && n < x.Len() {
		rows.Of = firstExamples{x, n}
	}
	s, err := tasks.Grounding{
		Heat: func(ctx context.Context, b *batch.Batch) ([]float32, error) {
			return m.Explainer().HeatMaps(ctx, b, of)
		},
		Columns: append(e.Model.Image().Columns(), e.Model.Text().Columns()...), Examples: x, Rows: rows,
		BatchSize: c.Eval.BatchSize, Workers: e.encoding().Workers, Progress: e.Progress,
	}.Run(ctx)
	return Grounding{s, x, of}, err
}

// heatOf is where the configuration has heat maps read.
func heatOf(g config.EvalGrounding, at model.Blocks, depth int) model.HeatOf {
	of := model.HeatOf{Match: g.Mode == config.GroundingByMatch, Layer: g.Layer - 1}
	if g.Layer == 0 {
		if of.Layer = depth - 1; of.Match {
			of.Layer = at.Fusion
		}
	}
	return of
}

// firstExamples are the first n of examples.
type firstExamples struct {
	data.Examples
	n int
}

// Len implements data.Examples.
func (f firstExamples) Len() int { return f.n }

// Grounding is what was found of what expressions name.
type Grounding struct {
	tasks.GroundingScores
	Examples data.Examples
	Of       model.HeatOf
}

// Task implements Scores.
func (Grounding) Task() string { return TaskGrounding }

// Metric is the share of right boxes in percent.
func (g Grounding) Metric() checkpoint.Metric {
	return checkpoint.Metric{Name: logPrefix(TaskGrounding) + "accuracy", Value: g.All.Accuracy()}
}

// Values implements Scores: in percent.
func (g Grounding) Values() map[string]float64 { return g.Map() }

// where says which attention the maps are of, counted as the configuration does.
func (g Grounding) where() string {
	if g.Of.Match {
		return fmt.Sprintf("fusion layer %d", g.Of.Layer+1)
	}
	return fmt.Sprintf("image block %d", g.Of.Layer+1)
}

// Line implements Scores.
func (g Grounding) Line() string {
	return fmt.Sprintf("grounding by %s: IoU >= .5 %.2f (chance %.2f), pointing %.2f (chance %.2f)", g.where(), g.All.Accuracy(), g.All.Chance(), g.All.Pointing(), g.All.ChancePoint())
}

// Size implements Scores.
func (g Grounding) Size() string { return words.Count(g.All.N, "expression") }

// Table implements Scores.
func (g Grounding) Table() string {
	return "heat maps of " + g.where() + "\n\n" + g.GroundingScores.Table()
}

// JSON implements Scores.
func (g Grounding) JSON(split, path string) any {
	type group struct {
		Kind        string  `json:"kind,omitempty"`
		Expressions int     `json:"expressions"`
		Accuracy    float64 `json:"accuracy"`
		Chance      float64 `json:"chance"`
		Reachable   float64 `json:"reachable"` // share with a right box among the proposals
		Pointing    float64 `json:"pointing"`
		ChancePoint float64 `json:"chance_pointing"`
		Dark        int     `json:"dark,omitempty"` // maps that say nothing
	}
	of := func(x eval.GroundedGroup) group {
		return group{x.Kind, x.N, x.Accuracy(), x.Chance(), x.Reach(), x.Pointing(), x.ChancePoint(), x.Dark}
	}
	var kinds []group
	for _, k := range g.Kinds {
		kinds = append(kinds, of(k))
	}
	return struct {
		Task    string  `json:"task"`
		Split   string  `json:"split"`
		Path    string  `json:"path"`
		Map     string  `json:"map"`
		All     group   `json:"all"`
		Kinds   []group `json:"kinds,omitempty"`
		Sliding int     `json:"sliding,omitempty"`
		Clipped int     `json:"clipped,omitempty"`
		Outside int     `json:"outside,omitempty"`
		Without int     `json:"without_target,omitempty"`
	}{TaskGrounding, split, path, g.where(), of(g.All), kinds, g.Sliding, g.Clipped, g.Outside, g.Without}
}

// WriteResults implements Resulted: a list of {"id", "image", "text", "bbox", "target", "iou"} with boxes [x, y, width, height] in pixels; "bbox" is null of a
// dark map.
func (g Grounding) WriteResults(w io.Writer) error {
	type result struct {
		ID     string      `json:"id"`
		Image  string      `json:"image"`
		Text   string      `json:"text"`
		Box    *[4]float64 `json:"bbox"`
		Target [4]float64  `json:"target"`
		IoU    float64     `json:"iou"`
	}
	box := func(r data.Rect) *[4]float64 { return &[4]float64{r.X, r.Y, r.W, r.H} }
	list := make([]result, len(g.Found))
	for i, f := range g.Found {
		e := g.Examples.Example(f.Example)
		list[i] = result{ID: e.ID, Image: g.Examples.PictureName(f.Example, 0), Text: e.Text, Target: *box(f.Target), IoU: f.IoU}
		if f.Chosen != nil {
			list[i].Box = box(*f.Chosen)
		}
	}
	return json.NewEncoder(w).Encode(list)
}
