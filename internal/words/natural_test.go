package words

import (
	"slices"
	"testing"
)

func TestNatural(t *testing.T) {
	want := []string{"a", "r1", "r5", "r10", "r100", "s2/r9", "s10/r1"}
	got := slices.Clone(want)
	slices.Reverse(got)
	slices.SortFunc(got, Natural)
	if Natural("r007", "r12") >= 0 || Natural("r01", "r1") == 0 || Natural("r09", "r1") <= 0 {
		t.Error("zeros before a number count")
	}
	// Only a number at the end counts as one.
	want[5], want[6] = want[6], want[5]
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}
