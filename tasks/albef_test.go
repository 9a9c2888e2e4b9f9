package tasks_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/tokenizer"
	"github.com/geoalign/geoalign/data/transform"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/eval"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/model"
	"github.com/geoalign/geoalign/tasks"
	"github.com/geoalign/geoalign/tasks/retrieval"
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
	tok := check.Get(tokenizer.Learn(func(yield func(string) bool) {
		for _, c := range ds.Texts {
			for _, s := range c {
				if !yield(s) {
					return
				}
			}
		}
	}, 80))(t)
	cfg := config.Default()
	cfg.Model.Image = encoders.ImageOptions{Size: 16, Patch: 8, Depth: 1, Width: 16, Heads: 2}
	cfg.Model.Text = encoders.TextOptions{Layers: 1, FusionLayers: 1, Width: 16, Heads: 2, Positions: 10, Dropout: 0.1}
	cfg.Model.Head.Dim = 8
	cfg.Queue.Size, cfg.Train.BatchSize, cfg.Data.Tokens = 0, 2, 8
	m := check.Get(model.New(cfg, model.Options{Engine: engine, Vocab: tok.Size(), MaskID: tok.MaskID()}))(t)
	for i := range m.Params().Values() { // far from the small values of the start
		m.Params().Values()[i] *= 10
	}
	set := check.Get(data.NewEval(ds, data.EvalConfig{ImageSize: 16}))(t)
	score := check.Get(m.PairScore())(t)
	texts := check.Get(set.Texts(&data.Texts{Tokenizer: tok, Tokens: cfg.Data.Tokens}))(t)
	const top = 3
	got := mustRun(t, retrieval.Retrieval{
		Member:  retrieval.Member{Image: m.Image(), Text: m.Text(), Score: score, Engine: engine, Images: set.Images(), Texts: texts},
		Matcher: m.Matcher(), TextImage: set.TextImage, ImageID: set.ImageID, Encoding: tasks.Encoding{BatchSize: 4, Workers: 2}, RerankTop: top,
	})

	one := &single{t: t, m: m, tok: tok, set: set}
	n, all := set.NumImages(), set.NumTexts()
	cosine := make([]float32, n*all)
	owner := make([]int, all)
	for i := range n {
		_, f := one.image(i)
		for j := range all {
			_, _, g := one.text(j)
			for d := range f {
				cosine[i*all+j] += f[d] * g[d]
			}
			owner[j] = set.TextImage(j)
		}
	}
	corr := check.Get(eval.NewCorrespondence([]int{0, 1, 2, 3, 4, 5, 6}, owner))(t)
	first, second := check.Get2(eval.RankAndRerank(corr, n, top, eval.Matrix(cosine, all), one))(t)
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
	m   *model.Trainer
	tok *tokenizer.Tokenizer
	set *data.Eval
}

func (s *single) image(i int) (states, features []float32) {
	b := batch.New(1, s.m.Image().Columns()...)
	check.OK(s.t, s.set.LoadImage(i, b.Floats(batch.Images)))
	return s.encode(s.m.Image(), b)
}

func (s *single) text(j int) (states []float32, lengths []int32, features []float32) {
	b := batch.New(1, s.m.Text().Columns()...)
	ids := s.tok.Encode(s.set.Text(j), s.m.Text().Len())
	b.Ints(batch.Lengths)[0] = int32(copy(b.Ints(batch.Tokens), ids))
	states, features = s.encode(s.m.Text(), b)
	return states, b.Ints(batch.Lengths), features
}

// encode returns copies of what the next call overwrites.
func (s *single) encode(e tasks.Encoder, b *batch.Batch) (states, features []float32) {
	states, features = check.Get2(e.Encode(context.Background(), b))(s.t)
	return slices.Clone(states), slices.Clone(features)
}

func (s *single) score(i, j int) float32 {
	image, _ := s.image(i)
	text, lengths, _ := s.text(j)
	r := check.Get(s.m.Matcher().Match(context.Background(), text, lengths, []int32{0}, image, 1, 1))(s.t)
	return r[1]
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
