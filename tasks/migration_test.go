package tasks_test

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/compute"
	"github.com/geoalign/geoalign/eval"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/objectives/scoring"
	"github.com/geoalign/geoalign/space"
	"github.com/geoalign/geoalign/tasks"
	"github.com/geoalign/geoalign/tasks/migration"
)

// TestMigrationOfDistances: of the neighbours by the stored rows of the new model as many are found as the distances of mapped rows find.
func TestMigrationOfDistances(t *testing.T) {
	e := check.Get(compute.New(compute.Options{Backend: "plain", Threads: 1}))(t)
	defer e.Close()
	const n, k = 60, 10
	r := rand.New(rand.NewPCG(2, 9))
	old, now := &fakeModel{}, &fakeModel{}
	var states []float32
	for i := range n {
		f, g, length := make([]float32, fakeDim), make([]float32, fakeDim), math.Exp(2*r.NormFloat64())
		for c := range f {
			x := length * r.NormFloat64()
			f[c], g[c] = float32(x), float32(x+.1*r.NormFloat64())
		}
		old.images, now.images = append(old.images, f), append(now.images, g)
		states = append(states, slices.Repeat([]float32{float32(i)}, fakeTokens*fakeWidth)...)
	}
	right := check.Get(eval.NeighbourLists(t.Context(), e, states, states, n, k))(t)
	var found []int32
	for i, q := range now.images {
		var others []int32
		for j := range int32(n) {
			if int(j) != i {
				others = append(others, j)
			}
		}
		far := func(j int32) (sum float64) {
			for c, v := range old.images[j] {
				sum += float64(v-q[c]) * float64(v-q[c])
			}
			return sum
		}
		slices.SortFunc(others, func(a, b int32) int { return cmp.Compare(far(a), far(b)) })
		found = append(found, others[:k]...)
	}
	s, err := migration.Migration{
		Image: fakeImages{fakeSide{old}}, Text: fakeImages{fakeSide{now}}, Images: numbered(n), Texts: numbered(n), TextImage: func(j int) int { return j },
		Score:  scoring.Score{Space: space.Space{Dim: fakeDim, Spheres: 1, Euclid: true}, Terms: []scoring.Term{{Kind: scoring.L2, Weight: 1}}},
		Engine: e, Encoding: tasks.Encoding{BatchSize: 7},
	}.Run(t.Context())
	if want := 100 * eval.ListOverlap(right, found, k); err != nil || !(math.Abs(s.Mapped-want) <= 1e-9) {
		t.Errorf("mapped %v, %v, want %v", s.Mapped, err, want)
	}
}
