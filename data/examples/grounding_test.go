package examples

import (
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/internal/budget/budgettest"
	"github.com/geoalign/geoalign/internal/filetest"
)

// referFiles writes the files of RefCOCO+ in both forms: three pictures, four objects.
func referFiles(t *testing.T) (folder string, f GroundingFiles) {
	t.Helper()
	folder = t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(folder, name)
		filetest.Write(t, path, text)
		return path
	}
	f.Refs = write("refs(unc).p", `(lp0
(dS'ref_id'
I7
sS'ann_id'
I70
sS'image_id'
I1
sS'split'
S'val'
sS'sentences'
(l(dS'sent'
S'left cup'
sS'raw'
S'LEFT cup!'
sa(dS'sent'
S'the cup that is not right'
sasa(dS'ref_id'
I8
sS'ann_id'
I80
sS'image_id'
I2
sS'split'
S'testA'
sS'sentences'
(l(dS'sent'
S'man'
sasa(dS'ref_id'
I9
sS'ann_id'
I90
sS'image_id'
I2
sS'split'
S'testB'
sS'sentences'
(l(dS'sent'
S'dog'
sasa(dS'ref_id'
I10
sS'ann_id'
I70
sS'image_id'
I1
sS'split'
S'train'
sS'sentences'
(l(dS'sent'
S'cup'
sasa.`)
	f.Instances = write("instances.json", `{"images": [{"id": 1, "file_name": "COCO_train2014_000000000001.jpg", "width": 100, "height": 80}, {"id": 2, "file_name": "b_2.jpg", "width": 50, "height": 50}],
		"annotations": [{"id": 70, "bbox": [10, 10, 20, 20]}, {"id": 80, "bbox": [40, 40, 30, 5.5]}, {"id": 90, "bbox": [60, 60, 5, 5]}]}`)
	f.Detections = write("dets.json", `{"1": [[1, 2, 3, 4, 18, 0.9], [5, 6, 7, 8], [1, 1, 0, 4], ["x"]]}`)
	write("val.json", `[{"text": "left cup", "image": "train2014/COCO_train2014_000000000001.jpg", "ref_id": 7}, {"text": "cup", "image": "a.jpg", "ref_id": 12}, {"text": "dog", "image": "b_2.jpg", "ref_id": 8}]`)
	return folder, f
}

// TestLoadGroundingRefer reads refer's pickle of each split.
func TestLoadGroundingRefer(t *testing.T) {
	folder, f := referFiles(t)
	o := Options{ImageRoot: "pics", MaxBadShare: 0.5}
	x, err := LoadGrounding([]string{f.Refs}, "val", f, o)
	if err != nil {
		t.Fatal(err)
	}
	box := &data.Rect{X: 10, Y: 10, W: 20, H: 20}
	dets := []data.Rect{{X: 1, Y: 2, W: 3, H: 4}, {X: 5, Y: 6, W: 7, H: 8}}
	want := []data.Example{
		{ID: "7", Text: "left cup", Label: data.UnknownLabel, Target: box, Proposals: dets},
		{ID: "7", Text: "the cup that is not right", Label: data.UnknownLabel, Target: box, Proposals: dets},
	}
	if !reflect.DeepEqual(x.List, want) || x.Paths[0][0] != filepath.Join("pics", "COCO_train2014_000000000001.jpg") {
		t.Errorf("%+v\n%v", x.List, x.Paths)
	}
	if got := x.Account().String(); !strings.HasSuffix(got, "2 proposals: 0 used; left out: a box without an area: 2") {
		t.Errorf("notes %q", got)
	}
	if x, err = LoadGrounding([]string{f.Refs}, "test", f, o); err != nil {
		t.Fatal(err)
	}
	want = []data.Example{{ID: "8", Text: "man", Kind: "testA", Label: data.UnknownLabel, Target: &data.Rect{X: 40, Y: 40, W: 10, H: 5.5}}}
	notes := x.Account().String()
	if !reflect.DeepEqual(x.List, want) || !strings.Contains(notes, "it cannot be used: 1") || !strings.Contains(notes, "lies outside of the picture of 50 x 50") ||
		!strings.Contains(notes, "the target reaches out of its picture and is clipped: 1") || !strings.Contains(notes, "without boxes to look in: it is looked for in sliding ones: 1") {
		t.Errorf("%+v\n%q", x.List, notes)
	}
	if x, err = LoadGrounding([]string{f.Refs}, "train", f, o); err != nil || x.Len() != 1 || x.List[0].Text != "cup" {
		t.Errorf("train: %+v, %v", x, err)
	}
	for name, c := range map[string]struct {
		paths []string
		f     GroundingFiles
		o     Options
		want  string
	}{
		"without instances": {[]string{f.Refs}, GroundingFiles{}, o, "data.grounding.instances"},
		"too many bad":      {[]string{f.Refs}, f, Options{}, "1 of 2 rows cannot be used"},
		"no pickle":         {[]string{f.Refs}, GroundingFiles{Refs: f.Instances, Instances: f.Instances}, o, "not a pickle of refer"},
		"no instances":      {[]string{f.Refs}, GroundingFiles{Instances: f.Detections}, o, `"images" is missing`},
		"no detections":     {[]string{f.Refs}, GroundingFiles{Detections: filepath.Join(folder, "val.json")}, o, "not an object"},
		"missing":           {[]string{filepath.Join(folder, "no.json")}, f, o, "no.json"},
	} {
		if _, err := LoadGrounding(c.paths, "test", c.f, c.o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// TestLoadGroundingALBEF reads ALBEF's lists, whose targets refer's files have.
func TestLoadGroundingALBEF(t *testing.T) {
	folder, f := referFiles(t)
	list := []string{filepath.Join(folder, "val.json")}
	x, err := LoadGrounding(list, "val", f, Options{ImageRoot: folder, MaxBadShare: 0.5})
	if err != nil {
		t.Fatal(err)
	}
	notes := x.Account().String()
	if x.Len() != 2 || *x.List[0].Target != (data.Rect{X: 10, Y: 10, W: 20, H: 20}) || len(x.List[0].Proposals) != 2 || x.List[0].ID != "7" || x.List[0].Kind != "" ||
		x.List[1].Kind != "testA" || x.List[1].Proposals != nil || !strings.Contains(notes, "without a label: 1") {
		t.Errorf("%+v\n%q", x.List, notes)
	}
	// Of training no box is used.
	if x, err = LoadGrounding(list, "train", GroundingFiles{}, Options{}); err != nil || x.Len() != 3 || x.List[0].Target != nil {
		t.Errorf("%+v, %v", x, err)
	}
}

// TestLoadGroundingOwn reads a list with boxes, and what is wrong with rows.
func TestLoadGroundingOwn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "own.json")
	load := func(text string) (*data.FileExamples, error) {
		filetest.Write(t, path, text)
		return LoadGrounding([]string{path}, "test", GroundingFiles{}, Options{MaxBadShare: 1})
	}
	x, err := load(`[{"image": "a.jpg", "text": "cup", "bbox": [1, 2, 3, 4], "proposals": [[0, 0, 5, 5], [1, 1, -2, 3]], "kind": "cups"}]`)
	if err != nil {
		t.Fatal(err)
	}
	want := data.Example{ID: "0", Text: "cup", Kind: "cups", Label: data.UnknownLabel, Target: &data.Rect{X: 1, Y: 2, W: 3, H: 4}, Proposals: []data.Rect{{W: 5, H: 5}}}
	if !reflect.DeepEqual(x.List[0], want) || x.Account().Whole() {
		t.Errorf("%+v %v", x.List, x.Account())
	}
	const good = `{"image": "a.jpg", "text": "cup", "bbox": [1, 2, 3, 4]}`
	for row, want := range map[string]string{
		`{"text": "cup", "bbox": [1, 2, 3, 4]}`:                                `"image" is missing`,
		`{"image": "a.jpg", "text": " ", "bbox": [1, 2, 3, 4]}`:                `"text" is missing`,
		`{"image": "a.jpg", "text": "cup", "bbox": [1, 2, 3]}`:                 "got 3 numbers",
		`{"image": "a.jpg", "text": "cup", "bbox": [1, 2, 0, 4]}`:              "above 0",
		`{"image": "a.jpg", "text": "cup", "bbox": [1e300, 2, 1, 4]}`:          "in pixels",
		`{"image": "a.jpg", "text": "cup", "bbox": "1,2,3,4"}`:                 "bbox",
		`{"image": "a.jpg", "text": "cup", "bbox": [null, 2, 3, 4]}`:           "list with null",
		`{"image": "a.jpg", "text": "cup", "proposals": [[1, null, 3, 4]]}`:    "list with null",
		`{"image": "a.jpg", "text": "cup", "text": "x", "bbox": [1, 2, 3, 4]}`: "twice",
		`{"image": "a.jpg", "text": "cup"}`:                                    "without a label: 1",
	} {
		x, err := load("[" + good + "," + row + "]")
		if err != nil || x.Len() != 1 || !strings.Contains(x.Account().String(), want) {
			t.Errorf("%s: %+v, %v, want %q", row, x, err, want)
		}
	}
	for _, text := range []string{"", "{}", "[]", "[" + good, `[{"image": "a.jpg", "text": "cup"}]`} {
		if _, err := load(text); err == nil {
			t.Errorf("%q is read", text)
		}
	}
}

// FuzzLoadGrounding never crashes, and boxes that it gives have an area.
func FuzzLoadGrounding(f *testing.F) {
	f.Add([]byte(`[{"image": "a_1.jpg", "text": "cup", "bbox": [1, 2, 3, 4], "proposals": [[0, 0, 5, 5]], "ref_id": 7}]`), []byte("(lp0\n(dS'ref_id'\nI7\nsS'ann_id'\nI70\nsS'image_id'\nI1\nsS'split'\nS'val'\nsS'sentences'\n(l(dS'sent'\nS'x'\nsasa."),
		[]byte(`{"images": [{"id": 1, "file_name": "a_1.jpg", "width": 9, "height": 9}], "annotations": [{"id": 70, "bbox": [1, 1, 2, 2]}]}`), []byte(`{"1": [[1, 2, 3, 4]]}`))
	f.Fuzz(func(t *testing.T, list, pickle, inst, dets []byte) {
		defer budgettest.Within(t, len(list)+len(pickle)+len(inst)+len(dets))()
		refs, _ := parseRefs("refs.p", pickle)
		objects, _ := parseInstances("instances.json", inst)
		boxes, _ := parseDetections("dets.json", dets)
		for _, split := range []string{"train", "val"} {
			g := &grounding{split: split, refs: map[int64]ref{}, instances: objects, detections: boxes, out: &data.FileExamples{}}
			for _, r := range refs {
				g.refs[r.id] = r
			}
			_ = g.addList("list.json", list)
			g.addRefs("refs.p", refs)
			for _, e := range g.out.List {
				if e.Target == nil && split == "val" || e.Target != nil && !(e.Target.W > 0 && e.Target.H > 0) || strings.TrimSpace(e.Text) == "" {
					t.Fatalf("%+v", e)
				}
				for _, p := range e.Proposals {
					if !(p.W > 0 && p.H > 0) {
						t.Fatalf("%+v", e)
					}
				}
			}
		}
	})
}
