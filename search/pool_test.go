package search

import (
	"context"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"os"

	"github.com/geoalign/geoalign/data/features"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/safetensors"
)

// rowByRow hides that rows can be read together.
type rowByRow struct{ Pool }

// TestPools: a file, memory and rows that are read one by one give the same hits, and all name a
// row that is not finite.
func TestPools(t *testing.T) {
	const n, d, k = 500, 9, 4
	x := normal(rand.New(rand.NewPCG(3, 1)), n, d)
	file := func(x []float32) Pool {
		path := filepath.Join(t.TempDir(), "image.safetensors")
		f := check.Get(os.Create(path))(t)
		check.OK(t, safetensors.Write(f, []safetensors.Tensor{{Name: "x", Shape: []int{n, d}, Data: x}},
			nil))
		check.OK(t, f.Close())
		m := check.Get(features.OpenMatrix(path, ""))(t)
		t.Cleanup(func() { m.Close() })
		return m
	}
	e := engine(t, 2)
	want := check.Get(Exact(context.Background(), e, pool(t, x, d), x, Options{Metric: Cosine, K: k}))(t)
	bad := slices.Clone(x)
	bad[d*317+2] /= 0 * bad[0]
	for name, of := range map[string]func([]float32) Pool{
		"memory":     func(x []float32) Pool { return pool(t, x, d) },
		"file":       file,
		"row by row": func(x []float32) Pool { return rowByRow{pool(t, x, d)} },
	} {
		got, err := Exact(context.Background(), e, of(x), x, Options{Metric: Cosine, K: k})
		if err != nil || !slices.Equal(got.Rows, want.Rows) || !slices.Equal(got.Scores, want.Scores) {
			t.Errorf("%s: other hits: %v", name, err)
		}
		if _, err := Exact(context.Background(), e, of(bad), x, Options{Metric: Cosine, K: k}); err == nil ||
			!strings.Contains(err.Error(), "row 317 of the pool is not finite") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
