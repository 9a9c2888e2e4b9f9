package reid

import (
	"context"

	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/tasks"
)

// SiblingsName is the name of the task of captions.
const SiblingsName = "siblings"

// Siblings is whether a caption finds the other captions of its image, by the score of the model.
var Siblings = tasks.Task{
	Name: SiblingsName, Metric: "map", MetricTitle: "mAP",
	Needs:    []tasks.Need{tasks.NeedsWords},
	Default:  func(s *tasks.Setup) bool { return s.System.Words && !s.System.Images && !s.System.Pairs },
	Evaluate: evaluateSiblings,
}

func evaluateSiblings(ctx context.Context, s *tasks.Setup) (tasks.Scores, error) {
	set, err := s.Set.Rephrased()
	if err != nil {
		return nil, err
	}
	if !set.HasSiblings() {
		m := s.Misfit("images with several captions, and no image of this split of data.kind %q has two",
			s.Source.Data.Kind)
		m.Cure = "use another split, or data of another kind"
		return nil, m
	}
	texts, err := set.Texts(s.Texts)
	if err != nil {
		return nil, err
	}
	scores, err := search(ctx, s, s.Model.Text, captions{texts, set})
	scores.Captions = true
	return scores, err
}

// captions are the texts of a split as what is searched by identities: theirs are those of their images.
type captions struct {
	texts data.Gallery
	set   *data.Eval
}

var _ IdentifiedSet = captions{}

// Images implements IdentifiedSet: what is encoded are the texts.
func (c captions) Images() data.Gallery { return c.texts }

// Identity implements IdentifiedSet.
func (c captions) Identity(j int) int64 { return c.set.ImageID(c.set.TextImage(j)) }

// Camera implements IdentifiedSet.
func (c captions) Camera(int) int32 { return -1 }

// Role implements IdentifiedSet.
func (c captions) Role(int) data.Role { return data.Either }
