package run

import (
	"context"
	"fmt"
	"image"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/transform"
	"github.com/geoalign/geoalign/explain"
	pages "github.com/geoalign/geoalign/report"
)

// heatRows is how many examples have their heat maps computed at a time.
const heatRows = 8

// seenHeat draws where a model looks for what it says of examples. Nothing is computed before a page asks for it.
type seenHeat struct {
	cfg  config.Config
	what string // the score and where it is followed to, for people
	// maps returns those of the pictures of some examples, one after the other, of all patches each.
	maps func(ctx context.Context, rows []int) ([]float32, error)
}

// heat asks the model for maps of rows of a gallery.
func (e Evaluation) heat(what string, columns []batch.Column, g data.Gallery, of func(ctx context.Context, b *batch.Batch, rows []int) ([]float32, error)) *seenHeat {
	encoding := e.encoding()
	encoding.BatchSize, encoding.Progress = min(encoding.BatchSize, heatRows), nil
	return &seenHeat{e.Config, what, func(ctx context.Context, rows []int) ([]float32, error) {
		return encoding.Maps(ctx, columns, g, rows, of)
	}}
}

// judgedHeat draws maps of the classes that were said of examples; nil of a model that has none.
func (e Evaluation) judgedHeat(said []int32, g data.Gallery) *seenHeat {
	m := classifier(e.Model)
	if m == nil || !m.HasHeatMaps() {
		return nil
	}
	what := "what the patches add to the logit of the class that was said"
	if e.Task != TaskClassification {
		what = "the patches that the words look at in " + e.middleLayer() + " as far as that speaks for the class that was said"
	}
	return e.heat(what, m.Columns(), g, func(ctx context.Context, b *batch.Batch, rows []int) ([]float32, error) {
		classes := make([]int32, len(rows))
		for i, r := range rows {
			classes[i] = said[r]
		}
		return m.HeatMaps(ctx, b, classes)
	})
}

// writtenHeat draws maps of what was written about the rows of a gallery, as tokens; nil of a model that has none.
func (e Evaluation) writtenHeat(said []string, as data.Answers, g data.Gallery) *seenHeat {
	m := decoder(e.Model)
	if m == nil || !m.HasHeatMaps() {
		return nil
	}
	what := "the patches that the words of the caption look at in " + e.middleLayer() + " of the decoder as far as that speaks for the caption"
	if m.ReadsQuestions() {
		what = "the patches that the words of the question look at in " + e.middleLayer() + " as far as that speaks for the answer"
	}
	return e.heat(what, m.Columns(), g, func(ctx context.Context, b *batch.Batch, rows []int) ([]float32, error) {
		return m.HeatMaps(ctx, b, e.textsOf(said, as, rows))
	})
}

// textsOf are the texts about some rows as tokens.
func (e Evaluation) textsOf(said []string, as data.Answers, rows []int) [][]int32 {
	texts := make([][]int32, len(rows))
	for i, r := range rows {
		if texts[i] = as.Encode(said[r], e.Tokenizer); texts[i] == nil { // nothing but its end
			texts[i] = []int32{e.Tokenizer.ClsID(), e.Tokenizer.SepID()}
		}
	}
	return texts
}

// middleLayer is the fusion layer whose attention is drawn, as eval.grounding.layer counts.
func (e Evaluation) middleLayer() string {
	n := e.Config.Model.Text.FusionLayers
	return fmt.Sprintf("fusion layer %d of %d", (n+1)/2, n)
}

// note says on a page what its heat maps are.
func (h *seenHeat) note() []string {
	if h == nil {
		return nil
	}
	return []string{"Heat maps: " + h.what + ". Each is scaled by its own largest value, so that colours of two maps do not compare."}
}

// of returns the maps of the pictures of some examples by their numbers; none for nil.
func (h *seenHeat) of(ctx context.Context, rows []int) (map[int][]explain.Map, error) {
	if h == nil || len(rows) == 0 {
		return nil, nil
	}
	all, err := h.maps(ctx, rows)
	if err != nil {
		return nil, err
	}
	side, n := h.cfg.Model.Image.Grid(), len(all)/len(rows)
	maps := map[int][]explain.Map{}
	for i, r := range rows {
		for at := i * n; at < (i+1)*n; at += side * side {
			m := explain.Map{Values: make([]float64, side*side), Rows: side, Columns: side}
			for k := range m.Values {
				m.Values[k] = float64(all[at+k])
			}
			maps[r] = append(maps[r], m)
		}
	}
	return maps, nil
}

// beside returns the pictures of an example, images, with their heat maps behind them.
func (h *seenHeat) beside(pictures []pages.Picture, maps []explain.Map, images ...*transform.Image) ([]pages.Picture, error) {
	for k, m := range maps {
		shown := explain.Reduced(images[k].NRGBA(), mostJudged)
		png, err := encodePNG(overlaid(h.cfg, images[k], shown, m))
		if err != nil {
			return nil, err
		}
		p := pages.Picture{PNG: png, Alt: "where the model looks"}
		if m.Most() == 0 {
			p.Caption = "no patch speaks for it"
		}
		pictures = append(pictures, p)
	}
	return pictures, nil
}

// overlaid lays a map over a picture m, shown in another size, where the model sees it.
func overlaid(cfg config.Config, m *transform.Image, shown image.Image, over explain.Map) *image.RGBA {
	x, y, w, h := cfg.ImageInput().Seen(m.W, m.H, cfg.Model.Image.Size)
	b := shown.Bounds()
	sx, sy := float64(b.Dx())/float64(m.W), float64(b.Dy())/float64(m.H)
	return explain.Overlay(shown, over, x*sx, y*sy, w*sx, h*sy)
}
