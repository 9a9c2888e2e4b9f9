package source

import (
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/examples"
)

// Multimodal is data.kind = "multimodal", which has the keys of data.examples: texts with one or two pictures, and
// classes that the files name. Of scenes they are those of visual entailment, or of statements about two pictures.
type Multimodal struct{}

func (*Multimodal) kind() Kind {
	return examplesOf(exampleKind{
		files: func(cfg Setup, _ string, paths []string, o examples.Options) (*data.FileExamples, error) {
			return examples.LoadLabelled(paths, cfg.Pictures, o)
		},
		drawnAs: func(cfg Setup) exampleKind {
			if cfg.Pictures == 2 {
				return statementSamples
			}
			return entailmentSamples
		},
	})
}
