package source_test

import (
	"slices"
	"testing"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data/source"
	"github.com/geoalign/geoalign/data/transform"
)

// TestImageCrop: model.image.crop says to which side an image is resized, as timm and the files of Hugging Face do.
func TestImageCrop(t *testing.T) {
	for set, want := range map[string]int{"0": 224, "1": 224, "0.875": 256, "0.9": 248, "0.95": 235, "0.8715953307392996": 257} {
		cfg, err := config.Load("", []string{"model.image.size=224", "model.image.crop=" + set})
		if err != nil {
			t.Fatal(err)
		}
		if got := cfg.ImageInput().Resized; got != want {
			t.Errorf("model.image.crop=%s resizes to %d, want %d", set, got, want)
		}
	}
}

// TestImageInput: training, evaluation and whoever shows images use the statistics and the
// filter of model.image.
func TestImageInput(t *testing.T) {
	pixels := func(sets ...string) (trained, seen []float32, in transform.Input) {
		cfg, err := config.Load("", append([]string{"model.image.size=32", "data.crop_scale_min=1", "data.flip=false", "data.randaugment_ops=0"}, sets...))
		if err != nil {
			t.Fatal(err)
		}
		stream, err := source.Stream(t.Context(), cfg.Source(), source.Options{})
		if err != nil {
			t.Fatal(err)
		}
		b := batch.New(1, batch.Column{Name: batch.Images, Shape: []int{3, 32, 32}})
		if err := stream.Sample(3, b.Row(0)); err != nil {
			t.Fatal(err)
		}
		set, err := source.Eval(t.Context(), cfg.Source(), "val", source.Options{})
		if err != nil {
			t.Fatal(err)
		}
		seen = make([]float32, 3*32*32)
		if err := set.LoadImage(1, seen); err != nil {
			t.Fatal(err)
		}
		return b.Floats(batch.Images), seen, cfg.ImageInput()
	}
	mean := "model.image.mean=0.5,0.4,0.3"
	trained, seen, plain := pixels()
	others, unseen, in := pixels(mean, "model.image.std=[0.5, 0.25, 0.2]", "model.image.resize=crop", "model.image.interpolation=bilinear")
	if want := (transform.Input{Mean: [3]float32{0.5, 0.4, 0.3}, Std: [3]float32{0.5, 0.25, 0.2}, Crop: true, Resized: 32, Bilinear: true}); in != want {
		t.Errorf("the input is %+v, want %+v", in, want)
	}
	for name, x := range map[string][2][]float32{"training": {trained, others}, "evaluation": {seen, unseen}} {
		a, err := plain.Denormalize(x[0], 32, 32)
		if err != nil {
			t.Fatal(err)
		}
		b, err := in.Denormalize(x[1], 32, 32)
		if err != nil {
			t.Fatal(err)
		}
		if slices.Equal(x[0], x[1]) || !slices.Equal(a.Pix, b.Pix) {
			t.Errorf("%s shows other pictures, or none is normalised by the statistics", name)
		}
	}
}
