package reid

import (
	"context"

	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/eval"
	"github.com/geoalign/geoalign/internal/kernel"
	"github.com/geoalign/geoalign/objectives/scoring"
	"github.com/geoalign/geoalign/tasks"
)

// IdentifiedSet is a split whose images have identities; *data.Eval is one.
type IdentifiedSet interface {
	Images() data.Gallery
	Identity(i int) int64
	Camera(i int) int32
	Role(i int) data.Role
}

// ReID searches images for others of their identity: those whose role is data.Query in those that are
// data.Searched. An image that is data.Either is both. It holds the features of all images and 256 rows of scores.
type ReID struct {
	Model  tasks.Encoder
	Set    IdentifiedSet
	Score  scoring.Score // of a gallery image, instead of an image, with a query, in that of a text
	Engine *kernel.Engine
	tasks.Encoding
}

// reidChunk is the number of queries that are scored at a time.
const reidChunk = 256

// Run encodes the split and searches. It ends early with the error of ctx.
func (t ReID) Run(ctx context.Context) (Scores, error) {
	s := Scores{Score: t.Score.String()}
	all, err := t.Features(ctx, t.Model, t.Set.Images(), "encoding images")
	if err != nil {
		return s, err
	}
	c := t.Model.Dim()
	var queries, gallery []eval.Item
	var queryRows, galleryRows []float32
	for i := range t.Set.Images().Len() {
		item, row := eval.Item{Image: i, ID: t.Set.Identity(i), Camera: t.Set.Camera(i)}, all[i*c:(i+1)*c]
		if t.Set.Role(i) != data.Searched {
			queries, queryRows = append(queries, item), append(queryRows, row...)
		}
		if t.Set.Role(i) != data.Query {
			gallery, galleryRows = append(gallery, item), append(galleryRows, row...)
		}
	}
	score, err := QueryScorer(t.Engine, t.Score, galleryRows, len(gallery))
	if err != nil {
		return s, err
	}
	s.Identities, err = eval.MeasureIdentities(queries, gallery, reidChunk, func(row, n int, dst []float32) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		return score(queryRows[row*c:(row+n)*c], n, dst)
	})
	return s, err
}

// QueryScorer returns what writes the scores (n, g) of at most reidChunk queries (n, C), instead of texts, with a
// gallery of g images, which is folded once where the score is a product.
func QueryScorer(e *kernel.Engine, s scoring.Score, gallery []float32,
	g int) (func(queries []float32, n int, dst []float32) error, error) {
	c := s.Space.Dim
	if s.Folds() {
		folded := make([]float32, len(gallery))
		if err := s.FoldImages(folded, gallery, g); err != nil {
			return nil, err
		}
		return func(queries []float32, n int, dst []float32) error {
			e.Gemm(false, true, n, g, c, 1, queries, c, folded, c, 0, dst, g)
			return nil
		}, nil
	}
	columns := make([]float32, g*reidChunk)
	return func(queries []float32, n int, dst []float32) error {
		if err := s.Rows(e, gallery, g, queries, n, columns); err != nil {
			return err
		}
		for j := range g {
			for i := range n {
				dst[i*g+j] = columns[j*n+i]
			}
		}
		return nil
	}, nil
}
