package normalform

import (
	"math/rand/v2"
	"strings"
	"testing"

	"golang.org/x/text/unicode/norm"
)

var forms = map[string]norm.Form{"NFC": norm.NFC, "NFD": norm.NFD, "NFKC": norm.NFKC, "NFKD": norm.NFKD}

// TestLongRunsOfMarks: what unicodedata.normalize of Python gives.
func TestLongRunsOfMarks(t *testing.T) {
	acute := strings.Repeat("\u0301", 40)
	for _, c := range []struct{ form, text, want string }{
		{"NFC", acute, acute},
		{"NFC", "e" + acute, "\u00e9" + acute[2:]},
		{"NFC", "e" + acute + "\u0327", "\u0229" + acute}, // the cedilla is before all of them
		{"NFD", "e" + acute + "\u0327", "e\u0327" + acute},
		{"NFD", "\u00e9" + acute + "\u0327", "e\u0327\u0301" + acute},
		{"NFKC", "\ufb01" + acute + "\u0323", "f\u1ecb" + acute},
		{"NFKD", "\ufb01" + acute + "\u0323", "fi\u0323" + acute},
		{"NFC", "a\u034f" + acute + "\u034fe\u0301", "a\u034f" + acute + "\u034f\u00e9"}, // joiners of the text stay
		{"NFC", acute + "\u1112\u1161\u11ab", acute + "\ud55c"},
		{"NFC", "\u0b47" + "\u0b3e" + acute, "\u0b4b" + acute},
	} {
		if got := String(forms[c.form], c.text); got != c.want {
			t.Errorf("%s of %+q: got %+q, want %+q", c.form, c.text, got, c.want)
		}
	}
}

// TestWholeIsPackageNorm compares with package norm where runs are short.
func TestWholeIsPackageNorm(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	ranges := [][2]rune{{' ', 0x250}, {0x300, 0x370}, {0x300, 0x370}, {0x900, 0xe00}, {0x1100, 0x1200}, {0x1e00, 0x2000}, {0xac00, 0xad00}, {0xf900, 0xfb50}, {0x1d100, 0x1d200}}
	for range 3000 {
		var text []rune
		for range rnd.IntN(12) {
			r := ranges[rnd.IntN(len(ranges))]
			text = append(text, r[0]+rnd.Int32N(r[1]-r[0]))
		}
		s := string(text)
		for name, f := range forms {
			if got, want := whole(f, s), f.String(s); got != want {
				t.Fatalf("%s of %+q: got %+q, want %+q", name, s, got, want)
			}
		}
	}
}
