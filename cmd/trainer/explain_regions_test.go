package main

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
)

// hostArgs train a tiny host of GSSF over the regions of scenes.
func hostArgs(config, dir string, more ...string) []string {
	args := []string{"train", "--config", filepath.Join("..", "..", "configs", config), "--out", dir, "--quiet", "--max-steps", "4"}
	args = append(args, sets(append([]string{"compute.threads=1", "data.scenes.epoch_samples=32", "data.scenes.val_samples=12", "data.scenes.test_samples=12", "model.image.width=16", "model.text.width=16", "model.head.dim=16",
		"model.text.gru.embedding=8", "train.batch_size=8", "eval.batch_size=12", "train.eval_every_steps=0"}, more...)...)...)
	return args
}

// comparedPair is what the JSON of an explanation has of a comparison by tokens.
type comparedPair struct {
	Row, Regions int
	Split, Name  string
	Folder, Text string
	Files, Notes []string
	Boxes        [][4]float64
	Scores       []struct {
		Name  string
		Score float64
		Image struct {
			Rows, Columns int
			Values        []float64
		}
		Words []struct {
			Text    string
			Value   float64
			Special bool
		}
		Compared *struct {
			Image, Text []string
			Directions  []struct {
				Direction                 string
				Attention, Products, Adds [][]float64
				Chosen                    []int
				Values, Weights           []float64
				Rest                      float64
			}
		}
	}
}

// explainRow explains a row of a split and checks what was written.
func explainRow(t *testing.T, args ...string) (e comparedPair) {
	t.Helper()
	stdout, _ := must(t, exitDone, append([]string{"explain", "--json"}, args...)...)
	check.OK(t, json.Unmarshal([]byte(stdout), &e))
	for _, name := range e.Files {
		text := check.Get(os.ReadFile(filepath.Join(e.Folder, name)))(t)
		if strings.HasSuffix(name, ".html") && (outside.Match(text) || strings.Contains(string(text), "NaN")) {
			t.Errorf("%s names something outside, or no number", name)
		}
	}
	if s := e.Scores[0]; e.Regions > 0 && (s.Image.Rows != 1 || s.Image.Columns != e.Regions || len(s.Image.Values) != e.Regions) {
		t.Errorf("%d regions: %+v", e.Regions, s.Image)
	}
	return e
}

// TestExplainRegions: a pair of a split of a model of regions. What the table has adds up to the score,
// whole, by region and by word.
func TestExplainRegions(t *testing.T) {
	for _, kind := range []string{"scan", "bfan", "max_ave", "max_soft"} {
		dir := filepath.Join(t.TempDir(), "run")
		set := []string{"model.interaction.kind=" + kind}
		if kind != "scan" {
			set = append(set, "model.interaction.direction=both")
		}
		must(t, exitDone, hostArgs("gssf-scan.toml", dir, set...)...)
		e := explainRow(t, "--checkpoint", dir, "--split", "test", "--row", "5")
		if e.Row != 5 || e.Split != "test" || e.Name != "scenes/test/5" || e.Regions < 2 || len(e.Boxes) != e.Regions || !slices.Contains(e.Files, "regions.png") || !slices.Contains(e.Files, "pair-text-to-image.png") {
			t.Errorf("%s: %+v", kind, e)
		}
		s := e.Scores[0]
		if want := 1 + len(set) - 1; s.Compared == nil || len(s.Compared.Directions) != want || len(s.Compared.Image) != e.Regions {
			t.Fatalf("%s: %+v", kind, s.Compared)
		}
		sum, rest, words := 0.0, 0.0, make([]float64, len(s.Compared.Text))
		for _, d := range s.Compared.Directions {
			for q, row := range d.Adds {
				adds, seen := 0.0, 0.0
				for k, v := range row {
					adds += v
					if d.Direction == "image_to_text" {
						words[k] += v
					} else {
						words[q] += v
					}
					if d.Attention != nil {
						seen += d.Attention[q][k]
					}
				}
				if !(math.Abs(adds-d.Weights[q]*d.Values[q]) <= 1e-6) || d.Attention != nil && !(math.Abs(seen-1) <= 1e-6) || d.Products != nil && d.Products[q][d.Chosen[q]] != d.Values[q] {
					t.Errorf("%s %s: query %d adds %v, its term is %v with the weight %v, its attention sums to %v", kind, d.Direction, q, adds, d.Values[q], d.Weights[q], seen)
				}
				sum += adds
			}
			rest += d.Rest
		}
		image, text := rest, rest
		for _, v := range s.Image.Values {
			image += v
		}
		token := 0
		for _, w := range s.Words {
			text += w.Value
			if w.Special && strings.HasPrefix(kind, "max_") {
				continue
			}
			if w.Text != s.Compared.Text[token] || !(math.Abs(w.Value-words[token]) <= 1e-6) {
				t.Errorf("%s: the word %q adds %v, its token %q %v", kind, w.Text, w.Value, s.Compared.Text[token], words[token])
			}
			token++
		}
		for what, got := range map[string]float64{"terms": sum + rest, "regions": image, "words": text} {
			if !(math.Abs(got-s.Score) <= 1e-5) {
				t.Errorf("%s: %s sum to %.7f, the score is %.7f", kind, what, got, s.Score)
			}
		}
	}
}

// TestExplainRegionsFiles: pairs of files of regions, with boxes on an empty canvas and without boxes, by a
// text of one's own, by a model that compares one vector, and what is refused.
func TestExplainRegionsFiles(t *testing.T) {
	dir := t.TempDir()
	tower, files, run := filepath.Join(dir, "tower"), filepath.Join(dir, "files"), filepath.Join(dir, "run")
	must(t, exitDone, append(append([]string{"train"}, smallModel...), "--max-steps", "1", "--out", tower, "--quiet", "--set", "train.eval_every_steps=0", "--set", "data.scenes.test_samples=15", "--set", "data.scenes.val_samples=12")...)
	must(t, exitDone, "regions", "--checkpoint", tower, "--split", "test", "--out", files)
	must(t, exitDone, hostArgs("gssf-vsrn.toml", run, "data.regions.source=files", "data.root="+files, "data.regions.train=test", "data.regions.val=", "data.regions.boxes={split}_boxes.npy")...)

	e := explainRow(t, "--checkpoint", run, "--row", "14")
	if e.Regions != 4 || len(e.Boxes) != 4 || e.Boxes[3] != [4]float64{.5, .5, 1, 1} || len(e.Notes) != 1 || !strings.Contains(e.Notes[0], "no picture") || slices.Contains(e.Files, "image.png") || e.Scores[0].Compared != nil {
		t.Errorf("%+v", e)
	}
	e = explainRow(t, "--checkpoint", run, "--row", "0", "--text", "a big qqq circle", "--set", "data.regions.boxes=", "--set", "data.regions.pictures=none", "--formula", "gradcam")
	if e.Boxes != nil || e.Text != "a big qqq circle" || len(e.Notes) != 2 || !strings.Contains(strings.Join(e.Notes, "|"), "lacks 1 word") {
		t.Errorf("%+v", e)
	}
	stdout, _ := must(t, exitDone, "explain", "--checkpoint", run, "--row", "0", "--text", "a big circle")
	contains(t, stdout, "pair ", "regions ", "circle ")
	stdout, _ = must(t, exitDone, "explain", "--checkpoint", run, "--split", "test", "--json")
	var c struct {
		Pairs, Rows int
		Patches     []float64
		Regions     []struct{ Mean float64 }
	}
	if err := json.Unmarshal([]byte(stdout), &c); err != nil || c.Pairs != 15 || len(c.Regions) != 4 || c.Patches != nil || c.Rows != 0 {
		t.Errorf("%v: %s", err, stdout)
	}
	for _, x := range []struct {
		args string
		want string
	}{
		{"--row 15", "--row must be below 15: the split test has 15 images (got 15)"},
		{"--row -1", "--row must be at least 0 (got -1)"},
		{"--row 0 --text qqq", `knows no word of the text "qqq"`},
		{"--row 0 --image a.png", "--row and --image do not go together"},
		{"--row 0 --pairs 3", "--row and --pairs do not go together"},
		{"--image a.png --text a", "name a row of a split with --split and --row"},
		{"--text a", "needs --image and --text, --row, or --split"},
		{"--row 0 --split val", "data.regions.val: must name the split"},
		{"--row 0 --formula terms", "--formula terms is of models with model.interaction"},
		{"--row 0 --block 9", "there is no block of the image tower 9: the model has 5"},
	} {
		fails(t, exitUsage, append([]string{"explain", "--checkpoint", run}, strings.Fields(x.args)...), x.want)
	}
}

// TestExplainPatches: a pair of an image file by a model that compares patches with words, which eval gives
// the same score, by terms and by gradients.
func TestExplainPatches(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	must(t, exitDone, interactionArgs(dir, "model.system=clip", "model.interaction.kind=max_sum", "objective.hinge.weight=1")...)
	image := picture(t, 40, 30)
	e := explainRow(t, "--checkpoint", dir, "--image", image, "--text", "a big red circle")
	s := e.Scores[0]
	if s.Compared == nil || len(s.Compared.Image) != 4 || len(s.Compared.Text) != 4 || s.Compared.Text[2] != "red" || s.Image.Rows != 2 || len(s.Compared.Directions) != 1 {
		t.Errorf("%+v", s)
	}
	g := explainRow(t, "--checkpoint", dir, "--image", image, "--text", "a big red circle", "--formula", "elementwise")
	for i, v := range g.Scores[0].Image.Values { // a sum of maxima is linear in the tokens of an image
		if !(math.Abs(v-s.Image.Values[i]) <= 1e-5) {
			t.Errorf("patch %d: %v by its gradient, %v by its terms", i, v, s.Image.Values[i])
		}
	}
	must(t, exitDone, "explain", "--checkpoint", dir, "--image", image, "--text", "a big red circle", "--block", "0")
	if e = explainRow(t, "--checkpoint", dir, "--split", "val", "--row", "2"); e.Name != "scenes/val/2" || e.Text == "" {
		t.Errorf("%+v", e)
	}
	stdout, _ := must(t, exitDone, "explain", "--checkpoint", dir, "--split", "val", "--pairs", "3")
	contains(t, stdout, "3 right pairs of val: mean score", "(max_sum)")
	fails(t, exitUsage, []string{"explain", "--checkpoint", dir, "--image", image, "--text", "a", "--formula", "terms", "--block", "0"}, "leave out --block and --layer")
	fails(t, exitUsage, []string{"explain", "--checkpoint", dir, "--image", image, "--text", "a", "--fusion", "9"}, "there is no fusion layer 9: the model has 0")
	fails(t, exitUsage, []string{"explain", "--checkpoint", dir, "--row", "12", "--split", "val"}, "--row must be below 12")
	fails(t, exitUsage, []string{"explain", "--checkpoint", dir, "--row", "1", "--split", "nothing"}, `there is no split "nothing" to read`)
}
