package report

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// clouds are n points around each of three far centres.
func clouds(n, c int) []float64 {
	r := rand.New(rand.NewPCG(3, 4))
	var x []float64
	for g := range 3 {
		for range n {
			for k := range c {
				v := r.NormFloat64()
				if k == g {
					v += 20
				}
				x = append(x, v)
			}
		}
	}
	return x
}

func TestTSNEKeepsGroupsTogether(t *testing.T) {
	const n, c = 40, 6
	x := clouds(n, c)
	y := TSNE(x, 3*n, c, nil, TSNEOptions{Seed: 1})
	for i, a := range y {
		nearest, at := math.Inf(1), -1
		for j, b := range y {
			if d := math.Hypot(a[0]-b[0], a[1]-b[1]); j != i && d < nearest {
				nearest, at = d, j
			}
		}
		if at < 0 || at/n != i/n {
			t.Fatalf("the nearest of point %d is %d, of another cloud", i, at)
		}
	}
	if again := TSNE(x, 3*n, c, nil, TSNEOptions{Seed: 1}); !slices.Equal(again, y) {
		t.Error("equal arguments gave other places")
	}
}

func TestTSNEOfEqualPoints(t *testing.T) {
	for _, p := range TSNE(make([]float64, 60), 20, 3, nil, TSNEOptions{}) {
		if math.IsNaN(p[0]) || math.IsInf(p[0], 0) {
			t.Fatal("not finite")
		}
	}
}

// The gradient is that of KL(p || q), by finite differences of the divergence.
func TestTSNEGradient(t *testing.T) {
	const n, c = 7, 3
	r := rand.New(rand.NewPCG(5, 6))
	x := make([]float64, n*c)
	for i := range x {
		x[i] = r.NormFloat64()
	}
	s := &tsne{n: n, p: affinities(x, n, c, 2), y: make([][2]float64, n), force: make([][2]float64, n), kernel: make([]float64, n*n), sums: make([]float64, n)}
	for i := range s.y {
		s.y[i] = [2]float64{r.NormFloat64(), r.NormFloat64()}
	}
	loss := func() float64 {
		z, sum := 0.0, 0.0
		k := func(i, j int) float64 {
			dx, dy := s.y[i][0]-s.y[j][0], s.y[i][1]-s.y[j][1]
			return 1 / (1 + dx*dx + dy*dy)
		}
		for i := range n {
			for j := range n {
				if i != j {
					z += k(i, j)
				}
			}
		}
		for i := range n {
			for j := range n {
				if p := s.p[i*n+j]; i != j && p > 0 {
					sum += p * math.Log(p*z/k(i, j))
				}
			}
		}
		return sum
	}
	s.gradient(1)
	const h = 1e-5
	for i := range n {
		for k := range 2 {
			s.y[i][k] += h
			up := loss()
			s.y[i][k] -= 2 * h
			down := loss()
			s.y[i][k] += h
			if want, got := (up-down)/(2*h), 4*s.force[i][k]; !(math.Abs(got-want) <= 1e-7) {
				t.Errorf("point %d: %v, want %v", i, got, want)
			}
		}
	}
}

// Points on a line in the direction (3, 4) have all variance on one component, along
// which they are 5 apart.
func TestPCA(t *testing.T) {
	xy, share, err := PCA([]float64{0, 0, 3, 4, 6, 8}, 3, 2)
	if err != nil || !(math.Abs(share[0]-1) <= 1e-12) {
		t.Fatalf("share %v, %v", share, err)
	}
	if d := math.Abs(xy[2][0] - xy[1][0]); !(math.Abs(d-5) <= 1e-12) || !(math.Abs(xy[2][1]) <= 1e-9) {
		t.Errorf("places %v", xy)
	}
}

// TestPCAOfBadRows: what are no rows of finite numbers is an error, and rows stay as they are.
func TestPCAOfBadRows(t *testing.T) {
	x := []float64{0, 0, 3, 4, 6, 8}
	if _, _, err := PCA(x, 3, 2); err != nil || !slices.Equal(x, []float64{0, 0, 3, 4, 6, 8}) {
		t.Errorf("rows became %v (%v)", x, err)
	}
	for name, err := range map[string]error{
		"too few": pcaError([]float64{1, 2, 3}, 2, 2), "too many": pcaError(x, 2, 2), "negative": pcaError(nil, -1, 0),
		"NaN": pcaError([]float64{1, math.NaN(), 3, 4}, 2, 2), "infinite": pcaError([]float64{1, 2, math.Inf(1), 4}, 2, 2),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// pcaError is the error of PCA.
func pcaError(x []float64, n, c int) error {
	_, _, err := PCA(x, n, c)
	return err
}
