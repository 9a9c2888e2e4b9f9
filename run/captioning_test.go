package run

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/eval"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/filetest"
	"github.com/geoalign/geoalign/model"
	"github.com/geoalign/geoalign/tasks/captioning"
)

// aloneSets switch the losses of testdata/keys.toml off, for a task whose loss stands alone.
var aloneSets = []string{"objective.itc.weight=0", "objective.itc.in_batch_weight=0", "objective.itc.score=cosine", "objective.itc.scores=[]", "objective.siglip.weight=0", "objective.geometric.weight=0",
	"objective.tcl.intra=false", "objective.tcl.local=false", "objective.itm.weight=0", "objective.mlm.weight=0", "queue.size=0", "data.views=1", "eval.rerank_top=0"}

// captionSets make testdata/keys.toml a run on captions of scenes.
var captionSets = append(slices.Clone(aloneSets), "objective.captioning.weight=1", "objective.captioning.decoder=transformer", "objective.distill.alpha=0.3", "eval.captioning.nearest=7", "eval.captioning.max_tokens=6")

// TestCaptioningTask trains some steps on captions of scenes and writes those of held-out ones.
func TestCaptioningTask(t *testing.T) {
	base := check.Get(os.ReadFile("testdata/keys.toml"))(t)
	dir := t.TempDir()
	filetest.Write(t, filepath.Join(dir, "vocab.txt"), "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nred\nblue\ngreen\nsquare\ncircle\nand\nsmall\nbig\ntop\nleft\n")
	cfg, err := config.Parse("keys.toml", base, slices.Concat([]string{"data.root=" + dir, "data.vocab=vocab.txt"}, captionSets))
	if err != nil {
		t.Fatal(err)
	}
	r := check.Get(openRun(t.Context(), cfg, Options{}, true))(t)
	defer r.Close()
	for i := range 3 {
		check.Get(r.session.Step(t.Context(), i))(t)
	}
	write := func(sets ...string) captioning.Scores {
		t.Helper()
		c := check.Get(r.cfg.With(sets...))(t)
		s, err := Evaluate(t.Context(), Evaluation{Config: c, Engine: r.engine, Model: r.model, Tokenizer: r.tok, Set: r.set})
		if err != nil {
			t.Fatal(err)
		}
		return s.(captioning.Scores)
	}
	s := write()
	if s.Task() != captioning.Name || s.Images != 20 || len(s.Generated) != 20 || len(s.Each) != 20 || s.References < 2*s.Images || s.From != 7 || s.Copied == nil || s.Metric().Name != "eval/captioning/cider" {
		t.Errorf("%+v, %v", s, s.Metric())
	}
	if v := s.Values(); len(v) != 10 || v["bleu2"] != s.Written.Bleu[1] || v["nearest/bleu3"] != s.Copied.Bleu[2] { // all that the table has
		t.Errorf("values %v", v)
	}
	if s.Copied.Cider <= s.Written.Cider {
		t.Errorf("after three steps captions have CIDEr %v, those of other images %v", s.Written.Cider, s.Copied.Cider)
	}
	for _, said := range s.Generated {
		if len(strings.Fields(said)) > 6 {
			t.Errorf("%q has more than eval.captioning.max_tokens", said)
		}
	}
	var b bytes.Buffer
	var results []struct {
		Image   *int64 `json:"image_id"`
		Caption string `json:"caption"`
	}
	if err := s.WriteResults(&b); err != nil || json.Unmarshal(b.Bytes(), &results) != nil || len(results) != 20 || results[3].Image == nil || *results[3].Image != s.Set.ImageID(3) || results[3].Caption != s.Generated[3] {
		t.Errorf("results %.200s (%v)", b.String(), err)
	}
	if p, err := s.ExamplesPage(t.Context()); err != nil || len(p.Right) != 10 || len(p.Wrong) != 10 || len(p.Right[0].Pictures) != 2 || !p.Right[0].Right || p.Wrong[0].Right || !slices.Contains(s.Generated, p.Wrong[0].Answer) {
		t.Errorf("page %d and %d (%v)", len(p.Right), len(p.Wrong), err)
	}
	if all, err := json.Marshal(s.JSON("test", "run")); err != nil || !strings.Contains(string(all), `"bleu2":`) || !strings.Contains(string(all), `"nearest/bleu3":`) {
		t.Errorf("JSON %s (%v) lacks numbers of the table", all, err)
	}
	if table := s.Table(); !strings.Contains(table, "of the nearest training image") || !strings.Contains(table, s.Generated[0]) {
		t.Error(table)
	}
	if again := write("data.max_words=1"); *again.Copied != *s.Copied {
		t.Errorf("captions are not copied as they are written: %v, %v with data.max_words = 1", s.Copied, again.Copied)
	}
	if s := write("eval.captioning.min_tokens=4", "eval.captioning.nearest=0"); s.Copied != nil || s.Values()["nearest/cider"] != 0 || len(strings.Fields(s.Generated[0])) < 4 {
		t.Errorf("%q, %v", s.Generated[0], s.Values())
	}

	spoilBias(t, r.pairs.Params())
	var diverged *eval.NonFiniteError
	none := check.Get(r.cfg.With("eval.captioning.nearest=0"))(t)
	if _, err := Evaluate(t.Context(), Evaluation{Config: none, Engine: r.engine, Model: r.model, Tokenizer: r.tok, Set: r.set}); !errors.As(err, &diverged) {
		t.Errorf("a model of NaN writes: %v", err)
	}

	other := cfg
	other.Objective.Captioning.Weight = 0
	if _, err := Evaluate(t.Context(), Evaluation{Task: captioning.Name, Config: other, Engine: r.engine, Model: r.model, Tokenizer: r.tok, Set: r.set}); err == nil || !strings.Contains(err.Error(), "(trainer finetune --task captioning)") {
		t.Errorf("a model of another task: %v", err)
	}
}

// spoilBias makes the scores of words that a decoder writes NaN.
func spoilBias(t *testing.T, p *model.Params) {
	t.Helper()
	q, ok := p.Get("decoder/mlm/bias")
	if !ok {
		t.Fatal("no bias of words")
	}
	p.Value(q)[7] = float32(math.NaN())
}
