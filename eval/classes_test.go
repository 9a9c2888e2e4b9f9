package eval

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/space"
)

// TestClassMeans is worked out by hand: prompts are averaged first and brought to unit length
// after that.
func TestClassMeans(t *testing.T) {
	got := check.Get(ClassMeans([]float32{1, 0, 0, 1, 0, 3, 0, 1}, []int32{1, 1, 0, 1}, []string{"dog", "cat"},
		space.Space{}))(t)
	a, b := float32(1/math.Sqrt(5)), float32(2/math.Sqrt(5))
	for i, want := range []float32{0, 1, a, b} {
		if !(math.Abs(float64(got[i]-want)) <= 1e-6) {
			t.Fatalf("%v, want %v", got, []float32{0, 1, a, b})
		}
	}
	for _, c := range []struct {
		in   space.Space
		want []float32
	}{{space.Space{Euclid: true}, []float32{0, 3, 1. / 3, 2. / 3}}, {space.Space{Spheres: 2}, []float32{0, 1, 1, 1}}} {
		got, err := ClassMeans([]float32{1, 0, 0, 1, 0, 3, 0, 1}, []int32{1, 1, 0, 1}, []string{"dog", "cat"}, c.in)
		for i, want := range c.want {
			if err != nil || !(math.Abs(float64(got[i]-want)) <= 1e-6) {
				t.Fatalf("in %v: %v, want %v (%v)", c.in, got, c.want, err)
			}
		}
	}
	if _, err := ClassMeans([]float32{1, 0}, []int32{0}, []string{"dog", "cat"}, space.Space{}); err == nil ||
		!strings.Contains(err.Error(), `class "cat" has no prompt`) {
		t.Error(err)
	}
	if _, err := ClassMeans([]float32{1, 0, 1}, []int32{0, 0}, []string{"dog"}, space.Space{}); err == nil {
		t.Error("3 numbers are not rows of 2 prompts")
	}
}

func TestClassRank(t *testing.T) {
	nan := float32(math.NaN())
	var got []int
	for _, c := range []struct {
		scores []float32
		class  int32
	}{{[]float32{3, 1, 2}, 0}, {[]float32{3, 1, 2}, 1}, {[]float32{2, 2, 2}, 1}, {[]float32{nan, 1, 0}, 1},
		{[]float32{0, nan, 0}, 1}} {
		got = append(got, ClassRank(c.scores, c.class))
	}
	if want := []int{0, 2, 2, 1, 2}; !slices.Equal(got, want) {
		t.Errorf("ranks %v, want %v", got, want)
	}
}

func TestLikeliest(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, c := range []struct {
		scores []float32
		want   int
	}{{[]float32{1, 3, 3}, 1}, {[]float32{-inf, -inf}, 0}, {[]float32{1, inf}, 1}, {[]float32{nan}, -1},
		{[]float32{nan, 2}, -1}, {[]float32{2, nan}, -1}, {nil, -1}} {
		if got, err := Likeliest(c.scores); (err != nil) != (c.want < 0) || err == nil && got != c.want {
			t.Errorf("%v: %d, %v, want %d", c.scores, got, err, c.want)
		}
	}
}
