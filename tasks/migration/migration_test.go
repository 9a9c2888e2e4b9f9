package migration

import (
	"slices"
	"testing"

	"github.com/geoalign/geoalign/compute"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/objectives/scoring"
	"github.com/geoalign/geoalign/space"
)

// TestMigrationScore: the mapped index is searched by the score of the features, which in a Euclidean space is not a cosine.
func TestMigrationScore(t *testing.T) {
	e := check.Get(compute.New(compute.Options{Backend: "plain", Threads: 1}))(t)
	defer e.Close()
	// Items 1 and 2 have the direction of the first query, item 3 lies next to it.
	queries, rows := []float32{1, 0, 5, 0, 10, 0, 0, 4}, []float32{1, 0, 5, 0, 10, 0, 1, .5}
	for kind, want := range map[scoring.Kind][]int32{scoring.L2: {3, 0, 1, 0}, scoring.Inner: {2, 2, 1, 0}} {
		m := Migration{Engine: e, Score: scoring.Score{Space: space.Space{Dim: 2, Spheres: 1, Euclid: true}, Terms: []scoring.Term{{Kind: kind, Weight: 1}}}}
		got, err := m.mapped(t.Context(), queries, rows, 4, 1)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v, %v, want %v", kind, got, err, want)
		}
	}
}
