package regions

import (
	"strings"
	"testing"

	"github.com/geoalign/geoalign/data/account"
)

// Regions are found by names of images as paths, and by another Unicode normal form where no other name differs only in that.
func TestPlaceNames(t *testing.T) {
	const nfc, nfd = "caf\u00e9", "cafe\u0301"
	s := &Set{keys: []string{"./a", "b//c", nfc, "x" + nfc, "gone"}, rows: make([]int32, 5), account: account.New()}
	s.place([]string{"b/c", "a", nfd, "x" + nfc, "x" + nfd})
	for i, want := range []int32{1, 0, 2, 3, -1} {
		if s.rows[i] != want {
			t.Errorf("%q has row %d, want %d", s.keys[i], s.rows[i], want)
		}
	}
	if got := s.account.String(); !strings.Contains(got, "differs only in Unicode normalisation (NFC, NFD): 1 ("+nfc+")") {
		t.Error(got)
	}
}
