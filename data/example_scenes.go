package data

import (
	"fmt"
	"hash/fnv"

	"github.com/geoalign/geoalign/data/scenes"
	"github.com/geoalign/geoalign/data/transform"
)

// SceneExamples are examples about scenes of a procedural world, which are drawn when they are asked for. Those of training have no end;
// those of val and test are about the held-out scenes.
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
