package data

import (
	"fmt"
	"math"
	"testing"
)

// Every image is in one split, all its captions with it, by its name alone; shares are those that were asked for.
func TestDivide(t *testing.T) {
	count := map[string]int{}
	const n = 20000
	for i := range n {
		name := fmt.Sprintf("d/%d.png", i)
		var in []string
		for _, split := range splits {
			if Divide(split, 5, 2.5)(name) {
				in = append(in, split)
			}
			if Divide(split, 5, 2.5)("./d//"+name[2:]) != Divide(split, 5, 2.5)(name) {
				t.Fatal(name)
			}
		}
		if len(in) != 1 {
			t.Fatal(name, in)
		}
		count[in[0]]++
	}
	for split, share := range map[string]float64{"val": .05, "test": .025, "train": .925} {
		if got := float64(count[split]) / n; math.Abs(got-share) > 4*math.Sqrt(share*(1-share)/n) {
			t.Errorf("%s is %g, want about %g", split, got, share)
		}
	}
	if a, b := Divide("val", 50, 0)("caf\u00e9.png"), Divide("val", 50, 0)("cafe\u0301.png"); a != b {
		t.Error("normal forms are in two splits")
	}
}
