package run_test

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/regions"
	"github.com/geoalign/geoalign/export"
	"github.com/geoalign/geoalign/gallery"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/safetensors"
	"github.com/geoalign/geoalign/run"
	"github.com/geoalign/geoalign/run/convert"
	"github.com/geoalign/geoalign/run/embed"
	training "github.com/geoalign/geoalign/train"
	"github.com/geoalign/geoalign/train/checkpoint"
	"github.com/geoalign/geoalign/weights/weightstest"
)

var (
	settings, trained, pictured       = run.Settings, run.TrainedTo, run.PictureList
	regionFiles, parquetPairs, copies = run.RegionFiles, run.ParquetPairs, run.Copies
	host                              = run.Host
)

// A split is embedded without the pictures that cannot be read.
func TestEmbedWithoutUnreadablePictures(t *testing.T) {
	root, dir := t.TempDir(), t.TempDir()
	trained(t, settings(t, dir, "data.kind=captions", "data.root="+root, "train.batch_size=6", "train.max_steps=1", "data.max_bad_share=0.25",
		"data.captions.train_files="+pictured(t, root, "train", 12, nil, nil, false), "data.captions.val_files="+pictured(t, root, "val", 13, []int{4, 11}, []int{7}, false)), run.Options{})
	m := check.Get(run.Open(dir, run.OpenOptions{}))(t)
	defer m.Close()
	done := check.Get(embed.Split(t.Context(), m, "val", "", 0, nil))(t)
	if done.Images != 10 || done.Texts != 20 || done.LeftOut != 3 || done.Account.Unused() != 3 || !strings.Contains(done.Account.String(), "13 images: 10 used; left out: ") {
		t.Errorf("%+v, %s", done, done.Account)
	}
	names, err := os.ReadFile(filepath.Join(done.Path, embed.ImagesFile))
	if err != nil || strings.Count(string(names), "\n") != 10 || strings.Contains(string(names), "004.png") {
		t.Errorf("%s, %v", names, err)
	}
	if s, err := m.Evaluate(t.Context(), "", "val", nil); err != nil || m.LeftOut() != 3 || s.Size() != "10 images, 20 texts" {
		t.Errorf("%v, %d left out, %v", s, m.LeftOut(), err)
	}
}

// TestWriteRegions: the files of a checkpoint hold the patches that its tower gives, and of a tower of stored weights its own.
func TestWriteRegions(t *testing.T) {
	dir, out := t.TempDir(), t.TempDir()
	trained(t, settings(t, dir, "train.max_steps=1"), run.Options{})
	o, err := run.Open(dir, run.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	done := check.Get(embed.WriteRegions(t.Context(), o, embed.RegionOptions{Split: "val", Out: out}))(t)
	set := check.Get(regions.Load(regions.Config{
		Features: filepath.Join(out, "dev_ims.npy"), Boxes: filepath.Join(out, "dev_boxes.npy"), Captions: filepath.Join(out, "dev_caps.txt"), IDs: filepath.Join(out, "dev_ids.txt"),
	}))(t)
	defer set.Close()
	split := check.Get(o.Split(t.Context(), "val", nil))(t)
	if set.Len() != split.Len() || done.Images != set.Len() {
		t.Fatalf("%d images of %d", set.Len(), split.Len())
	}
	image := o.Model.Image()
	b := batch.New(1, image.Columns()...)
	last := set.Len() - 1
	check.OK(t, split.Images().Fill(last, b.Row(0)))
	states, _ := check.Get2(image.Encode(t.Context(), b))(t)
	row := batch.New(1, set.ImageColumns()...).Row(0)
	check.OK(t, set.FillImage(last, row))
	patches := states[len(states)-done.Regions*done.Width:]
	for k, v := range row.Floats(batch.Regions) {
		if !(math.Abs(float64(v-patches[k])) <= 1e-5) {
			t.Fatalf("number %d of the last image is %v, the tower gives %v", k, v, patches[k])
		}
	}
	if set.ImageID(last) != split.ImageID(last) || data.CleanCaption(set.Captions(last)[0], 0) != split.Eval.Text(last) {
		t.Errorf("id %d, caption %q", set.ImageID(last), set.Captions(last)[0])
	}

	vit := weightstest.Stored(t, "vit")
	check.OK(t, os.Remove(filepath.Join(vit, "vocab.txt")))
	sets := []string{"model.system=clip", "model.text.fusion_layers=0", "objective.itm.weight=0", "objective.mlm.weight=0", "model.image.size=16", "init.image.path=" + vit}
	write := func(sets []string) error {
		_, err := embed.WriteRegionsOf(t.Context(), settings(t, dir, sets...), embed.RegionOptions{Split: "val", Grid: 2, Out: out}, nil)
		return err
	}
	if err = write(sets); err == nil || !strings.Contains(err.Error(), "model.image.width: must be 8") {
		t.Fatal(err)
	}
	check.OK(t, write(append(sets, weightstest.Flags(t, err)...)))
	f := check.Get(regions.OpenFeatures(filepath.Join(out, "dev_ims.npy"), "", ""))(t)
	defer f.Close()
	if f.Most() != 4 || f.Width() != 8 || f.Len() != set.Len() {
		t.Errorf("%d images of %d regions with %d features", f.Len(), f.Most(), f.Width())
	}
	check.Error(t, write(sets[:len(sets)-1]), "init.image.path: must name")
}

// TestRegionsOfResNet: the grid of a residual network is that of the places of its last layer, whatever model.image.patch says.
func TestRegionsOfResNet(t *testing.T) {
	dir := t.TempDir()
	trained(t, settings(t, dir, "model.system=clip", "model.text.fusion_layers=0", "objective.itm.weight=0", "objective.mlm.weight=0", "momentum.enabled=false", "queue.size=0", "objective.itc.weight=0",
		"objective.itc.in_batch_weight=1", "objective.distill.alpha=0", "model.image.style=resnet", "model.image.size=24", "model.image.patch=12", "model.image.resnet.depth=18", "model.image.resnet.width=2",
		"model.image.resnet.small_stem=true", "train.max_steps=1"), run.Options{})
	o := check.Get(run.Open(dir, run.OpenOptions{}))(t)
	defer o.Close()
	done, err := embed.WriteRegions(t.Context(), o, embed.RegionOptions{Split: "val", Out: filepath.Join(dir, "regions")})
	if err != nil || done.Regions != 9 { // 24 pixels, of which 8 are a place
		t.Errorf("%d regions, error %v", done.Regions, err)
	}
}

// TestRegionSizes: sizes come from the files and stay with the run, whose checkpoint opens without them; other widths are told.
func TestRegionSizes(t *testing.T) {
	dir, files := t.TempDir(), t.TempDir()
	sets := append(regionFiles(t, files, 5), "eval.split=val", "train.max_steps=2")
	trained(t, settings(t, dir, sets...), run.Options{})
	o, err := run.Open(dir, run.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if r := o.Config.Model.Image.Regions.In; r != 5 || o.Config.Data.Regions.Most != 3 {
		t.Errorf("%d regions of %d features are stored", o.Config.Data.Regions.Most, r)
	}
	out := filepath.Join(t.TempDir(), "gallery")
	if _, err := embed.Split(t.Context(), o, "val", out, 0, nil); err != nil {
		t.Error(err)
	}
	refused := func(what string, err error, want string) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for _, form := range []string{export.HF, export.Timm, export.ONNX} {
		_, err = convert.Export(o, export.Options{To: form, Side: "image", Out: filepath.Join(t.TempDir(), form)})
		refused("export", err, `model.image.style = "regions" cannot be told to `+form+": it has no tower over features of regions: use --to geoalign")
	}
	_, err = embed.WriteRegions(t.Context(), o, embed.RegionOptions{Split: "val", Out: t.TempDir()})
	refused("regions", err, "model.image.style")
	_, err = embed.Files(t.Context(), o, embed.Inputs{Images: t.TempDir()}, filepath.Join(t.TempDir(), "files"), nil)
	refused("embed of files", err, "model.image.style")
	o.Close()

	check.OK(t, os.RemoveAll(files))
	o = check.Get(run.Open(dir, run.OpenOptions{}))(t)
	if err := o.Load(); err != nil {
		t.Error(err)
	}
	o.Close()

	_, err = run.Resolve(settings(t, dir, append(regionFiles(t, t.TempDir(), 5), "model.image.regions.in=7")...))
	refused("another width", err, "model.image.regions.in: must be 5, the features of a region of ")
	_, err = run.Resolve(settings(t, dir, sets...))
	refused("no files", err, "data.root: there is no such folder")
	wide := t.TempDir()
	regionFiles(t, wide, 6)
	_, err = run.Open(dir, run.OpenOptions{Set: []string{"data.root=" + wide}})
	refused("another width of a checkpoint", err, "model.image.regions.in: must be 6")
}

// TestBatchNormsResume: a run in pieces ends with the parameters, running statistics and twins of a whole one, bit by bit, and
// a mean of checkpoints has the mean of running statistics.
func TestBatchNormsResume(t *testing.T) {
	sets := append([]string{"data.regions.source=scenes", "data.regions.width=8", "model.image.regions.encoder=graph", "model.image.regions.batch_norm=true", "model.image.regions.layers=1",
		"momentum.enabled=true", "queue.size=32", "objective.itc.weight=1", "train.accumulate_steps=2", "train.eval_every_steps=0", "train.save_every_steps=2", "train.keep_last=3", "schedule.kind=constant",
		"optimizer.lr=0.004"}, host...)
	of := func(dir string) (files []string) {
		c := check.Get(checkpoint.Open(filepath.Join(dir, "checkpoints", "step-00000004")))(t)
		defer c.Close()
		for _, group := range []string{"model", training.MomentumGroup} {
			b, err := os.ReadFile(filepath.Join(c.Path, group+".safetensors"))
			if err != nil || !strings.Contains(string(b), "image/graph/00/bn/running_var") {
				t.Fatalf("%s has no running statistics: %v", group, err)
			}
			files = append(files, string(b))
		}
		return files
	}
	whole, parts := t.TempDir(), t.TempDir()
	trained(t, settings(t, whole, append(sets, "train.max_steps=4")...), run.Options{})
	trained(t, settings(t, parts, append(sets, "train.max_steps=2")...), run.Options{})
	trained(t, settings(t, parts, append(sets, "train.max_steps=4")...), run.Options{})
	if !slices.Equal(of(whole), of(parts)) {
		t.Error("a run in pieces differs from a whole one")
	}
	mean := filepath.Join(t.TempDir(), "mean")
	check.Get(convert.Average(whole, convert.AverageOptions{Last: 2, Out: mean}))(t)
	name := "image/bn/running_mean"
	read := func(dir string) []float32 {
		f := check.Get(safetensors.Open(filepath.Join(dir, "model.safetensors")))(t)
		defer f.Close()
		return check.Get(f.Float32(name))(t)
	}
	a, b := read(filepath.Join(whole, "checkpoints", "step-00000002")), read(filepath.Join(whole, "checkpoints", "step-00000004"))
	for i, got := range read(filepath.Join(mean, "checkpoints", "step-00000004")) {
		if want := (a[i] + b[i]) / 2; got != want || a[i] == b[i] {
			t.Fatalf("element %d of the mean is %v, of %v and %v", i, got, a[i], b[i])
		}
	}
}

// TestEmbedConverts: rows that must be converted are told of, and a stop in the middle of it leaves nothing.
func TestEmbedConverts(t *testing.T) {
	dir, other := t.TempDir(), filepath.Join(t.TempDir(), "other")
	trained(t, parquetPairs(t, dir, filepath.Join(t.TempDir(), "cache")), run.Options{})
	o := check.Get(run.Open(dir, run.OpenOptions{Set: []string{"data.cache_dir=" + other}}))(t)
	defer o.Close()
	var phases []string
	in, out := embed.Inputs{Rows: "../data/features/testdata/double.parquet", Side: gallery.Text}, filepath.Join(dir, "gallery")
	ctx, stop := context.WithCancel(t.Context())
	if _, err := embed.Files(ctx, o, in, out, func(phase string, _, _ int) { phases = []string{phase}; stop() }); !errors.Is(err, context.Canceled) || phases[0] != "converting double.parquet" || copies(t, other) != 0 {
		t.Errorf("an embed that was stopped: %v, told %v, %d copies", err, phases, copies(t, other))
	}
	if done, err := embed.Files(t.Context(), o, in, out, nil); err != nil || done.Texts != 3 || copies(t, other) != 1 {
		t.Errorf("embedded %+v: %v, %d copies", done, err, copies(t, other))
	}
}

// TestEmbedTrained: a split is embedded by a checkpoint whose model was loaded before.
func TestEmbedTrained(t *testing.T) {
	dir := t.TempDir()
	trained(t, settings(t, dir), run.Options{})
	o := check.Get(run.Open(dir, run.OpenOptions{Set: []string{"eval.max_images=12"}}))(t)
	defer o.Close()
	check.OK(t, o.Load())
	m := o.Model
	if done, err := embed.Split(t.Context(), o, "test", filepath.Join(dir, "features"), 0, nil); err != nil || done.Images != 12 || done.Dim != 8 || done.Step != 8 {
		t.Errorf("%+v, error %v", done, err)
	}
	if o.Model != m {
		t.Error("the model was loaded twice")
	}
}
