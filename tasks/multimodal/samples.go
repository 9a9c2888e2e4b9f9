package multimodal

import (
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/examples"
	"github.com/geoalign/geoalign/data/scenes"
	"github.com/geoalign/geoalign/tasks"
)

// pairs are pictures with sentences that they entail or contradict.
var pairs = &tasks.Samples{
	Pictures: tasks.One, Classes: examples.EntailmentClasses,
	Files: func(_ tasks.Settings, f tasks.SplitFiles, o examples.Options) (*data.FileExamples, error) {
		return examples.LoadEntailment(f.Paths, o)
	},
	Scene: func(_ *scenes.World, s scenes.Scene, d *tasks.SceneDraw) (data.Example, []scenes.Scene) {
		s, h := s.Hypothesis(d.Rand())
		return data.Example{Text: h.Text, Kind: h.Kind, Label: int32(h.Label)}, []scenes.Scene{s}
	},
}

// statements are statements about two pictures.
var statements = &tasks.Samples{
	Pictures: func(tasks.Settings) int { return 2 }, Classes: examples.NLVRClasses,
	Files: func(_ tasks.Settings, f tasks.SplitFiles, o examples.Options) (*data.FileExamples, error) {
		return examples.LoadNLVR(f.Paths, o)
	},
	Scene: func(w *scenes.World, _ scenes.Scene, d *tasks.SceneDraw) (data.Example, []scenes.Scene) {
		s := w.Statement(d.At, d.Seed, d.Split, d.N)
		e := data.Example{Text: s.Text, Kind: s.Kind}
		if s.True {
			e.Label = 1
		}
		return e, s.Pictures[:]
	},
}

// labelled are texts with pictures and classes that the files name. Of scenes they are those of the other tasks.
var labelled = &tasks.Samples{
	Pictures: func(s tasks.Settings) int { l := tasks.Of[Loss](s); return l.Pictures },
	Drawn: func(s tasks.Settings) *tasks.Samples {
		if l := tasks.Of[Loss](s); l.Pictures == 2 {
			return statements
		}
		return pairs
	},
	Files: func(s tasks.Settings, f tasks.SplitFiles, o examples.Options) (*data.FileExamples, error) {
		l := tasks.Of[Loss](s)
		return examples.LoadLabelled(f.Paths, l.Pictures, o)
	},
}
