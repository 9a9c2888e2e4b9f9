package train

import (
	"fmt"
	"strings"

	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/model"
	"github.com/geoalign/geoalign/weights"
)

// Towers are towers of other programs that a model starts from, each of a file of its own; nil: none.
type Towers struct{ Image, Text *weights.Model }

var _ model.Source = Towers{}

// side returns the file of the tower that a parameter belongs to, nil where it is of none.
func (t Towers) side(name string) *weights.Model {
	switch {
	case strings.HasPrefix(name, "image/"):
		return t.Image
	case strings.HasPrefix(name, "text/"):
		return t.Text
	}
	return nil
}

// Has implements model.Source.
func (t Towers) Has(name string) bool {
	m := t.side(name)
	return m != nil && m.Has(name)
}

// Read implements model.Source.
func (t Towers) Read(name string, shape []int, dst []float32) error {
	return t.side(name).Read(name, shape, dst)
}

// Lacks lists the parameters of the towers of p that their files have not: those that no file of the kind has, which
// start from random numbers, and those that are missing.
func (t Towers) Lacks(p *model.Params) (fresh, missing []string) {
	for _, q := range p.List() {
		switch m := t.side(q.Name); {
		case m == nil || m.Has(q.Name) || q.Group == encoders.GroupMetric: // which starts as the identity
		case q.Added || strings.Contains(q.Name, "/crossattention/") || strings.HasPrefix(q.Name, "text/mlm/") ||
			strings.HasPrefix(q.Name, "text/pool/"):
			fresh = append(fresh, q.Name)
		default:
			missing = append(missing, q.Name)
		}
	}
	return fresh, missing
}

// WordRows is the number of rows of the word embeddings of the text tower, 0 without one.
func (t Towers) WordRows() int {
	if t.Text == nil || !t.Text.Has(wordTable) {
		return 0
	}
	return t.Text.Shape(wordTable)[0]
}

// Close closes the files.
func (t Towers) Close() error {
	var first error
	for _, m := range []*weights.Model{t.Image, t.Text} {
		if m == nil {
			continue
		}
		if err := m.Close(); first == nil && err != nil {
			first = fmt.Errorf("train: %w", err)
		}
	}
	return first
}
