package sentencepairs

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/internal/filetest"
)

// write writes a file into a folder and returns its path.
func write(t testing.TB, dir, name, text string) string {
	return filetest.Write(t, filepath.Join(dir, name), text)
}

// taskOf is a task that there is.
func taskOf(t testing.TB, name string) Task {
	t.Helper()
	task, err := TaskOf(name)
	if err != nil {
		t.Fatal(err)
	}
	return task
}

// TestFormats reads two pairs of every task in each form in which it is given out.
func TestFormats(t *testing.T) {
	none := int32(data.UnknownLabel)
	for _, c := range []struct {
		task, file, text string
		want             []Pair
	}{
		{"mnli", "dev_matched.tsv", "index\tpromptID\tpairID\tgenre\tsentence1_binary_parse\tsentence2_binary_parse\tsentence1_parse\tsentence2_parse\tsentence1\tsentence2\tlabel1\tlabel2\tgold_label\n" +
			"0\t1\t1n\tfiction\t( a )\t( b )\t(R a)\t(R b)\tHe said \"go\tHe \"spoke\" up.\tneutral\tneutral\tneutral\n" +
			"1\t2\t2c\tfiction\t( a )\t( b )\t(R a)\t(R b)\tYes.\tNo.\tneutral\tcontradiction\tcontradiction\n",
			[]Pair{{`He said "go`, `He "spoke" up.`, 1, 0}, {"Yes.", "No.", 2, 0}}},
		{"mnli", "multinli_1.0_dev_matched.jsonl", `{"gold_label": "entailment", "sentence1": "A", "sentence2": "B", "annotator_labels": ["entailment"]}` + "\n" +
			`{"gold_label": "-", "sentence1": "C", "sentence2": "D"}` + "\n", []Pair{{"A", "B", 0, 0}}},
		{"qnli", "dev.tsv", "index\tquestion\tsentence\tlabel\r\n0\tWho?\tHim.\tentailment\r\n1\tWhy?\tThen.\tnot_entailment\r\n", []Pair{{"Who?", "Him.", 0, 0}, {"Why?", "Then.", 1, 0}}},
		{"snli", "snli_1.0_dev.jsonl", `{"gold_label": "-", "sentence1": "x", "sentence2": "y"}` + "\n" + `{"gold_label": "contradiction", "sentence1": "A man.", "sentence2": "A \u00fcnit."}`,
			[]Pair{{"A man.", "A \u00fcnit.", 2, 0}}},
		{"snli", "snli_1.0_dev.txt", "gold_label\tsentence1_parse\tsentence1\tsentence2\nneutral\t(R)\tA\tB\n-\t(R)\tC\tD\n", []Pair{{"A", "B", 1, 0}}},
		{"qqp", "dev.tsv", "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n1\t2\t3\tHow?\tHow so?\t1\n4\t5\t6\tA\tB\t0\n", []Pair{{"How?", "How so?", 1, 0}, {"A", "B", 0, 0}}},
		{"mrpc", "msr_paraphrase_test.txt", bomText + "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\n1\t10\t11\tA \" b .\tC\n0\t12\t13\tD\tE\n", []Pair{{`A " b .`, "C", 1, 0}, {"D", "E", 0, 0}}},
		{"rte", "dev.tsv", "index\tsentence1\tsentence2\tlabel\n0\tA\tB\tnot_entailment\n", []Pair{{"A", "B", 1, 0}}},
		{"stsb", "dev.tsv", "index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\tsentence1\tsentence2\tscore\n0\tx\ty\t2012\t1\tn\tn\tA\tB\t4.200\n", []Pair{{"A", "B", none, 4.2}}},
		{"stsb", "sts-test.csv", "main-captions\tMSRvid\t2012test\t0000\t5.000\tA man, \"odd\tB\n" + "main-news\theadlines\t2013\t0001\t0.5\tC\tD\thttp://a\thttp://b\n", []Pair{{`A man, "odd`, "B", none, 5}, {"C", "D", none, .5}}},
		{"stsb", "dev.csv", "sentence1,sentence2,score\n\"A, \"\"b\"\"\",C,3\n", []Pair{{`A, "b"`, "C", none, 3}}},
		{"stsb", "dev.json", `[{"text_a": "A", "text_b": "B", "label": 2.5}, {"text_a": "C", "text_b": "D", "label": "1"}]`, []Pair{{"A", "B", none, 2.5}, {"C", "D", none, 1}}},
		{"sick", "SICK_trial.txt", "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment\n1\tA\tB\t4.5\tNEUTRAL\n", []Pair{{"A", "B", none, 4.5}}},
		{"sick-e", "SICK_trial.txt", "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment\n1\tA\tB\t4.5\tNEUTRAL\n", []Pair{{"A", "B", 1, 0}}},
		{"rte", "dev.json", `{"0": {"text_a": "A", "text_b": "B", "label": "entailment"}, "1": {"text_a": "C", "text_b": "D", "label": 1}}`, []Pair{{"A", "B", 0, 0}, {"C", "D", 1, 0}}},
	} {
		path := write(t, t.TempDir(), c.file, c.text)
		s, err := Load(taskOf(t, c.task), []string{path}, Options{})
		if err != nil {
			t.Errorf("%s of %s: %v", c.file, c.task, err)
			continue
		}
		if !slices.Equal(s.Pairs, c.want) {
			t.Errorf("%s of %s: %+v, want %+v", c.file, c.task, s.Pairs, c.want)
		}
		if len(s.Parts) != 1 || s.Parts[0] != (Part{"", 0, len(c.want)}) {
			t.Errorf("%s of %s: parts %+v", c.file, c.task, s.Parts)
		}
	}
}

const bomText = "\xef\xbb\xbf"

// TestParquet reads pairs as the hub gives them out: classes as numbers, scores as floats.
func TestParquet(t *testing.T) {
	dir := t.TempDir()
	type classed struct {
		Premise    string `parquet:"premise"`
		Hypothesis string `parquet:"hypothesis"`
		Label      int64  `parquet:"label"`
		Index      int32  `parquet:"idx"`
	}
	path := filepath.Join(dir, "validation_matched-00000-of-00001.parquet")
	if err := parquet.WriteFile(path, []classed{{"A", "B", 2, 0}, {"C", "D", -1, 1}, {"E", "F", 0, 2}}); err != nil {
		t.Fatal(err)
	}
	found, err := Find(taskOf(t, "mnli"), dir, Val)
	if err != nil || len(found.Paths) != 1 || found.Paths[0] != path {
		t.Fatalf("%+v, %v", found, err)
	}
	s, err := Load(taskOf(t, "mnli"), found.Paths, Options{})
	if err != nil || !slices.Equal(s.Pairs, []Pair{{"A", "B", 2, 0}, {"E", "F", 0, 0}}) || s.Counts.Unlabelled != 1 {
		t.Errorf("%+v, %v", s, err)
	}
	type scored struct {
		A     *string `parquet:"sentence1,optional"`
		B     string  `parquet:"sentence2"`
		Score float32 `parquet:"score"`
	}
	a := "A"
	path = filepath.Join(dir, "test.parquet")
	if err := parquet.WriteFile(path, []scored{{&a, "B", 3.8}, {nil, "D", 1}}); err != nil {
		t.Fatal(err)
	}
	s, err = Load(taskOf(t, "stsb"), []string{path}, Options{})
	if err != nil || len(s.Pairs) != 1 || s.Pairs[0].Score != 3.8 || s.Counts.Empty != 1 {
		t.Errorf("%+v, %v", s, err)
	}
	type listed struct {
		A     []string `parquet:"sentence1,list"`
		B     string   `parquet:"sentence2"`
		Score float32  `parquet:"score"`
	}
	if err := parquet.WriteFile(path, []listed{{[]string{"A"}, "B", 1}}); err != nil {
		t.Fatal(err)
	}
	fails(t, "stsb", path, `column "sentence1" is not supported: it holds lists or groups`)
	fails(t, "stsb", write(t, dir, "bad.parquet", "PAR1"), "not a .parquet file that can be read")
}

// fails loads a file that cannot be used.
func fails(t *testing.T, task, path, want string) {
	t.Helper()
	if _, err := Load(taskOf(t, task), []string{path}, Options{MaxBadShare: .3}); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%s as %s: %v, want %q", filepath.Base(path), task, err, want)
	}
}

// TestBadInput: an error names the file, the line and what to do.
func TestBadInput(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct{ task, file, text, want string }{
		{"rte", "a.tsv", "index\tsentence1\tlabel\n0\tA\tentailment\n", `line 1: there is no column "sentence2" of the task rte, only ["index" "sentence1" "label"]`},
		{"rte", "a.tsv", "index\tsentence1\tsentence2\n0\tA\tB\n", "GLUE gives out the test files without labels"},
		{"rte", "a.json", `{"0": {"text_a": "A", "label": "entailment"}}`, `entry 0: there is no column "sentence2" of the task rte, only ["label" "text_a"]`},
		{"rte", "a.json", `{"0": {"text_a": "A", "text_b": "B", "label": "entailment"}, "1": {"text_a": "A", "text_b": "B"}}`, `field "label" is missing`},
		{"rte", "a.json", `{"0": {"text_a": "A", "text_b": ["B"], "label": "entailment"}}`, `field "text_b" must be a text or a number (got ["B"])`},
		{"rte", "a.json", `["A"]`, "want an object with a field for each column"},
		{"rte", "a.json", `{"0": `, "it is neither an object"},
		{"rte", "a.json", `12`, "it is neither an object"},
		{"rte", "a.json", `{}`, "it has no row"},
		{"rte", "a.jsonl", "{\"text_a\": \"A\", \"text_b\": \"B\", \"label\": 0}\n{\n", "line 2: it is not a JSON object"},
		{"rte", "a.tsv", "", "it is empty: begin with a line that names the columns"},
		{"rte", "a.xlsx", "x", `not from ".xlsx"`},
		{"rte", "a.tsv", "sentence1\tsentence2\tlabel\nA\tB\tneutral\n", `line 2: the label "neutral" is not a class of the task rte, which has entailment, not_entailment: it is one of mnli, mnli-mm, snli, sick-e: files of two tasks cannot be mixed`},
		{"mrpc", "a.tsv", "sentence1\tsentence2\tlabel\nA\tB\t2\n", `the label "2" is not a class`},
		{"stsb", "a.tsv", "sentence1\tsentence2\tscore\nA\tB\tmuch\n", `1 of 1 rows cannot be read, the first is data: ` + filepath.Join(dir, "a.tsv") + `: line 2: no score from 0 to 5 (got "much")`},
		{"stsb", "a.tsv", "sentence1\tsentence2\tscore\nA\tB\t5.5\n", "no score from 0 to 5"},
		{"stsb", "a.tsv", "sentence1\tsentence2\tscore\nA\tB\tNaN\n", "no score from 0 to 5"},
		{"rte", "a.tsv", "sentence1\tsentence2\tlabel\nA\tB\t-\n\tB\tentailment\n", "none of 2 rows is a pair of sentences with a label (left out of 2 rows: 1 without a label, 1 with an empty sentence): GLUE gives out"},
		{"rte", "a.csv", "sentence1,sentence2,label\n\"A,B,entailment\n", "line 2: it is not a row of comma-separated values"},
	} {
		fails(t, c.task, write(t, dir, c.file, c.text), c.want)
	}
	fails(t, "rte", filepath.Join(dir, "none.tsv"), "no such file")
	fails(t, "rte", dir, "is a folder: name a file of the task rte")
	fails(t, "sts12", dir, "has no file STS.input.*.txt with the sentences of the task sts12")
	if _, err := TaskOf("cola"); err == nil || !strings.Contains(err.Error(), `no task of sentence pairs "cola": the tasks are mnli, mnli-mm, qnli`) {
		t.Error(err)
	}
}

// TestCounts: rows that cannot be used are left out and counted, up to a share.
func TestCounts(t *testing.T) {
	path := write(t, t.TempDir(), "train.tsv", "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n1\t2\t3\tA\tB\t1\n1\t2\t3\tbroken\n1\t2\t3\t \tB\t1\n\n1\t2\t3\tA\tB\t\n1\t2\t3\tC\xff\tD\t0\n")
	s, err := Load(taskOf(t, "qqp"), []string{path}, Options{MaxBadShare: .2})
	if err != nil {
		t.Fatal(err)
	}
	c := s.Counts
	if c.Rows != 5 || c.Bad != 1 || c.Empty != 1 || c.Unlabelled != 1 || len(s.Pairs) != 2 || s.Pairs[1].A != "C\uFFFD" {
		t.Errorf("%+v %+v", c, s.Pairs)
	}
	if want := "left out of 5 rows: 1 without a label, 1 with an empty sentence, 1 that cannot be read"; c.String() != want {
		t.Errorf("%q, want %q", c.String(), want)
	}
	if len(c.Examples) != 1 || !strings.Contains(c.Examples[0], "line 3: it has 4 columns, not 6") {
		t.Errorf("%q", c.Examples)
	}
	if _, err := Load(taskOf(t, "qqp"), []string{path}, Options{MaxBadShare: .1}); err == nil || !strings.Contains(err.Error(), "1 of 5 rows cannot be read") || !strings.Contains(err.Error(), "data.max_bad_share (0.1)") {
		t.Error(err)
	}
}

// TestLayout reads folders as SentEval has them.
func TestLayout(t *testing.T) {
	dir := t.TempDir()
	year := filepath.Join(dir, "STS", "STS16-en-test")
	write(t, year, "STS.input.b.txt", "A\tB\tsource\nC\tD\n")
	write(t, year, "STS.gs.b.txt", "\n2.5\n")
	write(t, year, "STS.input.a.b.txt", "E\tF\nG\tH\n")
	write(t, year, "STS.gs.a.b.txt", "5\n0\n")
	write(t, year, "STS.gs.ALL.txt", "2.5\n5\n0\n")
	task := taskOf(t, "sts16")
	for _, split := range []string{Val, Test} {
		found, err := Find(task, dir, split)
		if err != nil || found.Split != Test || !slices.Equal(found.Paths, []string{year}) {
			t.Fatalf("%+v, %v", found, err)
		}
	}
	s, err := Load(task, []string{year}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(s.Parts, []Part{{"a.b", 0, 2}, {"b", 2, 3}}) || s.Pairs[2].Score != 2.5 || s.Pairs[2].B != "D" || s.Counts.Unlabelled != 1 || !slices.Equal(s.Counts.Ignored, []string{"STS.gs.ALL.txt"}) {
		t.Errorf("%+v", s)
	}
	write(t, year, "STS.gs.b.txt", "2.5\n")
	fails(t, "sts16", year, "it has 1 lines and STS.input.b.txt has 2: copy both again")
	os.Remove(filepath.Join(year, "STS.gs.b.txt"))
	fails(t, "sts16", year, "every STS.input.*.txt needs its scores")
}

// TestFind: the files of a task are found by the names that they are given out with, and no file of another task.
func TestFind(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"MRPC/train.tsv", "MRPC/dev.tsv", "mnli/train.tsv", "mnli/dev_matched.tsv", "mnli/dev_mismatched.tsv", "SICK/SICK_test_annotated.txt", "snli_1.0/snli_1.0_test.txt", "odd/train-00001.parquet", "odd/train-00000.parquet",
		"twice/validation_matched.jsonl", "twice/validation_matched.csv", "twice/validation_matched.jsonl.gz", "twice/validation_mismatched.parquet"} {
		write(t, dir, name, "")
	}
	for _, c := range []struct {
		task, dir, split, want string
	}{
		{"mrpc", "", Val, "val MRPC/dev.tsv"}, {"mrpc", "MRPC", Train, "train MRPC/train.tsv"}, {"mrpc", "", Test, "val MRPC/dev.tsv"},
		{"mnli", "", Val, "val mnli/dev_matched.tsv"}, {"mnli-mm", "", Val, "val mnli/dev_mismatched.tsv"}, {"mnli-mm", "", Train, "train mnli/train.tsv"},
		{"mnli-mm", "MRPC", Val, ""}, {"sick", "", Val, "test SICK/SICK_test_annotated.txt"}, {"sick-e", "", Test, "test SICK/SICK_test_annotated.txt"},
		{"snli", "", Test, "test snli_1.0/snli_1.0_test.txt"}, {"qqp", "odd", Train, "train odd/train-00000.parquet odd/train-00001.parquet"},
		{"mnli", "twice", Val, "val twice/validation_matched.jsonl"}, {"mnli-mm", "twice", Val, "val twice/validation_mismatched.parquet"}, // one export of a split
		{"rte", "", Train, ""}, {"rte", "nowhere", Train, ""},
	} {
		found, err := Find(taskOf(t, c.task), filepath.Join(dir, c.dir), c.split)
		got := found.Split
		for _, p := range found.Paths {
			rel, _ := filepath.Rel(dir, p)
			got += " " + filepath.ToSlash(rel)
		}
		if got != c.want || (err == nil) == (c.want == "") {
			t.Errorf("%s %s of %q: %q, want %q (%v)", c.split, c.task, c.dir, got, c.want, err)
		}
	}
}

// filesVariable names a folder with real files of the tasks: MNLI, QNLI, SNLI, QQP, MRPC, RTE and STS-B with train.json and
// dev.json, and STS12-en-test to STS14-en-test as SentEval has them.
const filesVariable = "GEOALIGN_SENTENCE_PAIRS"

// TestRealFiles reads them.
func TestRealFiles(t *testing.T) {
	shared := os.Getenv(filesVariable)
	if shared == "" {
		t.Skip(filesVariable + " names no folder with files of the tasks")
	}
	for name, want := range map[string][2]int{
		"mnli": {8999, 1000}, "qnli": {8999, 1000}, "snli": {8999, 1000}, "qqp": {8999, 1000}, "mrpc": {3300, 367}, "rte": {2240, 249}, "stsb": {5173, 575},
		"sts12": {0, 3108}, "sts13": {0, 1500}, "sts14": {0, 3750},
	} {
		for i, split := range []string{Train, Val} {
			found, err := Find(taskOf(t, name), shared, split)
			if want[i] == 0 {
				if err == nil {
					t.Errorf("%s has a split %s: %v", name, split, found)
				}
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			s, err := Load(taskOf(t, name), found.Paths, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if len(s.Pairs)+s.Counts.Empty != want[i] || s.Counts.Rows != want[i] || s.Counts.Empty > 5 {
				t.Errorf("%s of %s: %d pairs, %+v, want %d", split, name, len(s.Pairs), s.Counts, want[i])
			}
		}
	}
}

// TestUnusable: what has no label, or lacks one of its sentences, is counted; scores must be as many as lines of sentences.
func TestUnusable(t *testing.T) {
	task, err := TaskOf("stsb")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "a.tsv")
	filetest.Write(t, path, "sentence1\tsentence2\tscore\na\tb\t1\na\tb\t-1.0\na\tb\thidden\na\tb\t-\n\tb\t1\na\t \t1\n")
	s, err := Load(task, []string{path}, Options{})
	if err != nil || len(s.Pairs) != 1 || s.Counts.Unlabelled != 3 || s.Counts.Empty != 2 {
		t.Errorf("%+v, %v", s, err)
	}
	if task, err = TaskOf("sts12"); err != nil {
		t.Fatal(err)
	}
	for _, scores := range []string{"1\n", "1\n2\n3\n"} {
		dir := t.TempDir()
		for name, text := range map[string]string{"STS.input.x.txt": "a\tb\nc\td\n", "STS.gs.x.txt": scores} {
			filetest.Write(t, filepath.Join(dir, name), text)
		}
		if _, err := Load(task, []string{dir}, Options{}); err == nil || !strings.Contains(err.Error(), "STS.input.x.txt has 2: copy both again") {
			t.Errorf("scores %q: %v", scores, err)
		}
	}
}
