package main

import (
	"encoding/json"
	"image"
	"image/color"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/words"
)

// picture writes an image of noise without chance.
func picture(t *testing.T, w, h int) string {
	t.Helper()
	m := image.NewRGBA(image.Rect(0, 0, w, h))
	for i := range w * h {
		m.SetRGBA(i%w, i/w, color.RGBA{uint8(7 * i), uint8(i / 3), uint8(i * i), 255})
	}
	path := filepath.Join(t.TempDir(), "image.png")
	f := check.Get(os.Create(path))(t)
	defer f.Close()
	check.OK(t, png.Encode(f, m))
	return path
}

// explained is the JSON of an explanation.
type explained struct {
	Folder, System, Text, Formula string
	Said, Truth                   string
	Block, Layer, Fusion          int
	Notes, Files                  []string
	Tokens                        []float64
	Scores                        []struct {
		Name        string
		Score       float64
		Image, With *struct {
			Rows, Columns int
			Values        []float64
		}
		Words []struct {
			Text         string
			Value, Share float64
			Special      bool
		}
	}
}

// outside finds what a page would load that is not within it.
var outside = regexp.MustCompile(`https?://|src="[^d]|@import|<script|<link`)

// explainJSON explains and checks what was written.
func explainJSON(t *testing.T, args ...string) explained {
	t.Helper()
	stdout, _ := must(t, exitDone, append([]string{"explain", "--json"}, args...)...)
	var e explained
	check.OK(t, json.Unmarshal([]byte(stdout), &e))
	for _, name := range e.Files {
		text := check.Get(os.ReadFile(filepath.Join(e.Folder, name)))(t)
		if strings.HasSuffix(name, ".html") {
			if m := outside.FindString(string(text)); m != "" || !strings.Contains(string(text), "data:image/png;base64,") {
				t.Errorf("%s names something outside, or has no picture: %q", name, m)
			}
		} else if _, err := png.Decode(strings.NewReader(string(text))); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, s := range e.Scores {
		if s.Image == nil || len(s.Image.Values) != s.Image.Rows*s.Image.Columns || math.IsNaN(s.Score) {
			t.Errorf("%s: %+v", s.Name, s)
		}
	}
	return e
}

// TestExplain: a pair of a system with fusion layers, whatever the sizes of the image and the text.
func TestExplain(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	must(t, exitDone, tinyArgs(dir)...)
	out := filepath.Join(t.TempDir(), "why")
	for _, size := range [][2]int{{16, 16}, {1, 1}, {500, 3}, {37, 211}} {
		e := explainJSON(t, "--checkpoint", dir, "--image", picture(t, size[0], size[1]), "--text", "a big red circle", "--out", out)
		if len(e.Scores) != 2 || e.Scores[0].Name != "pair" || e.Scores[1].Name != "match" || e.Block != 1 || e.Layer != 1 || e.Fusion != 0 || e.Formula != "channels" {
			t.Fatalf("%v: %+v", size, e)
		}
		sum := 0.0
		for _, s := range e.Scores {
			if s.Image.Rows != 2 || len(s.Words) != 5 || s.Words[0].Text != "[CLS]" || !s.Words[0].Special || s.Words[3].Text != "red" {
				t.Errorf("%v %s: %+v", size, s.Name, s)
			}
			for _, w := range s.Words {
				sum += w.Share
			}
		}
		if !(math.Abs(sum-2) <= 1e-6) {
			t.Errorf("shares of two scores sum to %v", sum)
		}
	}
	image := picture(t, 20, 30)
	e := explainJSON(t, "--checkpoint", dir, "--image", image, "--out", out, "--text", "a Zebra-like thing, "+strings.Repeat("red ", 40))
	if notes := strings.Join(e.Notes, "|"); !strings.Contains(notes, "first 30 words") || !strings.Contains(notes, "the model reads 16") || !strings.Contains(notes, "The vocabulary lacks") {
		t.Errorf("notes %q", e.Notes)
	}
	check.OK(t, os.WriteFile(filepath.Join(out, "own.png"), []byte("of somebody"), 0o666))
	e = explainJSON(t, "--checkpoint", dir, "--image", image, "--text", "red", "--out", out, "--block", "0", "--layer", "0", "--fusion", "1", "--formula", "elementwise")
	if e.Block != 0 || e.Layer != 0 || e.Fusion != 1 || e.Formula != "elementwise" || e.Scores[1].Words != nil {
		t.Errorf("%+v", e)
	}
	there, err := os.ReadDir(out)
	if err != nil || len(there) != len(e.Files)+1 { // none of the longer texts before
		t.Errorf("%d files of %v and one of somebody (%v): %v", len(there), e.Files, err, there)
	}
	stdout, _ := must(t, exitDone, "explain", "--checkpoint", dir, "--image", image, "--text", "a red circle")
	contains(t, stdout, "pair ", "match ", "red ", "page: "+filepath.Join(dir, "explain", "explain.html"))

	stdout, _ = must(t, exitDone, "explain", "--checkpoint", dir, "--split", "val", "--pairs", "5", "--json")
	var c struct {
		Pairs, Rows   int
		Patches       []float64
		Words, Places []struct {
			Name string
			Mean float64
		}
		Folder string
	}
	if err := json.Unmarshal([]byte(stdout), &c); err != nil || c.Pairs != 5 || c.Rows != 2 || len(c.Patches) != 4 || len(c.Words) < 3 || len(c.Places) < 3 {
		t.Errorf("%v: %s", err, stdout)
	}
	sum := 0.0
	for _, v := range c.Patches {
		sum += v
	}
	if !(math.Abs(sum-1) <= 1e-6) || c.Words[0].Mean < c.Words[1].Mean {
		t.Errorf("patches %v, words %v", c.Patches, c.Words)
	}
	stdout, _ = must(t, exitDone, "explain", "--checkpoint", dir, "--split", "test")
	contains(t, stdout, "10 right pairs of test", "contributions.html")

	for _, x := range []struct {
		args []string
		want string
	}{
		{[]string{"--image", image}, "--text gives the text"},
		{[]string{"--text", "a"}, "needs --image and --text, --row, or --split"},
		{[]string{"--image", image, "--text", " ... "}, "nothing of the text"},
		{[]string{"--image", image, "--text", "a", "--block", "2"}, "no block of the image tower 2: the model has 2"},
		{[]string{"--image", image, "--text", "a", "--layer", "-1"}, "no layer of the text tower -1"},
		{[]string{"--image", image, "--text", "a", "--fusion", "2"}, "no fusion layer 2"},
		{[]string{"--image", image, "--text", "a", "--formula", "magic"}, "--formula must be channels, elementwise, gradcam or terms"},
		{[]string{"--image", image, "--with", image}, "--with is for systems of images alone"},
		{[]string{"--image", image, "--text", "a", "--tokens", "-1"}, "--tokens must be at least 1"},
		{[]string{"--image", image, "--text", "a", "--tokens", "0"}, "--tokens must be at least 1"},
		{[]string{"--image", image, "--text", "a", "--split", "val"}, "--split and --image do not go together"},
		{[]string{"--image", image, "--text", "a", "--pairs", "3"}, "--pairs is of --split"},
		{[]string{"--split", "val", "--fusion", "0"}, "--fusion is of one pair, and --split explains many"},
		{[]string{"--split", "val", "--pairs", "0"}, "--pairs must be at least 1"},
	} {
		fails(t, exitUsage, append([]string{"explain", "--checkpoint", dir}, x.args...), x.want)
	}
	fails(t, exitUsage, []string{"explain", "--image", image}, "explain needs RUN")
	fails(t, exitFailed, []string{"explain", "--checkpoint", dir, "--image", filepath.Join(dir, "none.png"), "--text", "a"}, "--image:", "none.png")
}

// TestPlacesInOrder: words of several tokens begin at other places in each text, and the places are told from the
// first to the last all the same.
func TestPlacesInOrder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	must(t, exitDone, tinyArgs(dir, "--max-steps", "1", "--set", "data.vocab_size=64")...)
	stdout, _ := must(t, exitDone, "explain", "--checkpoint", dir, "--split", "val", "--json")
	var c struct{ Places []struct{ Name string } }
	if err := json.Unmarshal([]byte(stdout), &c); err != nil || len(c.Places) < 3 {
		t.Fatalf("%v: %s", err, stdout)
	}
	for i, p := range c.Places[1:] {
		if words.Natural(c.Places[i].Name, p.Name) >= 0 {
			t.Errorf("place %s stands behind %s: %v", p.Name, c.Places[i].Name, c.Places)
		}
	}
	if e := explainJSON(t, "--checkpoint", dir, "--split", "val", "--row", "0"); !slices.ContainsFunc(e.Notes, func(n string) bool { return strings.Contains(n, " tokens and the model reads 16 (data.tokens)") }) {
		t.Errorf("a text of a row is cut, which no note says: %q", e.Notes)
	}
	must(t, exitDone, "explain", "--checkpoint", dir, "--split", "val", "--pairs", "1")
	page := check.Get(os.ReadFile(filepath.Join(dir, "explain", "contributions.html")))(t)
	contains(t, string(page), "<h1>1 right pair of the val split</h1>")
}

// TestExplainTokens: class tokens and spheres have scores of their own, which sum to that of the pair.
func TestExplainTokens(t *testing.T) {
	for _, topology := range []string{"Multi(4,4)", "Ob(8,2)"} {
		dir := filepath.Join(t.TempDir(), "run")
		args := tinyArgs(dir, "--max-steps", "4")
		args = append(args, sets("model.head.topology="+topology, "model.text.positions=32", "eval.rerank_top=0")...)
		must(t, exitDone, args...)
		e := explainJSON(t, "--checkpoint", dir, "--image", picture(t, 16, 16), "--text", "a big red circle", "--tokens", "1", "--set", "eval.score=inner")
		sum := 0.0
		for _, v := range e.Tokens {
			sum += v
		}
		if len(e.Scores) != 3 || !strings.HasPrefix(e.Scores[1].Name, "token-") || !(math.Abs(sum-e.Scores[0].Score) <= 1e-4) {
			t.Errorf("%s: tokens %v of the score %v, %d scores", topology, e.Tokens, e.Scores[0].Score, len(e.Scores))
		}
		stdout, _ := must(t, exitDone, "explain", "--checkpoint", dir, "--split", "val", "--pairs", "3", "--json")
		contains(t, stdout, `"tokens": [`)
	}
}

// TestExplainOtherSystems: two images of a system of images alone; systems of stored features are
// refused by name.
func TestExplainOtherSystems(t *testing.T) {
	dir, image := filepath.Join(t.TempDir(), "run"), picture(t, 20, 30)
	must(t, exitDone, viewsArgs("moco", dir, "--max-steps", "4")...)
	e := explainJSON(t, "--checkpoint", dir, "--image", image, "--with", picture(t, 50, 20))
	if len(e.Scores) != 1 || e.Scores[0].With == nil || e.Layer != -1 {
		t.Errorf("%+v", e)
	}
	fails(t, exitUsage, []string{"explain", "--checkpoint", dir, "--image", image, "--text", "a"}, `model.system "moco" has no text tower: give a second image with --with`)
	fails(t, exitUsage, []string{"explain", "--checkpoint", dir, "--image", image}, "--with names the image to compare with")
	fails(t, exitUsage, []string{"explain", "--checkpoint", dir, "--split", "val"}, `model.system "moco" has no texts`)
}
