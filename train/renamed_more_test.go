package train

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/internal/check"
)

// TestInitFurtherLayers: fusion layers behind those of the checkpoint start from its last one, those of texts with two pictures from
// the last one of the same picture, and so do further layers of a decoder.
func TestInitFurtherLayers(t *testing.T) {
	s, c := trained(t, "model.text.fusion_layers=2")
	was, first := s.model.Params(), s.cfg.Model.Text.Layers
	for name, x := range map[string]struct {
		sets  []string
		scope string // of the layers
		from  []int  // the fusion layer of the checkpoint, from 0, by the number of the layer behind the text layers
	}{
		"fusion":     {[]string{"model.text.fusion_layers=4"}, textLayers, []int{0, 1, 1, 1}},
		"pictures":   {append(slices.Clone(pictured), "model.text.fusion_layers=3"), textLayers, []int{0, 0, 1, 1, 1, 1}},
		"captioning": {append(slices.Clone(captionSets), "model.text.fusion_layers=3"), "decoder/layers/", []int{0, 1, 1}},
	} {
		fresh := small(t, 0, 0, append(x.sets, "run.seed=8")...)
		r, err := InitModel(fresh.model, c, fresh.cfg.Model)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		now, seen, behind := fresh.model.Params(), 0, first
		if x.scope != textLayers {
			behind = 0
		}
		for _, q := range now.List() {
			var layer int
			var rest string
			if n, _ := fmt.Sscanf(strings.Replace(q.Name, "/", " ", 3), strings.Replace(x.scope, "/", " ", 2)+"%d %s", &layer, &rest); n != 2 || layer < behind {
				continue
			}
			from, ok := was.Get(fmt.Sprintf("%s%02d/%s", textLayers, first+x.from[layer-behind], rest))
			if !ok || !slices.Equal(now.Value(q), was.Value(from)) {
				t.Errorf("%s: %s is not that of fusion layer %d", name, q.Name, x.from[layer-behind])
			}
			if q.Momentum && !slices.Equal(now.MomentumValue(q), was.MomentumValue(from)) {
				t.Errorf("%s: the EMA copy of %s is not that of fusion layer %d", name, q.Name, x.from[layer-behind])
			}
			seen++
		}
		if seen < 10*len(x.from) {
			t.Errorf("%s: %d parameters of %d layers", name, seen, len(x.from))
		}
		for _, name := range r.Fresh {
			if strings.Contains(name, "/layers/") {
				t.Errorf("%s is left at random", name)
			}
		}
	}
}

// TestInitNewWords: a model whose tokenizer has taken in words starts with the checkpoint's rows of the words that there were, twins
// included, and with random ones behind them. A model with fewer words is an error.
func TestInitNewWords(t *testing.T) {
	s, c := trained(t)
	tok := check.Get(s.tokenizer.Extended(slices.Values([]string{"what colour?", "how many?"}), 100))(t)
	more := tok.Size() - s.tokenizer.Size()
	if more < 4 {
		t.Fatalf("%d new words: the test shows nothing", more)
	}
	cfg := s.cfg
	cfg.Run.Seed = 8
	fresh := check.Get(sessionOf(t, cfg, 0, 0, tok))(t)
	word, _ := fresh.model.Params().Get("text/embeddings/word/weight")
	start := slices.Clone(fresh.model.Params().Value(word))
	r, err := InitModel(fresh.model, c, fresh.cfg.Model)
	if err != nil || !slices.Equal(r.Grown, []string{"text/embeddings/word/weight", "text/mlm/bias"}) || r.Fresh != nil || !strings.Contains(r.String(), "with room for new words (text/embeddings") {
		t.Fatalf("%v, %+v", err, r)
	}
	was, now := s.model.Params(), fresh.model.Params()
	for _, name := range r.Grown {
		from, _ := was.Get(name)
		q, _ := now.Get(name)
		n := len(was.Value(from))
		if !slices.Equal(now.Value(q)[:n], was.Value(from)) || !slices.Equal(now.MomentumValue(q)[:n], was.MomentumValue(from)) {
			t.Errorf("the old rows of %s are not those of the checkpoint, or those of its twin", name)
		}
		if !slices.Equal(now.Value(q)[n:], now.MomentumValue(q)[n:]) {
			t.Errorf("the new rows of the EMA copy of %s are no copy", name)
		}
	}
	if n := len(start) - more*word.Shape[1]; !slices.Equal(now.Value(word)[n:], start[n:]) || slices.Equal(now.Value(word)[:n], start[:n]) {
		t.Error("new rows are not as initialised, or old ones are")
	}
	fresh.must(t, 0)
	if _, err := InitModel(s.model, fresh.save(t, t.TempDir(), 1), config.Model{}); err == nil || !strings.Contains(err.Error(), "text/embeddings/word/weight has shape") {
		t.Errorf("a model with fewer words: %v", err)
	}
}

// TestInitDecoderNewWords: a decoder whose tokenizer has taken in words starts from the words of the texts of the checkpoint, and the report
// names its tables both among those from others and among those with room for new words.
func TestInitDecoderNewWords(t *testing.T) {
	s, c := trained(t)
	tok := check.Get(s.tokenizer.Extended(slices.Values([]string{"what colour?", "how many?"}), 100))(t)
	cfg, err := config.Load("../cmd/trainer/testdata/tiny.toml", append(slices.Clone(captionSets), "run.seed=8"))
	if err != nil {
		t.Fatal(err)
	}
	fresh := check.Get(sessionOf(t, cfg, 0, 0, tok))(t)
	r := check.Get(InitModel(fresh.model, c, fresh.cfg.Model))(t)
	was, now := s.model.Params(), fresh.model.Params()
	for name, from := range map[string]string{"decoder/embeddings/word/weight": "text/embeddings/word/weight", "decoder/mlm/bias": "text/mlm/bias"} {
		x, _ := was.Get(from)
		q, ok := now.Get(name)
		if !ok || !slices.Equal(now.Value(q)[:len(was.Value(x))], was.Value(x)) {
			t.Errorf("%s does not start from %s", name, from)
		}
		if !slices.Contains(r.Renamed, name) || !slices.Contains(r.Grown, name) {
			t.Errorf("%s: from others %v, with room for new words %v", name, r.Renamed, r.Grown)
		}
	}
	if slices.Contains(r.Grown, "decoder/mlm/dense/bias") {
		t.Errorf("a parameter of the same shape has room for new words: %v", r.Grown)
	}
}
