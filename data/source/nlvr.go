package source

import (
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/examples"
	"github.com/geoalign/geoalign/data/scenes"
)

// nlvr is data.kind = "nlvr": statements about two pictures.
var nlvr = examplesOf(exampleKind{
	pictures: 2, classes: examples.NLVRClasses,
	files: func(_ Setup, _ string, paths []string, o examples.Options) (*data.FileExamples, error) {
		return examples.LoadNLVR(paths, o)
	},
	scene: func(w *scenes.World, _ scenes.Scene, g *sceneDraw) (data.Example, []scenes.Scene) {
		s := w.Statement(g.at, g.seed, g.split, g.n)
		e := data.Example{Text: s.Text, Kind: s.Kind}
		if s.True {
			e.Label = 1
		}
		return e, s.Pictures[:]
	},
})

// NLVR is data.kind = "nlvr", which has the keys of data.examples.
type NLVR struct{}

func (*NLVR) kind() Kind { return nlvr }
