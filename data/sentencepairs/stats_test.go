package sentencepairs

import (
	"fmt"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/table"
)

// UnkID makes letters know an unknown token: x.
func (letters) UnkID() int32 { return 'x' }

// TestStats counts pairs, sentences, words and tokens, and what is cut.
func TestStats(t *testing.T) {
	set := &Set{Task: taskOf(t, "rte"), Pairs: []Pair{{"One two three.", "xx", 1, 0}, {"One two three.", "four", 1, 0}, {"xx", "five six", 0, 0}}, Counts: Counts{Counts: table.Counts{Rows: 4, Empty: 1}}}
	m := Measure{Tokenizer: letters{}, Clean: data.CleanALBEF, MaxWords: 2, Tokens: 7}
	s := set.Stats(m)
	// "one two three" loses a word, "five six" a letter.
	if s.Pairs != 3 || s.Sentences != 4 || s.Distinct != 7 || s.Cut != 2 || s.Unknown != 3 || s.WordLengths.Max != 3 || s.TokenLengths.Max != 8 || s.TokenLengths.Min != 2 || s.Scores != nil || s.Counts.Empty != 1 {
		t.Errorf("%+v", s)
	}
	if !slices.Equal(s.Classes, []ClassCount{{"entailment", 1}, {"not_entailment", 2}}) {
		t.Errorf("%+v", s.Classes)
	}
	s = set.Stats(Measure{Clean: data.CleanALBEF})
	if s.TokenLengths.Max != 0 || s.Cut != 0 || s.Unknown != 0 {
		t.Errorf("%+v", s)
	}
	if s = set.Stats(Measure{Tokenizer: letters{}, Clean: data.CleanALBEF}); s.Cut != 0 {
		t.Errorf("%+v", s)
	}
	scored := &Set{Task: taskOf(t, "stsb"), Pairs: []Pair{{"A", "B", -1, 4}, {"A", "C", -1, 1}, {"A", "D", -1, 2.5}}}
	if s = scored.Stats(m); s.Classes != nil || *s.Scores != (ScoreStats{1, 2.5, 4}) {
		t.Errorf("%+v", s)
	}
	if s = (&Set{Task: taskOf(t, "stsb")}).Stats(m); s.Scores != nil {
		t.Errorf("%+v", s)
	}
}

// TestCheck: every kind of finding, grave ones first.
func TestCheck(t *testing.T) {
	set := &Set{Task: taskOf(t, "rte"), Pairs: []Pair{{"A b", "C", 1, 0}, {"A b", "C", 0, 0}, {"D", "E", 1, 0}, {"D", "E", 1, 0}, {"?", "one two three", 0, 0}},
		Counts: Counts{Counts: table.Counts{Rows: 11, Unlabelled: 2, Empty: 1, Bad: 3, Examples: []string{"row 7", "row 8"}}}}
	other := &Set{Pairs: []Pair{{"D", "E", 0, 0}, {"E", "D", 0, 0}}}
	var got []string
	for _, f := range set.Check(Measure{Clean: data.CleanALBEF, MaxWords: 2}, map[string]*Set{"val": other, "test": {}}, 1) {
		got = append(got, fmt.Sprintf("%s %d %v %q", f.Kind, f.Count, f.Grave(), f.Examples))
		if f.Hint == "" {
			t.Errorf("%s has no hint", f.Kind)
		}
	}
	want := []string{`bad row 3 true ["row 7"]`, `leak 2 true ["\"D\", \"E\" is in val too"]`, `unlabelled row 2 false []`, `empty sentence 1 false []`, `blank sentence 1 false ["\"?\""]`,
		`long sentence 1 false ["\"one two three\""]`, `contradicted pair 1 false ["\"A b\", \"C\""]`, `repeated pair 1 false ["\"D\", \"E\""]`}
	if !slices.Equal(got, want) {
		t.Errorf("%q\nwant\n%q", got, want)
	}
}

// TestSeveralFiles: pairs of several files are one part, in their order.
func TestSeveralFiles(t *testing.T) {
	dir := t.TempDir()
	head := "sentence1\tsentence2\tlabel\n"
	s, err := Load(taskOf(t, "rte"), []string{write(t, dir, "1.tsv", head+"A\tB\t0\nC\tD\t1\n"), write(t, dir, "2.tsv", head+"E\tF\t0\n")}, Options{})
	if err != nil || len(s.Pairs) != 3 || s.Pairs[2].A != "E" || !slices.Equal(s.Parts, []Part{{"", 0, 3}}) {
		t.Errorf("%+v, %v", s, err)
	}
	year := write(t, dir, "STS.input.a.txt", "A\tB\nno tab\nC\tD\n")
	write(t, dir, "STS.gs.a.txt", "1\n2\nmuch\n")
	s, err = Load(taskOf(t, "sts12"), []string{dir}, Options{MaxBadShare: 1})
	if err != nil || len(s.Pairs) != 1 || !slices.Equal(s.Counts.Examples, []string{"data: " + year + ": line 2: it has no tab between two sentences", "data: " + dir + "/STS.gs.a.txt: line 3: no score from 0 to 5 (got \"much\")"}) {
		t.Errorf("%+v, %v", s, err)
	}
}
