package probe

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/internal/check"
)

// TestTextPairs: both forms give the same pairs in the order of the file, and what is wrong is said with its entry.
func TestTextPairs(t *testing.T) {
	dir := t.TempDir()
	load := func(name, text string) ([]data.TextPair, error) {
		path := filepath.Join(dir, name)
		check.OK(t, os.WriteFile(path, []byte(text), 0o644))
		return loadTextPairs(path)
	}
	want := []data.TextPair{{A: `A "dog" runs.`, B: "It runs.", Label: "1"}, {A: "A cat sits.", B: "It runs.", Label: "0"}}
	for name, text := range map[string]string{
		"a.tsv":     "id\tlabel\ttext_a\ttext_b\n7\t1\tA \"dog\" runs.\tIt runs.\r\n8\t0\tA cat sits.\tIt runs.\n\n",
		"a.json":    `{"9": {"text_a": "A \"dog\" runs.", "text_b": "It runs.", "label": 1}, "1": {"label": "0", "text_b": "It runs.", "text_a": "A cat sits."}}`,
		"list.JSON": `[{"text_a": "A \"dog\" runs.", "text_b": "It runs.", "label": "1", "more": 2}, {"text_a": "A cat sits.", "text_b": "It runs.", "label": 0}]`,
	} {
		if got, err := load(name, text); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	for _, c := range []struct{ name, text, want string }{
		{"b.tsv", "text_a\ttext_b\nx\ty\n", `no column "label"`},
		{"b.tsv", "text_a\ttext_b\tlabel\nx\ty\n", "line 2: it has 2 columns, not 3"},
		{"b.tsv", "text_a\ttext_b\tlabel\nx\ty\t1\nx\t \t1\n", "line 3: text_b is empty"},
		{"b.tsv", "text_a\ttext_b\tlabel\n", "it has no pair"},
		{"b.tsv", "", "it is empty"},
		{"b.json", `{"0": {"text_a": "x", "text_b": "y"}}`, `entry 0: there is no column "label"`},
		{"b.json", `[{"text_a": "x", "text_b": ["y"], "label": 1}]`, `field "text_b" must be a text or a number (got ["y"])`},
		{"b.json", `[{"text_a": "x", "text_b": "y", "label": null}]`, `entry 0: label is empty`},
		{"b.json", `{"a": {"text_a": "x", "text_b": "y", "label": 1}, "a": {}}`, "is there twice"},
		{"b.json", `[`, "neither an object"},
		{"b.json", `3`, "neither an object"},
		{"b.json", `[]`, "it has no row"},
		{"b.xls", "x", `not from ".xls"`},
	} {
		_, err := load(c.name, c.text)
		if err == nil || !strings.Contains(err.Error(), c.name) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %q: %v, want %q", c.name, c.text, err, c.want)
		}
	}
	if _, err := loadTextPairs(filepath.Join(dir, "none.tsv")); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// TestTextPairsOfMRPC reads real files where they are there.
func TestTextPairsOfMRPC(t *testing.T) {
	const path = "../../../shared/data/sentence_pairs/MRPC/train.json"
	if _, err := os.Stat(path); err != nil {
		t.Skip("no sentence pairs here")
	}
	pairs, err := loadTextPairs(path)
	if err != nil || len(pairs) < 100 || pairs[0].Label != "1" || !strings.HasPrefix(pairs[0].A, "In turn SuSE") {
		t.Errorf("%d pairs, %v", len(pairs), err)
	}
}
