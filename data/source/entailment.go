package source

import (
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/examples"
	"github.com/geoalign/geoalign/data/scenes"
)

// entailment is data.kind = "entailment": pictures with sentences that they entail or contradict.
var entailment = examplesOf(exampleKind{
	pictures: 1, classes: examples.EntailmentClasses,
	files: func(_ Setup, _ string, paths []string, o examples.Options) (*data.FileExamples, error) {
		return examples.LoadEntailment(paths, o)
	},
	scene: func(_ *scenes.World, s scenes.Scene, g *sceneDraw) (data.Example, []scenes.Scene) {
		s, h := s.Hypothesis(g.rand())
		return data.Example{Text: h.Text, Kind: h.Kind, Label: int32(h.Label)}, []scenes.Scene{s}
	},
})

// Entailment is data.kind = "entailment", which has the keys of data.examples.
type Entailment struct{}

func (*Entailment) kind() Kind { return entailment }
