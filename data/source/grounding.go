package source

import (
	"slices"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/examples"
	"github.com/geoalign/geoalign/data/scenes"
)

// grounding is data.kind = "grounding": pictures with expressions that name an object in them.
var grounding = examplesOf(exampleKind{
	pictures: 1, byPicture: true,
	inputs: func(cfg config.Config) []Input {
		g := cfg.Data.Grounding
		if cfg.Data.Drawn() {
			return nil
		}
		return slices.Concat(named(cfg, "data.grounding.refs", g.Refs, false), named(cfg, "data.grounding.instances", g.Instances, false), named(cfg, "data.grounding.detections", g.Detections, false))
	},
	files: func(cfg config.Config, split string, paths []string, o examples.Options) (*data.FileExamples, error) {
		g := cfg.Data.Grounding
		f := examples.GroundingFiles{Refs: g.Refs, Instances: g.Instances, Detections: g.Detections}
		for _, path := range []*string{&f.Refs, &f.Instances, &f.Detections} {
			if *path != "" {
				*path = Below(cfg.Data.Root, *path)
			}
		}
		return examples.LoadGrounding(paths, split, f, o)
	},
	scene: func(w *scenes.World, s scenes.Scene, g *sceneDraw) (data.Example, []scenes.Scene) {
		r := g.rand()
		said := s.Refer(r)
		size := float64(w.Config().Size)
		e := data.Example{Text: said.Text, Kind: said.Kind, Label: data.UnknownLabel, Target: rect(s.Objects[said.Object].Box(), size)}
		for _, b := range s.Proposals(r) {
			e.Proposals = append(e.Proposals, *rect(b, size))
		}
		return e, []scenes.Scene{s}
	},
})

// rect is a box in the pixels of a picture of size x size.
func rect(b scenes.Box, size float64) *data.Rect {
	return &data.Rect{X: b.X0 * size, Y: b.Y0 * size, W: (b.X1 - b.X0) * size, H: (b.Y1 - b.Y0) * size}
}
