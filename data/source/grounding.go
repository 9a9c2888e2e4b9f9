package source

import (
	"slices"

	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/examples"
	"github.com/geoalign/geoalign/data/scenes"
)

// GroundingKind is the data.kind and the task of visual grounding.
const GroundingKind = "grounding"

// Grounding names what lists of referring expressions leave out (data.kind = "grounding"). Paths start from data.root.
type Grounding struct {
	// refs(unc).p of refer, a pickle: which object the expressions with a ref_id in data.examples are about; empty:
	// they have boxes of their own. It may stand in data.examples itself: its expressions of each split are read then
	Refs string `toml:"refs"`
	// instances.json of refer: pictures and boxes of objects
	Instances string `toml:"instances"`
	// {"image id or name": [[x, y, width, height], ...], ...}, such as ALBEF's dets.json: boxes to look in; pictures
	// without any are looked at in sliding ones
	Detections string `toml:"detections"`
}

// Defaults implements section.Section.
func (g *Grounding) Defaults() {}

// Check implements section.Section.
func (g *Grounding) Check(*section.Checker) {}

// grounding is data.kind = "grounding": pictures with expressions that name an object in them.
var grounding = examplesOf(exampleKind{
	pictures: 1, byPicture: true,
	inputs: func(cfg Setup) []Input {
		g := cfg.Data.Grounding
		if cfg.Data.Drawn() {
			return nil
		}
		return slices.Concat(Named(cfg, "data.grounding.refs", g.Refs, false),
			Named(cfg, "data.grounding.instances", g.Instances, false),
			Named(cfg, "data.grounding.detections", g.Detections, false))
	},
	files: func(cfg Setup, split string, paths []string, o examples.Options) (*data.FileExamples, error) {
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
		e := data.Example{Text: said.Text, Kind: said.Kind, Label: data.UnknownLabel,
			Target: rect(s.Objects[said.Object].Box(), size)}
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

func (*Grounding) kind() Kind { return grounding }
