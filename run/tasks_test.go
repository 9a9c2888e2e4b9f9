package run

import (
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/compute/feed"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/objectives"
	"github.com/geoalign/geoalign/ops/arith"
	"github.com/geoalign/geoalign/run/console"
	"github.com/geoalign/geoalign/tasks"
	"github.com/geoalign/geoalign/tasks/multimodal"
	"github.com/geoalign/geoalign/train/checkpoint"
)

// brightness is the scores of a task that is not listed: how many images of the split are bright.
type brightness struct{ bright, images int }

func (s brightness) Task() string { return "brightness" }
func (s brightness) Metric() checkpoint.Metric {
	return checkpoint.Metric{Name: tasks.Logged("brightness", "share"), Value: s.Values()["share"]}
}
func (s brightness) Values() map[string]float64 {
	return map[string]float64{"share": 100 * float64(s.bright) / float64(s.images)}
}
func (s brightness) Line() string                { return fmt.Sprintf("%d bright images", s.bright) }
func (s brightness) Size() string                { return fmt.Sprintf("%d images", s.images) }
func (s brightness) Table() string               { return s.Line() + "\n" }
func (s brightness) JSON(split, path string) any { return s.Values() }

// brightnessTask is the worked example of CONTRIBUTING: a new task is a value in a folder, and a line in tasks/all; a loss of its own is
// a line more.
var brightnessTask = tasks.Task{
	Name: "brightness", Metric: "share", MetricTitle: "bright images", Needs: []tasks.Need{tasks.NeedsEncoder},
	Evaluate: func(ctx context.Context, s *tasks.Setup) (tasks.Scores, error) {
		out := brightness{images: s.Set.NumImages()}
		for i := range out.images {
			img, err := s.Set.Image(i)
			if err != nil {
				return nil, err
			}
			sum := 0
			for _, v := range img.Pix {
				sum += int(v)
			}
			if sum > 128*len(img.Pix) {
				out.bright++
			}
		}
		return out, ctx.Err()
	},
}

// brightnessLoss is the loss of the task: how bright an image is, by a linear layer over its class token. It is a section and a loss in
// one, which its folder holds, and a line in config.Objective.
type brightnessLoss struct{ section.Weighted }

func (*brightnessLoss) Needs() []section.Fact { return []section.Fact{section.Pixels} }
func (*brightnessLoss) Gives() []section.Fact { return []section.Fact{section.Beside, section.Vectors} }

func (l *brightnessLoss) Build(s *objectives.Step) []objectives.Part {
	want := s.Floats("brightness", func(f *feed.Step, dst []float32) error {
		pixels := f.Batch.Floats(batch.Images)
		for i := range dst {
			own := pixels[i*len(pixels)/len(dst):][:len(pixels)/len(dst)]
			for _, v := range own {
				dst[i] += v / float32(len(own))
			}
		}
		return nil
	}, s.Rows, 1)
	got := encoders.Classifier{Classes: 1}.Forward(s.Params.In("brightness_head"), s.Online.Image.Classes, 1) // (B, 1)
	return []objectives.Part{s.Part("brightness", l.Weight, arith.Mean(arith.Square(arith.Combine([]float32{1, -1}, got, want))))}
}

// TestNewTaskTrains trains by the loss of a task that no list has, from its settings alone, and finds its head in the checkpoint.
func TestNewTaskTrains(t *testing.T) {
	base, err := os.ReadFile("testdata/keys.toml")
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Parse("keys.toml", base, slices.Concat(aloneSets, []string{"objective.brightness.weight=0.5", "run.out=" + t.TempDir(),
		"train.max_steps=2"}), config.Add[brightnessLoss]("objective.brightness"))
	if err != nil {
		t.Fatal(err)
	}
	r, err := New(t.Context(), cfg, Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = r.Train(t.Context())
	if err := errors.Join(err, r.Close()); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(cfg.Run.Out, "metrics.jsonl"))
	if err != nil || !strings.Contains(string(text), `"loss/brightness":`) {
		t.Errorf("%v: the log is %s", err, text)
	}
}

// TestNewTask passes a task outside the list through the driver.
func TestNewTask(t *testing.T) {
	r := openTask(t, captionSets[len(aloneSets):]...)
	e := Evaluation{Config: r.cfg, Engine: r.engine, Model: r.model, Tokenizer: r.tok, Set: r.set}
	s, err := e.evaluate(t.Context(), brightnessTask)
	if err != nil || s.Size() != "20 images" || logged(s)["eval/brightness/share"] != s.Metric().Value {
		t.Errorf("%v, %v", s, err)
	}
	e.Set = nil
	if _, err := e.evaluate(t.Context(), brightnessTask); !errors.As(err, new(*console.ArgumentError)) || !strings.Contains(err.Error(), "the task brightness needs a model with an image encoder") {
		t.Error(err)
	}
}

// TestOwnClasses trains on texts with pictures whose two classes the files name, from settings alone, and evaluates the checkpoint
// on files that have the classes in another order.
func TestOwnClasses(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string]color.Color{"red.png": color.RGBA{255, 0, 0, 255}, "blue.png": color.RGBA{0, 0, 255, 255}} {
		img := image.NewRGBA(image.Rect(0, 0, 8, 8))
		for i := range 64 {
			img.Set(i%8, i/8, c)
		}
		f, err := create(filepath.Join(dir, name))
		if err == nil {
			err = errors.Join(png.Encode(f, img), f.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	put := func(name, text string) {
		check.OK(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	put("train.jsonl", strings.Repeat(`{"id": "1", "img": "red.png", "text": "a red one", "label": "kind"}
{"id": "2", "img": "blue.png", "text": "a blue one", "label": "hateful"}
`, 4))
	put("val.jsonl", `{"id": "7", "img": "red.png", "text": "a red one", "label": "kind"}
{"id": "8", "img": "red.png", "text": "a red one", "label": "kind"}
`)
	base := check.Get(os.ReadFile("testdata/keys.toml"))(t)
	out := filepath.Join(dir, "run")
	cfg, err := config.Parse("keys.toml", base, slices.Concat(aloneSets, []string{"data.root=" + dir, "objective.multimodal.weight=1", "data.kind=multimodal",
		`data.examples.train_files=["train.jsonl"]`, `data.examples.val_files=["val.jsonl"]`, "run.out=" + out, "train.max_steps=2", "train.save_every_steps=2"}))
	if err != nil {
		t.Fatal(err)
	}
	r := check.Get(New(t.Context(), cfg, Options{}))(t)
	result, err := r.Train(t.Context())
	check.OK(t, errors.Join(err, r.Close()))
	check := func(s Scores) {
		t.Helper()
		x, ok := s.(multimodal.Scores)
		if !ok || x.Task() != multimodal.Name || x.Examples != 2 || !slices.Equal(x.Samples.Labels(), []string{"hateful", "kind"}) || x.Samples.Example(0).Label != 1 ||
			x.Metric().Name != "eval/multimodal/accuracy" {
			t.Errorf("%T: %+v", s, s)
		}
	}
	check(result.Scores)
	if err := os.Remove(filepath.Join(dir, "train.jsonl")); err != nil { // of which the checkpoint keeps the classes
		t.Fatal(err)
	}
	o, err := Open(out, OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	s, err := o.Evaluate(t.Context(), "", "val", nil)
	if err != nil {
		t.Fatal(err)
	}
	check(s)
	put("val.jsonl", `{"id": "7", "img": "red.png", "text": "a red one", "label": "other"}`)
	if _, err := o.Evaluate(t.Context(), "", "val", nil); err == nil || !strings.Contains(err.Error(), `has the class "other", which the model does not know: it was trained on hateful, kind`) {
		t.Error(err)
	}
}
