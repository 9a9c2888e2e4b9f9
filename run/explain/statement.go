package explain

import (
	"context"
	"fmt"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/examples"
	"github.com/geoalign/geoalign/data/source"
	"github.com/geoalign/geoalign/data/transform"
	"github.com/geoalign/geoalign/eval"
	"github.com/geoalign/geoalign/explain"
	pages "github.com/geoalign/geoalign/report"
	"github.com/geoalign/geoalign/run"
	"github.com/geoalign/geoalign/run/console"
	"github.com/geoalign/geoalign/tasks"
)

// StatementScore is the logit of the class that a model tells of a statement about two pictures.
const StatementScore = "statement"

// FormulaAttention is attention times its gradient (explain.Attention), the formula of a statement.
const FormulaAttention = "attention"

// checkStatement refuses options that a statement about two pictures has no use for, and asks for what it needs.
func (o *Options) checkStatement(cfg config.Config) error {
	switch {
	case cfg.Objective.NLVR.Weight == 0:
		return console.Argument("the model was trained for objective.assignment, which tells nothing of a statement: fine-tune it with trainer finetune --task nlvr")
	case o.Block != nil || o.Layer != nil || o.Fusion != nil || o.Formula != "":
		return console.Argument("a statement about two pictures is explained by the fusion layers in the middle, one for each picture: leave out --block, --layer, --fusion and --formula")
	case o.Row == nil && (o.Image == "" || o.With == "" || o.Text == ""):
		return console.Argument("the model reads statements about two pictures: give --image, --with and --text, or a statement of --split with --row")
	}
	return nil
}

// onePicture refuses a model of statements about two pictures, which has no pairs of one.
func onePicture(cfg config.Config) error {
	if cfg.Pictures() > 1 {
		return console.Argument("the model reads statements about two pictures, which have no score of a pair: explain one with --row, or with --image, --with and --text")
	}
	return nil
}

// explainStatement explains which class the model tells of a statement about two pictures.
func explainStatement(ctx context.Context, t *run.Trained, o Options) (*Explanation, error) {
	cfg := t.Config
	out := &Explanation{cfg: cfg, Checkpoint: t.Checkpoint.Path, Step: t.Checkpoint.Step, System: cfg.Model.System,
		Formula: FormulaAttention, Block: -1, Layer: -1}
	out.Fusion = (cfg.Model.Text.FusionLayers - 1) / 2 * 2 // of the left picture
	var err error
	if o.Row != nil {
		o.Text, err = readStatement(ctx, t, o, out)
	} else {
		err = out.decode(o)
	}
	if err != nil {
		return nil, err
	}
	if err := t.Load(); err != nil {
		return nil, err
	}
	m, ok := run.TowersOf(t.Model)
	if !ok || m.Classifier() == nil || !m.Classifier().HasHeatMaps() {
		return nil, console.Argument("model.system %q has no heat maps of two pictures", cfg.Model.System)
	}
	x := &Explainer{t: t, model: m, b: batch.New(1, m.Classifier().Columns()...)}
	if err := x.setImage(out.image, batch.Images); err != nil {
		return nil, err
	}
	if err := x.setImage(out.other, batch.SecondImages); err != nil {
		return nil, err
	}
	if err := x.read(o, nil, out); err != nil {
		return nil, err
	}
	logits, err := m.Classifier().Logits(ctx, x.b)
	if err != nil {
		return nil, err
	}
	class, err := eval.Likeliest(logits)
	if err != nil {
		return nil, err
	}
	r := Relevance{Name: StatementScore, Kind: StatementScore, Score: float64(logits[class])}
	maps, err := m.Classifier().HeatMaps(ctx, x.b, []int32{int32(class)})
	if err != nil {
		return nil, err
	}
	wide := make([]float64, len(maps))
	for i, v := range maps {
		wide[i] = float64(v)
	}
	r.Image, r.Other = x.patches(wide[:len(wide)/2]), x.patches(wide[len(wide)/2:])
	out.Said, out.Scores = examples.NLVRClasses[class], []Relevance{r}
	out.Score = "logit of " + out.Said
	for k, over := range []*explain.Map{r.Image, r.Other} {
		if over.Most() == 0 {
			out.Notes = append(out.Notes, fmt.Sprintf("No patch of the %s picture speaks for it: its map is dark.",
				tasks.Sides[k]))
		}
	}
	return out, nil
}

// readStatement decodes the pictures of a statement of a split, and returns its text, which o.Text takes the place of.
func readStatement(ctx context.Context, t *run.Trained, o Options, out *Explanation) (text string, err error) {
	split := t.SplitName(o.Split)
	if err := source.CheckSplit(t.Config.Source(), split); err != nil {
		return "", &console.ArgumentError{Err: err}
	}
	x, err := source.OpenExamples(ctx, t.Config.Source(), split,
		source.Options{Warn: func(note string) { t.Say("%s", note) }})
	if err != nil {
		return "", err
	}
	if *o.Row >= x.Len() || x.Pictures() < 2 {
		return "", console.Argument("--row must be below %d, the statements about two pictures of the split %s (got %d)", x.Len(), split, *o.Row)
	}
	e := x.Example(*o.Row)
	out.Split, out.Row, out.Name = split, *o.Row, e.ID
	if text = o.Text; text == "" {
		text = e.Text
		if e.Label != data.UnknownLabel {
			out.Truth = x.Labels()[e.Label]
		}
	}
	for k, to := range []**transform.Image{&out.image, &out.other} {
		if *to, err = x.Picture(*o.Row, k); err != nil {
			return "", err
		}
	}
	return text, nil
}

// statement adds what a model looks at in two pictures.
func (f *explainFolder) statement(r Relevance) error {
	s := pages.ExplainedScore{ID: StatementScore, Title: "Statement", Intro: fmt.Sprintf(
		"The attention of the words to the patches of the left picture in fusion layer %d, and of the right one in layer %d, times the gradient of the %s to it where that is above 0, in the mean over heads. Each map is scaled by itself.",
		f.e.Fusion, f.e.Fusion+1, f.e.Score)}
	for _, x := range []struct {
		name, side string
		m          *transform.Image
		over       *explain.Map
	}{{"statement.png", tasks.Sides[0], f.e.image, r.Image},
		{"statement-with.png", tasks.Sides[1], f.e.other, r.Other}} {
		if err := f.heat(&s.Pictures, x.name, x.m, *x.over,
			pages.Picture{Alt: "what the words look at in the " + x.side + " picture", Caption: x.side}); err != nil {
			return err
		}
	}
	f.page.Parts = append(f.page.Parts, s)
	return nil
}
