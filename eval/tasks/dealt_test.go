package tasks

import (
	"context"
	"errors"
	"reflect"
	"sync"
	"testing"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/compute/parallel"
	"github.com/geoalign/geoalign/compute/parallel/paralleltest"
)

// onRanks runs f on n ranks at once and returns the errors.
func onRanks(n int, f func(rank int, g parallel.Group) error) []error {
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i, g := range paralleltest.Ranks(n) {
		wg.Go(func() { errs[i] = f(i, g) })
	}
	wg.Wait()
	return errs
}

// TestRanksAreOneProcess: on any number of ranks an evaluation finds what one process does, with folds,
// re-ranking, a batch that is not full and ranks that have none, and the images are shared.
func TestRanksAreOneProcess(t *testing.T) {
	const n, texts = 12, 2
	for _, c := range []struct{ ranks, size, top, folds int }{{2, 5, 0, 0}, {2, 5, 5, 0}, {3, 5, 4, 3}, {3, 1, 100, 2},
		{2, 100, 5, 0}, {5, 4, 5, 0}} {
		fresh := func() (Retrieval, *fakeModel) {
			r, m := fake(t, 7, n, texts)
			fakeSet{n: n, owner: m.owner, ids: []int64{5, 7, 5, 9, 9, 5, 7, 7, 3, 5, 5, 9}}.into(&r)
			r.Folds, r.RerankTop, r.BatchSize = c.folds, c.top, c.size
			return r, m
		}
		one, _ := fresh()
		want := mustRun(t, one)
		got, runs := [5]Scores{}, [5]int{}
		for i, err := range onRanks(c.ranks, func(i int, g parallel.Group) (err error) {
			r, m := fresh()
			r.Group = g
			got[i], err = r.Run(context.Background())
			runs[i] = m.imageRuns
			return err
		}) {
			if err != nil || !reflect.DeepEqual(got[i], want) {
				t.Errorf("%+v: rank %d: %+v (%v), want %+v", c, i, got[i], err, want)
			}
			batches := (n + c.size - 1) / c.size
			if most := (batches + c.ranks - 1) / c.ranks; runs[i] != most {
				t.Errorf("%+v: rank %d encoded %d batches of images, want %d", c, i, runs[i], most)
			}
		}
	}
}

// TestRanksShareAnInteraction: scores by tokens are those of one process, and no rank scores all pairs.
func TestRanksShareAnInteraction(t *testing.T) {
	const n, texts = 12, 2
	fresh := func() (Retrieval, *fakeInteraction) {
		r, m := fake(t, 7, n, texts)
		fakeSet{n: n, owner: m.owner}.into(&r)
		f := &fakeInteraction{fakeModel: m, blocks: map[[2]int]int{}}
		r.Interaction, r.Image, r.Text = f, tokensOf{r.Image}, tokensOf{r.Text}
		r.BatchSize = 5
		return r, f
	}
	one, _ := fresh()
	want := mustRun(t, one)
	pairs := [2]int{}
	for i, err := range onRanks(2, func(i int, g parallel.Group) error {
		r, f := fresh()
		r.Group = g
		got, err := r.Run(context.Background())
		if err == nil && !reflect.DeepEqual(got, want) {
			err = errors.New("other scores")
		}
		pairs[i] = f.pairs
		return err
	}) {
		if err != nil {
			t.Errorf("rank %d: %v", i, err)
		}
	}
	if pairs != [2]int{(5 + 2) * n * texts, 5 * n * texts} {
		t.Errorf("pairs %v", pairs)
	}
}

// TestARankFails: in any phase, all end with its error.
func TestARankFails(t *testing.T) {
	for name, fail := range map[string]func(r *Retrieval, m *fakeModel){
		"images": func(_ *Retrieval, m *fakeModel) { m.fail = "images" },
		"texts":  func(_ *Retrieval, m *fakeModel) { m.fail = "texts" },
		"match":  func(_ *Retrieval, m *fakeModel) { m.fail = "match" },
		"row":    func(r *Retrieval, m *fakeModel) { fakeSet{n: 9, owner: m.owner, bad: 4}.into(r) },
	} {
		for i, err := range onRanks(2, func(i int, g parallel.Group) error {
			r, m := fake(t, 2, 9, 2)
			r.Group, r.RerankTop, r.BatchSize = g, 3, 2
			if i == 1 || name == "row" { // which is of the third batch, and so of rank 0
				fail(&r, m)
			}
			_, err := r.Run(context.Background())
			return parallel.Agree(g, err)
		}) {
			rank := 1
			if name == "row" {
				rank = 0
			}
			if f := (*parallel.Failure)(nil); !errors.As(err, &f) || f.Rank() != rank || f.Common() {
				t.Errorf("%s: rank %d: %v", name, i, err)
			}
		}
	}
}

// TestRowsAtATime: images are encoded a batch at a time, texts some batches in the order of their length, the more the
// more there are, but never all at once where several processes could share them.
func TestRowsAtATime(t *testing.T) {
	texts, images := fakeTexts{}.Columns(), fakeImages{}.Columns()
	e := Encoding{BatchSize: 10}
	for _, x := range []struct{ n, texts, images int }{{1, 1, 1}, {9, 9, 9}, {40, 10, 10}, {41, 20, 10}, {400, 100, 10},
		{5000, 160, 10}} {
		if a, b := e.rows(texts, x.n), e.rows(images, x.n); a != x.texts || b != x.images {
			t.Errorf("of %d rows %d texts and %d images at a time, want %d and %d", x.n, a, b, x.texts, x.images)
		}
	}
	for _, pictures := range [][]batch.Column{images, {{Name: batch.Regions, Shape: []int{3, 4}}}} {
		if n := e.rows(append(pictures, texts...), 5000); n != 10 {
			t.Errorf("%d rows of %s with a text at a time, want eval.batch_size", n, pictures[0].Name)
		}
	}
}
