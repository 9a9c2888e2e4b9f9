package tasks_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/eval"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/tasks"
	"github.com/geoalign/geoalign/tasks/retrieval"
)

// naive ranks the images lo to hi-1 with their texts by loops over all pairs: the
// cosine and, for top > 0, the match scores of the top candidates by cosine. Images of one
// id are right answers for each other's texts.
func naive(m *fakeModel, id func(i int) int64, lo, hi, top int) eval.Metrics {
	owner := m.owner
	cosine := func(i, j int) float32 {
		var s float32
		for d := range fakeDim {
			s += m.images[i][d] * m.texts[j][d]
		}
		return s
	}
	var texts []int
	for j, i := range owner {
		if i >= lo && i < hi {
			texts = append(texts, j)
		}
	}
	var images []int
	for i := lo; i < hi; i++ {
		images = append(images, i)
	}
	// rank counts the wrong candidates that stand before the best right one.
	rank := func(all []int, first, second func(x int) float32, right func(x int) bool) int {
		count := func(list []int, score func(int) float32) int {
			best := float32(math.Inf(-1))
			for _, x := range list {
				if right(x) {
					best = max(best, score(x))
				}
			}
			n := 0
			for _, x := range list {
				if !right(x) && score(x) >= best {
					n++
				}
			}
			return n
		}
		if top == 0 {
			return count(all, first)
		}
		sorted := slices.Clone(all)
		slices.SortFunc(sorted, func(x, y int) int {
			if first(x) > first(y) {
				return -1
			}
			return 1
		})
		list := sorted[:min(top, len(sorted))]
		if !slices.ContainsFunc(list, right) {
			return count(all, first)
		}
		return count(list, second)
	}
	var ranks eval.Ranks
	for _, i := range images {
		ranks.I2T = append(ranks.I2T, rank(texts, func(j int) float32 { return cosine(i, j) },
			func(j int) float32 { return m.scores[i][j] }, func(j int) bool { return id(owner[j]) == id(i) }))
	}
	for _, j := range texts {
		ranks.T2I = append(ranks.T2I, rank(images, func(i int) float32 { return cosine(i, j) },
			func(i int) float32 { return m.scores[i][j] }, func(i int) bool { return id(owner[j]) == id(i) }))
	}
	return ranks.Metrics()
}

func mustRun(t *testing.T, r retrieval.Retrieval) retrieval.Scores {
	t.Helper()
	return check.Get(r.Run(context.Background()))(t)
}

// TestAgainstLoops covers cosine, re-ranking, folds, both, and batches that leave a
// short last one, with an id for every image and with images that share theirs.
func TestAgainstLoops(t *testing.T) {
	againstLoops(t, nil)
	againstLoops(t, []int64{5, 7, 5, 9, 9, 5, 7, 7, 3, 5, 5, 9})
}

func againstLoops(t *testing.T, ids []int64) {
	const n, texts = 12, 2
	for _, folds := range []int{0, 1, 2, 3} {
		for _, top := range []int{0, 1, 5, 100} {
			for _, size := range []int{1, 5, 12, 1000} {
				r, m := fake(t, 7, n, texts)
				fakeSet{n: n, owner: m.owner, ids: ids}.into(&r)
				r.Folds, r.RerankTop, r.BatchSize = folds, top, size
				got := mustRun(t, r)
				parts := max(1, folds)
				var cosine, second, chance []eval.Metrics
				for f := range parts {
					lo, hi := f*n/parts, (f+1)*n/parts
					cosine = append(cosine, naive(m, r.ImageID, lo, hi, 0))
					second = append(second, naive(m, r.ImageID, lo, hi, top))
					chance = append(chance, eval.Metrics{T2I: eval.Direction{R1: rightShare(r.ImageID, lo, hi)}})
				}
				if want := eval.Mean(cosine); got.First != want {
					t.Errorf("folds %d, top %d, batch %d: cosine %+v, want %+v", folds, top, size, got.First, want)
				}
				if want := eval.Mean(chance).T2I.R1; !(math.Abs(got.Chance.T2I.R1-want) <= 1e-9) {
					t.Errorf("folds %d: chance %v, want %v", folds, got.Chance.T2I.R1, want)
				}
				if got.Images != n || got.Texts != n*texts {
					t.Errorf("%d images and %d texts", got.Images, got.Texts)
				}
				if top == 0 {
					if got.Rerank != nil || got.Final() != got.First {
						t.Error("metrics of a re-ranking that was not asked for")
					}
					continue
				}
				if want := eval.Mean(second); got.Rerank == nil || *got.Rerank != want || got.Final() != want {
					t.Errorf("folds %d, top %d, batch %d: re-ranked %+v, want %+v", folds, top, size, got.Rerank, want)
				}
			}
		}
	}
}

// rightShare is R@1 of a random order of the images lo to hi-1 for their texts, as many for
// each: the percentage of right ones among all pairs of two of these images.
func rightShare(id func(i int) int64, lo, hi int) float64 {
	right := 0
	for i := lo; i < hi; i++ {
		for k := lo; k < hi; k++ {
			if id(i) == id(k) {
				right++
			}
		}
	}
	return 100 * float64(right) / float64((hi-lo)*(hi-lo))
}

// TestByHand is small enough to follow: three images, a text each. By cosine text 0 is
// nearest to image 1 and text 2 to image 2; the match head puts both right.
func TestByHand(t *testing.T) {
	r, m := fake(t, 1, 3, 1)
	m.images = [][]float32{{1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 1, 0}}
	m.texts = [][]float32{{.6, .8, 0, 0}, {.6, .5, 0, 0}, {0, 0, 1, 0}}
	m.scores = [][]float32{{5, 1, 0}, {2, 4, 0}, {0, 0, 3}}
	r.RerankTop = 2
	got := mustRun(t, r)
	// Cosine, images to texts: image 0 has .6, .6, 0, a tie that counts against it; image
	// 1 has .8, .5, 0; image 2 is right. Texts: .6 < .8 is wrong, .5 < .6 is wrong, right.
	if got.First.I2T.R1 != 100./3 || got.First.T2I.R1 != 100./3 {
		t.Errorf("cosine R@1 %v and %v, want 33.3 both", got.First.I2T.R1, got.First.T2I.R1)
	}
	if got.Rerank.I2T.R1 != 100 || got.Rerank.T2I.R1 != 100 {
		t.Errorf("re-ranked R@1 %v and %v, want 100", got.Rerank.I2T.R1, got.Rerank.T2I.R1)
	}
	// By the sum, cosine / temperature counts for more the lower that is. The log-odds are twice the scores here: of image
	// 1 those of text 1 are 4 higher, the cosine of text 0 by .3; of text 0 the log-odds of image 0 by 6, the cosine of
	// image 1 by .2.
	for _, c := range []struct{ temperature, i2t, t2i float64 }{{0.1, 100, 100}, {0.05, 200. / 3, 100}, {0.001, 200. / 3, 100. / 3}} {
		r.RerankTemperature = c.temperature
		if s := mustRun(t, r).Rerank; s.I2T.R1 != c.i2t || s.T2I.R1 != c.t2i {
			t.Errorf("temperature %g: R@1 %v and %v, want %v and %v", c.temperature, s.I2T.R1, s.T2I.R1, c.i2t, c.t2i)
		}
	}
	if got.Precision != nil {
		t.Errorf("with one right answer a query the recalls say it all, and the precision is %+v", got.Precision)
	}
	table := got.Table()
	for _, want := range []string{"cosine", "re-ranked", "chance", "33.3", "100.0"} {
		if !strings.Contains(table, want) {
			t.Errorf("the table has no %q:\n%s", want, table)
		}
	}
}

// TestSameScores: a model that gives one score to every pair finds nothing.
func TestSameScores(t *testing.T) {
	r, m := fake(t, 1, 6, 1)
	for i := range 6 {
		m.images[i], m.texts[i] = []float32{1, 0, 0, 0}, []float32{1, 0, 0, 0}
		m.scores[i] = make([]float32, 6)
	}
	r.RerankTop = 6
	got := mustRun(t, r)
	if got.First.I2T.R1 != 0 || got.First.T2I.R5 != 0 || got.Rerank.I2T.R1 != 0 || got.Rerank.T2I.R5 != 0 {
		t.Errorf("equal scores give %+v and %+v", got.First, *got.Rerank)
	}
}

func TestProgress(t *testing.T) {
	for _, folds := range []int{1, 3} {
		r, _ := fake(t, 3, 6, 2)
		r.RerankTop, r.Folds = 2, folds
		last := map[string][2]int{}
		var order []string
		r.Progress = func(phase string, done, total int) {
			if _, ok := last[phase]; !ok {
				order = append(order, phase)
			}
			if done <= last[phase][0] {
				t.Errorf("%s: %d after %d", phase, done, last[phase][0])
			}
			last[phase] = [2]int{done, total}
		}
		mustRun(t, r)
		if want := []string{"encoding texts", "encoding images", "re-ranking texts",
			"re-ranking images"}; !slices.Equal(order, want) {
			t.Errorf("phases %v, want %v", order, want)
		}
		for phase, want := range map[string]int{"encoding texts": 12, "encoding images": 6, "re-ranking texts": 6,
			"re-ranking images": 12} {
			if last[phase] != [2]int{want, want} {
				t.Errorf("%s ends at %v, want %d", phase, last[phase], want)
			}
		}
	}
}

// TestSmallSplit: a split smaller than a batch is encoded in one run of its own size.
func TestSmallSplit(t *testing.T) {
	r, m := fake(t, 3, 3, 1)
	r.BatchSize = 64
	mustRun(t, r)
	if m.imageRuns != 1 || m.batchN != 3 {
		t.Errorf("%d runs, the last of %d images", m.imageRuns, m.batchN)
	}
}

func TestErrors(t *testing.T) {
	nan := float32(math.NaN())
	for name, c := range map[string]struct {
		change func(r *retrieval.Retrieval, m *fakeModel)
		want   string
	}{
		"no batch":        {func(r *retrieval.Retrieval, _ *fakeModel) { r.BatchSize = 0 }, "batch_size must be at least 1"},
		"negative top":    {func(r *retrieval.Retrieval, _ *fakeModel) { r.RerankTop = -1 }, "must not be negative"},
		"no matcher":      {func(r *retrieval.Retrieval, _ *fakeModel) { r.Matcher = nil }, "set eval.rerank_top = 0"},
		"folds":           {func(r *retrieval.Retrieval, _ *fakeModel) { r.Folds = 5 }, "cannot be cut into 5 equal folds"},
		"image":           {func(r *retrieval.Retrieval, m *fakeModel) { fakeSet{n: 6, owner: m.owner, bad: 5}.into(r) }, "evaluation row 5"},
		"empty split":     {func(r *retrieval.Retrieval, _ *fakeModel) { fakeSet{}.into(r) }, "no images"},
		"no text":         {func(r *retrieval.Retrieval, _ *fakeModel) { fakeSet{n: 2, owner: []int{0}}.into(r) }, "has no text"},
		"encoding images": {func(_ *retrieval.Retrieval, m *fakeModel) { m.fail = "images" }, "fake failure"},
		"encoding texts":  {func(_ *retrieval.Retrieval, m *fakeModel) { m.fail = "texts" }, "fake failure"},
		"matching":        {func(_ *retrieval.Retrieval, m *fakeModel) { m.fail = "match" }, "fake failure"},
		"NaN image":       {func(_ *retrieval.Retrieval, m *fakeModel) { m.images[4][1] = nan }, "image 4 and text 0 is NaN"},
		"NaN text":        {func(_ *retrieval.Retrieval, m *fakeModel) { m.texts[3][1] = nan }, "text 3 is NaN"},
		"NaN match": {func(_ *retrieval.Retrieval, m *fakeModel) {
			for j := range m.scores[2] {
				m.scores[2][j] = nan
			}
		}, "second score of image 2"},
		"NaN in a fold": {func(r *retrieval.Retrieval, m *fakeModel) { r.Folds, m.images[4][1] = 2, nan }, "fold 1, images 3 to 5"},
	} {
		t.Run(name, func(t *testing.T) {
			r, m := fake(t, 2, 6, 2)
			r.RerankTop = 3
			c.change(&r, m)
			check.Fails(r.Run(context.Background()))(t, c.want)
		})
	}
}

// TestCancel stops in every phase.
func TestCancel(t *testing.T) {
	for _, phase := range []string{"", "encoding texts", "encoding images", "re-ranking texts", "re-ranking images"} {
		r, _ := fake(t, 2, 9, 2)
		r.RerankTop = 3
		ctx, cancel := context.WithCancel(context.Background())
		if phase == "" {
			cancel()
		}
		calls := 0
		r.Progress = func(p string, done, total int) {
			calls++
			if p == phase && done < total {
				cancel()
				calls = 0
			}
		}
		_, err := r.Run(ctx)
		if !errors.Is(err, context.Canceled) || calls > 0 {
			t.Errorf("cancelled in %q: %v, %d calls later", phase, err, calls)
		}
		cancel()
	}
}

// tasks.Encoding without a batch size is refused, where it would never end.
func TestEncodingNeedsABatchSize(t *testing.T) {
	r, _ := fake(t, 2, 6, 2)
	for _, b := range []int{0, -1} {
		e := tasks.Encoding{BatchSize: b}
		run := e.Run(t.Context(), r.Image, r.Images, "", nil)
		_, features := e.Features(t.Context(), r.Text, r.Texts, "")
		_, tokens := e.ClassTokens(t.Context(), r.Image.(tasks.ClassEncoder), r.Images, "")
		for _, err := range []error{run, features, tokens} {
			if err == nil || !strings.Contains(err.Error(), "eval.batch_size must be at least 1") {
				t.Errorf("batch size %d: %v", b, err)
			}
		}
	}
}

// TestEncoding: features and class tokens come in the order of the rows, whatever the size
// of a batch, of some rows in the order named, and columns that the model does not read
// reach whoever asked for them.
func TestEncoding(t *testing.T) {
	r, m := fake(t, 5, 7, 1)
	some := tasks.Some{Gallery: r.Texts, Rows: []int{6, 0, 3, 3, 1}}
	for _, size := range []int{1, 3, 7, 100} {
		e := tasks.Encoding{BatchSize: size, Workers: 2}
		features, err := e.Features(t.Context(), r.Image, r.Images, "")
		if err != nil || !slices.Equal(features, slices.Concat(m.images...)) {
			t.Errorf("batches of %d: features %v (%v)", size, features, err)
		}
		tokens, err := e.ClassTokens(t.Context(), r.Text.(tasks.ClassEncoder), some, "")
		if err != nil || !slices.Equal(tokens, []float32{6, 6, 0, 0, 3, 3, 3, 3, 1, 1}) {
			t.Errorf("batches of %d: class tokens %v (%v)", size, tokens, err)
		}
	}
	bad := tasks.Some{Gallery: imageRows{fakeSet{n: 7, bad: 5}}, Rows: []int{2, 5}}
	if _, err := (tasks.Encoding{BatchSize: 2}).Features(t.Context(), r.Image, bad, ""); !errors.Is(err, errFake) || !strings.Contains(err.Error(), "row 5 of all") {
		t.Errorf("a row that cannot be read: %v", err)
	}
	// A model that reads what the gallery does not give is refused before it runs.
	check.Fails((tasks.Encoding{BatchSize: 2}).Features(t.Context(), r.Text, r.Images, ""))(t, "tokens")
}
