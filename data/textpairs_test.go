package data

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// TestLoadTextPairs: both forms give the same pairs in the order of the file, and what is wrong is said with its entry.
func TestLoadTextPairs(t *testing.T) {
	dir := t.TempDir()
	load := func(name, text string) ([]TextPair, error) {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return LoadTextPairs(path)
	}
	want := []TextPair{{`A "dog" runs.`, "It runs.", "1"}, {"A cat sits.", "It runs.", "0"}}
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
		{"b.tsv", "text_a\ttext_b\tlabel\nx\ty\n", "entry 0: line 2 has 2 columns, and the first line 3"},
		{"b.tsv", "text_a\ttext_b\tlabel\nx\ty\t1\nx\t \t1\n", "entry 1: text_b is empty"},
		{"b.tsv", "text_a\ttext_b\tlabel\n", "it has no pair"},
		{"b.tsv", "", "no column"},
		{"b.json", `{"0": {"text_a": "x", "text_b": "y"}}`, `entry 0: field "label" is missing`},
		{"b.json", `[{"text_a": "x", "text_b": ["y"], "label": 1}]`, `field "text_b" must be a text (got ["y"])`},
		{"b.json", `[{"text_a": "x", "text_b": "y", "label": null}]`, `field "label" must be a text`},
		{"b.json", `{"a": {"text_a": "x", "text_b": "y", "label": 1}, "a": {}}`, "is there twice"},
		{"b.json", `[`, "entry"},
		{"b.json", `3`, "want an object"},
		{"b.json", `[]`, "it has no pair"},
		{"b.txt", "x", `not from ".txt"`},
	} {
		_, err := load(c.name, c.text)
		var record *RecordError
		if !errors.As(err, &record) || !strings.Contains(err.Error(), c.want) && c.want != "entry" {
			t.Errorf("%s %q: %v, want %q", c.name, c.text, err, c.want)
		}
	}
	if _, err := LoadTextPairs(filepath.Join(dir, "none.tsv")); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// TestSentencePairs reads real files where they are there.
func TestSentencePairs(t *testing.T) {
	const path = "../../shared/data/sentence_pairs/MRPC/train.json"
	if _, err := os.Stat(path); err != nil {
		t.Skip("no sentence pairs here")
	}
	pairs, err := LoadTextPairs(path)
	if err != nil || len(pairs) < 100 || pairs[0].Label != "1" || !strings.HasPrefix(pairs[0].A, "In turn SuSE") {
		t.Errorf("%d pairs, %v", len(pairs), err)
	}
}

// FuzzTextPairs: every pair is whole, or the file is an error.
func FuzzTextPairs(f *testing.F) {
	f.Add("text_a\ttext_b\tlabel\nx\ty\t1\n", true)
	f.Add(`{"0": {"text_a": "x", "text_b": "y", "label": 1}}`, false)
	f.Add(`[{"text_a": "x", "text_b": "y", "label": "1"}]`, false)
	f.Fuzz(func(t *testing.T, text string, table bool) {
		parse := parsePairJSON
		if table {
			parse = parsePairTable
		}
		pairs, err := parse("file", []byte(text))
		if err != nil && pairs != nil {
			t.Errorf("%q and %v", pairs, err)
		}
		for _, p := range pairs {
			if p.check() != nil {
				t.Errorf("%q", p)
			}
		}
	})
}
