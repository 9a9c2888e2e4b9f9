package kernel

import "testing"

// Attention that reads or writes outside its operands crashes this test.
func TestAttentionStaysInside(t *testing.T) {
	for _, atEnd := range []bool{true, false} {
		var slices []func(n int) []float32
		for range 9 {
			slices = append(slices, guarded(t, atEnd))
		}
		engines(t, func(t *testing.T, e *Engine) {
			for i := range 60 {
				n, keys, width := 1+i%7, 1+i*i%37, 1+i*7%26
				s := AttentionSizes{Keys: keys, Width: width, Queries: n, Backward: true}
				a, f := e.NewAttention(s), e.NewAttention(AttentionSizes{Keys: keys, Width: width, Queries: n})
				a.Use(make([]float32, s.Scratch()))
				f.Use(make([]float32, f.sizes.Scratch()))
				take := func(i, rows int) []float32 {
					x := slices[i](rows * width)
					Fill(x, .1)
					return x
				}
				q, k, v, out, do, dq, dk, dv := take(0, n), take(1, keys), take(2, keys), take(3, n), take(4, n), take(5, n), take(6, keys), take(7, keys)
				lse := slices[8](n)
				f.SetKeys(k, v, width, keys)
				f.Ahead(k, width, keys)
				f.Forward(&AttentionBlock{N: n, Q: q, LDQ: width, LSE: lse, Out: out, LDOut: width})
				a.SetKeys(k, v, width, keys)
				a.Backward(&AttentionBlock{N: n, Q: q, LDQ: width, LSE: lse},
					&AttentionGrads{DOut: do, LDDOut: width, DQ: dq, LDDQ: width, DK: dk, DV: dv, LDDKV: width, Add: i%2 == 0})
			}
		})
	}
}
