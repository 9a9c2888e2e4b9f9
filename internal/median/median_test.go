package median

import (
	"slices"
	"testing"
	"time"
)

func TestOf(t *testing.T) {
	for _, c := range []struct {
		x    []float64
		want float64
	}{{nil, 0}, {[]float64{3}, 3}, {[]float64{9, 1}, 5}, {[]float64{9, 1, 2}, 2}, {[]float64{8, 1, 4, 2}, 3}} {
		before := slices.Clone(c.x)
		if got := Of(c.x); got != c.want || !slices.Equal(c.x, before) {
			t.Errorf("median of %v: %v, want %v; they are %v now", before, got, c.want, c.x)
		}
	}
	if got := Of([]time.Duration{3 * time.Second, time.Second}); got != 2*time.Second {
		t.Errorf("median of 3 s and 1 s: %v", got)
	}
}
