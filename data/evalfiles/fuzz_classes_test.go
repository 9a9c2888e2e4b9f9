package evalfiles

import (
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/budget/budgettest"
)

func TestParseClasses(t *testing.T) {
	got, err := parseClasses(strings.NewReader("dog\r\n a cat \n\xff\n\n \n"))
	if want := []string{"dog", "a cat", "\uFFFD"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, want %q (%v)", got, want, err)
	}
	if _, err := parseClasses(strings.NewReader("dog\n\ncat")); err == nil || !strings.Contains(err.Error(), "line 2 is empty") {
		t.Error(err)
	}
	if _, err := parseClasses(strings.NewReader("dog\n" + strings.Repeat("x", 1<<20))); err == nil || !strings.Contains(err.Error(), "line 2: ") {
		t.Error(err)
	}
}

// FuzzParseClasses: every line is a name or the file an error.
func FuzzParseClasses(f *testing.F) {
	f.Add("dog\ncat\n")
	f.Add("\n\xff \r\n")
	f.Fuzz(func(t *testing.T, text string) {
		defer budgettest.Within(t, len(text))()
		names, err := parseClasses(strings.NewReader(text))
		if err != nil && names != nil || slices.Contains(names, "") || len(names) > strings.Count(text, "\n")+1 {
			t.Errorf("%q: %q, %v", text, names, err)
		}
	})
}
