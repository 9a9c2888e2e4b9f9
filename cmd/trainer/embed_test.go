package main

import (
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/gallery"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/filetest"
	"github.com/geoalign/geoalign/internal/safetensors"
	"github.com/geoalign/geoalign/objectives/scoring"
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
	fails(t, exitUsage, []string{"embed", dir, "--dims", "4"}, "is embedded by class tokens, whose leading channels are not features")
}

// TestEmbedDims: a truncated gallery has the leading channels of features as unit vectors, tells that it has, and finds
// by queries that are truncated alike: features that the model maps, and vectors of all channels.
func TestEmbedDims(t *testing.T) {
	data, ck := rotatedFeatures(t, 200, 6), filepath.Join(t.TempDir(), "run")
	must(t, exitDone, append([]string{"train", "--max-steps", "30", "--quiet", "--out", ck, "--set", "objective.matryoshka.dims=[4]"}, data...)...)
	root := strings.TrimPrefix(data[3], "data.root=")
	texts, all, out := filepath.Join(root, "text.safetensors"), filepath.Join(ck, "all"), filepath.Join(ck, "leading")
	rows := []string{"embed", "--checkpoint", ck, "--rows", filepath.Join(root, "image.safetensors"), "--out"}
	must(t, exitDone, append(rows, all)...)
	_, stderr := must(t, exitDone, append(rows, out, "--dims", "4")...)
	if strings.Contains(stderr, "matryoshka") {
		t.Errorf("a note on leading channels that were trained: %s", stderr)
	}
	m := check.Get(gallery.ReadManifest(out))(t)
	if m.Dim != 4 || m.LeadingOf != 16 {
		t.Errorf("%d channels of %d", m.Dim, m.LeadingOf)
	}
	whole, truncated := check.Get(gallery.Open(all))(t), check.Get(gallery.Open(out))(t)
	for i := range 200 {
		want := slices.Clone(check.Get(whole.Row(gallery.Image, i))(t)[:4])
		scoring.Normalize(want)
		for c, v := range check.Get(truncated.Row(gallery.Image, i))(t) {
			if math.Abs(float64(v-want[c])) > 1e-6 {
				t.Fatalf("channel %d of row %d is %v, want %v", c, i, v, want[c])
			}
		}
	}
	check.OK(t, errors.Join(whole.Close(), truncated.Close()))
	if whole.ID == truncated.ID {
		t.Error("a truncated gallery has the identity of the whole one")
	}

	queries := filepath.Join(ck, "queries")
	must(t, exitDone, "embed", "--checkpoint", ck, "--rows", texts, "--side", "text", "--out", queries)
	_, _, mapped := hits(t, out, "--text-features", texts, "--k", "3")
	_, _, given := hits(t, out, "--vector", filepath.Join(queries, "texts-00000.safetensors"), "--k", "3")
	for q := range mapped.Queries {
		for k, h := range mapped.Queries[q] {
			if g := given.Queries[q][k]; h.Row != g.Row || math.Abs(float64(h.Score-g.Score)) > 1e-6 || h.Score > 1+1e-5 {
				t.Fatalf("text %d finds %v by its features, %v by a vector of all channels", q, h, g)
			}
		}
	}
	filetest.Write(t, filepath.Join(ck, "put.jsonl"), `{"id": "new", "vector": [3, 0, 0, 4`+strings.Repeat(", 9", 12)+"]}\n")
	must(t, exitDone, "gallery", "put", out, filepath.Join(ck, "put.jsonl"))
	put := check.Get(gallery.Open(out))(t)
	if x := check.Get(put.Row(gallery.Image, 200))(t); math.Abs(float64(x[0])-0.6) > 1e-6 || math.Abs(float64(x[3])-0.8) > 1e-6 {
		t.Errorf("a vector of all channels was put as %v", x)
	}
	check.OK(t, put.Close())
	_, stderr = must(t, exitDone, append(rows, filepath.Join(ck, "other"), "--dims", "5")...)
	contains(t, stderr, "objective.matryoshka.dims does not name 5 leading channels")
	fails(t, exitUsage, append(rows, filepath.Join(ck, "other")), "holds a gallery with another channels (5, now 16)")
	fails(t, exitUsage, append(rows, queries+"2", "--dims", "16"), "--dims must be at least 1 and below the 16 channels of the model (got 16)")
	fails(t, exitUsage, append(rows, queries+"2", "--dims", "0"), "--dims must be at least 1 (got 0)")
	fails(t, exitFailed, []string{"search", out, "--vector", texts}, "row 0 has 6 numbers, the rows of the gallery have the first 4 of 16")

	// A split says so too, and so does a file of features.
	must(t, exitDone, "embed", "--checkpoint", ck, "--out", filepath.Join(ck, "split"), "--dims", "4")
	if _, _, of := hits(t, filepath.Join(ck, "split"), "--text-features", texts, "--k", "1"); of.Queries[0][0].Score > 1+1e-5 {
		t.Errorf("%+v", of.Queries[0])
	}
	stdout, _ := must(t, exitDone, append(rows, filepath.Join(ck, "x.npy"), "--dims", "4", "--json")...)
	contains(t, stdout, `"dim": 4`, `"leading_of": 16`)
}

// TestEmbedDimsRefused: what has no leading channels of its own says so.
func TestEmbedDimsRefused(t *testing.T) {
	ck := filepath.Join(t.TempDir(), "run")
	must(t, exitDone, combinedArgs(ck, "--quiet", "--max-steps", "2")...) // Multi(4,2), a learned metric
	fails(t, exitUsage, []string{"embed", ck, "--dims", "4"}, "has a learned metric of all channels")
	fails(t, exitUsage, []string{"embed", ck, "--dims", "3", "--set", "eval.score=cosine"}, "--dims (got 3) must be whole spheres of Multi(4,2), a multiple of 4 channels")
	out := filepath.Join(ck, "sphere")
	must(t, exitDone, "embed", ck, "--dims", "4", "--set", "eval.score=cosine", "--out", out)
	if e := readEmbedding(t, out); e.c != 4 || e.meta["leading_of"] != "8" {
		t.Errorf("%d channels of %s", e.c, e.meta["leading_of"])
	}
	if _, _, found := hits(t, out, "--text", "a red circle", "--k", "1"); found.Queries[0][0].Score > 1+1e-5 {
		t.Errorf("%+v", found.Queries[0])
	}
}
