package train

import (
	"context"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/compute"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data/source"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/safetensors"
)

// featureFolder writes n rows of 5 and 4 numbers with a large common direction, as they are or,
// with centre, minus the mean of the first seen rows and of unit length.
func featureFolder(t *testing.T, n, seen int, centre bool) string {
	t.Helper()
	dir, r := t.TempDir(), rand.New(rand.NewPCG(7, 1))
	for _, side := range []struct {
		name string
		d    int
	}{{"image", 5}, {"text", 4}} {
		x, mean := make([]float32, n*side.d), make([]float64, side.d)
		for i := range x {
			x[i] = float32(2 + r.NormFloat64())
			if i < seen*side.d {
				mean[i%side.d] += float64(x[i]) / float64(seen)
			}
		}
		for row := range slices.Chunk(x, side.d) {
			if !centre {
				break
			}
			var sq float64
			for j, m := range mean {
				row[j] -= float32(m)
				sq += float64(row[j]) * float64(row[j])
			}
			for j := range row {
				row[j] /= float32(math.Sqrt(sq))
			}
		}
		f := check.Get(os.Create(filepath.Join(dir, side.name+".safetensors")))(t)
		check.OK(t, safetensors.Write(f, []safetensors.Tensor{{Name: "rows", Shape: []int{n, side.d}, Data: x}}, nil))
		check.OK(t, f.Close())
	}
	return dir
}

// headsOver returns a session of heads over the features of a folder, with every loss that reads
// rows besides those of samples.
func headsOver(t *testing.T, dir string, sets ...string) *Session {
	t.Helper()
	cfg, err := config.Load("../configs/heads.toml", slices.Concat([]string{"data.root=" + dir, "data.pairs.image=image.safetensors", "data.pairs.text=text.safetensors",
		"data.pairs.hold=last", "data.pairs.val_samples=0", "data.pairs.test_samples=10", "data.pairs.paired=20", "model.heads.in_image=5", "model.heads.in_text=4", "model.heads.hidden=8", "model.head.dim=6",
		"train.batch_size=10", "objective.klot.weight=1", "objective.klot.rows=6", "objective.geometric.weight=1", "objective.geometric.neighbours=4", "objective.structure.weight=1"}, sets))
	if err != nil {
		t.Fatal(err)
	}
	engine := check.Get(compute.New(compute.Options{Backend: "builtin", Threads: 2}))(t)
	t.Cleanup(engine.Close)
	stream := check.Get(source.Stream(context.Background(), cfg.Source(), source.Options{Engine: engine}))(t)
	m := check.Get(NewModel(cfg, ModelOptions{Engine: engine, Stream: stream}))(t)
	s := check.Get(NewSession(cfg, Options{Engine: engine, Model: m, Stream: stream}))(t)
	t.Cleanup(func() { s.Close() })
	return s
}

// TestCentredFeatures: heads that centre features train as heads over features that were centred
// before, whatever else a loss reads of them.
func TestCentredFeatures(t *testing.T) {
	const n, seen = 50, 40
	raw := headsOver(t, featureFolder(t, n, seen, false), "model.heads.center=true")
	before := headsOver(t, featureFolder(t, n, seen, true))
	plain := headsOver(t, featureFolder(t, n, seen, false))
	mean := paramValue(t, raw, "image/shift")
	for step := range 4 {
		a, b, c := raw.must(t, step), before.must(t, step), plain.must(t, step)
		for i, p := range a.Parts {
			q := b.Parts[i]
			if p.Name != q.Name || !(math.Abs(p.Value-q.Value) <= 1e-4*max(1e-2, math.Abs(q.Value))) {
				t.Errorf("step %d: %s is %v, of features centred before %s %v", step, p.Name, p.Value, q.Name, q.Value)
			}
		}
		if a.Loss == c.Loss {
			t.Errorf("step %d: loss %v of features that are not centred too", step, a.Loss)
		}
	}
	if !slices.Equal(paramValue(t, raw, "image/shift"), mean) {
		t.Error("the mean was trained")
	}
}

// paramValue returns a copy of a parameter.
func paramValue(t *testing.T, s *Session, name string) []float32 {
	t.Helper()
	q, ok := s.model.Params().Get(name)
	if !ok {
		t.Fatalf("no parameter %s", name)
	}
	return slices.Clone(s.model.Params().Value(q))
}

// TestCentreIsOfTheData: a run that starts from a checkpoint takes its heads, and not the mean of
// the features that they were trained on.
func TestCentreIsOfTheData(t *testing.T) {
	first := headsOver(t, featureFolder(t, 50, 40, false), "model.heads.center=true")
	first.must(t, 0)
	c := first.save(t, t.TempDir(), 1)
	second := headsOver(t, featureFolder(t, 60, 50, false), "model.heads.center=true")
	mean := paramValue(t, second, "image/shift")
	if r, err := InitModel(second.model, c, second.cfg.Model); err != nil || len(r.Fresh)+len(r.Unused) != 0 {
		t.Fatalf("%v %+v", err, r)
	}
	if !slices.Equal(paramValue(t, second, "image/shift"), mean) || slices.Equal(paramValue(t, first, "image/shift"), mean) {
		t.Error("the mean is that of the checkpoint")
	}
	if !slices.Equal(paramValue(t, second, "image_head/fc1/weight"), paramValue(t, first, "image_head/fc1/weight")) {
		t.Error("the head is not that of the checkpoint")
	}
}
