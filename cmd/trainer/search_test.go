package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/geoalign/geoalign/data/images"
	"github.com/geoalign/geoalign/gallery"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/safetensors"
	"github.com/geoalign/geoalign/run"
	"github.com/geoalign/geoalign/run/embed"
)

// writePictures writes n small images below a folder, some of them in one of its own.
func writePictures(t *testing.T, dir string, n int) {
	t.Helper()
	for i := range n {
		m := image.NewRGBA(image.Rect(0, 0, 20, 20))
		for x := range 20 {
			for y := range 20 {
				m.Set(x, y, color.RGBA{uint8(40 * i), uint8(10 * x), uint8(10 * y), 255})
			}
		}
		path := filepath.Join(dir, fmt.Sprintf("sub%d", i%2), fmt.Sprintf("%02d.png", i))
		check.OK(t, os.MkdirAll(filepath.Dir(path), 0o777))
		f := check.Get(os.Create(path))(t)
		check.OK(t, png.Encode(f, m))
		check.OK(t, f.Close())
	}
}

// hits runs search and returns what it found for its only query.
func hits(t *testing.T, args ...string) (rows []int, names []string, all found) {
	t.Helper()
	stdout, _ := must(t, exitDone, append(append([]string{"search"}, args...), "--json")...)
	check.OK(t, json.Unmarshal([]byte(stdout), &all))
	for _, h := range all.Queries[0] {
		rows, names = append(rows, h.Row), append(names, h.Name+h.Caption)
	}
	return rows, names, all
}

// Files are embedded in shards, of which only those are made again that are missing, cut or of
// inputs that changed; and every way to search finds what was embedded.
func TestEmbedFilesAndSearch(t *testing.T) {
	dir := t.TempDir()
	ck, photos, out := filepath.Join(dir, "run"), filepath.Join(dir, "photos"), filepath.Join(dir, "gallery")
	must(t, exitDone, combinedArgs(ck, "--quiet", "--max-steps", "6")...)
	writePictures(t, photos, 7)
	args := []string{"embed", "--checkpoint", ck, "--images", photos, "--out", out, "--shard", "3", "--json"}
	check := func(shards, kept, rows, leftOut int, more ...string) {
		t.Helper()
		stdout, _ := must(t, exitDone, append(args, more...)...)
		var done embed.Result
		check.OK(t, json.Unmarshal([]byte(stdout), &done))
		if done.Shards != shards || done.Kept != kept || done.Images != rows || done.LeftOut != leftOut || done.Dim != 8 {
			t.Errorf("%d shards, %d kept, %d images, %d left out, want %d, %d, %d, %d", done.Shards, done.Kept, done.Images, done.LeftOut, shards, kept, rows, leftOut)
		}
	}
	check(3, 0, 7, 0)
	first, err := os.ReadFile(filepath.Join(out, "images-00001.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	check(3, 3, 7, 0)
	zeroed(t, filepath.Join(out, "images-00001.safetensors")) // same size, other bytes
	check(3, 2, 7, 0)
	if again, err := os.ReadFile(filepath.Join(out, "images-00001.safetensors")); err != nil || string(again) != string(first) {
		t.Errorf("the shard made again differs: %v", err)
	}

	// A picture of another time is the same one; one that was replaced is not, though its time is set back.
	replaced := filepath.Join(photos, "sub0", "02.png")
	old, err := os.Stat(replaced)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(replaced, time.Time{}, old.ModTime().Add(time.Second)); err != nil {
		t.Fatal(err)
	}
	check(3, 3, 7, 0)
	was, err := os.ReadFile(replaced)
	if err != nil {
		t.Fatal(err)
	}
	other, err := os.ReadFile(filepath.Join(photos, "sub1", "03.png"))
	if err != nil {
		t.Fatal(err)
	}
	replace := func(b []byte) {
		t.Helper()
		if err := errors.Join(os.WriteFile(replaced, b, 0o666), os.Chtimes(replaced, time.Time{}, old.ModTime())); err != nil {
			t.Fatal(err)
		}
	}
	replace(other)
	_, stderr := must(t, exitDone, args...)
	contains(t, stderr, "note: shard 1 is made again: its images have changed since")
	if strings.Contains(stderr, "shard 2") {
		t.Errorf("a shard whose images stayed is made again: %s", stderr)
	}
	replace(was)
	check(3, 2, 7, 0)
	check(3, 3, 7, 0)

	// Rows are those of the image's own encoding, whatever the shard.
	_, names, _ := hits(t, out, "--image", filepath.Join(photos, "sub1", "03.png"), "--k", "1")
	if names[0] != "sub1/03.png" {
		t.Errorf("an image finds %q", names[0])
	}
	rows, _, all := hits(t, out, "--row", "5", "--k", "100")
	if len(rows) != 6 || strings.Contains(fmt.Sprint(rows), "5") || all.Metric != "cosine" || all.Index {
		t.Errorf("row 5 finds %v by %s", rows, all.Metric)
	}
	if _, _, all = hits(t, out, "--text", "a red circle"); all.Metric != "inner" || len(all.Queries[0]) != 7 {
		t.Errorf("a text is compared by %s with %d rows", all.Metric, len(all.Queries[0]))
	}

	// An image that cannot be read ends it, or is left out.
	if err := os.WriteFile(filepath.Join(photos, "sub0", "bad.png"), []byte("no image"), 0o666); err != nil {
		t.Fatal(err)
	}
	fails(t, exitFailed, args, "bad.png", "--skip-bad leaves out")
	_, stderr = must(t, exitDone, append(args, "--skip-bad")...)
	contains(t, stderr, "left out: ", "bad.png")
	check(3, 3, 7, 1, "--skip-bad")
	g, err := gallery.Open(out)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 7 {
		if item, err := g.Item(gallery.Image, i); err != nil || strings.Contains(item.Name, "bad") {
			t.Errorf("row %d is %+v: %v", i, item, err)
		}
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}

	// An index is used from the size that is asked for.
	if _, _, all = hits(t, out, "--row", "5", "--k", "2", "--index-from", "5"); !all.Index || all.Recall < 0.5 || all.RecallK != 6 {
		t.Errorf("no index: %+v", all)
	}
	text, _ := must(t, exitDone, "search", out, "--row", "5", "--k", "2", "--index-from", "5")
	contains(t, text, "by an index of bytes with a measured recall@6 of ") // seven rows have six others
	text, stderr = must(t, exitDone, "search", out, "--row", "5", "--k", "2", "--index-from", "5", "--index-codes", "bits")
	contains(t, text, "by an index of bits with a measured recall@6 of ")
	contains(t, stderr, "is an index of bytes, and one of bits is asked for; that is done now")
	if _, _, all = hits(t, out, "--row", "5", "--k", "2", "--index-from", "5"); all.Codes != "bits" {
		t.Errorf("the index of bits was not kept: %+v", all)
	}
	_, stderr = must(t, exitDone, "search", out, "--row", "5", "--index-codes", "bytes")
	contains(t, stderr, "--index-codes changes nothing: an index is used from 100,000 rows on, and there are 7")

	for want, more := range map[string][]string{
		"another --shard":                       {"--shard", "4"},
		"--images and --texts do not go":        {"--texts", "x"},
		"--side is of --rows":                   {"--side", "text"},
		"holds a gallery with another score (g": {"--set", "eval.score=cosine"},
	} {
		code, _, stderr := trainer(t, append(args, more...)...)
		if code != exitUsage || !strings.Contains(stderr, want) {
			t.Errorf("%q: code %d, want %s: %s", more, code, want, stderr)
		}
	}
	fails(t, exitUsage, []string{"embed", "--checkpoint", ck, "--rows", "x.npy"}, "needs a model of stored features")
	fails(t, exitUsage, []string{"embed", "--checkpoint", ck, "--out", out}, "holds another gallery (index.json)")
	fails(t, exitUsage, []string{"embed", "--checkpoint", ck, "--shard", "3"}, "--shard is of --images")
	fails(t, exitUsage, []string{"embed", "--checkpoint", ck, "--images", photos, "--shard", "0"}, "--shard must be at least 1 (got 0)")
}

// TestEmbedFilesByOtherSettings: a shard that left out images for their size is made again when the limit grows, and
// a gallery says what the pixels of its JPEG files are: what goes on with other ones is told.
func TestEmbedFilesByOtherSettings(t *testing.T) {
	dir := t.TempDir()
	ck, photos, out := filepath.Join(dir, "run"), filepath.Join(dir, "photos"), filepath.Join(dir, "gallery")
	must(t, exitDone, combinedArgs(ck, "--quiet", "--max-steps", "2")...)
	writePictures(t, photos, 4)
	var large bytes.Buffer
	check.OK(t, png.Encode(&large, image.NewGray(image.Rect(0, 0, 100, 100))))
	check.OK(t, os.WriteFile(filepath.Join(photos, "large.png"), large.Bytes(), 0o666))
	args := []string{"embed", "--checkpoint", ck, "--images", photos, "--out", out, "--shard", "3", "--skip-bad"}
	_, stderr := must(t, exitDone, append(args, "--set", "data.max_pixels=9999")...)
	contains(t, stderr, "left out: ", "large.png")
	_, stderr = must(t, exitDone, append(args, "--set", "data.max_pixels=10000")...)
	contains(t, stderr, "is made again: it leaves out 1 of its images, and data.max_pixels has grown from 9999 to 10000")
	if strings.Contains(stderr, "left out: ") || strings.Contains(stderr, "decoder") {
		t.Errorf("stderr: %s", stderr)
	}
	m, err := gallery.ReadManifest(out)
	if err != nil || m.Rows != 5 || m.Decoder != images.Pixels || m.MaxPixels != 10000 {
		t.Fatalf("%+v: %v", m, err)
	}
	const shard = "images-00000.safetensors"
	for _, x := range []struct {
		was    string
		spoilt []string // of the two shards
		want   string
		note   bool
	}{
		{"builtin", nil, "builtin", false}, // nothing is read anew
		{"builtin", []string{shard}, "builtin, libjpeg-turbo", true},
		{"builtin, libjpeg-turbo", []string{shard}, "builtin, libjpeg-turbo", false},
		{"builtin", []string{shard, "images-00001.safetensors"}, "libjpeg-turbo", true}, // all is
		{"turbojpeg 3.0.1", []string{shard}, "turbojpeg 3.0.1", false},                  // the same pixels
		{"", []string{shard}, "", false},                                                // of an earlier version
	} {
		m.Decoder = x.was
		check.OK(t, m.Write(out))
		for _, name := range x.spoilt {
			zeroed(t, filepath.Join(out, name))
		}
		_, stderr = must(t, exitDone, args...)
		now, err := gallery.ReadManifest(out)
		if err != nil || now.Decoder != x.want || strings.Contains(stderr, "another decoder of JPEG files (builtin, now libjpeg-turbo)") != x.note {
			t.Fatalf("of %q with %q spoilt: %+v, %v: %s", x.was, x.spoilt, now, err, stderr)
		}
		m = now
	}
}

// Texts are embedded line by line, and a list names images in its own order.
func TestEmbedTextsAndLists(t *testing.T) {
	dir := t.TempDir()
	ck, out := filepath.Join(dir, "run"), filepath.Join(dir, "texts")
	must(t, exitDone, tinyArgs(ck, "--quiet", "--max-steps", "2")...)
	texts := filepath.Join(dir, "texts.txt")
	check.OK(t, os.WriteFile(texts, []byte("\ufeffA red circle.\r\n\n  a blue square\n...\na green star"), 0o666))
	args := []string{"embed", "--checkpoint", ck, "--texts", texts, "--out", out, "--shard", "2"}
	fails(t, exitFailed, args, `nothing of the text "..." is left as a caption`)
	must(t, exitDone, append(args, "--skip-bad")...)
	for _, text := range []string{"...", "\u0301"} { // of the second the tokenizer leaves no token
		fails(t, exitFailed, []string{"search", out, "--text", text}, "trainer: nothing of the text ")
	}
	rows, names, all := hits(t, out, "--text", "A red circle!", "--k", "3")
	if rows[0] != 0 || names[0] != "A red circle." || all.Side != "text" || all.Queries[0][0].Line != 1 {
		t.Errorf("found %v %q", rows, names)
	}
	list := filepath.Join(dir, "list.txt")
	writePictures(t, filepath.Join(dir, "p"), 3)
	check.OK(t, os.WriteFile(list, []byte("p/sub0/02.png\np/sub0/00.png\n"), 0o666))
	must(t, exitDone, "embed", "--checkpoint", ck, "--images", list, "--out", filepath.Join(dir, "images"))
	if rows, names, _ := hits(t, filepath.Join(dir, "images"), "--image", filepath.Join(dir, "p", "sub0", "00.png")); rows[0] != 1 || names[0] != "p/sub0/00.png" {
		t.Errorf("found %v %q", rows, names)
	}
	must(t, exitDone, "embed", "--checkpoint", ck, "--split", "test", "--quiet")
	if _, names, all := hits(t, filepath.Join(ck, "embeddings-test"), "--text", "red circle", "--in", "text", "--k", "2"); all.Side != "text" || names[0] == "" {
		t.Errorf("found %q of %s", names, all.Side)
	}
	for want, args := range map[string][]string{
		"needs one of --text":         {out},
		"needs one GALLERY":           {},
		"--text and --row do not go":  {out, "--text", "x", "--row", "1"},
		"--exact and --recall":        {out, "--row", "1", "--exact", "--recall", "0.9"},
		"--in must be image or text":  {out, "--row", "1", "--in", "both"},
		"--recall must be above 0":    {out, "--row", "1", "--recall", "2"},
		"--k must be at least 1":      {out, "--row", "1", "--k", "0"},
		"--index-from must be at":     {out, "--row", "1", "--index-from", "0"},
		"--index-codes must be bytes": {out, "--row", "1", "--index-codes", "bit"},
		"--exact and --index-codes":   {out, "--row", "1", "--index-codes", "bits", "--exact"},
		"has neither features.safe":   {dir, "--row", "1"},
		"there is no row 99":          {out, "--row", "99"},
		"has no rows of the side ima": {out, "--row", "1", "--in", "image"},
	} {
		code, _, stderr := trainer(t, append([]string{"search"}, args...)...)
		if code == exitDone || !strings.Contains(stderr, want) {
			t.Errorf("%q: code %d, want %s: %s", args, code, want, stderr)
		}
	}
}

// What momentum encoder embedded is searched by the twins, and no shard of theirs stands beside one of the parameters.
func TestSearchByTwins(t *testing.T) {
	dir := t.TempDir()
	ck, texts, out := filepath.Join(dir, "run"), filepath.Join(dir, "texts.txt"), filepath.Join(dir, "texts")
	must(t, exitDone, tinyArgs(ck, "--quiet", "--max-steps", "4", "--set", "optimizer.lr=0.01")...)
	check.OK(t, os.WriteFile(texts, []byte("a red circle\na blue square\n"), 0o666))
	args := []string{"embed", "--checkpoint", ck, "--texts", texts, "--out", out, "--momentum-encoder"}
	must(t, exitDone, args...)
	must(t, exitDone, "embed", "--checkpoint", ck, "--split", "test", "--momentum-encoder", "--quiet")
	split := filepath.Join(ck, "embeddings-test")
	_, captions, _ := hits(t, split, "--row", "0", "--in", "text", "--k", "1")
	for gallery, text := range map[string]string{out: "a red circle", split: captions[0]} {
		if _, names, all := hits(t, gallery, "--text", text, "--in", "text", "--k", "1"); names[0] != text || all.Queries[0][0].Score < 1-1e-6 {
			t.Errorf("%s: %q finds %q with %v", gallery, text, names[0], all.Queries[0][0].Score)
		}
	}
	fails(t, exitUsage, args[:len(args)-1], "holds a gallery with another --momentum-encoder (true, now false)")
}

// A gallery is of the parameters that made it, whatever lies at their path later.
func TestGalleryOfTrainedAnew(t *testing.T) {
	dir := t.TempDir()
	ck, texts, out := filepath.Join(dir, "run"), filepath.Join(dir, "texts.txt"), filepath.Join(dir, "texts")
	check.OK(t, os.WriteFile(texts, []byte("a red circle\na blue square\n"), 0o666))
	again := []string{"embed", "--checkpoint", ck, "--texts", texts, "--out", out}
	split := filepath.Join(dir, "split")
	must(t, exitDone, tinyArgs(ck, "--quiet", "--max-steps", "2", "--seed", "1")...)
	must(t, exitDone, again...)
	must(t, exitDone, "embed", "--checkpoint", ck, "--split", "test", "--quiet", "--out", split)
	for _, g := range []string{out, split} {
		hits(t, g, "--text", "a red circle")
	}
	check.OK(t, os.RemoveAll(ck))
	must(t, exitDone, tinyArgs(ck, "--quiet", "--max-steps", "2", "--seed", "2")...)
	fails(t, exitUsage, again, "made before it was trained anew: choose another folder")
	for _, g := range []string{out, split} {
		fails(t, exitFailed, []string{"search", g, "--text", "a red circle"}, "before it was trained anew: embed again")
		_, stderr := must(t, exitDone, "search", g, "--text", "a red circle", "--checkpoint", ck)
		contains(t, stderr, "made by other parameters than those of this checkpoint")
	}
}

// A gallery of texts that were read by other settings than the run's is searched by these, and keeps no shard of
// theirs beside one of others: the same words would have other features.
func TestGalleryIsOfItsSettings(t *testing.T) {
	dir := t.TempDir()
	ck, out, split := filepath.Join(dir, "run"), filepath.Join(dir, "texts"), filepath.Join(dir, "split")
	must(t, exitDone, tinyArgs(ck, "--quiet", "--max-steps", "2")...)
	texts := filepath.Join(dir, "texts.txt")
	long := "A large red circle, a small blue square - and one's green star."
	check.OK(t, os.WriteFile(texts, []byte(long+"\na blue square\n"), 0o666))
	again := []string{"embed", "--checkpoint", ck, "--texts", texts, "--out", out}
	set := []string{"--set", "data.clean=none", "--set", "data.tokens=7"}
	must(t, exitDone, append(again, set...)...)
	must(t, exitDone, append(again, set...)...)
	fails(t, exitUsage, again, "texts were read by other settings (data.clean=none,data.tokens=7, now data.clean=albef,data.max_words=")
	must(t, exitDone, append([]string{"embed", "--checkpoint", ck, "--split", "test", "--quiet", "--out", split}, set...)...)

	g := check.Get(gallery.Open(out))(t)
	defer g.Close()
	want := check.Get(g.Row(gallery.Text, 0))(t)
	whole := check.Get(gallery.Open(split))(t)
	defer whole.Close()
	for _, g := range []*gallery.Gallery{g, whole} {
		q := check.Get(embed.OpenQueries(g, "", run.OpenOptions{}))(t)
		got := check.Get(q.Texts(t.Context(), []string{long}))(t)
		for i := range want {
			if !(math.Abs(float64(got[i]-want[i])) < 1e-6) {
				t.Fatalf("%s: channel %d of the text is %g as a query, %g as a row", g.Path, i, got[i], want[i])
			}
		}
		if err := q.Close(); err != nil {
			t.Error(err)
		}
	}
}

// The index of a gallery stays while its rows do, and is built anew where a single one of many is another.
func TestIndexOfOtherRows(t *testing.T) {
	dir := t.TempDir()
	ck, texts, out := filepath.Join(dir, "run"), filepath.Join(dir, "texts.txt"), filepath.Join(dir, "texts")
	must(t, exitDone, tinyArgs(ck, "--quiet", "--max-steps", "2")...)
	var lines []string
	for i := range 2500 {
		lines = append(lines, fmt.Sprintf("a %s circle and a %s square %d", []string{"red", "blue"}[i%2], []string{"green", "black"}[i/2%2], i))
	}
	var was []byte
	for _, x := range []struct {
		change func()
		kept   bool
	}{{func() {}, false}, {func() {}, true}, {func() { lines[1] = "a star" }, false}} {
		x.change()
		check.OK(t, os.WriteFile(texts, []byte(strings.Join(lines, "\n")), 0o666))
		must(t, exitDone, "embed", "--checkpoint", ck, "--texts", texts, "--out", out, "--quiet")
		rows, _, all := hits(t, out, "--text", "a star", "--index-from", "100")
		if !all.Index || lines[1] == "a star" && rows[0] != 1 {
			t.Errorf("the new text is not found by the index: %v", rows)
		}
		now, err := os.ReadFile(filepath.Join(out, "gallery.text.inner.search"))
		if err != nil || bytes.Equal(now, was) != x.kept {
			t.Errorf("the index is as it was: %v, want %v (%v)", bytes.Equal(now, was), x.kept, err)
		}
		was = now
	}
}

// Heads embed files of features, and files without a model are searched by vectors.
func TestEmbedRowsAndSearchVectors(t *testing.T) {
	data, ck := rotatedFeatures(t, 200, 6), filepath.Join(t.TempDir(), "run")
	must(t, exitDone, append([]string{"train", "--max-steps", "30", "--quiet", "--out", ck}, data...)...)
	files := strings.TrimPrefix(data[3], "data.root=")
	texts := filepath.Join(files, "text.safetensors")
	out, queries := filepath.Join(ck, "images"), filepath.Join(ck, "queries")
	must(t, exitDone, "embed", "--checkpoint", ck, "--rows", filepath.Join(files, "image.safetensors"), "--shard", "64", "--out", out)
	must(t, exitDone, "embed", "--checkpoint", ck, "--rows", texts, "--side", "text", "--out", queries)
	_, _, all := hits(t, out, "--vector", filepath.Join(queries, "texts-00000.safetensors"), "--k", "3")
	if len(all.Queries) != 200 || all.Rows != 200 || all.Queries[7][0].Name == "" {
		t.Errorf("%d queries among %d rows", len(all.Queries), all.Rows)
	}
	_, _, mapped := hits(t, out, "--text-features", texts, "--k", "3")
	if !slices.EqualFunc(mapped.Queries, all.Queries, func(a, b []hitRow) bool { return reflect.DeepEqual(a, b) }) {
		t.Errorf("text features find %v, the same embedded before %v", mapped.Queries[7], all.Queries[7])
	}
	rows, _, _ := hits(t, texts, "--vector", texts, "--k", "1")
	if rows[0] != 0 {
		t.Errorf("row 0 of a file finds %v in it", rows)
	}
	// A file of rows that is replaced by one of the same size has other rows.
	changed := check.Get(os.ReadFile(texts))(t)
	other, in := filepath.Join(ck, "other.safetensors"), []string{"embed", "--checkpoint", ck, "--side", "text", "--shard", "150", "--out", filepath.Join(ck, "others"), "--rows"}
	for _, note := range []string{"", "note: shard 2 is made again: its rows have changed since"} {
		check.OK(t, os.WriteFile(other, changed, 0o666))
		_, stderr := must(t, exitDone, append(in, other)...)
		contains(t, stderr, note)
		if strings.Contains(stderr, "shard 1 is") {
			t.Errorf("a shard whose rows stayed is made again: %s", stderr)
		}
		changed[len(changed)-4] ^= 1 // of the last number
	}
	fails(t, exitFailed, []string{"search", out, "--text", "words"}, "reads stored features: query by a row, a vector or features")
	fails(t, exitFailed, []string{"search", texts, "--text", "words"}, "does not say of what model it is")
	fails(t, exitFailed, []string{"search", out, "--vector", texts}, "row 0 has 6 numbers, the rows of the gallery have 16")
	fails(t, exitUsage, []string{"search", out, "--text-features", filepath.Join(queries, "texts-00000.safetensors")}, "its rows have 16 numbers, and the head of the side text reads 6")
	fails(t, exitUsage, []string{"embed", "--checkpoint", ck, "--texts", "x"}, "embed files of them with --rows")
	wide := filepath.Join(ck, "wide.safetensors")
	f := check.Get(os.Create(wide))(t)
	if err := safetensors.Write(f, []safetensors.Tensor{{Name: "x", Shape: []int{2, 7}, Data: make([]float32, 14)}}, nil); err != nil {
		t.Fatal(err)
	}
	check.OK(t, f.Close())
	fails(t, exitUsage, []string{"embed", "--checkpoint", ck, "--rows", wide}, "its rows have 7 numbers, and the head of the side image reads 6")
}

// An embed that is stopped has whole shards and no others, and the same command ends with the
// bytes of one that was not stopped.
func TestEmbedGoesOn(t *testing.T) {
	dir := t.TempDir()
	ck, photos := filepath.Join(dir, "run"), filepath.Join(dir, "photos")
	must(t, exitDone, tinyArgs(ck, "--quiet", "--max-steps", "2")...)
	writePictures(t, photos, 6)
	opened := check.Get(run.Open(ck, run.OpenOptions{}))(t)
	defer opened.Close()
	in, out, whole := embed.Inputs{Images: photos, Shard: 2}, filepath.Join(dir, "a"), filepath.Join(dir, "b")
	ctx, cancel := context.WithCancel(t.Context())
	calls := 0
	if _, err := embed.Files(ctx, opened, in, out, func(string, int, int) {
		if calls++; calls == 2 { // within the second shard
			cancel()
		}
	}); err == nil {
		t.Fatal("it was not stopped")
	}
	if m, err := gallery.ReadManifest(out); err != nil || len(m.Shards) < 1 || m.Complete {
		t.Fatalf("stopped: %+v, %v", m, err)
	}
	done, err := embed.Files(t.Context(), opened, in, out, nil)
	if err != nil || done.Kept < 1 || done.Shards != 3 {
		t.Fatalf("%+v: %v", done, err)
	}
	check.Get(embed.Files(t.Context(), opened, in, whole, nil))(t)
	list := check.Get(os.ReadDir(whole))(t)
	for _, e := range list {
		a, err1 := os.ReadFile(filepath.Join(out, e.Name()))
		b, err2 := os.ReadFile(filepath.Join(whole, e.Name()))
		if err1 != nil || err2 != nil || string(a) != string(b) {
			t.Errorf("%s differs: %v %v", e.Name(), err1, err2)
		}
	}
	if left, err := os.ReadDir(out); err != nil || len(left) != len(list) {
		t.Errorf("the folder has %v: %v", left, err)
	}
}

// The gallery of a split finds its model from whatever folder it is searched.
func TestSearchFromElsewhere(t *testing.T) {
	dir, config := t.TempDir(), absolutePath(t, tiny)
	t.Chdir(dir)
	must(t, exitDone, "train", "--config", config, "--out", "run", "--max-steps", "1", "--quiet")
	must(t, exitDone, "embed", "--checkpoint", "run", "--out", "gallery", "--quiet")
	t.Chdir(t.TempDir())
	hits(t, filepath.Join(dir, "gallery"), "--text", "a red circle", "--k", "1")
}

func absolutePath(t *testing.T, path string) string {
	t.Helper()
	return check.Get(filepath.Abs(path))(t)
}

// What is no UTF-8 would stand in a gallery as something else: it is refused by name, or left out.
func TestEmbedOfWhatIsNoUTF8(t *testing.T) {
	dir := t.TempDir()
	ck, photos, out := filepath.Join(dir, "run"), filepath.Join(dir, "photos"), filepath.Join(dir, "gallery")
	must(t, exitDone, tinyArgs(ck, "--quiet", "--max-steps", "1")...)
	writePictures(t, photos, 3)
	if err := os.Rename(filepath.Join(photos, "sub0", "00.png"), filepath.Join(photos, "sub0", "caf\xe9.png")); err != nil {
		t.Skip(err)
	}
	again := []string{"embed", "--checkpoint", ck, "--images", photos, "--out", out}
	fails(t, exitFailed, again, `caf\xe9.png: the name is not UTF-8: rename the file`, "--skip-bad")
	if err := os.Rename(filepath.Join(photos, "sub0", "02.png"), filepath.Join(photos, "sub0", "a\n 1.0\t7.png")); err != nil {
		t.Skip(err)
	}
	stdout, _ := must(t, exitDone, append(again, "--skip-bad")...)
	contains(t, stdout, "2 images", "1 left out")
	stdout, _ = must(t, exitDone, "search", out, "--row", "1")
	contains(t, stdout, `  sub0/a\n 1.0\t7.png`+"\n") // a name is not a further row
	texts := write(t, "texts.txt", "a red circle\ncaf\xe9\n")
	fails(t, exitFailed, []string{"embed", "--checkpoint", ck, "--texts", texts, "--out", filepath.Join(dir, "texts")}, `the text "caf\xe9" is not UTF-8`)
	fails(t, exitFailed, []string{"search", out, "--text", "caf\xe9"}, `the text "caf\xe9" is not UTF-8`)
}
