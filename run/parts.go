package run

import (
	"context"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/model"
	"github.com/geoalign/geoalign/tasks"
)

// partsOf are the parts of a model as tasks ask for them.
func partsOf(m Model) tasks.Model {
	x := tasks.Model{Image: m.Image(), Text: m.Text(), Score: m.PairScore, Matcher: m.Matcher()}
	t, ok := m.(towers)
	if !ok {
		return x
	}
	x.Temperature = t.Model.Temperature
	x.Interaction, x.Heat = t.Interaction(), heatMapper{t.Explainer()}
	if c := t.Classifier(); c != nil {
		x.Classifier = c
	}
	if w := t.Writer(); w != nil {
		x.Writer = writer{w}
	}
	return x
}

// writer is a decoder as a tasks.Writer.
type writer struct{ *model.Writer }

func (x writer) Generate(ctx context.Context, b *batch.Batch, o tasks.GenerateOptions) ([][]int32, error) {
	return x.Writer.Generate(ctx, b, model.GenerateOptions(o))
}

func (x writer) Ranker(candidates [][]int32, top int) (func(ctx context.Context, b *batch.Batch) ([]float32, error),
	error) {
	r, err := x.Writer.Ranker(candidates, top)
	if err != nil {
		return nil, err
	}
	return r.Rank, nil
}

// heatMapper is an explainer as a tasks.HeatMapper.
type heatMapper struct{ *model.Explainer }

func (x heatMapper) CheckHeat(of tasks.HeatOf) error { return x.Explainer.CheckHeat(model.HeatOf(of)) }
func (x heatMapper) DefaultFusion() int              { return x.DefaultBlocks().Fusion }
func (x heatMapper) HeatMaps(ctx context.Context, b *batch.Batch, of tasks.HeatOf) ([]float32, error) {
	return x.Explainer.HeatMaps(ctx, b, model.HeatOf(of))
}
