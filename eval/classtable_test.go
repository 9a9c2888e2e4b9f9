package eval

import (
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
)

// TestClassTable is worked out by hand.
func TestClassTable(t *testing.T) {
	names := []string{"cat", "dog", "no image", "a name that is much longer than its column is"}
	c := TableOf(names, []int32{0, 1, 1, 1, 0, 3, 0, 0}, []int32{0, 0, 0, 1, 1, 3, 3, 0})
	if got := c.Classes(); !reflect.DeepEqual(got, []ClassAccuracy{
		{"cat", 4, 50, "dog", 2}, {"dog", 2, 50, "cat", 1}, {names[3], 2, 50, "cat", 1}}) {
		t.Errorf("%+v", got)
	}
	if c.Top1() != 50 || c.MeanOfClasses() != 50 || c.All() != 8 || c.Empty() != 1 || c.Check() != nil {
		t.Errorf("%v %v %v %v", c.Top1(), c.MeanOfClasses(), c.All(), c.Empty())
	}
	if rows := c.Matrix(); !reflect.DeepEqual(rows, [][]int32{{2, 2, 0, 0}, {1, 1, 0, 0}, {0, 0, 0, 0}, {1, 0, 0, 1}}) {
		t.Errorf("%v", rows)
	}
	for _, want := range []string{"cat                            4   50.00  dog (2)\n", "a name that is much lon~",
		"1 of 4 classes have no image."} {
		if !strings.Contains(c.Table(), want) {
			t.Errorf("no %q in\n%s", want, c.Table())
		}
	}
	c.Right[0] = 4
	if h := c.Hardest(2); len(h) != 2 || h[0].Class != "dog" || h[1].Class != names[3] {
		t.Errorf("%+v", h)
	}
	c.Images = c.Images[:3]
	if c.Check() == nil {
		t.Error("3 numbers for 4 classes pass")
	}
	if big := NewClassTable(make([]string, MostConfused+1)); big.Confused != nil || big.Matrix() != nil ||
		big.MeanOfClasses() != 0 {
		t.Error("a matrix of too many classes is kept")
	} else if big.Add(3, 4); big.Classes()[0].Wrong != 0 || big.Top1() != 0 {
		t.Error("without the matrix it is not known what an image was taken for")
	}
}

// TestTakenFor: an image is taken for its class where that has rank 0, and only there.
func TestTakenFor(t *testing.T) {
	for _, c := range []struct {
		scores    []float32
		own, want int32
	}{
		{[]float32{3, 1, 2}, 0, 0}, {[]float32{3, 1, 2}, 2, 0}, {[]float32{3, 3, 2}, 0, 1}, {[]float32{3, 3, 2}, 1, 0},
		{[]float32{3, 3, 3}, 2, 0}, {[]float32{1}, 0, 0}, {[]float32{float32(math.NaN()), 1}, 1, 0}, {[]float32{2, 1, float32(math.NaN())}, 0, 1},
	} {
		if got := TakenFor(c.scores, c.own); got != c.want {
			t.Errorf("%v of class %d is taken for %d, want %d", c.scores, c.own, got, c.want)
		}
	}
	r := rand.New(rand.NewPCG(3, 3))
	for range 200 {
		scores := make([]float32, 1+r.IntN(5))
		for i := range scores {
			scores[i] = float32(r.IntN(4))
		}
		own := int32(r.IntN(len(scores)))
		if (TakenFor(scores, own) == own) != (ClassRank(scores, own) == 0) {
			t.Errorf("%v of class %d", scores, own)
		}
	}
}

// TestClassMeanScores is worked out by hand.
func TestClassMeanScores(t *testing.T) {
	got := make([]float32, 4)
	if err := ClassMeanScores([]float32{1, 2, 3, 5, 7, 9}, []int32{1, 0, 1}, []string{"a", "b"}, got); err != nil ||
		!reflect.DeepEqual(got, []float32{2, 2, 7, 7}) {
		t.Errorf("%v %v", got, err)
	}
	if err := ClassMeanScores([]float32{1, 2, 3}, []int32{1, 0}, []string{"a", "b"}, got); err == nil {
		t.Error("3 scores are not rows of 2 prompts")
	}
	if err := ClassMeanScores([]float32{1, 2}, []int32{0, 0}, []string{"a", "b"}, got); err == nil ||
		!strings.Contains(err.Error(), `class "b" has no prompt`) {
		t.Error(err)
	}
}
