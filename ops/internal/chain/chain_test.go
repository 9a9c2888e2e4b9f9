package chain

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/ops/internal/optest"
)

// TestChains compares the chains of columns with a search, for few and many
// different ids.
func TestChains(t *testing.T) {
	r := rand.New(rand.NewPCG(15, 1))
	for _, below := range []int{1, 5, 100, 1 << 30} {
		rows, cols := make([]int32, 1+r.IntN(60)), make([]int32, 1+r.IntN(30000))
		for i := range rows {
			rows[i] = int32(r.IntN(below))
		}
		rows[0] = -1
		for j := range cols {
			cols[j] = int32(r.IntN(below))
			if j%3 == 0 && (below < 1<<30 || j%16384 < 50) { // blocks without any, too
				cols[j] = rows[r.IntN(len(rows))]
			}
			if j%7 == 0 {
				cols[j] = -100
			}
		}
		c := Chains{make([]int32, len(rows)), make([]int32, len(cols)), make([]int32, 2*TableSize(len(rows)))}
		New(c).Run(optest.Engine, rows, cols)
		for i, id := range rows {
			var got, want []int32
			for j := c.First[i]; j >= 0; j = c.Next[j] {
				got = append(got, j)
			}
			for j, other := range cols {
				if other == id && id >= 0 {
					want = append(want, int32(j))
				}
			}
			if !slices.Equal(got, want) {
				t.Fatalf("row %d with id %d: got columns %v, want %v", i, id, got, want)
			}
		}
	}
}
