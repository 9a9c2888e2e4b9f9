package align

import (
	"fmt"
	"testing"
)

// BenchmarkFit fits pairs that lie in memory.
func BenchmarkFit(b *testing.B) {
	for _, size := range []struct{ n, d int }{{10_000, 512}, {100_000, 768}} {
		p := Pairs{gauss(1, size.n, size.d), gauss(2, size.n, size.d)}
		for _, c := range []struct {
			name   string
			method Method
		}{{"moments", nil}, {"cca", CCA{}}, {"ridge", Ridge{Lambda: 1}}, {"procrustes", Procrustes{}}} {
			b.Run(fmt.Sprintf("%s/%dx%d", c.name, size.n, size.d), func(b *testing.B) {
				e := engine(b)
				for b.Loop() {
					var err error
					if c.method == nil {
						_, err = Measure(e, p, Prepare{})
					} else {
						_, err = c.method.Fit(e, p)
					}
					if err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
