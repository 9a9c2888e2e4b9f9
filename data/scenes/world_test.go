package scenes

import (
	"fmt"
	"hash/fnv"
	"runtime"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/rng"
)

func newWorld(t testing.TB, cfg Config, seed uint64) *World {
	t.Helper()
	w, err := New(cfg, seed)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// The hashes pin the world: a change of them means that every number measured
// on scenes before is no longer comparable. They were printed by this test.
func TestGolden(t *testing.T) {
	w := newWorld(t, Config{}, 7)
	hash := func(get func(i int) Scene) (facts, pixels string) {
		h, hp := fnv.New64a(), fnv.New64a()
		pix := make([]uint8, 64*64*3)
		for i := range 20 {
			s := get(i)
			s.RenderRGB(pix, 64)
			hp.Write(pix)
			caption := s.Caption(rng.New(7, rng.Caption, uint64(i)))
			fmt.Fprintln(h, s.Captions(), caption)
		}
		return fmt.Sprintf("%016x", h.Sum64()), fmt.Sprintf("%016x", hp.Sum64())
	}
	for _, c := range []struct {
		name          string
		get           func(i int) Scene
		facts, pixels string
	}{
		{"train", func(i int) Scene { return w.Train(uint64(i)) }, "2885a9eb8a98aa22", "891a207068ecdb0a"},
		{"val", w.Val, "97f9903371d972cf", "e04db982a266e8bb"},
		{"test", w.Test, "ba7d3ba25700bfdc", "0c93ca7ceccefa3b"},
	} {
		facts, pixels := hash(c.get)
		if facts != c.facts {
			t.Errorf("%s: hash of the facts %s, want %s", c.name, facts, c.facts)
		}
		// Other architectures fuse multiplications and additions: edges may differ by one.
		if runtime.GOARCH == "amd64" && pixels != c.pixels {
			t.Errorf("%s: hash of the pixels %s, want %s", c.name, pixels, c.pixels)
		}
	}
}

func TestSplitsIgnoreSeedAndLength(t *testing.T) {
	a := newWorld(t, Config{}, 1)
	b := newWorld(t, Config{ValSamples: 300, TestSamples: 1500}, 2)
	if a.NumVal() != 1000 || a.NumTest() != 1000 || b.NumVal() != 300 || b.NumTest() != 1500 {
		t.Fatalf("split sizes %d %d %d %d", a.NumVal(), a.NumTest(), b.NumVal(), b.NumTest())
	}
	for i := range 300 {
		if a.Val(i).Key() != b.Val(i).Key() || a.Test(i).Key() != b.Test(i).Key() {
			t.Fatalf("scene %d of the splits depends on the seed or the length", i)
		}
	}
	same := 0
	for i := range uint64(200) {
		if a.Train(i).Key() == b.Train(i).Key() {
			same++
		}
	}
	if same > 20 {
		t.Errorf("%d of 200 train scenes agree between two seeds", same)
	}
}

func TestHeldOutScenesAreUnique(t *testing.T) {
	w := newWorld(t, Config{}, 1)
	keys, captions := map[uint64]string{}, map[string]string{}
	add := func(name string, s Scene) {
		if other, ok := keys[s.Key()]; ok {
			t.Errorf("%s and %s have the same facts", name, other)
		}
		keys[s.Key()] = name
		for _, c := range s.Captions() {
			if other, ok := captions[c]; ok && other != name {
				t.Errorf("%s and %s are both called %q", name, other, c)
			}
			captions[c] = name
		}
	}
	for i := range w.NumVal() {
		add(fmt.Sprint("val ", i), w.Val(i))
	}
	for i := range w.NumTest() {
		add(fmt.Sprint("test ", i), w.Test(i))
	}
	for i := range uint64(20000) {
		s := w.Train(i)
		if name, ok := keys[s.Key()]; ok {
			t.Fatalf("train %d equals %s", i, name)
		}
	}
}

// The canonical caption says all that the key holds: in 20,000 scenes, equal
// captions and equal keys are the same thing.
func TestCanonicalCaptionIsTheKey(t *testing.T) {
	w := newWorld(t, Config{MaxObjects: 2}, 3)
	captionOf, keyOf := map[uint64]string{}, map[string]uint64{}
	repeats := 0
	for i := range uint64(20000) {
		s := w.Train(i)
		k, c := s.Key(), s.Caption(nil)
		if old, ok := captionOf[k]; ok {
			repeats++
			if old != c {
				t.Fatalf("one key, two captions: %q and %q", old, c)
			}
		}
		if old, ok := keyOf[c]; ok && old != k {
			t.Fatalf("caption %q has keys %x and %x", c, old, k)
		}
		captionOf[k], keyOf[c] = c, k
	}
	if repeats == 0 {
		t.Error("no key came twice: the test shows nothing")
	}
}

func TestAttributesAreUniform(t *testing.T) {
	w := newWorld(t, Config{}, 5)
	var counts [MaxObjects + 1]int
	var shapes [numShapes]int
	var colours [numColours]int
	var places [numPlaces]int
	objects := 0
	for i := range uint64(8000) {
		s := w.Train(i)
		counts[len(s.Objects)]++
		for _, o := range s.Objects {
			shapes[o.Shape]++
			colours[o.Colour]++
			places[o.Place]++
			objects++
		}
	}
	near := func(name string, got []int, total int) {
		for i, n := range got {
			want := float64(total) / float64(len(got))
			if f := float64(n); f < 0.9*want || f > 1.1*want {
				t.Errorf("%s %d: %d of %d", name, i, n, total)
			}
		}
	}
	near("count", counts[1:], 8000)
	near("shape", shapes[:], objects)
	near("colour", colours[:], objects)
	near("place", places[:], objects)
}

func TestNewErrors(t *testing.T) {
	for _, c := range []struct {
		cfg  Config
		want string
	}{
		{Config{MinObjects: -1}, "min_objects must be from 1 to 4 (got -1)"},
		{Config{MinObjects: 3, MaxObjects: 2}, "max_objects must be from 3 to 4 (got 2)"},
		{Config{MaxObjects: 9}, "max_objects must be from 1 to 4 (got 9)"},
		{Config{Colours: 9}, "colours must be from 1 to 8 (got 9)"},
		{Config{Shapes: 1, Colours: 2}, "1 shapes x 2 colours give 2 different objects"},
		{Config{ValSamples: -5}, "val_samples must be"},
		// 9 places x 2 looks x 2 sizes = 36 scenes, 18 of which may be held out.
		{Config{MaxObjects: 1, Shapes: 1, Colours: 2}, "of which 18 scenes may be held out"},
	} {
		_, err := New(c.cfg, 1)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: error %v, want %q", c.cfg, err, c.want)
		}
	}
	w := newWorld(t, Config{MaxObjects: 1, Shapes: 1, Colours: 2, ValSamples: 9, TestSamples: 9}, 1)
	for i := range uint64(500) {
		w.Train(i)
	}
	defer func() {
		if recover() == nil {
			t.Error("Generate accepted a wrong configuration")
		}
	}()
	Generate(rng.New(1, "x", 0), Config{MaxObjects: 9})
}

// The cost of one training sample, to be kept far below a step's.
func BenchmarkTrainSample(b *testing.B) {
	w := newWorld(b, Config{}, 1)
	pix := make([]uint8, 64*64*3)
	for i := 0; b.Loop(); i++ {
		s := w.Train(uint64(i))
		s.RenderRGB(pix, 64)
		s.Caption(rng.New(1, rng.Caption, uint64(i)))
	}
}

func BenchmarkNew(b *testing.B) {
	for b.Loop() {
		newWorld(b, Config{}, 1)
	}
}
