package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/gallery"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/filetest"
	"github.com/geoalign/geoalign/weights/weightstest"
)

// TestGalleryCommands: items are put, found by the same model, deleted and merged; an embedding again does not undo it,
// and what cannot be put is refused with its line.
func TestGalleryCommands(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	must(t, exitDone, "import", "--from", weightstest.Stored(t, "clip"), "--set", "data.tokens=6", "--set", "compute.backend=builtin", "--out", at("run"))
	pics, _ := album(t)
	filetest.Write(t, at("list.txt"), filepath.Join(pics, "c.png")+"\n"+filepath.Join(pics, "a.png"))
	embed := []string{"embed", "--checkpoint", at("run"), "--images", at("list.txt"), "--out", at("g")}
	must(t, exitDone, embed...)
	find := func(args ...string) (ids []string, all found) {
		t.Helper()
		stdout, _ := must(t, exitDone, append([]string{"search", at("g"), "--json", "--k", "9"}, args...)...)
		check.OK(t, json.Unmarshal([]byte(stdout), &all))
		for _, h := range all.Queries[0] {
			ids = append(ids, h.ID)
		}
		return ids, all
	}
	filetest.Write(t, at("items.jsonl"), `{"id": "bee", "image": "`+filepath.Join(pics, "b.png")+`", "payload": {"k": 1}}`+"\n\n"+`{"id": "c.png", "image": "`+filepath.Join(pics, "b.png")+`"}`)
	if stdout, _ := must(t, exitDone, "gallery", "put", at("g"), at("items.jsonl")); !strings.Contains(stdout, "2 rows put, ") {
		t.Error(stdout)
	}
	ids, all := find("--image", filepath.Join(pics, "b.png"), "--with-vector")
	first := all.Queries[0][0]
	if all.Rows < 3 || !strings.Contains(strings.Join(ids, " "), "bee") || first.Score < 0.999 || len(first.Vector) == 0 {
		t.Errorf("%v %+v", ids, all)
	}
	if ids, _ := find("--row", "0", "--filter", `{"k": 1}`); strings.Join(ids, " ") != "bee" {
		t.Error(ids)
	}
	fails(t, exitUsage, embed, "were put or deleted since")
	if stdout, _ := must(t, exitDone, "inspect", at("g"), "--verify"); !strings.Contains(stdout, fmt.Sprint(all.Rows, " images of ")) {
		t.Error(stdout)
	}
	if stdout, _ := must(t, exitDone, "gallery", "merge", at("g")); !strings.Contains(stdout, "rows") {
		t.Error(stdout)
	}
	if stdout, _ := must(t, exitDone, "gallery", "delete", at("g"), "bee", "none"); stdout != "1 row deleted\n" {
		t.Error(stdout)
	}
	if stdout, _ := must(t, exitDone, "gallery", "delete", at("g"), "--filter", `{"k": 1}`); stdout != "0 rows deleted\n" {
		t.Error(stdout)
	}
	if ids, _ := find("--row", "0", "--filter", `{"k": 1}`); len(ids) != 0 {
		t.Error(ids)
	}
	m := check.Get(gallery.ReadManifest(at("g")))(t)
	if m.Generation != 2 {
		t.Errorf("generation %d", m.Generation)
	}
	for line, want := range map[string]string{`{"id": "a"}`: "line 1: an item has one of text, image and vector (got 0", `{"id": "a", "vector": [1]}`: "line 1: vector has 1 numbers, the rows of the gallery have ",
		`{"id": "a", "size": 1}`: "line 1: ", `{"id": "a", "text": "a red square"}`: "it is a text, and the gallery has images", `{"id": "a", "image": "none.png"}`: "none.png"} {
		filetest.Write(t, at("bad.jsonl"), line)
		fails(t, exitFailed, []string{"gallery", "put", at("g"), at("bad.jsonl")}, want)
	}
	fails(t, exitUsage, []string{"gallery", "delete", at("g")}, "needs ids or --filter")
	fails(t, exitUsage, []string{"gallery", "put", at("g")}, "needs GALLERY and FILE")
	fails(t, exitUsage, []string{"search", at("g"), "--row", "0", "--with-vector"}, "--with-vector needs --json")
	filetest.Write(t, at("texts.txt"), "a red square\nblue circle\n") // texts, whose ids are the numbers of their rows
	must(t, exitDone, "embed", "--checkpoint", at("run"), "--texts", at("texts.txt"), "--out", at("texts"))
	filetest.Write(t, at("new.jsonl"), `{"id": "1", "text": "a large triangle"}`)
	if stdout, _ := must(t, exitDone, "gallery", "put", at("texts"), at("new.jsonl")); !strings.Contains(stdout, "1 row put, 1 of them in the place of others") || !strings.Contains(stdout, "has 2 rows") {
		t.Error(stdout)
	}
	for range 2 { // before and after a merge
		var all found
		stdout, _ := must(t, exitDone, "search", at("texts"), "--text", "a large triangle", "--json")
		check.OK(t, json.Unmarshal([]byte(stdout), &all))
		if h := all.Queries[0]; len(h) != 2 || h[0].ID != "1" || h[0].Caption != "a large triangle" || h[0].Score < 0.999 || h[1].ID != "0" {
			t.Errorf("%+v", h)
		}
		must(t, exitDone, "gallery", "merge", at("texts"))
	}
	w := check.Get(gallery.OpenWriter(at("g"), nil))(t)
	fails(t, exitFailed, []string{"gallery", "delete", at("g"), "x"}, "another process writes to")
	check.OK(t, w.Close())
	check.OK(t, w.Gallery().Close())
}

// TestGalleryFiles: a gallery that was exported and imported is searched by the same model, and finds the same.
func TestGalleryFiles(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	must(t, exitDone, "import", "--from", weightstest.Stored(t, "clip"), "--set", "data.tokens=6", "--set", "compute.backend=builtin", "--out", at("run"))
	filetest.Write(t, at("texts.txt"), "a red square\nblue circle\na dog\n")
	filetest.Write(t, at("payload.jsonl"), `{"id": "x", "k": 1}`+"\n{}\n"+`{"k": 3}`)
	must(t, exitDone, "embed", "--checkpoint", at("run"), "--texts", at("texts.txt"), "--payload", at("payload.jsonl"), "--out", at("g"))
	if stdout, _ := must(t, exitDone, "gallery", "export", at("g"), "--to", at("g.parquet")); !strings.Contains(stdout, "3 rows of text of ") {
		t.Error(stdout)
	}
	if stdout, _ := must(t, exitDone, "gallery", "import", at("g.parquet"), "--side", "text", "--out", at("copy")); stdout != at("copy")+" has 3 rows\n" {
		t.Error(stdout)
	}
	query := []string{"--checkpoint", at("run"), "--text", "a red square", "--with-vector"}
	_, names, was := hits(t, append(query, at("g"))...)
	_, again, is := hits(t, append(query, at("copy"))...)
	if !slices.Equal(names, again) || names[0] != "a red square" {
		t.Errorf("%v, then %v", names, again)
	}
	for i, h := range was.Queries[0] {
		if g := is.Queries[0][i]; g.ID != h.ID || string(g.Payload) != string(h.Payload) || !slices.Equal(g.Vector, h.Vector) {
			t.Errorf("%+v, then %+v", h, g)
		}
	}
	fails(t, exitUsage, []string{"gallery", "export", at("g")}, "--to must name a file that ends in .npy, .parquet, .csv, .faiss (got \"\")")
	fails(t, exitFailed, []string{"gallery", "import", at("g.parquet"), "--out", at("copy")}, "is there already: name a new folder")
	fails(t, exitUsage, []string{"gallery", "import", at("g.parquet")}, "import needs --out")
	fails(t, exitUsage, []string{"gallery", "import", at("g.parquet"), "--out", at("h"), "--side", "x"}, "--side must be image or text")
	fails(t, exitUsage, []string{"gallery", "import", at("g.parquet"), "--out", at("h"), "--shard", "0"}, "--shard must be at least 1 (got 0)")
	fails(t, exitUsage, []string{"gallery", "export", at("g"), "--to", at("g.npy"), "--metric", "l2"}, "was made for the score")
	fails(t, exitFailed, []string{"gallery", "import", at("g.parquet"), "--tensor", "none", "--out", at("h")}, "none")
}
