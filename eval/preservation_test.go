package eval

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"testing"

	"github.com/geoalign/geoalign/compute"
	"github.com/geoalign/geoalign/internal/check"
)

// neighbourRank is NeighbourRank of all rows by its definition.
func neighbourRank(before, after []float64, n, k int, near func(x []float64, n, i, j int) float64) float64 {
	var sum float64
	for i := range n {
		var others []int
		for j := range n {
			if j != i {
				others = append(others, j)
			}
		}
		sort.SliceStable(others, func(a, b int) bool {
			return cosine(before, n, i, others[a]) > cosine(before, n, i,
				others[b])
		})
		for _, j := range others[:k] {
			rank := 1.
			for _, o := range others {
				if near(after, n, i, o) > near(after, n, i, j) {
					rank++
				}
			}
			sum += rank
		}
	}
	return sum / float64(n*k)
}

// cosine is that of rows i and j of n.
func cosine(x []float64, n, i, j int) float64 {
	d := len(x) / n
	var s, a, b float64
	for c := range d {
		s, a, b = s+x[i*d+c]*x[j*d+c], a+x[i*d+c]*x[i*d+c], b+x[j*d+c]*x[j*d+c]
	}
	return s / math.Sqrt(a*b)
}

// closeness is minus the distance of rows i and j of n.
func closeness(x []float64, n, i, j int) float64 {
	d := len(x) / n
	var s float64
	for c := range d {
		s -= (x[i*d+c] - x[j*d+c]) * (x[i*d+c] - x[j*d+c])
	}
	return s
}

func TestNeighbourRank(t *testing.T) {
	e := check.Get(compute.New(compute.Options{Threads: 2}))(t)
	defer e.Close()
	r := rand.New(rand.NewPCG(1, 2))
	const n = 150
	draw := func(width int) (x []float32, wide []float64) {
		for range n * width {
			v := float32(r.NormFloat64())
			x, wide = append(x, v), append(wide, float64(v))
		}
		return x, wide
	}
	x, wideX := draw(6)
	y, wideY := draw(4)
	for _, k := range []int{1, 5} {
		for euclid, near := range map[bool]func(x []float64, n, i, j int) float64{false: cosine, true: closeness} {
			got, err := NeighbourRank(t.Context(), e, x, y, n, k, n, euclid)
			if want := neighbourRank(wideX, wideY, n, k, near); err != nil || !(math.Abs(got-want) <= 1e-9) {
				t.Errorf("%d neighbours, by distance %v: %v, want %v (%v)", k, euclid, got, want, err)
			}
		}
		scaled := make([]float32, len(x)) // cosines do not see lengths
		for i, v := range x {
			scaled[i] = v * float32(int(1)<<(i/6%3))
		}
		if got, err := NeighbourRank(t.Context(), e, x, scaled, n, k, 40, false); err != nil || got != float64(k+1)/2 {
			t.Errorf("%d neighbours that stay: %v, want %v (%v)", k, got, float64(k+1)/2, err)
		}
	}
	moved, wideMoved := slices.Clone(y), slices.Clone(wideY) // distances do not see where rows lie
	for i := range moved {
		moved[i] = float32(math.Round(float64(y[i])*1024)/1024) + 2000
		wideMoved[i] = float64(moved[i])
	}
	got, err := NeighbourRank(t.Context(), e, x, moved, n, 5, n, true)
	if want := neighbourRank(wideX, wideMoved, n, 5, closeness); err != nil || !(math.Abs(got-want) <= 1e-9) {
		t.Errorf("rows far from the origin: %v, want %v (%v)", got, want, err)
	}
	want := check.Get(NeighbourRank(t.Context(), e, x, y, n, 5, n, true))(t)
	for _, unit := range []float32{0x1p-90, 0x1p-30, 0x1p30, 0x1p90} { // nor do ranks see their unit
		scaled := make([]float32, len(y))
		for i, v := range y {
			scaled[i] = v * unit
		}
		if got, err := NeighbourRank(t.Context(), e, x, scaled, n, 5, n, true); err != nil || got != want {
			t.Errorf("distances in units of %g: %v, want %v (%v)", unit, got, want, err)
		}
	}
	same := make([]float32, n) // all equally near: the mean of the ranks
	for i := range same {
		same[i] = 1
	}
	if got, err := NeighbourRank(t.Context(), e, x, same, n, 5, n, false); err != nil || got != n/2. {
		t.Errorf("rows that are all alike: %v, want chance, %v (%v)", got, n/2., err)
	}
	if _, err := NeighbourRank(t.Context(), e, x[:30], y[:20], 5, 5, 5, false); err == nil {
		t.Error("5 rows have no 5 neighbours each")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := NeighbourRank(ctx, e, x, y, n, 5, n, false); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want the error of the context", err)
	}
}
