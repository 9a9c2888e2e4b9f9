package data

import (
	"fmt"
	"hash/fnv"
	"sync"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/data/images"
	"github.com/geoalign/geoalign/data/scenes"
	"github.com/geoalign/geoalign/data/transform"
	"github.com/geoalign/geoalign/internal/rng"
)

// SceneStream is the endless training stream of a procedural world. The id of a
// sample is the key of its facts: scenes with one key are described alike, so
// each is a right answer for the other. Drawn by identities, the first samples of an epoch
// are those of every epoch, and the id of a sample is its class.
type SceneStream struct {
	world *scenes.World
	cfg   TrainConfig
	epoch int
	plain bool // no augmentation: render at the final size
	pool  sync.Pool

	order      ordering // by identities; nil: as they come
	identities IdentityCounts
}

var (
	_ Stream    = (*SceneStream)(nil)
	_ Described = (*SceneStream)(nil)
)

// NewSceneStream returns the training stream of w. epochSamples samples count as
// one epoch. cfg.Pairs has no meaning here.
func NewSceneStream(w *scenes.World, epochSamples int, cfg TrainConfig) (*SceneStream, error) {
	if epochSamples <= 0 {
		return nil, fmt.Errorf("data: samples of an epoch must be > 0 (got %d)", epochSamples)
	}
	size := cfg.Transform.Size
	if size <= 0 {
		return nil, fmt.Errorf("data: image size must be > 0 (got %d)", size)
	}
	if err := cfg.Text.check(); err != nil {
		return nil, err
	}
	t := cfg.Transform
	s := &SceneStream{world: w, cfg: cfg, epoch: epochSamples}
	s.plain = (t.ScaleMin <= 0 || t.ScaleMin >= 1) && !t.Flip && t.Ops == 0 && !t.Colour() && cfg.Crops.Count == 0
	s.pool.New = func() any { return transform.NewImage(size, size) }
	if cfg.Identities.Images == 0 {
		return s, nil
	}
	o, counts, err := newIdentityOrder(cfg.Seed, epochSamples, len(w.Classes()),
		func(i int) int32 { return int32(w.Class(w.Train(uint64(i)))) }, cfg.Identities)
	if err != nil {
		return nil, err
	}
	s.order, s.epoch, s.identities = o, o.samples(), counts
	return s, nil
}

// scene of sample c.
func (s *SceneStream) scene(c uint64) scenes.Scene {
	if s.order != nil {
		c = uint64(s.order.At(c))
	}
	return s.world.Train(c)
}

// EpochSamples is the number of samples that count as one epoch.
func (s *SceneStream) EpochSamples() int { return s.epoch }

// Columns are those of images, of TrainConfig.Text and of what is known of a scene.
func (s *SceneStream) Columns() []Column { return s.cfg.columns(s.cfg.pixels()) }

// Sample draws scene c, in a phrasing and with an augmentation of its own.
func (s *SceneStream) Sample(c uint64, row batch.Row) error { return s.SampleTimed(c, row, nil) }

// SampleTimed is Sample and adds to w, if not nil, what each stage took.
func (s *SceneStream) SampleTimed(c uint64, row batch.Row, w *images.Stopwatch) error {
	w.Start()
	scene := s.scene(c)
	if s.order != nil {
		row.Set(batch.IDs, int32(s.world.Class(scene)))
	} else {
		row.Set(batch.IDs, HashID(int64(scene.Key()))) // keys have 48 bits
	}
	row.Set(batch.Labels, int32(s.world.Class(scene)))
	if hasPictures(row) {
		if err := s.draw(scene, c, row, w); err != nil {
			return err
		}
	}
	w.Start()
	if row.Ints(batch.Tokens) != nil || row.Ints(batch.Lengths) != nil {
		s.cfg.Text.Fill(s.caption(scene, c), row)
	}
	w.Lap(images.StageText)
	w.Made()
	return nil
}

// draw writes the pictures of a scene.
func (s *SceneStream) draw(scene scenes.Scene, c uint64, row batch.Row, w *images.Stopwatch) error {
	img := s.pool.Get().(*transform.Image)
	defer s.pool.Put(img)
	scene.RenderRGB(img.Pix, img.W)
	w.Lap(images.StageDraw)
	w.Saw(img)
	if !s.plain {
		return s.cfg.applyViews(img, c, row, w)
	}
	for _, v := range views { // nothing tells them apart
		dst := row.Floats(v.column)
		if dst == nil {
			continue
		}
		if len(dst) != len(img.Pix) {
			return fmt.Errorf("data: the picture of a scene has %d values (got room for %d)", len(img.Pix), len(dst))
		}
		s.cfg.Transform.Normalize(img, dst)
	}
	w.Lap(images.StageNormalize)
	return nil
}

// Describe returns the caption of scene c and its key.
func (s *SceneStream) Describe(c uint64) (string, int64, error) {
	scene := s.scene(c)
	return s.caption(scene, c), int64(scene.Key()), nil
}

// caption is what sample c says of its scene.
func (s *SceneStream) caption(scene scenes.Scene, c uint64) string {
	return Clean(s.cfg.Clean, scene.Caption(rng.New(s.cfg.Seed, rng.Caption, c)), s.cfg.MaxWords)
}

// SceneSet is a fixed split of a procedural world as a Dataset: one image and
// its canonical caption per scene.
type SceneSet struct {
	name  string
	size  int
	n     int
	at    func(i int) scenes.Scene
	world *scenes.World
	all   bool // phrasings
}

var _ Dataset = (*SceneSet)(nil)

// NewSceneSet returns the split "val" or "test" of w with pictures of size x
// size pixels.
func NewSceneSet(w *scenes.World, split string, size int) (*SceneSet, error) {
	if size <= 0 {
		return nil, fmt.Errorf("data: image size must be > 0 (got %d)", size)
	}
	switch split {
	case "val":
		return &SceneSet{split, size, w.NumVal(), w.Val, w, false}, nil
	case "test":
		return &SceneSet{split, size, w.NumTest(), w.Test, w, false}, nil
	}
	return nil, fmt.Errorf("data: scenes have no fixed split %q: use val or test", split)
}

// Len is the number of scenes.
func (s *SceneSet) Len() int { return s.n }

// Rephrased is the split with a caption for every phrasing of a scene.
func (s *SceneSet) Rephrased() *SceneSet {
	all := *s
	all.all = true
	return &all
}

// Captions returns the caption that identifies scene i.
func (s *SceneSet) Captions(i int) []string {
	if s.all {
		return s.at(i).Captions()
	}
	return []string{s.at(i).Caption(nil)}
}

// ImageID is the key of scene i.
func (s *SceneSet) ImageID(i int) int64 { return int64(s.at(i).Key()) }

// Name says which scene i is.
func (s *SceneSet) Name(i int) string { return fmt.Sprintf("scenes/%s/%d", s.name, i) }

// Image renders scene i.
func (s *SceneSet) Image(i int) (*transform.Image, error) {
	m := transform.NewImage(s.size, s.size)
	s.at(i).RenderRGB(m.Pix, s.size)
	return m, nil
}

// SceneCaptions returns the captions of the first n training scenes in all
// phrasings, cleaned by a rule (see Clean): what a vocabulary is learned from.
func SceneCaptions(w *scenes.World, n int, clean string) []string {
	var all []string
	for i := range n {
		for _, c := range w.Train(uint64(i)).Captions() {
			all = append(all, Clean(clean, c, 0))
		}
	}
	return all
}

// SceneExamples are examples about scenes of a procedural world, which are drawn when they are asked for. Those of
// training have no end; those of val and test are about the held-out scenes.
type SceneExamples struct {
	Samples int      // of an epoch, or of the split
	Size    int      // side of a picture in pixels
	Classes []string // names of the classes; nil: none
	NoEnd   bool     // any number is a sample
	// Make returns sample i with its scenes, as many for all. It is a function of i alone.
	Make   func(i int) (Example, []scenes.Scene)
	Scenes int    // of a sample, 1 or 2
	Split  string // for names
	World  scenes.Config
}

var (
	_ Examples = (*SceneExamples)(nil)
	_ Endless  = (*SceneExamples)(nil)
)

// Len implements Examples.
func (s *SceneExamples) Len() int { return s.Samples }

// Endless implements Endless.
func (s *SceneExamples) Endless() bool { return s.NoEnd }

// Example implements Examples.
func (s *SceneExamples) Example(i int) Example {
	e, _ := s.Make(i)
	return e
}

// Pictures implements Examples.
func (s *SceneExamples) Pictures() int { return s.Scenes }

// Picture implements Examples.
func (s *SceneExamples) Picture(i, k int) (*transform.Image, error) {
	_, of := s.Make(i)
	m := transform.NewImage(s.Size, s.Size)
	of[k].RenderRGB(m.Pix, s.Size)
	return m, nil
}

// PictureName implements Examples: scenes with one name look alike.
func (s *SceneExamples) PictureName(i, k int) string {
	_, of := s.Make(i)
	return sceneName(s.Split, of[k])
}

// Labels implements Examples.
func (s *SceneExamples) Labels() []string { return s.Classes }

// sceneName tells scenes of a split apart by their facts and where exactly their objects lie.
func sceneName(split string, s scenes.Scene) string {
	h := fnv.New64a()
	for _, o := range s.Objects {
		fmt.Fprint(h, o)
	}
	return fmt.Sprintf("scenes/%s/%016x", split, h.Sum64()^uint64(s.Background)<<8^uint64(s.Curtain))
}
