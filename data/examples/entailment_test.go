package examples

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/budget/budgettest"
	"github.com/geoalign/geoalign/internal/filetest"
)

func TestLoadEntailment(t *testing.T) {
	snli := `{"annotator_labels": ["neutral"], "captionID": "1.jpg#4", "gold_label": "neutral", "pairID": "1.jpg#4r1n", "sentence1": "A man.", "sentence2": "A man sleeps.", "Flickr30K_ID": "1"}
{"annotator_labels": ["neutral"], "captionID": "2.jpg#4", "gold_label": "-", "pairID": "2.jpg#4r1n", "sentence1": "A man.", "sentence2": "A dog.", "Flickr30K_ID": "2"}
{"annotator_labels": ["neutral"], "captionID": "3.jpg#4", "gold_label": "entailment", "pairID": "3.jpg#4r1n", "sentence1": "A man.", "sentence2": "Somebody.", "Flickr30K_ID": "3"}
`
	f, err := LoadEntailment([]string{filetest.Temp(t, "snli_ve_train.jsonl", snli)}, Options{ImageRoot: "images"})
	if err != nil {
		t.Fatal(err)
	}
	if f.Len() != 2 || f.Paths[1][0] != filepath.Join("images", "3.jpg") || f.List[1].ID != "3.jpg#4r1n" || f.List[1].Label != 2 || f.List[0].Label != 1 || f.List[0].Text != "A man sleeps." {
		t.Errorf("read %+v about %v", f.List, f.Paths)
	}
	if !strings.Contains(f.Account().String(), "without a label: 1") {
		t.Errorf("account %q", f.Account())
	}
	albef := `[{"image": "flickr30k-images/4.jpg", "sentence": "A cat.", "label": "contradiction"}]`
	f, err = LoadEntailment([]string{filetest.Temp(t, "ve_train.json", albef)}, Options{ImageRoot: "/data"})
	if err != nil || f.Len() != 1 || f.List[0].Label != 0 || f.Paths[0][0] != filepath.FromSlash("/data/flickr30k-images/4.jpg") {
		t.Errorf("read %+v about %v (%v)", f.List, f.Paths, err)
	}
	for name, c := range map[string]struct{ text, want string }{
		"another task": {`[{"image": "a.jpg", "sentence": "A cat.", "label": "maybe"}]`, `entry 0: label "maybe" is none of contradiction, neutral, entailment`},
		"no field":     {`[{"image": "a.jpg", "sentence": "A cat."}]`, `field "label" is missing`},
		"no picture":   {`[{"image": "", "sentence": "A cat.", "label": "neutral"}]`, `entry 0: field "image" is empty`},
		"no sentence":  {`[{"image": "a.jpg", "sentence": " ", "label": "neutral"}]`, `field "sentence" is empty`},
		"no labels":    {`[{"image": "a.jpg", "sentence": "A cat.", "label": "-"}]`, "none of 1 rows is a sample"},
	} {
		path := filetest.Temp(t, "bad.json", c.text)
		if _, err := LoadEntailment([]string{path}, Options{}); err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzEntailment: a file of any bytes is samples that are whole, or an error that names the file.
func FuzzEntailment(f *testing.F) {
	f.Add(".jsonl", `{"gold_label": "neutral", "sentence2": "A man.", "Flickr30K_ID": "1", "pairID": "x"}`)
	f.Add(".json", `[{"image": "a.jpg", "sentence": "A cat.", "label": "entailment"}]`)
	f.Fuzz(func(t *testing.T, ext, text string) {
		defer budgettest.Within(t, len(ext)+len(text))()
		if strings.ContainsAny(ext, "/\\\x00") || len(ext) > 20 {
			t.Skip()
		}
		path := filepath.Join(t.TempDir(), "file"+ext)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Skip()
		}
		x, err := LoadEntailment([]string{path}, Options{MaxBadShare: 1})
		if err != nil {
			if !strings.Contains(err.Error(), path) {
				t.Errorf("%v names no file", err)
			}
			return
		}
		for i := range x.Len() {
			if e := x.Example(i); strings.TrimSpace(e.Text) == "" || e.Label < 0 || int(e.Label) >= len(x.Classes) || x.PictureName(i, 0) == "" {
				t.Errorf("sample %d is %+v about %q", i, e, x.PictureName(i, 0))
			}
		}
	})
}
