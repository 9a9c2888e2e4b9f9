package tasks

import (
	"context"
	"fmt"

	"github.com/geoalign/geoalign/compute/parallel"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/eval"
	"github.com/geoalign/geoalign/internal/kernel"
	"github.com/geoalign/geoalign/objectives/scoring"
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
	Model     Encoder
	Set       IdentifiedSet
	Score     scoring.Score // of a gallery image, as an image, with a query, as a text
	Engine    *kernel.Engine
	BatchSize int            // images encoded at a time, at least 1
	Workers   int            // goroutines that read images; 0: 1
	Group     parallel.Group // processes that encode together, see Encoding; nil: this one alone
	// Progress is told how much of a phase is done; may be nil.
	Progress func(phase string, done, total int)
}

// reidChunk is the number of queries that are scored at a time.
const reidChunk = 256

// ReIDScores are the outcome of a search.
type ReIDScores struct {
	eval.Identities
	Score string // how images were compared
}

// Map names the scores for logs.
func (s ReIDScores) Map() map[string]float64 {
	m := map[string]float64{}
	for _, v := range s.Values() {
		m[v.Name] = v.Value
	}
	return m
}

// Table formats the scores for people.
func (s ReIDScores) Table() string {
	text := fmt.Sprintf("%-10s", "")
	row := fmt.Sprintf("%-10s", s.Score)
	for _, v := range s.Values() {
		name := map[string]string{"map": "mAP", "minp": "mINP", "r1": "R@1", "r5": "R@5", "r10": "R@10",
			"r100": "R@100"}[v.Name]
		text, row = text+fmt.Sprintf("  %6s", name), row+fmt.Sprintf("  %6.2f", v.Value)
	}
	text += "\n" + row + fmt.Sprintf("\n%-10s  %6.2f  %6s  %6.2f\n", "chance", s.ChanceMAP, "", s.ChanceR1)
	if s.Unmatched > 0 {
		text += fmt.Sprintf("%d queries have no right answer in the gallery and are left out\n", s.Unmatched)
	}
	return text
}

// Run encodes the split and searches. It ends early with the error of ctx.
func (t ReID) Run(ctx context.Context) (ReIDScores, error) {
	s := ReIDScores{Score: t.Score.String()}
	e := Encoding{BatchSize: t.BatchSize, Workers: t.Workers, Group: t.Group, Progress: t.Progress}
	all, err := e.Features(ctx, t.Model, t.Set.Images(), "encoding images")
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
	score, err := queryScorer(t.Engine, t.Score, galleryRows, len(gallery))
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

// queryScorer returns what writes the scores (n, g) of at most reidChunk queries (n, C), which stand for texts, with a
// gallery of g images, which is folded once where the score is a product.
func queryScorer(e *kernel.Engine, s scoring.Score, gallery []float32,
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
