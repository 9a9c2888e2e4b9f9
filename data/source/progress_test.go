package source_test

import (
	"testing"
	"time"

	"github.com/geoalign/geoalign/data/source"
)

// TestProgress: every kind that reads files tells how far the opening of a split, of a stream and of the captions for a
// vocabulary is, up to its end, and nobody is told of one that is quick.
func TestProgress(t *testing.T) {
	root := folder(t)
	patience := source.Patience
	was := *patience
	defer func() { *patience = was }()
	for _, kind := range []string{"captions", "coco", "csv", "flickr", "folder", "karpathy", "parquet", "webdataset"} {
		cfg := configOf(kind, root)
		for name, open := range map[string]func(o source.Options) error{
			"split": func(o source.Options) error {
				_, err := source.Galleries(t.Context(), cfg.Source(), "train", o)
				return err
			},
			"stream":   func(o source.Options) error { _, err := source.Stream(t.Context(), cfg.Source(), o); return err },
			"captions": func(o source.Options) error { _, err := source.Texts(t.Context(), cfg.Source(), o); return err },
		} {
			for _, *patience = range []time.Duration{0, time.Hour} {
				ends := map[string]bool{}
				err := open(source.Options{Progress: func(phase string, done, of int) { ends[phase] = done == of }})
				_, captions := ends[source.VocabularyPhase]
				delete(ends, source.VocabularyPhase)
				for phase, end := range ends {
					if !end {
						t.Errorf("%s, %s: %s did not end", kind, name, phase)
					}
				}
				if slow := *patience == 0; err != nil || (len(ends) == 1) != slow || captions != (slow && name == "captions") {
					t.Errorf("%s, %s, after %v: %v, %v, %v", kind, name, *patience, ends, captions, err)
				}
			}
		}
	}
}
