package sentencepairs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/geoalign/geoalign/internal/budget/budgettest"
)

// FuzzLoad: a file of any bytes is pairs that are whole, or an error that names the file.
func FuzzLoad(f *testing.F) {
	f.Add("mrpc", ".tsv", "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\n1\t1\t2\tA\tB\n")
	f.Add("stsb", ".csv", "g\tf\ty\t1\t5.0\tA\tB\n")
	f.Add("stsb", ".csv", "sentence1,sentence2,score\n\"A\",B,3\n")
	f.Add("rte", ".json", `{"0": {"text_a": "A", "text_b": "B", "label": 1}}`)
	f.Add("snli", ".jsonl", `{"sentence1": "A", "sentence2": "B", "gold_label": "-"}`)
	f.Add("qqp", ".parquet", "PAR1")
	f.Fuzz(func(t *testing.T, name, ext, text string) {
		defer budgettest.Within(t, len(name)+len(ext)+len(text))()
		task, err := TaskOf(name)
		if err != nil || strings.ContainsAny(ext, "/\\\x00") || len(ext) > 20 {
			t.Skip()
		}
		path := filepath.Join(t.TempDir(), "file"+ext)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Skip()
		}
		s, err := Load(task, []string{path}, Options{MaxBadShare: 1})
		if err != nil {
			if !strings.Contains(err.Error(), path) {
				t.Errorf("%v names no file", err)
			}
			return
		}
		checkSet(t, s)
	})
}

// FuzzLayout: two files of any lines are pairs that are whole, or an error.
func FuzzLayout(f *testing.F) {
	f.Add("A\tB\nC\tD\tE\n", "1\n\n")
	f.Add("\xef\xbb\xbfA\tB\r\n", "5\r\n")
	f.Add("", "")
	f.Fuzz(func(t *testing.T, sentences, scores string) {
		defer budgettest.Within(t, len(sentences)+len(scores))()
		dir := t.TempDir()
		write(t, dir, "STS.input.x.txt", sentences)
		write(t, dir, "STS.gs.x.txt", scores)
		task, _ := TaskOf("sts12")
		if s, err := Load(task, []string{dir}, Options{MaxBadShare: 1}); err == nil {
			checkSet(t, s)
		}
	})
}

// checkSet fails for a set whose pairs are not whole.
func checkSet(t *testing.T, s *Set) {
	t.Helper()
	c, last := s.Counts, 0
	if c.Rows != len(s.Pairs)+c.Unlabelled+c.Empty+c.Bad {
		t.Errorf("%d pairs of %+v", len(s.Pairs), c)
	}
	for _, p := range s.Parts {
		if p.First != last || p.Last < p.First {
			t.Errorf("parts %+v", s.Parts)
		}
		last = p.Last
	}
	if last != len(s.Pairs) {
		t.Errorf("parts %+v of %d pairs", s.Parts, len(s.Pairs))
	}
	for _, p := range s.Pairs {
		switch {
		case strings.TrimSpace(p.A) == "" || strings.TrimSpace(p.B) == "", !utf8.ValidString(p.A + p.B):
			t.Errorf("sentences %q and %q", p.A, p.B)
		case s.Task.Scored() && !(p.Score >= s.Task.Low && p.Score <= s.Task.High):
			t.Errorf("score %v", p)
		case !s.Task.Scored() && (p.Label < 0 || int(p.Label) >= len(s.Task.Classes)):
			t.Errorf("label %v", p)
		}
	}
}
