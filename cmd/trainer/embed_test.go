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
	"github.com/geoalign/geoalign/internal/safetensors"
	"github.com/geoalign/geoalign/run/embed"
)

// embedding reads a folder that embed wrote.
type embedding struct {
	meta          map[string]string
	images, texts []float32
	owner         []int64
	n, m, c       int
	names         []string
}

func readEmbedding(t *testing.T, dir string) embedding {
	t.Helper()
	f := check.Get(safetensors.Open(filepath.Join(dir, embed.FeaturesFile)))(t)
	defer f.Close()
	e := embedding{meta: f.Metadata()}
	for _, i := range f.Tensors() {
		e.names = append(e.names, i.Name)
		x := func() []float32 {
			return check.Get(f.Float32(i.Name))(t)
		}
		switch i.Name {
		case "image":
			e.images, e.n, e.c = x(), i.Shape[0], i.Shape[1]
		case "text":
			e.texts, e.m = x(), i.Shape[0]
		case "text_image":
			e.owner = check.Get(f.Int64(i.Name))(t)
		}
	}
	slices.Sort(e.names)
	return e
}

// recall is R@1 from text to image by products of rows, ties counted as misses.
func (e embedding) recall() float64 {
	hits := 0
	for j := range e.m {
		dot := func(i int) (s float64) {
			for k := range e.c {
				s += float64(e.images[i*e.c+k]) * float64(e.texts[j*e.c+k])
			}
			return s
		}
		best := true
		for i := range e.n {
			best = best && (i == int(e.owner[j]) || dot(i) < dot(int(e.owner[j])))
		}
		if best {
			hits++
		}
	}
	return 100 * float64(hits) / float64(e.m)
}

// Products of the rows that embed writes rank as eval does, with a learned metric and
// without, and what is no product is said to be none.
func TestEmbed(t *testing.T) {
	dir := t.TempDir()
	must(t, exitDone, combinedArgs(dir, "--quiet", "--max-steps", "10")...)
	for score, want := range map[string]string{
		"train":  "image image_features image_id text text_image",
		"cosine": "image image_id text text_image",
		"angle":  "image image_id text text_image",
	} {
		out := filepath.Join(t.TempDir(), "deep", score)
		set := "eval.score=" + score
		stdout, stderr := must(t, exitDone, "embed", "--checkpoint", dir, "--set", set, "--json", "--out", out)
		var got embed.Result
		check.OK(t, json.Unmarshal([]byte(stdout), &got))
		e := readEmbedding(t, out)
		if names := strings.Join(e.names, " "); names != want {
			t.Errorf("%s: the file has %s, want %s", score, names, want)
		}
		if got.Images != e.n || got.Texts != e.m || got.Dim != 8 || e.c != 8 || got.Step != 10 || e.meta["space"] != "Multi(4,2)" || e.meta["step"] != "10" {
			t.Errorf("%s: %+v, metadata %v, %d x %d", score, got, e.meta, e.n, e.c)
		}
		for name, n := range map[string]int{embed.ImagesFile: e.n, embed.TextsFile: e.m} {
			text, err := os.ReadFile(filepath.Join(out, name))
			if err != nil || strings.Count(string(text), "\n") != n {
				t.Errorf("%s has not %d lines: %v", name, n, err)
			}
		}
		hits(t, out, "--text", "a red circle") // by the score that it was embedded for
		if score == "angle" {
			contains(t, stderr, "note: the score angle is not a product of features")
			if got.Product || e.meta["product"] != "false" {
				t.Error("an angle is called a product")
			}
			continue
		}
		stdout, _ = must(t, exitDone, "eval", "--checkpoint", dir, "--json", "--set", set, "--set", "eval.rerank_top=0")
		var scores struct {
			First map[string]float64 `json:"first"`
		}
		check.OK(t, json.Unmarshal([]byte(stdout), &scores))
		if r := e.recall(); !(math.Abs(r-scores.First["t2i_r1"]) <= 1e-9) {
			t.Errorf("%s: R@1 of the rows is %v, eval finds %v", score, r, scores.First["t2i_r1"])
		}
	}
	must(t, exitDone, "embed", "--checkpoint", filepath.Join(dir, "checkpoints", checkpointName(10)), "--split", "test", "--quiet")
	if _, err := os.Stat(filepath.Join(dir, "embeddings-test", embed.FeaturesFile)); err != nil {
		t.Error(err)
	}

	for _, x := range []struct {
		want string
		code int
		args []string
	}{
		{"needs RUN", exitUsage, nil},
		{"--split must be one of train, val, test", exitUsage, []string{"--checkpoint", dir, "--split", "all"}},
		{"train split of the scenes is endless", exitUsage, []string{"--checkpoint", dir, "--split", "train"}},
		{"choose another folder with --out", exitFailed, []string{"--checkpoint", dir, "--out", filepath.Join(dir, "config.toml")}},
		{"no checkpoint", exitFailed, []string{"--checkpoint", t.TempDir()}},
	} {
		fails(t, x.code, append([]string{"embed"}, x.args...), x.want)
	}
}

// A system of images alone has class tokens and no texts.
func TestEmbedImagesAlone(t *testing.T) {
	dir := t.TempDir()
	must(t, exitDone, viewsArgs("moco", dir, "--quiet", "--max-steps", "2")...)
	stdout, _ := must(t, exitDone, "embed", "--checkpoint", dir, "--split", "test", "--json")
	contains(t, stdout, `"images": 10`, `"texts": 0`)
	out := filepath.Join(dir, "embeddings-test")
	if e := readEmbedding(t, out); strings.Join(e.names, " ") != "image image_id" || e.n != 10 {
		t.Errorf("%v, %d images", e.names, e.n)
	}
	if _, err := os.Stat(filepath.Join(out, embed.TextsFile)); err == nil {
		t.Error("there are texts")
	}
}
