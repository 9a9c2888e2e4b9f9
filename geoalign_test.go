package geoalign

import (
	"context"
	"fmt"
	"image"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/run/convert"
	"github.com/geoalign/geoalign/weights/hub/hubtest"
	"github.com/geoalign/geoalign/weights/weightstest"
)

// TestTexts: a text has one row, whatever stands beside it, in whatever goroutine, of weights and of a run made of them, in memory
// of the caller's own.
func TestTexts(t *testing.T) {
	from, dir := weightstest.Stored(t, "bert"), filepath.Join(t.TempDir(), "run")
	check.Get(convert.Import(t.Context(), convert.ImportOptions{From: from, Out: dir}))(t)
	texts := []string{"a red square", "", "blue", "the circle left of a small triangle", "red red red", "blue"}
	var first Matrix
	for _, path := range []string{from, dir} {
		enc := check.Get(OpenEncoder(path))(t)
		if enc.Dim() != 8 {
			t.Errorf("%s: %d numbers", path, enc.Dim())
		}
		all := check.Get(enc.Texts(t.Context(), texts))(t)
		if first.Data == nil {
			first = all
		}
		if all.Rows != len(texts) || !slices.Equal(all.Row(2), all.Row(5)) || slices.Equal(all.Row(0), all.Row(2)) {
			t.Errorf("%s: %v", path, all)
		}
		var group sync.WaitGroup
		for i, text := range texts {
			group.Go(func() {
				one, err := enc.Texts(t.Context(), []string{text})
				if err != nil || one.Rows != 1 {
					t.Errorf("%v, %v", one, err)
					return
				}
				for c, v := range one.Data {
					if !(math.Abs(float64(v-first.Row(i)[c])) < 1e-6) {
						t.Errorf("%s: %q alone has %v, among others %v", path, text, one.Data, first.Row(i))
						return
					}
				}
			})
		}
		group.Wait()
		none := check.Get(enc.Texts(t.Context(), nil))(t)
		if none.Rows != 0 || len(none.Data) != 0 {
			t.Errorf("no texts have %v", none)
		}
		_, err := enc.Images(t.Context(), []image.Image{image.NewGray(image.Rect(0, 0, 4, 4))})
		check.Error(t, err, `geoalign: model.system "text_encoder" has no images: encode texts`)
		check.OK(t, enc.Close())
	}
}

// TestInt8: weights and a run made of them give the same vectors in int8, which are near those of float32 and not the same.
func TestInt8(t *testing.T) {
	from, dir := weightstest.Stored(t, "bert"), filepath.Join(t.TempDir(), "run")
	check.Get(convert.Import(t.Context(), convert.ImportOptions{From: from, Out: dir}))(t)
	var rows []Matrix
	for _, open := range [][]string{{from, "fp32"}, {from, "int8"}, {dir, "int8"}} {
		enc := check.Get(OpenEncoder(open[0], Set("compute.precision="+open[1])))(t)
		rows = append(rows, check.Get(enc.Texts(t.Context(), []string{"a red square"}))(t))
		check.OK(t, enc.Close())
	}
	if c := Similarity(rows[0], rows[1]).Data[0]; !(c > 0.99) || slices.Equal(rows[0].Data, rows[1].Data) ||
		!slices.Equal(rows[1].Data, rows[2].Data) {
		t.Errorf("cosine %v of %v", c, rows)
	}
}

// TestImages: of a dual encoder both sides have rows of one space.
func TestImages(t *testing.T) {
	enc := check.Get(OpenEncoder(weightstest.Stored(t, "clip"), Set("data.tokens=6")))(t)
	defer enc.Close()
	picture := image.NewGray(image.Rect(0, 0, 9, 5))
	for i := range picture.Pix {
		picture.Pix[i] = byte(37 * i)
	}
	images := check.Get(enc.Images(t.Context(), []image.Image{picture, picture}))(t)
	texts := check.Get(enc.Texts(t.Context(), []string{"a red square"}))(t)
	if s := Similarity(images, texts); s.Rows != 2 || s.Dim != 1 || s.Data[0] != s.Data[1] || !(math.Abs(float64(s.Data[0])) <= 1) {
		t.Errorf("%v", s)
	}
	_, err := enc.ImageFiles(t.Context(), []string{"nowhere.png"})
	check.Error(t, err, "nowhere.png")
}

// TestSimilarity compares with cosines by hand.
func TestSimilarity(t *testing.T) {
	a := Matrix{2, 2, []float32{3, 4, 0, 0}}
	b := Matrix{3, 2, []float32{3, 4, 4, -3, -6, -8}}
	if s := Similarity(a, b); !slices.Equal(s.Data, []float32{1, 0, -1, 0, 0, 0}) || s.Rows != 2 || s.Dim != 3 {
		t.Errorf("%v", s)
	}
}

// TestExample: the program of examples/encode, a module of its own, builds and compares texts.
func TestExample(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a program")
	}
	dir, root := t.TempDir(), check.Get(filepath.Abs("."))(t)
	example, bin := filepath.Join(root, "examples", "encode"), filepath.Join(dir, "encode")
	// In a workspace with this module, whose packages are built already.
	check.OK(t, os.WriteFile(filepath.Join(dir, "go.work"), fmt.Appendf(nil, "go 1.26.0\nuse (\n%q\n%q\n)\n", root, example), 0o666))
	check.OK(t, os.WriteFile(filepath.Join(dir, "go.work.sum"), check.Get(os.ReadFile("go.sum"))(t), 0o666))
	cmd := exec.Command("go", "build", "-o", bin, ".")
	cmd.Dir, cmd.Env = example, append(os.Environ(), "GOWORK="+filepath.Join(dir, "go.work"))
	if msg, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, msg)
	}
	said, err := exec.Command(bin, weightstest.Stored(t, "bert"), "a red square", "blue").CombinedOutput()
	if err != nil || !strings.HasPrefix(string(said), " 1.000  a red square\n") || !strings.HasSuffix(string(said), "  blue\n") {
		t.Errorf("%v: %s", err, said)
	}
}

// TestOpenRefused: what cannot be opened says why.
func TestOpenRefused(t *testing.T) {
	t.Setenv("HF_HUB_OFFLINE", "1")
	t.Setenv("HF_HUB_CACHE", t.TempDir())
	for path, want := range map[string]string{
		"nobody/nothing": `geoalign: there is no file or folder "nobody/nothing" here: `, t.TempDir(): "has no weights",
	} {
		if _, err := OpenEncoder(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", path, err)
		}
	}
	_, err := OpenEncoder(weightstest.Stored(t, "bert"), Prompt("query"))
	check.Error(t, err, "data.prompt: names a prompt, and the encoder has none")
}

// TestFetch: a name is fetched from the hub, from which a context ends it, and is then used without it.
func TestFetch(t *testing.T) {
	from := weightstest.Stored(t, "bert")
	content := map[string]string{}
	for _, e := range check.Get(os.ReadDir(from))(t) {
		content[e.Name()] = string(check.Get(os.ReadFile(filepath.Join(from, e.Name())))(t))
	}
	site := hubtest.New(t, "0123456789abcdef0123456789abcdef01234567", content)
	t.Setenv("HF_ENDPOINT", site.Hub.URL)
	t.Setenv("HF_HUB_CACHE", t.TempDir())
	t.Setenv("HF_HUB_OFFLINE", "")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	check.Fails(OpenEncoder("org/tiny", Context(ctx)))(t, "context canceled")
	var rows [2]Matrix
	for i, name := range []string{"org/tiny", from} {
		enc := check.Get(OpenEncoder(name, Context(t.Context())))(t)
		rows[i] = check.Get(enc.Texts(t.Context(), []string{"a red square"}))(t)
		check.OK(t, enc.Close())
	}
	if !slices.Equal(rows[0].Data, rows[1].Data) {
		t.Errorf("by its name %v, by its folder %v", rows[0].Data, rows[1].Data)
	}
}
