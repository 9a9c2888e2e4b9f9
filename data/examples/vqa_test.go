package examples

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/internal/budget/budgettest"
	"github.com/geoalign/geoalign/internal/filetest"
)

// written writes files into a folder and returns their paths.
func written(t testing.TB, contents ...string) (paths []string) {
	t.Helper()
	dir := t.TempDir()
	for i, c := range contents {
		paths = append(paths, filepath.Join(dir, fmt.Sprintf("%d.json", i)))
		filetest.Write(t, paths[i], c)
	}
	return paths
}

const (
	vqaQuestions = `{"info": {}, "task_type": "Open-Ended", "data_type": "mscoco", "data_subtype": "val2014", "questions": [
		{"image_id": 42, "question": "What color is the dog?", "question_id": 42000}, {"image_id": 581929, "question": "How many?", "question_id": 42001}]}`
	vqaAnnotations = `{"annotations": [
		{"question_id": 42001, "image_id": 581929, "answer_type": "number", "question_type": "how many", "multiple_choice_answer": "2", "answers":
			[{"answer": "3", "answer_id": 1}, {"answer": "2", "answer_id": 2}, {"answer": "2", "answer_id": 3}, {"answer": " ", "answer_id": 4}]},
		{"question_id": 42000, "image_id": 42, "answer_type": "other", "question_type": "what color", "answers": [{"answer": "red"}]}]}`
)

func TestLoadVQA(t *testing.T) {
	o := Options{ImageRoot: "img"}
	f, err := LoadVQA(written(t, vqaQuestions, vqaAnnotations), VQA{}, o)
	if err != nil {
		t.Fatal(err)
	}
	want := []data.Example{
		{ID: "42000", Text: "What color is the dog?", Kind: "other", Label: data.UnknownLabel, Answers: []data.Answer{{Text: "red", Weight: 1}}},
		{ID: "42001", Text: "How many?", Kind: "number", Label: data.UnknownLabel, Answers: []data.Answer{{Text: "2", Weight: .5}, {Text: "3", Weight: .25}}},
	}
	for i, w := range want {
		if got := f.Example(i); fmt.Sprint(got) != fmt.Sprint(w) {
			t.Errorf("question %d:\n got %+v\nwant %+v", i, got, w)
		}
	}
	if got := []string{f.PictureName(0, 0), f.PictureName(1, 0)}; f.Len() != 2 || !slices.Equal(got, []string{"img/COCO_val2014_000000000042.jpg", "img/COCO_val2014_000000581929.jpg"}) {
		t.Errorf("%d questions, pictures %q", f.Len(), got)
	}
	// A test split has no annotations; its pictures have another name than its questions.
	test := strings.Replace(vqaQuestions, "val2014", "test-dev2015", 1)
	if f, err = LoadVQA(written(t, test), VQA{}, o); err != nil || f.Len() != 2 || f.Example(0).Answers != nil || f.PictureName(0, 0) != "img/COCO_test2015_000000000042.jpg" {
		t.Errorf("test split: %v, %v", f, err)
	}
	if f, err = LoadVQA(written(t, vqaAnnotations, vqaQuestions), VQA{QuestionType: true, ImageName: "%d.png"}, Options{ImageRoot: "50%"}); err != nil || f.Example(0).Kind != "what color" || f.PictureName(0, 0) != "50%/42.png" {
		t.Errorf("kinds and names: %v, %v", f, err)
	}
}

func TestLoadVQAOfLists(t *testing.T) {
	paths := written(t, `[
		{"question_id": 7, "question": "what is it", "answer": ["cat", "dog", "dog", "cat", "fox"], "image": "a/1.jpg", "dataset": "vqa"},
		{"question_id": 8, "question": "where is it", "answer": "on the left", "image": "2.jpg", "dataset": "vg"},
		{"question": "who", "image": "/abs/3.jpg"}]`,
		`[["what color is it?", "red", 5], ["is it red?", "yes", 6], ["what is it?", "circle", 7]]`)
	f, err := LoadVQA(paths, VQA{GenomeRoot: "vg"}, Options{ImageRoot: "coco"})
	if err != nil {
		t.Fatal(err)
	}
	easy := filepath.Join(filepath.Dir(paths[1]), "images")
	want := []string{
		"7 what is it  coco/a/1.jpg [{cat 0.4} {dog 0.4} {fox 0.2}]",
		"8 where is it  vg/2.jpg [{on the left 0.5}]",
		"2 who  /abs/3.jpg []",
		"3 what color is it? colour " + easy + "/5.png [{red 1}]",
		"4 is it red? yes/no " + easy + "/6.png [{yes 1}]",
		"5 what is it? shape " + easy + "/7.png [{circle 1}]",
	}
	var got []string
	for i, e := range f.List {
		got = append(got, fmt.Sprint(e.ID, " ", e.Text, " ", e.Kind, " ", f.PictureName(i, 0), " ", e.Answers))
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestVQABadRows: what cannot be used is counted, or an error where that is more than may be.
func TestVQABadRows(t *testing.T) {
	good := `{"question": "what", "answer": "red", "image": "1.jpg"}`
	for _, c := range []struct{ row, want string }{
		{`{"answer": "red", "image": "1.jpg"}`, "entry 1: the question is missing or blank"},
		{`{"question": "what", "answer": "red"}`, `entry 1: field "image" is missing`},
		{`{"question": "what", "answer": 3, "image": "1.jpg"}`, `entry 1: field "answer" must be a text or a list of texts (got 3)`},
		{`{"question": "what", "answer": ["red"], "image": "1.jpg", "dataset": "gqa"}`, `field "dataset" must be "vqa" or "vg" (got "gqa")`},
		{`{"question": "what", "answer": ["red", "blue"], "image": "1.jpg", "dataset": "vg"}`, "a question of vg has one answer (got 2)"},
		{`{"question": "what", "question": "why", "image": "1.jpg"}`, `key "question" is there twice`},
		{`["what", "red"]`, `want [question, answer, number of the picture] (got ["what", "red"])`},
		{`["what", "red", null]`, "want [question, answer, number of the picture]"},
		{`3`, "the value has the wrong type (got a JSON number)"},
	} {
		paths := written(t, "["+good+", "+c.row+"]")
		if _, err := LoadVQA(paths, VQA{}, Options{}); err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "1 of 2 rows cannot be used") {
			t.Errorf("%s: error %v, want %q", c.row, err, c.want)
		}
		f, err := LoadVQA(paths, VQA{}, Options{MaxBadShare: .5})
		if err != nil || f.Len() != 1 || !strings.Contains(f.Account().String(), c.want) {
			t.Errorf("%s: %v, %v", c.row, f, err)
		}
	}
	// Questions without answers are left out of training and counted.
	f, err := LoadVQA(written(t, `[`+good+`, {"question": "why", "image": "1.jpg"}, {"question": "why", "image": "1.jpg", "answer": []}, {"question": "why", "image": "1.jpg", "answer": [" "]}]`), VQA{NeedAnswers: true}, Options{})
	if err != nil || f.Len() != 1 || !strings.Contains(f.Account().String(), "4 rows: 1 used; left out: without a label: 3") {
		t.Errorf("without answers: %v, %v", f, err)
	}
	for _, c := range []struct {
		files []string
		want  string
	}{
		{[]string{""}, "no questions: want a JSON list of them"},
		{[]string{"[]"}, "the list is empty"},
		{[]string{"{}"}, `list "questions" or "annotations" is missing or empty`},
		{[]string{"[3"}, "not a JSON list of questions"},
		{[]string{vqaAnnotations}, "none of 2 rows"},
		{[]string{strings.Replace(vqaQuestions, "42001", "42000", 1)}, "question_id 42000 is there twice"},
		{[]string{strings.Replace(vqaQuestions, `"question_id": 42001`, `"x": 1`, 1)}, `field "question_id" or "image_id" is missing`},
		{[]string{vqaQuestions, strings.Replace(vqaAnnotations, "42001", "7", 1)}, "question_id 42001 has no annotation: name both files of a split"},
		{[]string{vqaQuestions, strings.Replace(vqaAnnotations, "42001", "42000", 1)}, "question_id 42000 is there twice"},
		{[]string{vqaQuestions, strings.Replace(vqaAnnotations, `{"answer": "red"}`, `{"x": "red"}`, 1)}, `answer 0 lacks "answer" (question 42000)`},
		{[]string{strings.Replace(vqaQuestions, "data_subtype", "subtype", 1)}, `field "data_subtype" must tell of which pictures the questions are (got ""): or set data.vqa.image_name`},
	} {
		if _, err := LoadVQA(written(t, c.files...), VQA{}, Options{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.60q: error %v, want %q", c.files, err, c.want)
		}
	}
	if _, err := LoadVQA(written(t, vqaQuestions), VQA{ImageName: "%s.jpg"}, Options{}); err == nil || !strings.Contains(err.Error(), `must have %d or %012d once, for the image_id (got "%s.jpg")`) {
		t.Errorf("a wrong name: %v", err)
	}
}

// TestVQAShare: a file that several splits name is divided by pictures.
func TestVQAShare(t *testing.T) {
	var rows []string
	for i := range 400 {
		rows = append(rows, fmt.Sprintf(`["what is it?", "circle", %d]`, i/2))
	}
	paths := written(t, "["+strings.Join(rows, ",")+"]")
	seen := map[string]string{}
	for _, split := range []string{"train", "val"} {
		f, err := LoadVQA(paths, VQA{Share: func(_, picture string) bool { return Split(picture, []string{"train", "val"}) == split }}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range f.Len() {
			if other := seen[f.PictureName(i, 0)]; other != "" && other != split {
				t.Fatalf("%s is in %s and in %s", f.PictureName(i, 0), other, split)
			}
			seen[f.PictureName(i, 0)] = split
		}
		if n := f.Len(); n%2 != 0 || split == "val" && (n < 20 || n > 60) {
			t.Errorf("%d questions in %s", n, split)
		}
	}
	if len(seen) != 200 {
		t.Errorf("%d of 200 pictures are in a split", len(seen))
	}
}

// TestVQAShareOfBadRows: rows that cannot be read are of no split that is known, and are compared with all rows of the file.
func TestVQAShareOfBadRows(t *testing.T) {
	var rows []string
	for i := range 400 {
		text := "what is it?"
		if i%100 == 50 {
			text = ""
		}
		rows = append(rows, fmt.Sprintf(`["%s", "circle", %d]`, text, i))
	}
	paths := written(t, "["+strings.Join(rows, ",")+"]")
	all := 0
	for _, split := range []string{"train", "val", "test"} {
		v := VQA{Share: func(_, picture string) bool { return Split(picture, []string{"train", "val", "test"}) == split }}
		f, err := LoadVQA(paths, v, Options{MaxBadShare: .01})
		if err != nil || !strings.Contains(f.Account().String(), "it cannot be used: 4") {
			t.Fatalf("%s with a share of 0.01 bad rows: %v, %+v", split, err, f)
		}
		all += f.Len()
		if _, err := LoadVQA(paths, v, Options{MaxBadShare: .009}); err == nil || !strings.Contains(err.Error(), "4 of 400 rows cannot be used") {
			t.Errorf("%s with more bad rows than may be: %v", split, err)
		}
	}
	if all != 396 {
		t.Errorf("%d of 396 questions are in a split", all)
	}
}

func TestLoadAnswers(t *testing.T) {
	want := []string{"yes", "top left", "2"}
	for _, text := range []string{"yes\r\n\ntop left\n2", "\ufeff[\"yes\", \"top left\", \"2\"]\n"} {
		if got, err := LoadAnswers(written(t, text)[0]); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
	for text, want := range map[string]string{
		"":               "the list of answers is empty: write one answer on each line",
		"[]":             "the list of answers is empty",
		"\n \n":          "the list of answers is empty",
		"[1]":            "not a JSON list of answers",
		`["a", " "]`:     "entry 1: the answer is blank: take it out",
		"red\nblue\nred": `entry 2: answer "red" is that of entry 0 already: take one out`,
	} {
		if _, err := LoadAnswers(written(t, text)[0]); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
	}
}

func TestCommonAnswers(t *testing.T) {
	f := &data.FileExamples{}
	for _, a := range []string{"red", "blue", "no", "blue", "no", "green"} {
		f.Add(data.Example{Answers: []data.Answer{{Text: a, Weight: .6}, {Text: "rare", Weight: .4}}}, "x")
	}
	f.Add(data.Example{}, "x")
	if got := CommonAnswers(f, 0); !slices.Equal(got, []string{"blue", "no", "green", "red"}) {
		t.Errorf("%q", got)
	}
	if got := CommonAnswers(f, 3); !slices.Equal(got, []string{"blue", "no", "green"}) {
		t.Errorf("%q", got)
	}
}

func FuzzVQA(f *testing.F) {
	f.Add(vqaQuestions, vqaAnnotations)
	f.Add(`[["what", "red", 1], {"question": "q", "answer": ["a", "a"], "image": "1", "dataset": "vg"}]`, `[{"question_id": 1}]`)
	f.Add(`{"questions": [{"image_id": 1, "question": "x", "question_id": -1}], "data_subtype": "a-b1"}`, `{"annotations": [{"question_id": -1, "answers": []}]}`)
	f.Fuzz(func(t *testing.T, a, b string) {
		defer budgettest.Within(t, len(a)+len(b))()
		q := questions{o: Options{MaxBadShare: 1}, answers: map[int64]annotation{}}
		if q.read("a", []byte(a)) != nil || q.read("b", []byte(b)) != nil {
			return
		}
		x, err := q.finish("a")
		if err != nil {
			return
		}
		for i, e := range x.List {
			if strings.TrimSpace(e.Text) == "" || e.ID == "" || x.PictureName(i, 0) == "" {
				t.Fatalf("question %d: %+v about %q", i, e, x.PictureName(i, 0))
			}
			sum := float32(0)
			for k, w := range e.Answers {
				if sum += w.Weight; w.Weight <= 0 || k > 0 && w.Weight > e.Answers[k-1].Weight || strings.TrimSpace(w.Text) == "" {
					t.Fatalf("answers %v", e.Answers)
				}
			}
			if sum > 1.0001 {
				t.Fatalf("answers %v weigh %v", e.Answers, sum)
			}
		}
	})
}

func FuzzAnswers(f *testing.F) {
	f.Add([]byte("yes\nno"))
	f.Add([]byte(`["a", "b"]`))
	f.Fuzz(func(t *testing.T, b []byte) {
		defer budgettest.Within(t, len(b))()
		list, err := parseAnswers("x", b)
		if (err == nil) != (len(list) > 0) || slices.Contains(list, "") {
			t.Fatalf("%q, %v", list, err)
		}
	})
}
