package run

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/regions"
)

// TestGrid: cells of 3 x 3 patches behind a class token, as means, and their boxes.
func TestGrid(t *testing.T) {
	g := grid{side: 3, cells: 2, first: 1, width: 1}
	tokens, dst := []float32{99, 1, 2, 3, 4, 5, 6, 7, 8, 9}, make([]float32, 4)
	g.pool(tokens, dst)
	if want := []float32{1, 2.5, 5.5, 7}; !slices.Equal(dst, want) {
		t.Errorf("cells %v, want %v", dst, want)
	}
	third := float32(1) / 3
	if got, want := g.boxes(), []float32{0, 0, third, third, third, 0, 1, third, 0, third, third, 1, third, third, 1, 1}; !slices.Equal(got, want) {
		t.Errorf("boxes %v, want %v", got, want)
	}
}

// TestWriteRegions: the files of a checkpoint hold the patches that its tower gives, and of a tower of stored weights its own.
func TestWriteRegions(t *testing.T) {
	dir, out := t.TempDir(), t.TempDir()
	trained(t, settings(t, dir, "train.max_steps=1"), Options{})
	o, err := Open(dir, OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	done, err := o.WriteRegions(t.Context(), RegionOptions{Split: "val", Out: out})
	if err != nil {
		t.Fatal(err)
	}
	set, err := regions.Load(regions.Config{
		Features: filepath.Join(out, "dev_ims.npy"), Boxes: filepath.Join(out, "dev_boxes.npy"), Captions: filepath.Join(out, "dev_caps.txt"), IDs: filepath.Join(out, "dev_ids.txt"),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	split, err := o.Split(t.Context(), "val", nil)
	if err != nil {
		t.Fatal(err)
	}
	if set.Len() != split.Len() || done.Images != set.Len() {
		t.Fatalf("%d images of %d", set.Len(), split.Len())
	}
	image := o.Model.Image()
	b := batch.New(1, image.Columns()...)
	last := set.Len() - 1
	if err := split.Images().Fill(last, b.Row(0)); err != nil {
		t.Fatal(err)
	}
	states, _, err := image.Encode(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	row := batch.New(1, set.ImageColumns()...).Row(0)
	if err := set.FillImage(last, row); err != nil {
		t.Fatal(err)
	}
	patches := states[len(states)-done.Regions*done.Width:]
	for k, v := range row.Floats(batch.Regions) {
		if !(math.Abs(float64(v-patches[k])) <= 1e-5) {
			t.Fatalf("number %d of the last image is %v, the tower gives %v", k, v, patches[k])
		}
	}
	if set.ImageID(last) != split.ImageID(last) || data.CleanCaption(set.Captions(last)[0], 0) != split.Eval.Text(last) {
		t.Errorf("id %d, caption %q", set.ImageID(last), set.Captions(last)[0])
	}

	vit := stored(t, "vit")
	if err := os.Remove(filepath.Join(vit, "vocab.txt")); err != nil {
		t.Fatal(err)
	}
	sets := []string{"model.system=clip", "model.text.fusion_layers=0", "objective.itm.weight=0", "objective.mlm.weight=0", "model.image.size=16", "init.image.path=" + vit}
	write := func(sets []string) error {
		_, err := WriteRegionsOf(t.Context(), settings(t, dir, sets...), RegionOptions{Split: "val", Grid: 2, Out: out}, nil)
		return err
	}
	if err = write(sets); err == nil || !strings.Contains(err.Error(), "model.image.width: must be 8") {
		t.Fatal(err)
	}
	if err = write(append(sets, flags(t, err)...)); err != nil {
		t.Fatal(err)
	}
	f, err := regions.OpenFeatures(filepath.Join(out, "dev_ims.npy"), "", "")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if f.Most() != 4 || f.Width() != 8 || f.Len() != set.Len() {
		t.Errorf("%d images of %d regions with %d features", f.Len(), f.Most(), f.Width())
	}
	if err := write(sets[:len(sets)-1]); err == nil || !strings.Contains(err.Error(), "init.image.path: must name") {
		t.Error(err)
	}
}

// TestRegionsOfResNet: the grid of a residual network is that of the places of its last layer, whatever model.image.patch says.
func TestRegionsOfResNet(t *testing.T) {
	dir := t.TempDir()
	trained(t, settings(t, dir, "model.system=clip", "model.text.fusion_layers=0", "objective.itm.weight=0", "objective.mlm.weight=0", "momentum.enabled=false", "queue.size=0", "objective.itc.weight=0",
		"objective.itc.in_batch_weight=1", "objective.distill.alpha=0", "model.image.style=resnet", "model.image.size=24", "model.image.patch=12", "model.image.resnet.depth=18", "model.image.resnet.width=2",
		"model.image.resnet.small_stem=true", "train.max_steps=1"), Options{})
	o, err := Open(dir, OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	done, err := o.WriteRegions(t.Context(), RegionOptions{Split: "val", Out: filepath.Join(dir, "regions")})
	if err != nil || done.Regions != 9 { // 24 pixels, of which 8 are a place
		t.Errorf("%d regions, error %v", done.Regions, err)
	}
}

// TestRegionsOfScenesTrain: regions beside pictures, with a vocabulary of words, in a run that is stored and goes on.
func TestRegionsOfScenesTrain(t *testing.T) {
	dir := t.TempDir()
	sets := []string{"data.kind=regions", "data.regions.source=scenes", "data.clean=none", "model.system=clip", "model.text.fusion_layers=0", "objective.itm.weight=0", "objective.mlm.weight=0", "train.max_steps=2"}
	want := trained(t, settings(t, dir, sets...), Options{})
	o, err := Open(dir, OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	s, err := o.Evaluate(t.Context(), TaskRetrieval, "val", nil)
	if err != nil || s.(Retrieval).First != want.Scores.(Retrieval).First {
		t.Errorf("%v, error %v, want %v", s, err, want.Scores)
	}
	if got := DescribeTokenizer(o.Tokenizer); got.Kind != "WordLevel" || got.Pad != "<pad>" {
		t.Errorf("tokenizer %v", got)
	}
}
