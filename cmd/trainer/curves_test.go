package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"image"
	"io/fs"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
)

var updateCurves = flag.Bool("update", false, "write testdata/curves anew")

// curve is what a short run of a shipped configuration said.
type curve struct {
	// Steps holds every figure of each step's row of the log but the clock's: the loss,
	// its parts as they are before their weights, grad_norm, temperature, lr, the shares
	// that the losses report, the graphs over the queue and, in the last row, the evaluation.
	Steps []map[string]float64 `json:"steps"`
	// Result holds the numbers that the command printed at the end, by their path.
	Result map[string]float64 `json:"result"`
}

// curveScale shrinks a shipped configuration to steps of some milliseconds. Everything
// happens within ten of them: the queue of 32 is read from step 4 on and full after it,
// so that the graphs over it are built before steps 5 and 9.
var (
	curveScale = []string{
		"run.seed=11", "compute.backend=plain", "compute.threads=1", "data.workers=1",
		"train.max_steps=10", "train.batch_size=8", "train.log_every_steps=1", "train.save_every_steps=0", "train.keep_best=0",
		"model.image.size=24", "model.image.depth=2", "model.image.width=32", "model.image.heads=2", "model.head.dim=16",
		"optimizer.lr=1e-3", "schedule.warmup_steps=2", "eval.batch_size=16",
	}
	curveTexts = []string{
		"model.text.width=32", "model.text.heads=2", "data.scenes.epoch_samples=72", "data.scenes.test_samples=48",
	}
	curveImages   = []string{"model.image.size=16", "model.head.hidden=32", "eval.probe_samples=48", "objective.itc.score=geodesic"}
	curveFeatures = []string{
		"data.pairs.image=image.safetensors", "data.pairs.text=text.safetensors", "data.pairs.val_samples=0", "data.pairs.test_samples=32",
		"model.image.patch=8", "model.heads.hidden=16", "objective.klot.rows=6", "objective.structure.weight=1", "objective.structure.hops=2", "objective.structure.warmup_steps=4",
	}
	curveHost     = []string{"model.head.dim=32", "model.interaction.sim_dim=12", "model.text.gru.embedding=16"}
	curveRegions  = []string{"model.text.width=16", "model.image.width=16", "model.text.gru.embedding=8", "data.scenes.epoch_samples=72", "data.scenes.test_samples=48", "objective.hinge.warmup_epochs=0"}
	curveMulti    = []string{"model.head.topology=Multi(4,4)"}
	curveMatching = []string{"eval.rerank_top=4"}
	curveQueue    = []string{"queue.size=32", "queue.start_steps=3", "momentum.ramp_steps=4"}
	curveDistill  = []string{"objective.distill.ramp_steps=8"}
	curveGraph    = []string{
		"objective.geodesic.layers=[2, 6]", "objective.geodesic.neighbours=3", "objective.geodesic.period_steps=4", "objective.geodesic.lag_steps=0",
	}
)

// curveRun is a shipped system: the file below configs that describes it and what is set
// beside it.
type curveRun struct {
	name, file string
	set        []string
}

// curveRuns returns every shipped system. images is a folder of images by class, judge
// a run folder, features a folder of stored ones.
func curveRuns(images, judge, features string) []curveRun {
	dual := slices.Concat(curveScale, curveTexts)
	albef := slices.Concat(dual, curveMatching, curveQueue, curveDistill)
	geodesic := slices.Concat(albef, curveGraph)
	views := slices.Concat(curveScale, curveImages, curveQueue, curveGraph, []string{"data.root=" + images})
	with := func(set []string, more ...string) []string { return slices.Concat(set, more) }
	return []curveRun{
		{"albef", "scenes", albef},
		{"albef-accumulate", "scenes", with(albef, "train.accumulate_steps=2")},
		{"clip", "clip", slices.Concat(dual, curveMulti)},
		{"clip-words-patches", "clip", with(dual, "model.head.topology=sphere", "objective.word_patch.weight=1", "objective.token_image.weight=1", "objective.text_swap.weight=1", "objective.text_swap.images=true")},
		{"geoalign", "geoalign", with(slices.Concat(geodesic, curveMulti), "objective.geometric.neighbours=3", "objective.geometric.pool=2")},
		{"geomm", "geomm", geodesic},
		{"geomm-clip", "geomm-clip", slices.Concat(dual, curveQueue, curveDistill, curveGraph)},
		{"geomm-flip", "geomm-flip", slices.Concat(dual, curveQueue, curveDistill, curveGraph)},
		{"geomm-mafa", "geomm-mafa", with(geodesic, "objective.mafa.connector="+judge, "objective.mafa.positive_above=0.5", "objective.mafa.negative_below=0.4")},
		{"geomm-tcl", "geomm-tcl", geodesic},
		{"gssf-sgraf", "gssf-sgraf", with(slices.Concat(dual, curveHost), "model.interaction.kind=sgr")},
		{"gssf-saf", "gssf-sgraf", with(slices.Concat(dual, curveHost), "model.interaction.kind=saf", "model.interaction.metric=both")},
		{"geomm-moco", "geomm-moco", views},
		{"geomm-swav", "geomm-swav", with(views, "objective.swav.prototypes=10")},
		{"moco-resnet", "moco-resnet", with(views, "model.image.resnet.width=4")},
		{"swav-resnet", "swav-resnet", with(views, "model.image.resnet.width=4", "data.crops.size=8", "data.crops.count=2", "objective.swav.prototypes=10")},
		{"gssf-esa", "gssf-esa", slices.Concat(curveScale, curveRegions)},
		{"gssf-vseinf", "gssf-vseinf", slices.Concat(curveScale, curveRegions)},
		{"gssf-vsrn", "gssf-vsrn", slices.Concat(curveScale, curveRegions, []string{"model.image.regions.layers=2", "objective.captioning.width=8", "objective.captioning.embedding=8"})},
		{"gssf-imram", "gssf-imram", with(dual, "model.text.gru.embedding=8", "model.head.dim=32", "model.interaction.metric=both", "objective.itc.score=gssf", "objective.gssf.blocks=4")},
		{"gssf-naaf", "gssf-naaf", with(dual, "model.text.gru.embedding=8", "model.head.dim=32", "train.batch_size=32", "model.interaction.metric=both", "objective.itc.score=gssf", "objective.gssf.blocks=4")},
		{"vipmm", "vipmm", with(slices.Concat(dual, []string{"queue.size=32", "queue.start_steps=3"}), "model.head.shared=24", "objective.adcl.dim=12", "objective.adcl.rank=3")},
		{"vipmm-static", "vipmm", with(slices.Concat(dual, curveQueue), "momentum.rule=static", "model.head.shared=0", "objective.adcl.fusion=attention")},
		{"simcse", "simcse", with(dual, "model.head.dim=32", "model.image.patch=8", "data.scenes.val_samples=48")},
		{"mcse", "mcse", with(dual, "data.scenes.val_samples=48")},
		{"nlvr", "nlvr", with(slices.Concat(dual, curvePictures), "momentum.enabled=true", "momentum.m=0.99", "momentum.ramp_steps=4", "objective.distill.alpha=0.2", "objective.distill.ramp_steps=8", "objective.distill.ramp_epochs=0")},
		{"assignment", "nlvr", with(slices.Concat(dual, curvePictures), "momentum.enabled=false", "objective.distill.alpha=0", "objective.nlvr.weight=0", "objective.assignment.weight=1", "data.kind=scenes")},
		{"sotalign", "sotalign", slices.Concat(curveScale, curveFeatures, []string{"data.root=" + features})},
	}
}

// curvePictures make configs/nlvr.toml start from random weights, all of which are trained.
var curvePictures = []string{"init.checkpoint=''", "init.new_words=0", "data.tokens=20", "model.image.freeze=false", "model.text.fusion_layers=1"}

// TestCurves trains each shipped system for ten small steps through the command line, and
// compares every number of its log and of its evaluation with testdata/curves/NAME.json,
// which this test wrote at an earlier revision:
//
//	go test ./cmd/trainer -run TestCurves -update
//
// The program runs on the kernels in Go, so that the numbers do not depend on the
// processor's vectors: on amd64 they are the same to curveTolerance, and with
// GOLDEN_EXACT=1 they must be the same bits, which is what a refactoring on one machine
// must keep. Other architectures fuse multiplications with additions. Features of an
// untrained model are all alike, so that a last digit of one becomes the fourth of
// a loss and another neighbour in a graph: there only the losses are compared, to
// curveElsewhere.
func TestCurves(t *testing.T) {
	judge := filepath.Join(t.TempDir(), "judge")
	curveRun{"judge", "scenes", append(slices.Concat(curveRuns("", "", "")[0].set),
		"train.max_steps=2", "data.scenes.min_objects=1", "data.scenes.max_objects=2")}.train(t, judge)
	for _, c := range curveRuns(classImages(t), judge, featuresFolder(t, 80, 12)) {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel() // a process of its own with one thread
			got := c.train(t, filepath.Join(t.TempDir(), "run"))
			path := filepath.Join("testdata", "curves", c.name+".json")
			if *updateCurves {
				got.save(t, path)
			}
			got.compare(t, loadCurve(t, path))
		})
	}
}

// train runs c into the folder out.
func (c curveRun) train(t *testing.T, out string) curve {
	t.Helper()
	args := []string{"train", "--config", filepath.Join("..", "..", "configs", c.file+".toml"), "--out", out, "--quiet", "--json"}
	args = append(args, sets(c.set...)...)
	code, stdout, stderr := spawn(t, []string{"GEOALIGN_CPU=plain"}, args...)
	if code != exitDone {
		t.Fatalf("%q: code %d\n%s", args, code, stderr)
	}
	got := curve{Result: map[string]float64{}}
	result := parseJSON(t, stdout)
	for _, counts := range []string{"confusion", "per_class"} { // of few images, and summed up in class_top1
		delete(result, counts)
	}
	numbers(got.Result, "", result)
	for _, r := range rows(t, out) {
		got.Steps = append(got.Steps, r.Values)
	}
	return got
}

// numbers collects the numbers in v by their path.
func numbers(into map[string]float64, path string, v any) {
	switch v := v.(type) {
	case float64:
		into[path] = v
	case map[string]any:
		for k, x := range v {
			numbers(into, strings.TrimPrefix(path+"/"+k, "/"), x)
		}
	case []any:
		for i, x := range v {
			numbers(into, fmt.Sprintf("%s/%d", path, i), x)
		}
	}
}

// save writes c, floats with all their digits.
func (c curve) save(t *testing.T, path string) {
	t.Helper()
	b := check.Get(json.MarshalIndent(c, "", " "))(t)
	check.OK(t, os.MkdirAll(filepath.Dir(path), 0o755))
	check.OK(t, os.WriteFile(path, append(b, '\n'), 0o644))
}

func loadCurve(t *testing.T, path string) (c curve) {
	t.Helper()
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("%v: go test ./cmd/trainer -run TestCurves -update writes it", err)
	}
	if err == nil {
		err = json.Unmarshal(b, &c)
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

const (
	curveTolerance = 1e-6 // relative to the number
	curveElsewhere = 1e-3 // of a loss, relative to the number or to 1, if that is more
)

// compare fails unless got has the figures of want and no others, at every step.
func (got curve) compare(t *testing.T, want curve) {
	t.Helper()
	allowed := func(name string, want float64) float64 {
		switch {
		case os.Getenv("GOLDEN_EXACT") == "1":
			return 0
		case runtime.GOARCH == "amd64":
			return curveTolerance * math.Abs(want)
		case strings.HasPrefix(name, "loss"):
			return curveElsewhere * max(math.Abs(want), 1)
		}
		return math.Inf(1)
	}
	figures := func(where string, got, want map[string]float64) {
		names := slices.Sorted(maps.Keys(want))
		if has := slices.Sorted(maps.Keys(got)); !slices.Equal(has, names) {
			t.Errorf("%s has the figures %v, want %v", where, has, names)
		}
		for _, name := range names {
			if g, w := got[name], want[name]; !(math.Abs(g-w) <= allowed(name, w)) {
				t.Errorf("%s: %s is %v, was %v", where, name, g, w)
			}
		}
	}
	if len(got.Steps) != len(want.Steps) {
		t.Fatalf("%d steps, want %d", len(got.Steps), len(want.Steps))
	}
	for i := range want.Steps {
		figures(fmt.Sprintf("step %d", i+1), got.Steps[i], want.Steps[i])
	}
	figures("result", got.Result, want.Result)
}

// classImages writes a folder of images by class, 24 to train on and 8 to test on: noise
// with a hint of the colour of the class.
func classImages(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	r := rand.New(rand.NewPCG(3, 4))
	for _, split := range []string{"train", "train", "train", "val", "test"} {
		for _, class := range colours {
			for range 2 {
				m := image.NewRGBA(image.Rect(0, 0, 16, 16))
				for i := 0; i < len(m.Pix); i += 4 {
					for k, v := range []uint8{class.c.R, class.c.G, class.c.B} {
						m.Pix[i+k] = v/16 + uint8(r.IntN(240))
					}
					m.Pix[i+3] = 255
				}
				addImage(t, filepath.Join(dir, split, class.name), m)
			}
		}
	}
	return dir
}

// addImage adds m to a folder, named by the number of images that are there.
func addImage(t *testing.T, dir string, m image.Image) {
	t.Helper()
	check.OK(t, os.MkdirAll(dir, 0o755))
	writeImage(t, filepath.Join(dir, fmt.Sprintf("%02d.png", len(names(t, dir)))), m)
}
