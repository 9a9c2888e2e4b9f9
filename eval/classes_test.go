package eval

import (
	"math"
	"slices"
	"strings"
	"testing"
)

// TestClassMeans is worked out by hand: prompts are averaged first and brought to unit length
// after that.
func TestClassMeans(t *testing.T) {
	got, err := ClassMeans([]float32{1, 0, 0, 1, 0, 3, 0, 1}, []int32{1, 1, 0, 1}, []string{"dog", "cat"})
	if err != nil {
		t.Fatal(err)
	}
	a, b := float32(1/math.Sqrt(5)), float32(2/math.Sqrt(5))
	for i, want := range []float32{0, 1, a, b} {
		if math.Abs(float64(got[i]-want)) > 1e-6 {
			t.Fatalf("%v, want %v", got, []float32{0, 1, a, b})
		}
	}
	if _, err := ClassMeans([]float32{1, 0}, []int32{0}, []string{"dog", "cat"}); err == nil || !strings.Contains(err.Error(), `class "cat" has no prompt`) {
		t.Error(err)
	}
	if _, err := ClassMeans([]float32{1, 0, 1}, []int32{0, 0}, []string{"dog"}); err == nil {
		t.Error("3 numbers are no rows of 2 prompts")
	}
}

func TestClassRank(t *testing.T) {
	nan := float32(math.NaN())
	var got []int
	for _, c := range []struct {
		scores []float32
		class  int32
	}{{[]float32{3, 1, 2}, 0}, {[]float32{3, 1, 2}, 1}, {[]float32{2, 2, 2}, 1}, {[]float32{nan, 1, 0}, 1}, {[]float32{0, nan, 0}, 1}} {
		got = append(got, ClassRank(c.scores, c.class))
	}
	if want := []int{0, 2, 2, 1, 2}; !slices.Equal(got, want) {
		t.Errorf("ranks %v, want %v", got, want)
	}
}
