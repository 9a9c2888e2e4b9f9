package run

import (
	"context"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/model"
	"github.com/geoalign/geoalign/tasks"
)

// partsOf are the parts of a model as tasks ask for them.
func partsOf(m Model) tasks.Model {
	x := tasks.Model{Image: m.Image(), Text: m.Text(), Score: m.PairScore}
	t, ok := m.(interface{ system() *model.Pairs })
	if m.HasMatching() {
		x.Matcher = m
	}
	if !ok {
		return x
	}
	p := t.system()
	x.Heat = heatMapper{p}
	if p.InteractionName() != "" {
		x.Interaction = interaction{p}
	}
	if p.JudgeColumns() != nil {
		x.Classifier = classifier{p}
	}
	if p.HasDecoder() {
		x.Writer = writer{p}
	}
	return x
}

func (t towers) system() *model.Pairs { return t.Pairs }

// interaction is a model as a tasks.Interaction.
type interaction struct{ *model.Pairs }

func (x interaction) Name() string { return x.InteractionName() }
func (x interaction) Scores(ctx context.Context, images []float32, imageLengths []int32, texts []float32, textLengths []int32) ([]float32, error) {
	return x.Interact(ctx, images, imageLengths, texts, textLengths)
}

// classifier is a model as a tasks.Classifier.
type classifier struct{ *model.Pairs }

func (x classifier) Columns() []batch.Column { return x.JudgeColumns() }
func (x classifier) HasHeatMaps() bool       { return x.HasJudgedMaps() }
func (x classifier) Logits(ctx context.Context, b *batch.Batch) ([]float32, error) {
	return x.Judge(ctx, b)
}
func (x classifier) HeatMaps(ctx context.Context, b *batch.Batch, classes []int32) ([]float32, error) {
	return x.JudgedMaps(ctx, b, classes)
}

// writer is a model as a tasks.Writer.
type writer struct{ *model.Pairs }

func (x writer) Columns() []batch.Column { return x.DecoderColumns() }
func (x writer) HasHeatMaps() bool       { return x.HasWrittenMaps() }
func (x writer) HeatMaps(ctx context.Context, b *batch.Batch, texts [][]int32) ([]float32, error) {
	return x.WrittenMaps(ctx, b, texts)
}
func (x writer) Generate(ctx context.Context, b *batch.Batch, o tasks.GenerateOptions) ([][]int32, error) {
	return x.Pairs.Generate(ctx, b, model.GenerateOptions(o))
}
func (x writer) Ranker(candidates [][]int32, top int) (func(ctx context.Context, b *batch.Batch) ([]float32, error), error) {
	r, err := x.NewRanker(candidates, top)
	if err != nil {
		return nil, err
	}
	return r.Rank, nil
}

// heatMapper is a model as a tasks.HeatMapper.
type heatMapper struct{ *model.Pairs }

func (x heatMapper) CheckHeat(of tasks.HeatOf) error { return x.Pairs.CheckHeat(model.HeatOf(of)) }
func (x heatMapper) DefaultFusion() int              { return x.DefaultBlocks().Fusion }
func (x heatMapper) HeatMaps(ctx context.Context, b *batch.Batch, of tasks.HeatOf) ([]float32, error) {
	return x.Pairs.HeatMaps(ctx, b, model.HeatOf(of))
}
