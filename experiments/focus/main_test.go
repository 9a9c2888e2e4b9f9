package main

import (
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/stat"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data/scenes"
	"github.com/geoalign/geoalign/data/source"
	"github.com/geoalign/geoalign/data/transform"
	heat "github.com/geoalign/geoalign/explain"
	"github.com/geoalign/geoalign/run"
	"github.com/geoalign/geoalign/run/explain"
)

// TestModelsLookAtWhatIsNamed trains a smaller model than focus.toml's for some seconds: its maps have
// several times more of their mass in the box of the object that a text names than the box has of the
// picture, and more than in the box of another object.
func TestModelsLookAtWhatIsNamed(t *testing.T) {
	dir := trainedWith(t, "focus.toml", "run.seed=1", "model.system=clip", "model.text.fusion_layers=0",
		"objective.itm.weight=0", "eval.rerank_top=0", "data.scenes.min_objects=1", "data.scenes.test_samples=40",
		"model.image.size=32", "model.image.patch=4", "model.image.width=32", "model.text.width=32",
		"model.text.layers=1", "model.head.dim=32", "optimizer.lr=3e-3", "train.batch_size=32", "train.max_steps=200")
	found := measured(t, dir, 40)
	for formula, least := range map[string]float64{explain.FormulaChannels: 4, explain.FormulaElementwise: 4, explain.FormulaGradCAM: 2} {
		if f := found[formula]; !(f[2] >= least && f[0] >= 1.5*f[3]) {
			t.Errorf("%s: %.3f %% of the mass in boxes that have %.3f %% of the picture, %.3f %% in those of other objects", formula, f[0], f[1], f[3])
		}
	}
	if worth := found["words"][0]; !(worth >= 0.3) {
		t.Errorf("the shares of words go with what the score loses without them by a correlation of %.2f", worth)
	}
}

// TestWordsOfThreeObjects: a caption of three objects that is not cleaned has a comma, which the model reads as a word
// and which has a share of its own.
func TestWordsOfThreeObjects(t *testing.T) {
	dir := trainedWith(t, "focus.toml", "run.seed=1", "compute.threads=1", "model.system=clip",
		"model.text.fusion_layers=0", "objective.itm.weight=0", "eval.rerank_top=0", "data.scenes.min_objects=3",
		"data.scenes.max_objects=3", "data.scenes.test_samples=40", "data.tokens=40", "data.clean=none",
		"model.text.positions=40", "model.image.size=32", "model.image.patch=8", "model.image.width=32",
		"model.text.width=32", "train.batch_size=16", "train.max_steps=1")
	model, err := run.Open(dir, run.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer model.Close()
	x, err := explain.New(model, explain.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w, err := source.World(model.Config.Source())
	if err != nil {
		t.Fatal(err)
	}
	scene, img := w.Test(0), transform.NewImage(32, 32)
	scene.RenderRGB(img.Pix, img.W)
	score := func(words []string) explain.Relevance {
		if err := x.Set(img, strings.Join(words, " ")); err != nil {
			t.Fatal(err)
		}
		s, err := x.Pair(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	whole := score([]string{scene.Caption(nil)})
	var read []string
	var shares, losses []float64
	for i, s := range heat.Shares(whole.Words) {
		if !whole.Words[i].Special {
			read, shares = append(read, whole.Words[i].Text), append(shares, s)
		}
	}
	if !slices.Contains(read, ",") {
		t.Fatalf("no comma among %q", read)
	}
	for i := range read {
		without := slices.Clone(read)
		without[i] = absent
		losses = append(losses, whole.Score-score(without).Score)
	}
	if got, err := words(x, img, scene.Caption(nil)); err != nil ||
		!(math.Abs(got-stat.Correlation(shares, losses, nil)) < 1e-9) {
		t.Errorf("correlation %v, %v, want %v", got, err, stat.Correlation(shares, losses, nil))
	}
}

// TestTally: an object that is alone in its scene says nothing of the boxes of others.
func TestTally(t *testing.T) {
	left, right := scenes.Object{Place: 0}, scenes.Object{Place: 2}
	even := heat.Map{Values: []float64{1}, Rows: 1, Columns: 1}
	var x tally
	x.add(even, []scenes.Object{left}, 0)
	x.add(even, []scenes.Object{left, right}, 0)
	b := right.Box()
	if got, want := x.mean().others, (b.X1-b.X0)*(b.Y1-b.Y0); x.n != 2 || !(math.Abs(got-want) < 1e-12) {
		t.Errorf("of %v maps %v in the boxes of others, want %v", x.n, got, want)
	}
}

// TestWithin counts patches by the part of them that a box covers.
func TestWithin(t *testing.T) {
	m := heat.Map{Values: []float64{3, -9, 0, 1}, Rows: 2, Columns: 2}
	mass, area, most := within(m, scenes.Box{X0: 0.25, Y0: 0, X1: 1, Y1: 1})
	if mass != (1.5+1)/4 || area != 0.75 || !most {
		t.Errorf("mass %v, area %v, peak %t", mass, area, most)
	}
	if mass, area, most = within(heat.Map{Values: []float64{-1}, Rows: 1, Columns: 1}, scenes.Box{X1: 0.5, Y1: 1}); mass != 0.5 || area != 0.5 || most {
		t.Errorf("nothing above 0 counts as even: mass %v, area %v, peak %t", mass, area, most)
	}
}

// trained trains a smaller model than that of a configuration for some steps.
func trained(t *testing.T, file string, steps string) string {
	t.Helper()
	return trainedWith(t, filepath.Join("..", "..", "configs", file), "run.seed=1", "compute.threads=1",
		"data.scenes.test_samples=60", "data.scenes.epoch_samples=320", "model.image.width=64", "model.text.width=64",
		"model.head.dim=64", "model.text.gru.embedding=32", "optimizer.lr=3e-3", "train.batch_size=32",
		"train.max_steps="+steps, "eval.batch_size=60")
}

// trainedWith trains by a configuration with settings over it, and returns the run folder.
func trainedWith(t *testing.T, file string, sets ...string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run")
	cfg, err := config.Load(file, append(sets, "run.out="+dir))
	if err != nil {
		t.Fatal(err)
	}
	r, err := run.New(t.Context(), cfg, run.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := r.Train(t.Context()); err != nil {
		t.Fatal(err)
	}
	return dir
}

// measured is what was measured of a run, by what it is called.
func measured(t *testing.T, dir string, n int) map[string][]float64 {
	t.Helper()
	lines, err := measure(dir, n)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string][]float64{}
	for _, l := range lines {
		found[l.what] = l.values
	}
	return found
}

// TestStrongestRegionIsTheNamedOne: of a model of regions that has learned for some seconds the strongest
// region of a name is the object that it names, nearly always, of one that has not learned not often.
func TestStrongestRegionIsTheNamedOne(t *testing.T) {
	const host = "gssf-scan.toml"
	late, early := measured(t, trained(t, host, "120"), 60), measured(t, trained(t, host, "1"), 60)
	for _, w := range []way{{"name alone", explain.FormulaElementwise}, {inCaption, "attention"}, {inCaption, explain.FormulaTerms}} {
		a, b := late[w.text+", "+w.by], early[w.text+", "+w.by]
		if !(a[0] >= 85 && b[0] <= 75 && a[1] > 33 && a[1] < 50) || a[2] != b[2] {
			t.Errorf("%v: right %%, chance %% and names: %v, before training %v", w, a, b)
		}
	}
}
