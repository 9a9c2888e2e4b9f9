package tasks_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/eval"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/tasks"
	"github.com/geoalign/geoalign/tasks/retrieval"
)

// fakeInteraction scores pairs of the fake model by the products of their features, each of
// which is the one token of its row.
type fakeInteraction struct {
	*fakeModel
	blocks map[[2]int]int // calls by numbers of images and texts
	pairs  int            // of rows with a token
}

func (f *fakeInteraction) Name() string { return "fake" }

func (f *fakeInteraction) Scores(_ context.Context, images []float32, imageLengths []int32, texts []float32,
	textLengths []int32) ([]float32, error) {
	n, m := len(imageLengths), len(textLengths)
	if len(images) != n*fakeDim || len(texts) != m*fakeDim {
		return nil, errors.New("sizes do not fit")
	}
	f.blocks[[2]int{n, m}]++
	s := make([]float32, n*m)
	for i := range n {
		for j := range m {
			if imageLengths[i] == 0 || textLengths[j] == 0 {
				continue
			}
			f.pairs++
			for d := range fakeDim {
				s[i*m+j] += images[i*fakeDim+d] * texts[j*fakeDim+d]
			}
		}
	}
	return s, nil
}

// tokensOf makes an encoder of tokens of one of features.
type tokensOf struct{ tasks.Encoder }

func (tokensOf) Len() int { return 1 }

func (e tokensOf) EncodeTokens(ctx context.Context, b *batch.Batch) ([]float32, []int32, error) {
	_, x, err := e.Encode(ctx, b)
	return x, slices.Repeat([]int32{1}, b.Rows()), err
}

// TestInteraction: ranking by an interaction is that by loops over all pairs, with folds and
// blocks that are not full, each pair is scored once, in blocks of one size, and how much is
// done is told.
func TestInteraction(t *testing.T) {
	const n, texts = 12, 2
	for _, folds := range []int{0, 3} {
		for _, size := range []int{1, 5, 12, 1000} {
			r, m := fake(t, 8, n, texts)
			f := &fakeInteraction{fakeModel: m, blocks: map[[2]int]int{}}
			r.Interaction, r.Image, r.Text = f, tokensOf{r.Image}, tokensOf{r.Text}
			r.Folds, r.BatchSize = folds, size
			last := ""
			r.Progress = func(phase string, done, total int) { last = fmt.Sprint(phase, " ", done, " of ", total) }
			got := mustRun(t, r)
			var want []eval.Metrics
			for k := range max(1, folds) {
				lo, hi := k*n/max(1, folds), (k+1)*n/max(1, folds)
				want = append(want, naive(m, r.ImageID, lo, hi, 0))
			}
			if got.First != eval.Mean(want) || got.Score != "fake" {
				t.Errorf("folds %d, batch %d: %s %+v, want %+v", folds, size, got.Score, got.First, eval.Mean(want))
			}
			if len(f.blocks) != 1 || f.pairs != n*n*texts || last != "scoring images with all texts 12 of 12" {
				t.Errorf("batch %d: blocks %v, %d pairs, %q", size, f.blocks, f.pairs, last)
			}
		}
	}
	r, m := fake(t, 8, n, texts)
	r.Interaction = &fakeInteraction{fakeModel: m}
	check.Fails(r.Run(t.Context()))(t, "needs encoders of tokens")
	r.RerankTop = 2
	if _, err := r.Run(t.Context()); err == nil ||
		!strings.Contains(err.Error(), "eval.rerank_top = 2 needs fusion layers") {
		t.Errorf("re-ranking: %v", err)
	}
}

// TestInteractionEnds: an evaluation ends with the error of an interaction.
func TestInteractionEnds(t *testing.T) {
	r, m := fake(t, 8, 6, 1)
	r.Interaction, r.Image, r.Text = failing{&fakeInteraction{fakeModel: m}}, tokensOf{r.Image}, tokensOf{r.Text}
	if _, err := r.Run(t.Context()); !errors.Is(err, errFake) {
		t.Errorf("error of the interaction: %v", err)
	}
}

// failing is an interaction that fails.
type failing struct{ *fakeInteraction }

func (failing) Scores(context.Context, []float32, []int32, []float32, []int32) ([]float32, error) {
	return nil, errFake
}

// TestWith: the scores of several models are averaged with equal weights, whatever they compare.
func TestWith(t *testing.T) {
	const n, texts = 12, 2
	r, m := fake(t, 9, n, texts)
	other, o := fake(t, 10, n, texts)
	other.Interaction, other.Image, other.Text = &fakeInteraction{fakeModel: o, blocks: map[[2]int]int{}}, tokensOf{other.Image}, tokensOf{other.Text}
	// The sum of two products is the product of rows side by side.
	both := &fakeModel{owner: m.owner}
	for i := range n {
		both.images = append(both.images, slices.Concat(m.images[i], o.images[i]))
	}
	for j := range n * texts {
		both.texts = append(both.texts, slices.Concat(m.texts[j], o.texts[j]))
	}
	r.With = []retrieval.Member{other.Member}
	got := mustRun(t, r)
	if want := naiveProducts(both, r.ImageID); got.First != want || got.Score != "mean of cosine and fake" {
		t.Errorf("%s %+v, want %+v", got.Score, got.First, want)
	}
	alone := mustRun(t, retrieval.Retrieval{Member: r.Member, TextImage: r.TextImage, ImageID: r.ImageID, Encoding: tasks.Encoding{BatchSize: 4}})
	if alone.First == got.First {
		t.Error("the other model changes nothing")
	}
}

// naiveProducts ranks by the products of features of any width.
func naiveProducts(m *fakeModel, id func(i int) int64) eval.Metrics {
	score := func(i, j int) (s float64) {
		for d, v := range m.images[i] {
			s += float64(v) * float64(m.texts[j][d])
		}
		return s
	}
	var ranks eval.Ranks
	for i := range m.images {
		best, wrong := -1e9, 0
		for j, k := range m.owner {
			if id(k) == id(i) {
				best = max(best, score(i, j))
			}
		}
		for j, k := range m.owner {
			if id(k) != id(i) && score(i, j) >= best {
				wrong++
			}
		}
		ranks.I2T = append(ranks.I2T, wrong)
	}
	for j, k := range m.owner {
		wrong := 0
		for i := range m.images {
			if id(i) != id(k) && score(i, j) >= score(k, j) {
				wrong++
			}
		}
		ranks.T2I = append(ranks.T2I, wrong)
	}
	return ranks.Metrics()
}
