package encoders

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestInitStatistics draws 40,000 values: mean and deviation within five standard
// errors (sigma/200 and about sigma/280), and none beyond the limit.
func TestInitStatistics(t *testing.T) {
	const n = 40000
	for _, c := range []struct {
		name       string
		init       Init
		std, limit float64
	}{
		{"normal .02", Normal(.02), .02, math.Inf(1)},
		{"truncated .02", TruncNormal(.02), .02, 2},
		// N(0, 1) cut at +-2: variance 1 - 2*2*phi(2)/(2*Phi(2)-1) = .7737.
		{"truncated 1", TruncNormal(1), .8796, 2},
		{"uniform .5", Uniform(.5), .5 / math.Sqrt(3), .5},
		{"linear of 16", LinearDefault(16), .25 / math.Sqrt(3), .25},
		{"zeros", Zeros, 0, 0},
	} {
		v := slices.Repeat([]float32{7}, n)
		c.init(rand.New(rand.NewPCG(1, 2)), v)
		var sum, sq float64
		for _, x := range v {
			sum, sq = sum+float64(x), sq+float64(x)*float64(x)
			if !(math.Abs(float64(x)) <= c.limit) {
				t.Fatalf("%s: %v is beyond %v", c.name, x, c.limit)
			}
		}
		mean, std := sum/n, math.Sqrt(sq/n-sum/n*sum/n)
		if !(math.Abs(mean) <= 5*c.std/200) || !(math.Abs(std-c.std) <= 5*c.std/280) {
			t.Errorf("%s: mean %v and deviation %v, want 0 and %v", c.name, mean, std, c.std)
		}
		again, other := make([]float32, n), make([]float32, n)
		c.init(rand.New(rand.NewPCG(1, 2)), again)
		c.init(rand.New(rand.NewPCG(2, 2)), other)
		if !slices.Equal(v, again) || c.std > 0 && slices.Equal(v, other) {
			t.Errorf("%s is no function of its random numbers", c.name)
		}
	}
	v := make([]float32, 3)
	if Const(1.5)(nil, v); !slices.Equal(v, []float32{1.5, 1.5, 1.5}) {
		t.Errorf("Const(1.5) gives %v", v)
	}
}
