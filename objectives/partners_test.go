package objectives

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestPartners: each row has another one, which is that of no other row; with ids, one of another id where there is one.
func TestPartners(t *testing.T) {
	r := rand.New(rand.NewPCG(91, 1))
	for _, half := range []bool{false, true} {
		for n := 1; n < 12; n++ {
			rows, has := make([]int32, n), make([]float32, n)
			Partners{Half: half, Prob: 1}.draw(r, rows, has, nil)
			taken := slices.Clone(rows)
			slices.Sort(taken)
			for i, j := range rows {
				if int(taken[i]) != i {
					t.Errorf("half %t: rows %v have not each a partner of their own", half, rows)
				}
				if want := n > 1; (int(j) != i) != want || (has[i] == 1) != want {
					t.Errorf("half %t, %d rows: row %d has partner %d, there %v", half, n, i, j, has[i])
				}
				if half && n%2 == 0 && int(j) != (i+n/2)%n {
					t.Errorf("row %d of %d has partner %d, want the one half a batch away", i, n, j)
				}
			}
			ids := make([]int32, n)
			for i := range ids {
				ids[i] = int32(r.IntN(3))
			}
			Partners{Half: half, Prob: 1}.draw(r, rows, has, ids)
			for i, j := range rows {
				other := slices.ContainsFunc(ids, func(id int32) bool { return id != ids[i] })
				if (has[i] == 1) != other || other && ids[j] == ids[i] || !other && int(j) != i {
					t.Errorf("half %t, ids %v: row %d has partner %d, there %v", half, ids, i, j, has[i])
				}
			}
		}
	}
}

// TestPartnersShares: a row has a partner as often as Prob says, and each other row as often as any.
func TestPartnersShares(t *testing.T) {
	const n, draws = 6, 20000
	r := rand.New(rand.NewPCG(91, 2))
	var counts [n][n]float64
	rows, has := make([]int32, n), make([]float32, n)
	for range draws {
		Partners{Prob: .3}.draw(r, rows, has, nil)
		for i, j := range rows {
			counts[i][j]++
		}
	}
	for i := range n {
		for j := range n {
			p := .3 / (n - 1)
			if i == j {
				p = .7
			}
			if d := math.Abs(counts[i][j]/draws - p); d > 5*math.Sqrt(p*(1-p)/draws) {
				t.Errorf("row %d has row %d in a share of %v, want %v", i, j, counts[i][j]/draws, p)
			}
		}
	}
}
