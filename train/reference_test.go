package train

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/align"
	"github.com/geoalign/geoalign/compute"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data/source"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/safetensors"
	"github.com/geoalign/geoalign/model"
)

// referred writes n pairs of features and returns heads over them that train by objective.klot.
func referred(t *testing.T, n int, sets ...string) config.Config {
	t.Helper()
	dir, r := t.TempDir(), rand.New(rand.NewPCG(7, 1))
	for name, d := range map[string]int{"image": 5, "text": 4} {
		x := make([]float32, n*d)
		for i := range x {
			x[i] = float32(r.NormFloat64())
		}
		f := check.Get(os.Create(filepath.Join(dir, name+".safetensors")))(t)
		check.OK(t, safetensors.Write(f, []safetensors.Tensor{{Name: "rows", Shape: []int{n, d}, Data: x}}, nil))
		check.OK(t, f.Close())
	}
	cfg, err := config.Load("../configs/heads.toml", slices.Concat([]string{"data.root=" + dir, "data.pairs.image=image.safetensors", "data.pairs.text=text.safetensors",
		"data.pairs.val_samples=6", "data.pairs.test_samples=7", "model.heads.in_image=5", "model.heads.in_text=4", "objective.klot.weight=1", "objective.klot.rows=3"}, sets))
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// TestRefer: the alignment is that of the training pairs within their budget, and further rows are
// drawn from all that training may see.
func TestRefer(t *testing.T) {
	e := check.Get(compute.New(compute.Options{Threads: 1}))(t)
	defer e.Close()
	for name, method := range map[string]align.Method{"cca": align.CCA{}, "procrustes": align.Procrustes{}} {
		cfg := referred(t, 40, "objective.klot.reference="+name, "data.pairs.paired=20")
		o := model.Options{Engine: e}
		check.OK(t, refer(&o, cfg, nil))
		p := check.Get(source.OpenPairs(cfg.Source()))(t)
		pairs := check.Get(TrainingPairs(p))(t)
		if pairs.Len() != 20 || o.ImagePool.Rows() != 27 || o.TextPool.Rows() != 27 || o.ImagePool.Width() != 5 || o.TextPool.Width() != 4 {
			t.Fatalf("%s: %d pairs, pools of %d and %d rows", name, pairs.Len(), o.ImagePool.Rows(), o.TextPool.Rows())
		}
		m := check.Get(method.Fit(e, pairs))(t)
		for side, layer := range map[align.Side][2][]float32{align.Image: {o.Reference.Image.Weight, o.Reference.Image.Bias}, align.Text: {o.Reference.Text.Weight, o.Reference.Text.Bias}} {
			if weight, bias := m.(*align.Linear).Layer(side); !slices.Equal(layer[0], weight) || !slices.Equal(layer[1], bias) {
				t.Errorf("%s: the %s layer is not that of the training pairs", name, side)
			}
		}
		check.OK(t, p.Close())
	}
	o := model.Options{Engine: e}
	check.Error(t, refer(&o, referred(t, 14), nil), "objective.klot.reference: ", "at least 2 pairs (got 1)")
	if err := refer(&o, referred(t, 14, "objective.klot.weight=0"), nil); err != nil || o.Reference != nil {
		t.Errorf("without the loss: %v", err)
	}
}
