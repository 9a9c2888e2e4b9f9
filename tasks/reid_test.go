package tasks_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/eval"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/kernel"
	"github.com/geoalign/geoalign/objectives/scoring"
	"github.com/geoalign/geoalign/space"
	"github.com/geoalign/geoalign/tasks"
	"github.com/geoalign/geoalign/tasks/reid"
)

// seenSet is images with identities, cameras and roles; their gallery is that of a fake model.
type seenSet struct {
	gallery data.Gallery
	items   []eval.Item
	roles   []data.Role
}

func (s seenSet) Images() data.Gallery { return s.gallery }
func (s seenSet) Identity(i int) int64 { return s.items[i].ID }
func (s seenSet) Camera(i int) int32   { return s.items[i].Camera }
func (s seenSet) Role(i int) data.Role { return s.roles[i] }

// numbered is a gallery whose pixels are the number of the image.
type numbered int

func (n numbered) Len() int { return int(n) }

func (n numbered) Columns() []batch.Column {
	return []batch.Column{{Name: batch.Images, Shape: []int{3, fakeSize, fakeSize}}}
}

func (n numbered) Fill(i int, row batch.Row) error {
	for k := range row.Floats(batch.Images) {
		row.Floats(batch.Images)[k] = float32(i)
	}
	return nil
}

// TestReID: queries are searched in the gallery by the direct score x^T W y, to 1e-6, whether the metric is folded
// into the gallery or the score is not a product.
func TestReID(t *testing.T) {
	e := check.Get(kernel.New(kernel.Options{Backend: "builtin", Threads: 2}))(t)
	defer e.Close()
	r := rand.New(rand.NewPCG(71, 4))
	const n = 40
	m := &fakeModel{}
	set := seenSet{gallery: numbered(n)}
	for i := range n {
		f := make([]float32, fakeDim)
		for c := range f {
			f[c] = float32(r.NormFloat64())
		}
		scoring.Normalize(f)
		m.images = append(m.images, f)
		set.items = append(set.items, eval.Item{Image: i, ID: int64(r.IntN(6)), Camera: int32(r.IntN(3)) - 1})
		set.roles = append(set.roles, data.Role(r.IntN(3)))
	}
	w := make([]float32, fakeDim*fakeDim)
	for i := range w {
		w[i] = float32(r.NormFloat64())
	}
	for name, terms := range map[string][]scoring.Term{
		"gssf":   {{Kind: scoring.GSSF, Weight: 1, Metric: &scoring.Metric{Form: "dense", Weight: w}}},
		"cosine": {{Kind: scoring.Cosine, Weight: 1}},
		"l2":     {{Kind: scoring.L2, Weight: 1}},
		"both":   {{Kind: scoring.GSSF, Weight: .5, Metric: &scoring.Metric{Form: "dense", Weight: w}}, {Kind: scoring.L2, Weight: 1}},
	} {
		task := reid.ReID{Model: fakeImages{fakeSide{m}}, Set: set, Engine: e, Encoding: tasks.Encoding{BatchSize: 7},
			Score: scoring.Score{Space: space.Space{Dim: fakeDim, Spheres: 1}, Terms: terms}}
		got, err := task.Run(t.Context())
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var queries, gallery []eval.Item
		for i, x := range set.items {
			if set.roles[i] != data.Searched {
				queries = append(queries, x)
			}
			if set.roles[i] != data.Query {
				gallery = append(gallery, x)
			}
		}
		direct := make([]float32, 0, len(queries)*len(gallery))
		rows := make([]float32, 0, len(gallery)*fakeDim)
		for _, g := range gallery {
			rows = append(rows, m.images[g.Image]...)
		}
		score := check.Get(reid.QueryScorer(task.Engine, task.Score, rows, len(gallery)))(t)
		for _, q := range queries {
			y, folded := m.images[q.Image], make([]float32, len(gallery))
			check.OK(t, score(y, 1, folded))
			for j, g := range gallery {
				x, sum, square := m.images[g.Image], 0., 0.
				for a := range x {
					square += float64(x[a]-y[a]) * float64(x[a]-y[a])
				}
				for _, term := range terms {
					switch term.Kind {
					case scoring.Cosine:
						for a := range x {
							sum += float64(x[a]) * float64(y[a])
						}
					case scoring.L2:
						sum -= math.Sqrt(square)
					default:
						for a := range x {
							for b := range y {
								sum += float64(term.Weight) * float64(x[a]) * float64(w[a*fakeDim+b]) * float64(y[b])
							}
						}
					}
				}
				if !(math.Abs(float64(folded[j])-sum) <= 1e-6*max(1, math.Abs(sum))) && name != "l2" &&
					name != "both" || !(math.Abs(float64(folded[j])-sum) <= 1e-3) {
					t.Fatalf("%s: score %g, want %g", name, folded[j], sum)
				}
			}
			direct = append(direct, folded...)
		}
		want := check.Get(eval.MeasureIdentities(queries, gallery, 3, eval.Matrix(direct, len(gallery))))(t)
		if got.Identities != want {
			t.Errorf("%s: got %+v, want %+v", name, got.Identities, want)
		}
		if table := got.Table(); !strings.Contains(table, "mAP") || !strings.Contains(table, "chance") {
			t.Errorf("the table is\n%s", table)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	task := reid.ReID{Model: fakeImages{fakeSide{m}}, Set: set, Engine: e, Encoding: tasks.Encoding{BatchSize: 7}, Score: scoring.Score{Space: space.Space{Dim: fakeDim, Spheres: 1}, Terms: []scoring.Term{{Kind: scoring.Cosine, Weight: 1}}}}
	if _, err := task.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got error %v", err)
	}
}
