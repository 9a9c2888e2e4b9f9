package regions

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/scenes"
	"github.com/geoalign/geoalign/internal/rng"
)

func testScenes(t *testing.T, cfg ScenesConfig) (*Scenes, *scenes.World) {
	t.Helper()
	w, err := scenes.New(scenes.Config{ValSamples: 20, TestSamples: 20}, 3)
	if err != nil {
		t.Fatal(err)
	}
	return NewScenes(w, cfg), w
}

// sceneRow is all columns of an image of a split.
func sceneRow(t *testing.T, ds data.Dataset, i int) batch.Row {
	t.Helper()
	c := ds.(data.Columned)
	row := batch.New(1, c.ImageColumns()...).Row(0)
	if err := c.FillImage(i, row); err != nil {
		t.Fatal(err)
	}
	return row
}

// TestScenes: a region for each object with its box, the same ones each time, and features that tell objects apart.
func TestScenes(t *testing.T) {
	s, w := testScenes(t, ScenesConfig{Width: 16, Noise: .1})
	ds, err := s.Split("val", 32)
	if err != nil {
		t.Fatal(err)
	}
	for i := range ds.Len() {
		row, again := sceneRow(t, ds, i), sceneRow(t, ds, i)
		objects := w.Val(i).Objects
		if n := row.Ints(batch.RegionLengths)[0]; int(n) != len(objects) {
			t.Fatalf("scene %d: %d regions of %d objects", i, n, len(objects))
		}
		if !slices.Equal(row.Floats(batch.Regions), again.Floats(batch.Regions)) {
			t.Fatalf("scene %d has other features the second time", i)
		}
		for k, o := range objects {
			b := o.Box()
			if got := row.Floats(batch.RegionBoxes)[4*k : 4*k+4]; !slices.Equal(got, []float32{float32(b.X0), float32(b.Y0), float32(b.X1), float32(b.Y1)}) {
				t.Errorf("scene %d, object %d: box %v, want %v", i, k, got, b)
			}
		}
		for j, v := range row.Floats(batch.Regions)[16*len(objects):] {
			if v != 0 {
				t.Fatalf("scene %d: padding holds %v at %d", i, v, j)
			}
		}
	}
	// Objects that agree in more facts are more alike: features say what is there.
	distance := func(a, b scenes.Object) float64 {
		x, y := batch.New(1, s.columns()...).Row(0), batch.New(1, s.columns()...).Row(0)
		plain := NewScenes(w, ScenesConfig{Width: 16})
		plain.fill(scenes.Scene{Objects: []scenes.Object{a}}, rng.New(1, "test", 0), x)
		plain.fill(scenes.Scene{Objects: []scenes.Object{b}}, rng.New(1, "test", 0), y)
		sum := 0.0
		for j, v := range x.Floats(batch.Regions)[:16] {
			d := float64(v - y.Floats(batch.Regions)[j])
			sum += d * d
		}
		return sum
	}
	a := w.Val(0).Objects[0]
	near, far := a, a
	near.X += .02
	far.Colour, far.Shape, far.Place = (a.Colour+1)%8, (a.Shape+1)%8, (a.Place+1)%9
	if n, f := distance(a, near), distance(a, far); n*10 > f {
		t.Errorf("an object that moved a little is %v away, another one %v", n, f)
	}
}

// TestSceneStream: training samples have regions beside pictures and captions, without end and as a function of the counter.
func TestSceneStream(t *testing.T) {
	s, w := testScenes(t, ScenesConfig{Width: 8, Noise: .1, Most: 2, Seed: 5})
	cfg := data.TrainConfig{Seed: 5}
	cfg.Transform.Size = 16
	stream, err := s.Stream(100, cfg)
	if err != nil {
		t.Fatal(err)
	}
	b := batch.New(2, stream.Columns()...)
	seen := map[string]bool{}
	for c := range uint64(30) {
		if err := stream.Sample(c, b.Row(0)); err != nil {
			t.Fatal(err)
		}
		if err := data.Stream.Sample(stream, c, b.Row(1)); err != nil {
			t.Fatal(err)
		}
		x := b.Row(0).Floats(batch.Regions)
		if !slices.Equal(x, b.Row(1).Floats(batch.Regions)) {
			t.Fatalf("sample %d is another the second time", c)
		}
		if n := int(b.Row(0).Ints(batch.RegionLengths)[0]); n != min(2, len(w.Train(c).Objects)) {
			t.Errorf("sample %d has %d regions", c, n)
		}
		seen[fmt.Sprint(x)] = true
	}
	if len(seen) != 30 {
		t.Errorf("%d different samples of 30", len(seen))
	}
	if caption, _, err := data.Describe(stream, 3); err != nil || caption == "" {
		t.Errorf("caption %q %v", caption, err)
	}
}

// TestNamedObjects: in every phrasing each object is named by three words.
func TestNamedObjects(t *testing.T) {
	s, w := testScenes(t, ScenesConfig{Width: 8})
	for i := range 20 {
		scene := w.Test(i)
		for _, caption := range scene.Captions() {
			words, objects := NamedObjects(scene, caption)
			named := map[int][]string{}
			for j, list := range objects {
				for _, k := range list {
					named[k] = append(named[k], words[j])
				}
			}
			for k, o := range scene.Objects {
				if got := strings.Join(named[k], " "); got != o.FullName() {
					t.Errorf("%q: object %d is named by %q, want %q", caption, k, got, o.FullName())
				}
			}
		}
	}
	ds, err := s.Split("test", 16)
	if err != nil {
		t.Fatal(err)
	}
	words, regions := ds.(Words).RegionsOf(0, 0)
	if len(words) != len(regions) || len(words) < 4 || regions[0] != nil {
		t.Errorf("%q %v", words, regions)
	}
}
