package tasks

import (
	"strings"
	"testing"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/tokenizer"
	"github.com/geoalign/geoalign/data/transform"
	"github.com/geoalign/geoalign/eval"
	"github.com/geoalign/geoalign/model"
)

// TestALBEF evaluates a tiny model on seven images of one colour each and compares with
// scores that are computed one pair at a time.
func TestALBEF(t *testing.T) {
	captions := strings.Fields("red green blue white black grey pink")
	ds := &data.Memory{}
	for i, word := range captions {
		img := transform.NewImage(12, 10)
		for k := range img.Pix {
			img.Pix[k] = uint8(37 * (i + 1) * (k%3 + 1))
		}
		ds.Images = append(ds.Images, img)
		ds.Texts = append(ds.Texts, []string{"a " + word + " field", "all " + word})
	}
	tok, err := tokenizer.Learn(func(yield func(string) bool) {
		for _, c := range ds.Texts {
			for _, s := range c {
				if !yield(s) {
					return
				}
			}
		}
	}, 80)
	if err != nil {
		t.Fatal(err)
	}
	cfg := config.Default()
	cfg.Model.Image = config.Image{Size: 16, Patch: 8, Depth: 1, Width: 16, Heads: 2}
	cfg.Model.Text = config.Text{Layers: 1, FusionLayers: 1, Width: 16, Heads: 2, Positions: 10, Dropout: 0.1}
	cfg.Model.Head.Dim = 8
	cfg.Queue.Size, cfg.Train.BatchSize, cfg.Data.Tokens = 0, 2, 8
	m, err := model.NewALBEF(cfg, tok.Size(), engine)
	if err != nil {
		t.Fatal(err)
	}
	for i := range m.Params().Values() { // far from the small values of the start
		m.Params().Values()[i] *= 10
	}
	set, err := data.NewEval(ds, data.EvalConfig{ImageSize: 16})
	if err != nil {
		t.Fatal(err)
	}
	const top = 3
	got := mustRun(t, Retrieval{Model: m, Tokenizer: tok, Engine: engine, Set: set, BatchSize: 4, RerankTop: top, Workers: 2})

	one := &single{t: t, m: m, tok: tok, set: set}
	n, texts := set.NumImages(), set.NumTexts()
	cosine := make([]float32, n*texts)
	ids := make([]int, texts)
	for i := range n {
		_, f := one.image(i)
		for j := range texts {
			_, _, g := one.text(j)
			for d := range f {
				cosine[i*texts+j] += f[d] * g[d]
			}
			ids[j] = set.TextImage(j)
		}
	}
	corr, err := eval.NewCorrespondence([]int{0, 1, 2, 3, 4, 5, 6}, ids)
	if err != nil {
		t.Fatal(err)
	}
	first, second, err := eval.RankAndRerank(corr, n, top, eval.Matrix(cosine, texts), one)
	if err != nil {
		t.Fatal(err)
	}
	if want := first.Metrics(); got.First != want {
		t.Errorf("cosine %+v, want %+v", got.First, want)
	}
	if want := second.Metrics(); *got.Rerank != want {
		t.Errorf("re-ranked %+v, want %+v", *got.Rerank, want)
	}
	if *got.Rerank == got.First {
		t.Error("re-ranking changed nothing, so the test shows little")
	}
}

// single encodes and scores one thing at a time.
type single struct {
	t   *testing.T
	m   *model.ALBEF
	tok *tokenizer.Tokenizer
	set *data.Eval
}

func (s *single) image(i int) (states, features []float32) {
	size := s.m.ImageSize()
	pixels := make([]float32, 3*size*size)
	if err := s.set.LoadImage(i, pixels); err != nil {
		s.t.Fatal(err)
	}
	a, b, err := s.m.EncodeImages(pixels, 1)
	if err != nil {
		s.t.Fatal(err)
	}
	return append([]float32(nil), a...), append([]float32(nil), b...)
}

func (s *single) text(j int) (states []float32, lengths []int32, features []float32) {
	ids, lengths := make([]int32, s.m.TextTokens()), make([]int32, 1)
	if err := data.TokenBatch(s.tok, []string{s.set.Text(j)}, s.m.TextTokens(), ids, lengths); err != nil {
		s.t.Fatal(err)
	}
	a, b, err := s.m.EncodeTexts(ids, lengths, 1)
	if err != nil {
		s.t.Fatal(err)
	}
	return append([]float32(nil), a...), lengths, append([]float32(nil), b...)
}

func (s *single) score(i, j int) float32 {
	image, _ := s.image(i)
	text, lengths, _ := s.text(j)
	r, err := s.m.Match(text, lengths, []int32{0}, image, 1, 1)
	if err != nil {
		s.t.Fatal(err)
	}
	return r[0]
}

// ScoreTexts implements eval.PairScorer.
func (s *single) ScoreTexts(image int, texts []int, dst []float32) error {
	for k, j := range texts {
		dst[k] = s.score(image, j)
	}
	return nil
}

// ScoreImages implements eval.PairScorer.
func (s *single) ScoreImages(text int, images []int, dst []float32) error {
	for k, i := range images {
		dst[k] = s.score(i, text)
	}
	return nil
}
