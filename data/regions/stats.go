package regions

import (
	"context"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/data"
)

// Stats describes the regions of a split.
type Stats struct {
	Width  int            `json:"width"`             // features of a region
	Most   int            `json:"most"`              // regions of an image that a column has room for
	Boxed  bool           `json:"boxes"`             // boxes are known
	Looked int            `json:"images_looked_at"`  // spread evenly
	Bad    int            `json:"bad_images"`        // of these
	Number data.Quantiles `json:"regions_per_image"` // of the others
}

// NewStats counts the regions of at most n images, which it reads.
func NewStats(ctx context.Context, ds data.Columned, n int) (s Stats, err error) {
	columns := ds.ImageColumns()
	if c, ok := batch.Find(columns, batch.Regions); ok {
		s.Most, s.Width = c.Shape[0], c.Shape[1]
	}
	_, s.Boxed = batch.Find(columns, batch.RegionBoxes)
	s.Looked = min(n, ds.Len())
	row := batch.New(1, columns...).Row(0)
	var counts []int
	for i := range s.Looked {
		if err := ctx.Err(); err != nil {
			return s, err
		}
		if err := ds.FillImage(i*ds.Len()/s.Looked, row); err != nil {
			s.Bad++
			continue
		}
		counts = append(counts, int(row.Ints(batch.RegionLengths)[0]))
	}
	s.Number = data.NewQuantiles(counts)
	return s, nil
}
