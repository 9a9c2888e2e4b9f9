package scoring

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/geoalign/geoalign/space"
)

// Kind names a term.
type Kind string

// Kinds of terms.
const (
	Cosine   Kind = "cosine"
	Inner    Kind = "inner"
	L2       Kind = "l2"
	Angle    Kind = "angle"
	GSSF     Kind = "gssf"
	Geodesic Kind = "geodesic"
)

// Term is a measure of pairs with its weight.
type Term struct {
	Kind   Kind
	Weight float32
	Metric *Metric // of gssf; nil is the identity
}

// Score is a weighted sum of terms.
type Score struct {
	Space space.Space
	Terms []Term
}

// Host returns the score without what stored pairs have not, the geodesic through a graph
// over a queue. Where nothing is left it is the cosine, or the distance in a Euclidean
// space.
func (s Score) Host() Score {
	s.Terms = slices.DeleteFunc(slices.Clone(s.Terms), func(t Term) bool { return t.Kind == Geodesic })
	switch {
	case len(s.Terms) > 0:
	case s.Space.Euclid:
		s.Terms = []Term{{Kind: L2, Weight: 1}}
	default:
		s.Terms = []Term{{Kind: Cosine, Weight: 1}}
	}
	return s
}

// String names the score, as in "cosine" or "gssf + 0.5 l2".
func (s Score) String() string {
	var parts []string
	for _, t := range s.Terms {
		if t.Weight == 1 || len(s.Terms) == 1 {
			parts = append(parts, string(t.Kind))
		} else {
			parts = append(parts, fmt.Sprintf("%g %s", t.Weight, t.Kind))
		}
	}
	return strings.Join(parts, " + ")
}

// Check says what is wrong with the score.
func (s Score) Check() error {
	if s.Space.Dim < 1 {
		return fmt.Errorf("scoring: a space of %d channels: want at least one", s.Space.Dim)
	}
	if err := s.Space.Check(s.Space.Dim); err != nil {
		return fmt.Errorf("scoring: %w", err)
	}
	if len(s.Terms) == 0 {
		return fmt.Errorf("scoring: a score without terms: want at least one")
	}
	for _, t := range s.Terms {
		if !(t.Weight > 0) || t.Weight > math.MaxFloat32 {
			return fmt.Errorf("scoring: %s has weight %v: want one above 0", t.Kind, t.Weight)
		}
		switch t.Kind {
		case Inner, L2:
		case Cosine, Angle:
			if s.Space.Euclid {
				return fmt.Errorf("scoring: %s needs unit vectors, which a Euclidean space lacks: use inner, l2 or gssf", t.Kind)
			}
		case GSSF:
			if t.Metric == nil {
				continue
			}
			if err := t.Metric.Check(s.Space.Dim); err != nil {
				return err
			}
		case Geodesic:
			return fmt.Errorf("scoring: geodesic needs the queue that its graph spans: use Score.Host")
		default:
			return fmt.Errorf("scoring: no score %q: the kinds are cosine, inner, l2, angle and gssf", t.Kind)
		}
	}
	return nil
}

// Identity says whether the score is the product of features as they are.
func (s Score) Identity() bool {
	return len(s.Terms) == 1 && s.Terms[0].Weight == 1 && (s.Terms[0].Kind == Cosine || s.Terms[0].Kind == Inner)
}

// Folds says whether all terms are products, so that the score of a pair is that of a
// folded image and the text.
func (s Score) Folds() bool {
	return !slices.ContainsFunc(s.Terms, func(t Term) bool { return !t.product() && t.Kind != GSSF || t.net() })
}

// product says whether a product is part of the term.
func (t Term) product() bool { return t.Kind == Cosine || t.Kind == Inner || t.Kind == GSSF }

// net says whether a network is part of the term.
func (t Term) net() bool { return t.Metric != nil && t.Metric.Form == "mlp" }
