package run

import (
	"math"
	"path/filepath"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data/features"
	"github.com/geoalign/geoalign/data/source"
	"github.com/geoalign/geoalign/eval/sanity"
	"github.com/geoalign/geoalign/tasks"
)

// columnRows of a file are looked at, evenly spaced: a column that decides alone shows in few.
const columnRows = 500

// ColumnCautions says of the files of stored features of a configuration that one column alone decides what is near;
// nothing of data of another kind, or that cannot be read, which whoever reads all of it tells.
func ColumnCautions(cfg config.Config) []string {
	if cfg.Data.Kind != "pairs" {
		return nil
	}
	p, err := source.OpenPairs(cfg.Source())
	if err != nil {
		return nil
	}
	defer p.Close()
	var list []string
	for _, m := range []*features.Matrix{p.Images(), p.Texts()} {
		list = append(list, columnCaution(m)...)
	}
	return list
}

// columnCaution looks at the variances of the columns.
func columnCaution(m *features.Matrix) []string {
	n, d := min(columnRows, m.Rows()), m.Width()
	mean, squares, largest := make([]float64, d), make([]float64, d), make([]float64, d)
	row := make([]float32, d)
	for i := range n {
		if m.Row(i*m.Rows()/n, row) != nil {
			return nil
		}
		for k, v := range row { // Welford's sums, exact enough for columns of 1e15 too
			delta := float64(v) - mean[k]
			mean[k] += delta / float64(i+1)
			squares[k] += delta * (float64(v) - mean[k])
			largest[k] = max(largest[k], math.Abs(float64(v)))
		}
	}
	total, most := 0.0, 0
	for k, v := range squares {
		if total += v; v > squares[most] {
			most = k
		}
	}
	if !(total > 0) {
		return nil
	}
	return tasks.NotEmpty(sanity.Column(filepath.Base(m.Path()), most, d, squares[most]/total, largest[most]))
}
