package grounding

import (
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/examples"
	"github.com/geoalign/geoalign/data/scenes"
	"github.com/geoalign/geoalign/tasks"
)

// samples are pictures with expressions that name an object in them.
var samples = &tasks.Samples{
	Pictures: tasks.One, ByPicture: true,
	Inputs: func(s tasks.Settings, drawn bool) []tasks.Input {
		f := tasks.Of[Files](s)
		if drawn {
			return nil
		}
		return []tasks.Input{{Key: "data.grounding.refs", Name: f.Refs}, {Key: "data.grounding.instances", Name: f.Instances}, {Key: "data.grounding.detections", Name: f.Detections}}
	},
	Files: func(s tasks.Settings, f tasks.SplitFiles, o examples.Options) (*data.FileExamples, error) {
		c := tasks.Of[Files](s)
		of := examples.GroundingFiles{Refs: f.Below(c.Refs), Instances: f.Below(c.Instances), Detections: f.Below(c.Detections)}
		return examples.LoadGrounding(f.Paths, f.Split, of, o)
	},
	Scene: func(w *scenes.World, s scenes.Scene, d *tasks.SceneDraw) (data.Example, []scenes.Scene) {
		r := d.Rand()
		told := s.Refer(r)
		size := float64(w.Config().Size)
		e := data.Example{Text: told.Text, Kind: told.Kind, Label: data.UnknownLabel, Target: rect(s.Objects[told.Object].Box(), size)}
		for _, b := range s.Proposals(r) {
			e.Proposals = append(e.Proposals, *rect(b, size))
		}
		return e, []scenes.Scene{s}
	},
}

// rect is a box in the pixels of a picture of size x size.
func rect(b scenes.Box, size float64) *data.Rect {
	return &data.Rect{X: b.X0 * size, Y: b.Y0 * size, W: (b.X1 - b.X0) * size, H: (b.Y1 - b.Y0) * size}
}
