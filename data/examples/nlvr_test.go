package examples

import (
	"bufio"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/internal/budget/budgettest"
	"github.com/geoalign/geoalign/internal/filetest"
)

// put writes a file below a folder and returns its path.
func put(t testing.TB, dir, name, text string) string {
	return filetest.Write(t, filepath.Join(dir, name), text)
}

const (
	nlvr2Lines = `{"validation": {"61": "False"}, "sentence": "The right image shows a walkway.", "left_url": "https://x/a.jpg", "label": "False", "identifier": "dev-850-0-0", "synset": "beer bottle"}

{"sentence": "The right image shows a walkway.", "label": "True", "identifier": "dev-850-2-0"}
`
	nlvr2Train = `{"sentence": "Two dogs.", "label": "True", "identifier": "train-10171-0-1", "directory": 55}` + "\n"
	albefList  = `[{"images": ["images/train/55/train-10171-0-img0.png", "images/train/55/train-10171-0-img1.png"], "sentence": "Two dogs.", "label": "True"},
 {"sentence": "No dog.", "label": "False", "images": ["dev/a.png", "dev/b.png"]}]`
	nlvr1Lines = `{"sentence": "There is a tower.", "label": "true", "identifier": "3125-1", "directory": "2", "evals": {"r1": "true"}, "structured_rep": [[], [], []]}` + "\n"
)

func TestLoadNLVR(t *testing.T) {
	for _, c := range []struct {
		name, file, text string
		pictures         []string // files that are there
		want             []string
	}{
		{"NLVR2 in folders of splits", "dev.json", nlvr2Lines, nil, []string{
			"dev-850-0-0 0 dev/dev-850-0-img0.png dev/dev-850-0-img1.png", "dev-850-2-0 1 dev/dev-850-2-img0.png dev/dev-850-2-img1.png"}},
		{"NLVR2 in one folder", "dev.json", nlvr2Lines, []string{"dev-850-0-img0.png"}, []string{
			"dev-850-0-0 0 dev-850-0-img0.png dev-850-0-img1.png", "dev-850-2-0 1 dev-850-2-img0.png dev-850-2-img1.png"}},
		{"NLVR2 in one folder, the first picture missing", "dev.json", nlvr2Lines, []string{"dev-850-2-img0.png"}, []string{
			"dev-850-0-0 0 dev/dev-850-0-img0.png dev/dev-850-0-img1.png", "dev-850-2-0 1 dev-850-2-img0.png dev-850-2-img1.png"}},
		{"NLVR2 in folders of training", "train.jsonl", nlvr2Train, nil, []string{"train-10171-0-1 1 train/55/train-10171-0-img0.png train/55/train-10171-0-img1.png"}},
		{"NLVR2 in folders of training below images", "train.json", "\xef\xbb\xbf" + nlvr2Train, []string{"images/train/55/train-10171-0-img0.png"}, []string{
			"train-10171-0-1 1 images/train/55/train-10171-0-img0.png images/train/55/train-10171-0-img1.png"}},
		{"ALBEF", "nlvr_train.json", albefList, nil, []string{
			"0 1 images/train/55/train-10171-0-img0.png images/train/55/train-10171-0-img1.png", "1 0 dev/a.png dev/b.png"}},
		{"NLVR", "dev.json", nlvr1Lines, nil, []string{
			"dev-3125-1-0.png 1 2/dev-3125-1-0.png 2/dev-3125-1-0.png", "dev-3125-1-1.png 1 2/dev-3125-1-1.png 2/dev-3125-1-1.png",
			"dev-3125-1-2.png 1 2/dev-3125-1-2.png 2/dev-3125-1-2.png", "dev-3125-1-3.png 1 2/dev-3125-1-3.png 2/dev-3125-1-3.png",
			"dev-3125-1-4.png 1 2/dev-3125-1-4.png 2/dev-3125-1-4.png", "dev-3125-1-5.png 1 2/dev-3125-1-5.png 2/dev-3125-1-5.png"}},
	} {
		dir := t.TempDir()
		for _, p := range c.pictures {
			put(t, dir, p, "")
		}
		f, err := LoadNLVR([]string{put(t, dir, c.file, c.text)}, Options{ImageRoot: dir})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		var got []string
		for i, e := range f.List {
			line := fmt.Sprint(e.ID, " ", e.Label)
			for _, p := range f.Paths[i] {
				rel, err := filepath.Rel(dir, p)
				if err != nil {
					t.Fatal(err)
				}
				line += " " + rel
			}
			got = append(got, line)
		}
		if !slices.Equal(got, c.want) || f.Pictures() != 2 || !slices.Equal(f.Labels(), NLVRClasses) {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

// badNLVR are files that are refused, with what is said of them.
var badNLVR = []struct{ text, want string }{
	{``, "none of 0 rows is a sample with a label"},
	{`[`, "it is not a list of JSON objects"},
	{`[1]`, "entry 0: want an object (got 1)"},
	{`{"a": 1`, "line 1: it is not a JSON object"},
	{`[{"sentence": "a", "sentence": "b"}]`, `key "sentence" is there twice`},
	{`{"label": "True", "identifier": "dev-1-1-1"}`, `1 of 1 rows cannot be used, the first is data: FILE: line 1: field "sentence" is missing or empty`},
	{`{"sentence": 3}`, "it is not a statement"},
	{`{"sentence": "a", "label": "True"}`, `field "identifier" "" is none of NLVR2`},
	{`[{"sentence": "a", "label": "True", "images": ["x.png"]}]`, `entry 0: field "images" must name two pictures, the left one and the right one (got 1)`},
	{`[{"sentence": "a", "label": "True", "images": ["x.png", ""]}]`, `field "images" has an empty name`},
	{`[{"sentence": "a", "label": "maybe", "images": ["x.png", "y.png"]}]`, `entry 0: label "maybe" is neither true nor false`},
	{`[{"sentence": "a", "label": 1, "images": ["x.png", "y.png"]}]`, `label 1 is neither true nor false`},
	{`[{"sentence": "a", "images": ["x.png", "y.png"]}]`, "none of 1 rows is a sample with a label (1 without one)"},
	{nlvr2Train + `{"sentence": "a", "label": "True", "images": ["x.png", "y.png"]}`, "line 2: it is a statement of ALBEF's lists among those of NLVR2"},
}

func TestLoadNLVRRefuses(t *testing.T) {
	for _, c := range badNLVR {
		path := put(t, t.TempDir(), "train.json", c.text)
		if _, err := LoadNLVR([]string{path}, Options{}); err == nil || !strings.Contains(err.Error(), strings.Replace(c.want, "FILE", path, 1)) {
			t.Errorf("%s: %v, want %q", c.text, err, c.want)
		}
	}
	if _, err := LoadNLVR([]string{filepath.Join(t.TempDir(), "none.json")}, Options{}); err == nil || !strings.Contains(err.Error(), "none.json") {
		t.Errorf("a missing file: %v", err)
	}
	path := put(t, t.TempDir(), "train.json", nlvr2Train+`{"sentence": "a", "identifier": "train-1-1-1", "label": null}`+"\n{}\n")
	f, err := LoadNLVR([]string{path}, Options{MaxBadShare: 0.5})
	if err != nil || f.Len() != 1 || !strings.Contains(f.Account().String(), "3 rows: 1 used; left out: without a label: 1, it cannot be used: 1") {
		t.Errorf("%v %+v", err, f)
	}

	// Rows that are no objects count like others that cannot be used.
	for text, want := range map[string]string{
		nlvr2Train + "{\"sentence\": \"a\n7\n{\"label\": 1, \"label\": 2}\n":        `4 rows: 1 used; left out: it cannot be used: 3 (data: FILE: line 2: it is not a JSON object (got {"sentence": "a): want`,
		`[{"sentence": "a", "label": true, "images": ["x.png", "y.png"]}, 7, null]`: "3 rows: 1 used; left out: it cannot be used: 2 (data: FILE: entry 1: want an object (got 7)",
	} {
		path := put(t, t.TempDir(), "train.json", text)
		f, err := LoadNLVR([]string{path}, Options{MaxBadShare: 0.9})
		if err != nil || f.Len() != 1 || !strings.Contains(f.Account().String(), strings.Replace(want, "FILE", path, 1)) {
			t.Errorf("%s: %v %+v", text, err, f)
		}
	}
}

// TestBoxes: of a picture of NLVR the first picture is the two left boxes and the second the right one.
func TestBoxes(t *testing.T) {
	dir := t.TempDir()
	m := image.NewRGBA(image.Rect(0, 0, 400, 100))
	for i, x := range []int{0, 150, 300} {
		for p := range 100 * 100 {
			m.Set(x+p%100, p/100, color.RGBA{uint8(50 + 50*i), 0, 0, 255})
		}
	}
	path := filepath.Join(dir, "2", "dev-3125-1-0.png")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := png.Encode(file, m); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := LoadNLVR([]string{put(t, dir, "dev.json", nlvr1Lines)}, Options{ImageRoot: dir})
	if err != nil {
		t.Fatal(err)
	}
	for k, want := range []struct {
		w, at int
		red   uint8
	}{{250, 0, 50}, {100, 0, 150}} {
		got, err := f.Picture(0, k)
		if err != nil || got.W != want.w || got.H != 100 || got.Pix[3*(99*got.W+want.at)] != want.red {
			t.Errorf("picture %d: %v, %d x %d", k, err, got.W, got.H)
		}
	}
	left, _ := f.Picture(0, 0)
	if left.Pix[3*150] != 100 || left.Pix[3*249] != 100 {
		t.Error("the second box is not in the first picture, behind the bar")
	}
}

func TestNLVRGroup(t *testing.T) {
	for id, want := range map[string]string{"dev-850-2-0": "dev-850--0", "dev-850-3-1": "dev-850--1", "dev-1572-0-3.png": "dev-1572", "7": "said"} {
		if got := NLVRGroup(data.Example{ID: id, Text: "said"}); got != want {
			t.Errorf("%s: %q, want %q", id, got, want)
		}
	}
}

// FuzzLoadNLVR: a file of any bytes is statements that are whole, or an error that names the file.
func FuzzLoadNLVR(f *testing.F) {
	for _, s := range []string{nlvr2Lines, nlvr2Train, albefList, nlvr1Lines} {
		f.Add([]byte(s))
	}
	for _, c := range badNLVR {
		f.Add([]byte(c.text))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		defer budgettest.Within(t, len(b))()
		path := filepath.Join(t.TempDir(), "train.json")
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Skip()
		}
		x, err := LoadNLVR([]string{path}, Options{ImageRoot: "/pictures", MaxBadShare: 1})
		if err != nil {
			if !strings.Contains(err.Error(), path) {
				t.Errorf("%v names no file", err)
			}
			return
		}
		for i, e := range x.List {
			switch {
			case strings.TrimSpace(e.Text) == "" || e.ID == "" || e.Label < 0 || e.Label > 1 || len(x.Paths[i]) != 2:
				t.Errorf("statement %+v of %q", e, x.Paths[i])
			case x.Cut != nil && x.Paths[i][0] != x.Paths[i][1]:
				t.Errorf("pictures %q of one file", x.Paths[i])
			}
			for _, p := range x.Paths[i] {
				if !filepath.IsAbs(p) {
					t.Errorf("picture %q", p)
				}
			}
		}
		if _, err := json.Marshal(x.List); err != nil {
			t.Error(err)
		}
	})
}

// TestLoadNLVRData reads the dev split of NLVR where it is beside the repository.
func TestLoadNLVRData(t *testing.T) {
	const dir = "../../../shared/data/nlvr1"
	file, err := os.Open(filepath.Join(dir, "dev.json"))
	if err != nil {
		t.Skipf("no NLVR beside the repository: %v", err)
	}
	defer file.Close()
	lines := 0
	for s := bufio.NewScanner(file); s.Scan(); {
		lines++
	}
	f, err := LoadNLVR([]string{filepath.Join(dir, "dev.json")}, Options{ImageRoot: dir})
	if err != nil || f.Len() != 6*lines {
		t.Fatalf("%v, %d samples of %d lines", err, f.Len(), lines)
	}
	if err := data.FindExampleFiles(t.Context(), f, 2, nil); err != nil {
		t.Error(err)
	}
	if m, err := f.Picture(17, 1); err != nil || m.W != 100 || m.H != 100 {
		t.Errorf("%v %v", err, m)
	}
}
