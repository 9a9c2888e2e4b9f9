package zeroshot

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/budget/budgettest"
	"github.com/geoalign/geoalign/internal/check"
)

// classesIn reads a file of classes that holds text.
func classesIn(t *testing.T, text string) ([]string, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "classes.txt")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return readClasses(path)
}

func TestReadClasses(t *testing.T) {
	got, err := classesIn(t, "\uFEFFdog\r\n a cat \n\xff\n\n \n")
	if want := []string{"dog", "a cat", "\uFFFD"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, want %q (%v)", got, want, err)
	}
	check.Fails(classesIn(t, "dog\n\n\ncat"))(t, "line 2: it is empty")
	check.Fails(classesIn(t, "dog\n"+strings.Repeat("x", 1<<20)))(t, "line 2: it has more than 65536 bytes")
}

// FuzzReadClasses: every line is a name or the file an error.
func FuzzReadClasses(f *testing.F) {
	f.Add("dog\ncat\n")
	f.Add("\n\xff \r\n")
	f.Fuzz(func(t *testing.T, text string) {
		defer budgettest.Within(t, len(text))()
		names, err := classesIn(t, text)
		if err != nil && names != nil || slices.Contains(names, "") || len(names) > strings.Count(text, "\n")+1 {
			t.Errorf("%q: %q, %v", text, names, err)
		}
	})
}
