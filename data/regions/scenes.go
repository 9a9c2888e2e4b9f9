package regions

import (
	"math"
	"math/rand/v2"
	"strings"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/images"
	"github.com/geoalign/geoalign/data/scenes"
	"github.com/geoalign/geoalign/internal/rng"
)

// ScenesConfig says how regions of scenes look.
type ScenesConfig struct {
	Width int     // features of a region, D
	Noise float64 // standard deviation of what is added to each, which are about 1
	Most  int     // regions of a scene, R; 0: scenes.MaxObjects
	Seed  uint64  // of the noise of training scenes
}

// Scenes is the procedural world as regions: every object of a scene is one, with an exact box. Its features are facts
// of the object, colour, shape, size and place, mixed by a fixed random matrix with noise added, so that no feature is
// a word. The matrix and the noise of validation and test scenes are the same in every run.
type Scenes struct {
	world *scenes.World
	cfg   ScenesConfig
	mix   []float32 // (facts, D)
}

// Facts of an object, in the order of their rows in the mix: one of each kind is 1, and then come its colour,
// radius, and centre as numbers.
const (
	numShapes  = 8
	numColours = 8
	numSizes   = 2
	numPlaces  = 9
	numFacts   = numShapes + numColours + numSizes + numPlaces + 3 + 1 + 2
)

// sceneSeed is of what is the same in every run.
const sceneSeed = 20250917

// Streams of random numbers.
const (
	mixStream   = "regions/mix"
	noiseStream = "regions/noise"
)

// NewScenes returns the regions of a world.
func NewScenes(w *scenes.World, cfg ScenesConfig) *Scenes {
	if cfg.Most == 0 {
		cfg.Most = scenes.MaxObjects
	}
	s := &Scenes{world: w, cfg: cfg, mix: make([]float32, numFacts*cfg.Width)}
	r := rng.New(sceneSeed, mixStream, 0)
	for i := range s.mix { // about six facts are 1
		s.mix[i] = float32(r.NormFloat64() / math.Sqrt(6))
	}
	return s
}

// facts are those of an object.
func facts(o scenes.Object) (f [numFacts]float32) {
	at := 0
	one := func(k, of int) {
		f[at+k] = 1
		at += of
	}
	one(int(o.Shape), numShapes)
	one(int(o.Colour), numColours)
	one(int(o.Size), numSizes)
	one(int(o.Place), numPlaces)
	for _, c := range o.RGB {
		f[at] = float32(c)/255 - .5
		at++
	}
	f[at], f[at+1], f[at+2] = float32(o.Radius), float32(o.X)-.5, float32(o.Y)-.5
	return f
}

// columns are those of an image.
func (s *Scenes) columns() []data.Column { return columns(s.cfg.Most, s.cfg.Width, true) }

// fill writes the regions of a scene, with the noise of r.
func (s *Scenes) fill(scene scenes.Scene, r *rand.Rand, row batch.Row) {
	objects := scene.Objects[:min(len(scene.Objects), s.cfg.Most)]
	row.Set(batch.RegionLengths, int32(len(objects)))
	if dst := row.Floats(batch.Regions); dst != nil {
		clear(dst)
		d := s.cfg.Width
		for i, o := range objects {
			for k, x := range facts(o) {
				for j, m := range s.mix[k*d : (k+1)*d] {
					dst[i*d+j] += x * m
				}
			}
			for j := range d {
				dst[i*d+j] += float32(s.cfg.Noise * r.NormFloat64())
			}
		}
	}
	if dst := row.Floats(batch.RegionBoxes); dst != nil {
		clear(dst)
		for i, o := range objects {
			b := o.Box()
			copy(dst[4*i:], []float32{float32(b.X0), float32(b.Y0), float32(b.X1), float32(b.Y1)})
		}
	}
}

// Stream returns the endless training stream, see data.NewSceneStream: it has the pictures too.
func (s *Scenes) Stream(epochSamples int, cfg data.TrainConfig) (data.Stream, error) {
	inner, err := data.NewSceneStream(s.world, epochSamples, cfg)
	if err != nil {
		return nil, err
	}
	return &sceneStream{inner, s}, nil
}

type sceneStream struct {
	*data.SceneStream
	s *Scenes
}

func (t *sceneStream) Columns() []data.Column {
	return append(t.SceneStream.Columns(), t.s.columns()...)
}

func (t *sceneStream) Sample(c uint64, row batch.Row) error { return t.SampleTimed(c, row, nil) }

func (t *sceneStream) SampleTimed(c uint64, row batch.Row, w *images.Stopwatch) error {
	if err := t.SceneStream.SampleTimed(c, row, w); err != nil {
		return err
	}
	t.s.fill(t.s.world.Train(c), rng.New(t.s.cfg.Seed, noiseStream, c), row)
	return nil
}

// Split returns the split val or test, with pictures of size x size pixels.
func (s *Scenes) Split(split string, size int) (data.Dataset, error) {
	inner, err := data.NewSceneSet(s.world, split, size)
	if err != nil {
		return nil, err
	}
	at := s.world.Val
	if split == "test" {
		at = s.world.Test
	}
	return &sceneSet{inner, s, at}, nil
}

type sceneSet struct {
	*data.SceneSet
	s  *Scenes
	at func(i int) scenes.Scene
}

var _ data.Columned = (*sceneSet)(nil)

func (t *sceneSet) ImageColumns() []data.Column { return t.s.columns() }
func (t *sceneSet) Pixels() bool                { return true }

func (t *sceneSet) FillImage(i int, row batch.Row) error {
	scene := t.at(i)
	t.s.fill(scene, rng.New(sceneSeed, noiseStream, scene.Key()), row)
	return nil
}

// Words is implemented by data sets that know which regions the words of captions name.
type Words interface {
	// RegionsOf returns, for each word of caption j of image i as data.Caption splits it at blanks, the regions that
	// the word names: those of an object for its size, colour and shape, none for others.
	RegionsOf(i, j int) (words []string, regions [][]int)
}

var _ Words = (*sceneSet)(nil)

// RegionsOf implements Words.
func (t *sceneSet) RegionsOf(i, j int) (words []string, regions [][]int) {
	return NamedObjects(t.at(i), t.Captions(i)[j])
}

// NamedObjects splits a caption of a scene, in any phrasing, into words, and says for each which object of the scene it
// names by size, colour or shape: one at most, nil for other words. Objects are named by three words in a row, size,
// colour and shape.
func NamedObjects(scene scenes.Scene, caption string) (words []string, objects [][]int) {
	words = strings.FieldsFunc(caption, func(r rune) bool { return r == ' ' || r == ',' || r == ':' })
	objects = make([][]int, len(words))
	for i := range max(len(words)-2, 0) {
		name := strings.Join(words[i:i+3], " ")
		for k, o := range scene.Objects {
			if o.FullName() == name {
				objects[i], objects[i+1], objects[i+2] = []int{k}, []int{k}, []int{k}
			}
		}
	}
	return words, objects
}
