package train

import (
	"errors"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data/tokenizer"
	"github.com/geoalign/geoalign/internal/kernel/vector"
	"github.com/geoalign/geoalign/internal/safetensors"
	"github.com/geoalign/geoalign/model"
	"github.com/geoalign/geoalign/state"
	"github.com/geoalign/geoalign/train/checkpoint"
	"github.com/geoalign/geoalign/weights"
)

// Imported returns a checkpoint of step 0 whose parameters are those of p (model.Layout), each begun when it is
// written. Twins are those of m, which is where p begins, or copies; a queue of m is full, without the ids of its
// images. tok is nil without texts. Save the snapshot before m is closed.
func Imported(cfg config.Config, tok *tokenizer.Tokenizer, p *model.Params, m *weights.Model) (checkpoint.Snapshot,
	error) {
	var own runPart
	params, twins := state.Values{Name: "model"}, state.Values{Name: "momentum"}
	for _, q := range p.List() {
		begin := func(dst []float32) error { return p.Begin(q, dst) }
		params.Memory = append(params.Memory, lazy(q.Name, q.Shape, begin))
		if !q.Momentum {
			continue
		}
		if name := "momentum/" + q.Name; m.Has(name) {
			begin = func(dst []float32) error { return m.Read(name, q.Shape, dst) }
		}
		twins.Memory = append(twins.Memory, lazy(q.Name, q.Shape, begin))
	}
	return snapshot(&own, &Event{}, cfg, tok, func() []state.Part {
		parts := []state.Part{&own, params}
		if len(twins.Memory) > 0 {
			parts = append(parts, twins)
		}
		if q, ok := importedQueue(cfg, m); ok {
			parts = append(parts, q)
		}
		return parts
	})
}

// importedQueue is the queue of m, false where it has none or the configuration has another size.
func importedQueue(cfg config.Config, m *weights.Model) (state.Values, bool) {
	const image, text = "queue/image", "queue/text"
	shape := m.Shape(image)
	if shape == nil || !m.Has(text) || shape[0] != cfg.Queue.Size {
		return state.Values{}, false
	}
	ids := make([]int32, shape[0])
	for i := range ids {
		ids[i] = model.NoID
	}
	counters := struct {
		Pointer int `json:"pointer"`
		Filled  int `json:"filled"`
	}{0, shape[0]}
	return state.Values{Name: "queue", Numbers: &counters, Memory: []state.Tensor{
		lazy("image", shape, func(dst []float32) error { return m.Read(image, shape, dst) }),
		lazy("text", shape, func(dst []float32) error { return m.Read(text, shape, dst) }),
		{Name: "ids", Shape: shape[:1], Data: ids},
	}}, true
}

// lazy is a tensor that is made when it is written. Numbers that are not finite are an error: no run can go on from
// them.
func lazy(name string, shape []int, begin func(dst []float32) error) state.Tensor {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return state.Tensor{Name: name, Shape: shape, Data: safetensors.Lazy{Len: n, Fill: func(dst []float32) error {
		if err := begin(dst); err != nil {
			return err
		}
		if !finite(vector.SumSq(dst)) {
			return errors.New("it has numbers that are not finite: the file is of a run that went wrong, or was damaged")
		}
		return nil
	}}}
}
