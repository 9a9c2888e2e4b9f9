package tasks_test

import (
	"context"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/objectives/scoring"
	"github.com/geoalign/geoalign/space"
	"github.com/geoalign/geoalign/tasks"
	"github.com/geoalign/geoalign/tasks/retrieval"
)

// paints are the classes of a folder of images of one colour each, in the order of their
// names, with the number of images.
var paints = []struct {
	name   string
	images int
	colour color.RGBA
}{
	{"blue", 12, color.RGBA{0, 0, 255, 255}},
	{"green", 10, color.RGBA{0, 255, 0, 255}},
	{"red", 8, color.RGBA{255, 0, 0, 255}},
	{"white", 10, color.RGBA{255, 255, 255, 255}},
}

// paintFolder writes them as PNG files below val of a new folder.
func paintFolder(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for _, p := range paints {
		dir := filepath.Join(root, "val", p.name)
		check.OK(t, os.MkdirAll(dir, 0o777))
		img := image.NewRGBA(image.Rect(0, 0, 4, 4))
		draw.Draw(img, img.Bounds(), image.NewUniform(p.colour), image.Point{}, draw.Src)
		for i := range p.images {
			f := check.Get(os.Create(filepath.Join(dir, fmt.Sprint(i, ".png"))))(t)
			check.OK(t, png.Encode(f, img))
			check.OK(t, f.Close())
		}
	}
	return root
}

// painter is a model that knows the paints: the feature of an image is the unit vector of
// the paint that is nearest to its first pixel, that of a text the vector of its word. Wrong
// knows them one off, so everything that it finds is wrong.
type painter struct {
	columns []batch.Column
	encode  func(row batch.Row) int // number of the paint
}

func (p painter) Columns() []batch.Column { return p.columns }
func (painter) Len() int                  { return 1 }
func (painter) Width() int                { return 1 }
func (painter) Dim() int                  { return len(paints) }

func (p painter) Encode(_ context.Context, b *batch.Batch) (states, features []float32, err error) {
	features = make([]float32, b.Rows()*len(paints))
	for i := range b.Rows() {
		features[i*len(paints)+p.encode(b.Row(i))] = 1
	}
	return make([]float32, b.Rows()), features, nil
}

func (p painter) Features(ctx context.Context, b *batch.Batch) ([]float32, error) {
	_, features, err := p.Encode(ctx, b)
	return features, err
}

// paintOf is the number of the paint that is nearest to the first pixel of an image, by the
// signs of its normalised channels.
func paintOf(row batch.Row) int {
	x := row.Floats(batch.Images)
	best, most := 0, float32(math.Inf(-1))
	for k, p := range paints {
		var s float32
		for c, v := range []uint8{p.colour.R, p.colour.G, p.colour.B} {
			s += x[c*len(x)/3] * (float32(v)/127.5 - 1)
		}
		if s > most {
			best, most = k, s
		}
	}
	return best
}

// wordTokens makes the number of a paint the token of its name.
type wordTokens struct{}

func (wordTokens) Encode(text string, _ int) []int32 {
	for k, p := range paints {
		if p.name == text {
			return []int32{int32(k)}
		}
	}
	panic("no paint: " + text)
}

func (wordTokens) PadID() int32 { return 0 }

// TestFolder: in a folder of classes every image of a class is right for the texts of the
// class. A model that knows the classes finds one first, one that is wrong about all finds
// them behind all others, and chance is the share of the class.
func TestFolder(t *testing.T) {
	files := check.Get(data.LoadFolder(paintFolder(t), "val", data.Options{}))(t)
	set := check.Get(data.NewEval(files, data.EvalConfig{ImageSize: 4}))(t)
	words := &data.Texts{Tokenizer: wordTokens{}, Tokens: 1}
	texts := check.Get(set.Texts(words))(t)
	for _, off := range []int{0, 1} {
		s := mustRun(t, retrieval.Retrieval{
			Member: retrieval.Member{Image: painter{set.Images().Columns()[:1], paintOf},
				Text:   painter{words.Columns(), func(row batch.Row) int { return (int(row.Ints(batch.Tokens)[0]) + off) % len(paints) }},
				Score:  scoring.Score{Space: space.Space{Dim: len(paints)}, Terms: []scoring.Term{{Kind: scoring.Cosine, Weight: 1}}},
				Engine: engine, Images: set.Images(), Texts: texts}, TextImage: set.TextImage, ImageID: set.ImageID, Encoding: tasks.Encoding{BatchSize: 7}, Dims: []int{2, len(paints)},
		})
		want := 100 - 100*float64(off)
		if s.First.I2T.R1 != want || s.First.T2I.R1 != want || off == 0 &&
			(s.First.I2T.MeanRank != 1 || s.First.T2I.MedianRank != 1) {
			t.Errorf("off by %d: %+v", off, s.First)
		}
		// By two channels the first two paints are known, and the others tie with all, which counts as wrong.
		known := 0
		for i := range set.Images().Len() {
			if set.ImageID(i) < 2 {
				known++
			}
		}
		short, all := s.Leading[0], s.Leading[1]
		if got := short.Metrics.I2T.R1; short.Dim != 2 || got != 100*float64((1-off)*known)/40 || known == 0 || known == 40 {
			t.Errorf("off by %d, two channels: R@1 %v, want that of %d images of 40", off, got, (1-off)*known)
		}
		if all.Metrics != s.First || s.Values()["first_2/r_mean"] != short.Metrics.RMean() {
			t.Errorf("off by %d: by all channels %+v, want %+v", off, all.Metrics, s.First)
		}
		precise := []float64{100, 96, 100, 96} // red has 8 images
		for i, v := range s.Precision.Values() {
			if !(math.Abs(v.Value-precise[i]*float64(1-off)) <= 1e-9) {
				t.Errorf("off by %d: %s is %v, want %v", off, v.Name, v.Value, precise[i]*float64(1-off))
			}
		}
		chance := 100 * float64(12*12+10*10+8*8+10*10) / (40 * 40)
		if !(math.Abs(s.Chance.I2T.R1-chance) <= 1e-9) || !(math.Abs(s.Chance.T2I.R1-chance) <= 1e-9) {
			t.Errorf("chance %+v, want R@1 %g", s.Chance, chance)
		}
		if !(math.Abs(s.Precision.I2TChance-chance) <= 1e-9) || !(math.Abs(s.Precision.T2IChance-chance) <= 1e-9) {
			t.Errorf("chance of the precision %+v, want %g", s.Precision, chance)
		}
	}
}
