package main

import (
	"bytes"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data/source"
	"github.com/geoalign/geoalign/data/transform"
	"github.com/geoalign/geoalign/internal/check"
)

// twoCaptions writes a captions data set with one good and one missing image and
// returns the arguments that select it.
func twoCaptions(t *testing.T) []string {
	t.Helper()
	dir := t.TempDir()
	code, _, stderr := trainer(t, "data", "preview", "--images", "1", "--set", "model.image.size=32", "--out", filepath.Join(dir, "a.png"))
	if code != exitDone {
		t.Fatalf("code %d: %s", code, stderr)
	}
	list := `[{"image": "a.png", "caption": ["a sheet", "a sheet"], "image_id": 1}, {"image": "b.png", "caption": "missing", "image_id": 2}]`
	check.OK(t, os.WriteFile(filepath.Join(dir, "list.json"), []byte(list), 0o644))
	return []string{"--set", "data.kind=captions", "--set", "data.root=" + dir, "--set", "data.captions.train_files=list.json",
		"--set", "data.captions.val_files=list.json", "--set", "model.image.size=32"}
}

func TestPreviewScenes(t *testing.T) {
	for _, split := range []string{"train", "val", "test"} {
		file := filepath.Join(t.TempDir(), "sheet.png")
		code, stdout, stderr := trainer(t, "data", "preview", "--set", "model.image.size=32", "--set", "data.scenes.val_samples=20",
			"--set", "data.scenes.test_samples=20", "--split", split, "--images", "4", "--columns", "2", "--out", file, "--json")
		m := parseJSON(t, stdout)
		if code != exitDone || stderr != "" || m["images"] != 4.0 || m["left_out"] != 0.0 {
			t.Fatalf("%s: code %d, stderr %q, stdout %s", split, code, stderr, stdout)
		}
		f := check.Get(os.Open(file))(t)
		defer f.Close()
		img := check.Get(png.Decode(f))(t)
		if size := img.Bounds(); float64(size.Dx()) != m["width"] || float64(size.Dy()) != m["height"] || size.Dx() < 64 {
			t.Errorf("%s: %v, want %v x %v", split, size, m["width"], m["height"])
		}
	}
}

func TestPreviewLeavesOutBadImages(t *testing.T) {
	for _, split := range []string{"train", "val"} {
		file := filepath.Join(t.TempDir(), "sheet.png")
		code, stdout, stderr := trainer(t, append([]string{"data", "preview", "--split", split, "--out", file}, twoCaptions(t)...)...)
		if code != exitDone || !strings.Contains(stdout, "1 image of the "+split+" split") || !strings.Contains(stderr, "b.png") {
			t.Errorf("%s: code %d, stdout %q, stderr %q", split, code, stdout, stderr)
		}
	}
}

// TestPreviewShowsEvaluation: what is not trained on is drawn as an evaluation sees it,
// whatever the shape of the file, with its first cleaned caption.
func TestPreviewShowsEvaluation(t *testing.T) {
	set := twoCaptions(t) // a.png is not a square
	cfg := check.Get(config.Load("", append(overridesOf(set), "eval.folds=3")))(t)
	n := 5
	next, err := samples(t.Context(), cfg, "val", &n, source.Options{})
	if err != nil || n != 2 {
		t.Fatal(n, err)
	}
	views, captions, err := next(0)
	if err != nil || len(views) != 1 || !slices.Equal(captions, []string{"a sheet"}) {
		t.Fatal(len(views), captions, err)
	}
	cfg.Eval.Folds = 0
	seen := check.Get(source.Eval(t.Context(), cfg.Source(), "val", source.Options{}))(t)
	got, want := make([]float32, 3*32*32), make([]float32, 3*32*32)
	transform.Normalize(views[0], got)
	if err := seen.LoadImage(0, want); err != nil || views[0].W != 32 || views[0].H != 32 || !slices.Equal(got, want) {
		t.Errorf("%v: an image of %dx%d that evaluation does not see", err, views[0].W, views[0].H)
	}
}

// overridesOf returns the values of --set in a command line.
func overridesOf(args []string) (list []string) {
	for i, a := range args {
		if a == "--set" {
			list = append(list, args[i+1])
		}
	}
	return list
}

// TestPreviewFormats: the name of the file says which format it gets.
func TestPreviewFormats(t *testing.T) {
	for name, format := range map[string]string{"a.png": "png", "a.jpg": "jpeg", "a.JPEG": "jpeg"} {
		file := filepath.Join(t.TempDir(), name)
		must(t, exitDone, "data", "preview", "--set", "model.image.size=32", "--images", "1", "--out", file)
		b := check.Get(os.ReadFile(file))(t)
		if _, got, err := image.DecodeConfig(bytes.NewReader(b)); err != nil || got != format {
			t.Errorf("%s is a %s, want %s (%v)", name, got, format, err)
		}
	}
}

func TestPreviewFailures(t *testing.T) {
	set := twoCaptions(t)
	rows := []struct {
		args []string
		code int
		want string
	}{
		{[]string{"--split", "dev"}, exitUsage, `--split must be one of train, val, test (got "dev")`},
		{[]string{"--images", "0"}, exitUsage, "--images and --columns must be > 0 (got 0 and 6)"},
		{[]string{"--out", "sheet.gif"}, exitUsage, `--out must end in .png or .jpg (got "sheet.gif")`},
		{[]string{"--out", "sheet"}, exitUsage, `--out must end in .png or .jpg (got "sheet")`},
		{append([]string{"--split", "test"}, set...), exitUsage, "data.captions.test_files: must name at least one file"},
		{append([]string{"--set", "data.captions.train_files=none.json"}, set[:4]...), exitFailed, "none.json"},
		{[]string{"--set", "model.image.size=32", "--images", "1", "--out", "/nowhere/at/all.png"}, exitFailed, "/nowhere/at"},
	}
	for _, r := range rows {
		code, _, stderr := trainer(t, append([]string{"data", "preview"}, r.args...)...)
		if code != r.code || !strings.Contains(stderr, r.want) {
			t.Errorf("%q: code %d, stderr %q, want %q", r.args, code, stderr, r.want)
		}
	}
}

func TestStats(t *testing.T) {
	code, stdout, stderr := trainer(t, append([]string{"data", "stats", "--json", "--set", "data.vocab_size=64"}, twoCaptions(t)...)...)
	m := parseJSON(t, stdout)
	splits := m["splits"].([]any)
	if code != exitDone || stderr != "" || len(splits) != 2 {
		t.Fatalf("code %d, stderr %q, stdout %s", code, stderr, stdout)
	}
	first := splits[0].(map[string]any)
	for key, want := range map[string]any{"split": "train", "images": 2.0, "captions": 3.0, "distinct_words": 3.0, "captions_cut": 0.0} {
		if first[key] != want {
			t.Errorf("%s: got %v, want %v", key, first[key], want)
		}
	}
	code, stdout, _ = trainer(t, "data", "stats", "--set", "model.image.size=32", "--set", "data.scenes.val_samples=20", "--set", "data.scenes.test_samples=20")
	for _, want := range []string{"scenes", "val", "test", "images", "tokenizer: WordPiece, template albef, "} {
		if code != exitDone || !strings.Contains(stdout, want) {
			t.Errorf("code %d: %q is missing in %s", code, want, stdout)
		}
	}
}

// "a sheet" is seen twice per split and becomes three tokens with [CLS]; "missing"
// is too rare to be joined and has more.
func TestStatsCountsCutCaptions(t *testing.T) {
	_, stdout, _ := trainer(t, append([]string{"data", "stats", "--json", "--set", "data.vocab_size=64", "--set", "data.tokens=3", "--split", "val"}, twoCaptions(t)...)...)
	first := parseJSON(t, stdout)["splits"].([]any)[0].(map[string]any)
	if first["split"] != "val" || first["captions_cut"] != 1.0 {
		t.Errorf("got %v", first)
	}
}

func TestCheck(t *testing.T) {
	set := append([]string{"--set", "data.vocab_size=64"}, twoCaptions(t)...)
	code, stdout, stderr := trainer(t, append([]string{"data", "check"}, set...)...)
	for _, want := range []string{"train: 2 images", "! missing image: 1", "b.png", "! leak: 2", "  repeated caption: 1", "val: 2 images"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("%q is missing in %s", want, stdout)
		}
	}
	if code != exitFailed || !strings.Contains(stderr, "the data needs attention") {
		t.Errorf("code %d, stderr %q", code, stderr)
	}

	code, stdout, _ = trainer(t, append([]string{"data", "check", "--json", "--split", "train"}, set...)...)
	m := parseJSON(t, stdout)
	if code != exitFailed || m["ok"] != false || len(m["splits"].([]any)) != 1 {
		t.Errorf("code %d, stdout %s", code, stdout)
	}

	code, stdout, stderr = trainer(t, append([]string{"data", "check", "--json", "--split", "train", "--captions-only"}, set...)...)
	m = parseJSON(t, stdout)
	if code != exitDone || m["ok"] != true || stderr != "" {
		t.Errorf("captions only: code %d, stdout %s, stderr %q", code, stdout, stderr)
	}
}

func TestCheckScenesIsClean(t *testing.T) {
	code, stdout, stderr := trainer(t, "data", "check", "--set", "model.image.size=32", "--set", "data.scenes.val_samples=20", "--set", "data.scenes.test_samples=20")
	if code != exitDone || !strings.Contains(stdout, "val: 20 images, 0 findings") {
		t.Errorf("code %d, stdout %s, stderr %q", code, stdout, stderr)
	}
	code, _, stderr = trainer(t, "data", "check", "--split", "train")
	if code != exitUsage || !strings.Contains(stderr, "endless") {
		t.Errorf("train: code %d, stderr %q", code, stderr)
	}
}

// With two views every image takes two tiles of a row, whatever the number of columns.
func TestPreviewTwoViews(t *testing.T) {
	width := map[string]any{}
	for _, views := range []string{"1", "2"} {
		file := filepath.Join(t.TempDir(), "sheet.png")
		code, stdout, stderr := trainer(t, "data", "preview", "--set", "model.image.size=32", "--set", "data.views="+views,
			"--set", "data.color_jitter=0.8", "--images", "3", "--columns", "3", "--out", file, "--json")
		m := parseJSON(t, stdout)
		if code != exitDone || stderr != "" || m["images"] != 3.0 {
			t.Fatalf("%s views: code %d, stderr %q, stdout %s", views, code, stderr, stdout)
		}
		width[views] = m["width"]
	}
	if width["1"] != 640.0 || width["2"] != 848.0 { // 3 and 4 tiles of 192 and their gaps of 16
		t.Errorf("widths %v, want 640 and 848", width)
	}
}

// A folder of classes needs no file lists, and its classes are counted.
func TestDataOfFolder(t *testing.T) {
	dir := t.TempDir()
	sheet := filepath.Join(dir, "sheet.png")
	if code, _, stderr := trainer(t, "data", "preview", "--images", "1", "--set", "model.image.size=32", "--out", sheet); code != exitDone {
		t.Fatal(stderr)
	}
	b := check.Get(os.ReadFile(sheet))(t)
	for _, name := range []string{"train/cat/1.png", "train/dog/1.png", "val/dog/2.png"} {
		path := filepath.Join(dir, "set", name)
		check.OK(t, os.MkdirAll(filepath.Dir(path), 0o755))
		check.OK(t, os.WriteFile(path, b, 0o644))
	}
	args := []string{"--set", "data.kind=folder", "--set", "data.root=" + filepath.Join(dir, "set"), "--set", "data.vocab_size=64", "--set", "model.image.size=32"}
	code, stdout, stderr := trainer(t, append([]string{"data", "stats", "--json"}, args...)...)
	if code != exitDone {
		t.Fatalf("code %d: %s", code, stderr)
	}
	splits := parseJSON(t, stdout)["splits"].([]any)
	if len(splits) != 2 || splits[0].(map[string]any)["classes"] != 2.0 || splits[1].(map[string]any)["images"] != 1.0 {
		t.Errorf("got %s", stdout)
	}
	code, stdout, stderr = trainer(t, append([]string{"data", "check"}, args...)...)
	if code != exitFailed || !strings.Contains(stdout, "leak") || !strings.Contains(stdout, "duplicate image") {
		t.Errorf("code %d, stdout %q, stderr %q", code, stdout, stderr)
	}
	code, _, stderr = trainer(t, append([]string{"data", "stats", "--split", "test"}, args...)...)
	if code != exitFailed || !strings.Contains(stderr, "data.root") {
		t.Errorf("code %d, stderr %q", code, stderr)
	}
}

// TestPreviewTwoPictures: both pictures of a statement stand side by side, in training and evaluation, with its text
// and its class.
func TestPreviewTwoPictures(t *testing.T) {
	sets := []string{"data.kind=nlvr", "data.examples.source=scenes", "model.image.size=32", "data.crop_scale_min=1", "data.flip=false", "data.randaugment_ops=0"}
	cfg := check.Get(config.Load("../../configs/nlvr.toml", sets))(t)
	for _, split := range []string{"train", "val"} {
		n := 4
		next, err := samples(t.Context(), cfg, split, &n, source.Options{})
		if err != nil || n != 4 {
			t.Fatal(split, n, err)
		}
		x := check.Get(source.OpenExamples(t.Context(), cfg.Source(), split, source.Options{}))(t)
		classes := map[string]bool{}
		for i := range n {
			shown, captions, err := next(i)
			e := x.Example(i)
			if err != nil || len(shown) != 2 || !slices.Equal(captions, []string{e.Text + ": " + x.Labels()[e.Label], "(right picture)"}) {
				t.Fatalf("%s: %d pictures, %q (%v)", split, len(shown), captions, err)
			}
			classes[x.Labels()[e.Label]] = true
			for k, m := range shown {
				want := check.Get(x.Picture(i, k))(t)
				if got := m.NRGBA(); got.Bounds() != want.NRGBA().Bounds() || !near(got.Pix, want.NRGBA().Pix) {
					t.Errorf("%s: picture %d of statement %d is another one", split, k, i)
				}
			}
		}
		if len(classes) != 2 {
			t.Errorf("%s: classes %v", split, classes)
		}
	}
	var args []string
	for _, s := range sets {
		args = append(args, "--set", s)
	}
	file := filepath.Join(t.TempDir(), "sheet.png")
	stdout, _ := must(t, exitDone, append([]string{"data", "preview", "--config", "../../configs/nlvr.toml", "--split", "val", "--images", "3", "--columns", "3", "--out", file, "--json"}, args...)...)
	if m := parseJSON(t, stdout); m["images"] != 3.0 || m["width"] != 848.0 { // four columns
		t.Errorf("%s", stdout)
	}
}

// near says whether values of pixels differ by one at most.
func near(a, b []uint8) bool {
	for i, v := range a {
		if d := int(v) - int(b[i]); d < -1 || d > 1 {
			return false
		}
	}
	return len(a) == len(b)
}
