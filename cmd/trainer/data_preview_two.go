package main

import (
	"context"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/source"
	"github.com/geoalign/geoalign/data/transform"
)

// underBoth is what stands under the two pictures of a row: its text with its class where it has one.
func underBoth(text string, names []string, label int32) []string {
	if label != data.UnknownLabel {
		text += ": " + names[label]
	}
	return []string{text, "(right picture)"}
}

// pictures are the images of a row in some columns, as they are before they are normalised.
func pictures(cfg config.Config, row batch.Row, columns []batch.Column) (list []*transform.Image, err error) {
	for _, c := range columns {
		img, err := cfg.ImageInput().Denormalize(row.Floats(c.Name), c.Shape[2], c.Shape[1])
		if err != nil {
			return nil, err
		}
		list = append(list, img)
	}
	return list, nil
}

// twoPictures is samples for a split that is evaluated and whose rows are about two pictures, such as statements of NLVR2; nil for
// others.
func twoPictures(ctx context.Context, cfg config.Config, split string, n *int, o source.Options) (sample, error) {
	if !cfg.Data.ReadsExamples() {
		return nil, nil
	}
	x, err := source.OpenExamples(ctx, cfg.Source(), split, o)
	if err != nil || x.Pictures() < 2 {
		return nil, err
	}
	*n = min(*n, x.Len())
	rows := source.ExampleColumns(cfg.Source(), x, nil)
	var columns []batch.Column
	for _, name := range []string{batch.Images, batch.SecondImages} {
		c, _ := batch.Find(rows.Columns(), name)
		columns = append(columns, c)
	}
	row := batch.New(1, columns...).Row(0)
	return func(i int) ([]*transform.Image, []string, error) {
		if err := rows.Fill(i, row); err != nil {
			return nil, nil, err
		}
		list, err := pictures(cfg, row, columns)
		e := x.Example(i)
		return list, underBoth(e.Text, x.Labels(), e.Label), err
	}, nil
}
