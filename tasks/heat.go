package tasks

import (
	"context"
	"fmt"
	"image"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/tokenizer"
	"github.com/geoalign/geoalign/data/transform"
	"github.com/geoalign/geoalign/explain"
)

// HeatRows is how many examples have their heat maps computed at a time.
const HeatRows = 8

// Heat draws where a model looks for what it predicts of examples. Nothing is computed before a page asks for it.
type Heat struct {
	view View
	what string // the score and where it is followed to, for people
	// maps returns those of the pictures of some examples, one after the other, of all patches each.
	maps func(ctx context.Context, rows []int) ([]float32, error)
}

// heat asks the model for maps of rows of a gallery.
func (s *Setup) heat(what string, columns []batch.Column, g data.Gallery,
	of func(ctx context.Context, b *batch.Batch, rows []int) ([]float32, error)) *Heat {
	encoding := s.Encoding
	encoding.BatchSize, encoding.Progress = min(encoding.BatchSize, HeatRows), nil
	return &Heat{s.View, what, func(ctx context.Context, rows []int) ([]float32, error) {
		return encoding.Maps(ctx, columns, g, rows, of)
	}}
}

// ClassHeat draws maps of the classes that were predicted of the rows of a gallery; nil of a model that has none.
func (s *Setup) ClassHeat(what string, predicted []int32, g data.Gallery) *Heat {
	m := s.Model.Classifier
	if m == nil || !m.HasHeatMaps() {
		return nil
	}
	return s.heat(what, m.Columns(), g, func(ctx context.Context, b *batch.Batch, rows []int) ([]float32, error) {
		classes := make([]int32, len(rows))
		for i, r := range rows {
			classes[i] = predicted[r]
		}
		return m.HeatMaps(ctx, b, classes)
	})
}

// TextHeat draws maps of what was generated for the rows of a gallery, as tokens; nil of a model that has none.
func (s *Setup) TextHeat(what string, generated []string, as data.Answers, g data.Gallery) *Heat {
	m := s.Model.Writer
	if m == nil || !m.HasHeatMaps() {
		return nil
	}
	tok := s.Tokenizer()
	return s.heat(what, m.Columns(), g, func(ctx context.Context, b *batch.Batch, rows []int) ([]float32, error) {
		texts := make([][]int32, len(rows))
		for i, r := range rows {
			if texts[i] = as.Encode(generated[r], tok); texts[i] == nil { // nothing but its end was generated
				texts[i] = []int32{tok.ClsID(), tok.SepID()}
			}
		}
		return m.HeatMaps(ctx, b, texts)
	})
}

// Tokenizer is that of the texts, nil of a system without.
func (s *Setup) Tokenizer() *tokenizer.Tokenizer {
	if s.Texts == nil {
		return nil
	}
	t, _ := s.Texts.Tokenizer.(*tokenizer.Tokenizer)
	return t
}

// Generated has the model generate a text for each row of a batch.
func (s *Setup) Generated(o GenerateOptions) func(ctx context.Context, b *batch.Batch) ([]string, error) {
	return func(ctx context.Context, b *batch.Batch) ([]string, error) {
		ids, err := s.Model.Writer.Generate(ctx, b, o)
		texts := make([]string, len(ids))
		for i, text := range ids {
			texts[i] = s.Tokenizer().Decode(text)
		}
		return texts, err
	}
}

// MiddleLayer is the fusion layer whose attention is drawn, as eval.grounding.layer counts.
func (v View) MiddleLayer() string {
	return fmt.Sprintf("fusion layer %d of %d", (v.Fusion+1)/2, v.Fusion)
}

// Overlay lays a map over a picture m, shown in another size, where the model sees it.
func (v View) Overlay(m *transform.Image, shown image.Image, over explain.Map) *image.RGBA {
	x, y, w, h := v.Input.Seen(m.W, m.H, v.Size)
	b := shown.Bounds()
	sx, sy := float64(b.Dx())/float64(m.W), float64(b.Dy())/float64(m.H)
	return explain.Overlay(shown, over, x*sx, y*sy, w*sx, h*sy)
}

// Note says on a page what its heat maps are.
func (h *Heat) Note() []string {
	if h == nil {
		return nil
	}
	return []string{"Heat maps: " + h.what +
		". Each is scaled by its own largest value, so that colours of two maps do not compare."}
}

// Of returns the maps of the pictures of some examples by their numbers; none for nil.
func (h *Heat) Of(ctx context.Context, rows []int) (map[int][]explain.Map, error) {
	if h == nil || len(rows) == 0 {
		return nil, nil
	}
	all, err := h.maps(ctx, rows)
	if err != nil {
		return nil, err
	}
	side, n := h.view.Grid, len(all)/len(rows)
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
