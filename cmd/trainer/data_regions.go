package main

import (
	"context"
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/images"
	"github.com/geoalign/geoalign/data/preview"
	"github.com/geoalign/geoalign/data/source"
	"github.com/geoalign/geoalign/data/transform"
	"github.com/geoalign/geoalign/internal/words"
)

// openRegions opens a split of regions. The train split of the scenes has no end and is not such a split.
func openRegions(ctx context.Context, cfg config.Config, split string, o source.Options) (data.Columned, error) {
	if err := checkFinite(cfg, split); err != nil {
		return nil, err
	}
	ds, err := source.Split(ctx, cfg.Source(), split, o)
	if err != nil {
		return nil, err
	}
	return ds.(data.Columned), nil
}

// regionSamples returns a function that gives image i of a split of regions with its boxes, and its first caption.
func regionSamples(ctx context.Context, cfg config.Config, split string, n *int, o source.Options) (sample, error) {
	ds, err := openRegions(ctx, cfg, split, o)
	if err != nil {
		return nil, err
	}
	*n = min(*n, ds.Len())
	row := batch.New(1, ds.ImageColumns()...).Row(0)
	return func(i int) ([]*transform.Image, []string, error) {
		if err := ds.FillImage(i, row); err != nil {
			return nil, nil, err
		}
		m, err := ds.Image(i)
		if err != nil {
			return nil, nil, err
		}
		boxes := row.Floats(batch.RegionBoxes)
		drawn := preview.Boxes(m.NRGBA(), boxes[:min(len(boxes), 4*int(row.Ints(batch.RegionLengths)[0]))])
		caption := ""
		if list := ds.Captions(i); len(list) > 0 {
			caption = list[0]
		}
		shown, err := images.FromImage(drawn)
		return []*transform.Image{shown}, []string{caption}, err
	}, nil
}

// previewRow is an image of a table of regions.
type previewRow struct {
	Image   string `json:"image"`
	ID      int64  `json:"id"`
	Regions int    `json:"regions"`
	Caption string `json:"caption"`
	Error   string `json:"error,omitempty"`
}

// regionTable prints the first n images of a split of regions that has no pictures, and says whether it has none.
func regionTable(c *cobra.Command, cfg config.Config, split string, n int, asJSON bool, o source.Options) (bool,
	error) {
	if cfg.Data.Kind != "regions" {
		return false, nil
	}
	ds, err := openRegions(c.Context(), cfg, split, o)
	if err != nil || ds.Pixels() {
		return false, err
	}
	var rows []previewRow
	row := batch.New(1, ds.ImageColumns()...).Row(0)
	for i := range min(n, ds.Len()) {
		r := previewRow{Image: ds.Name(i), ID: ds.ImageID(i)}
		if list := ds.Captions(i); len(list) > 0 {
			r.Caption = list[0]
		}
		if err := ds.FillImage(i, row); err != nil {
			r.Error = err.Error()
		} else {
			r.Regions = int(row.Ints(batch.RegionLengths)[0])
		}
		rows = append(rows, r)
	}
	if asJSON {
		return true, printJSON(c.OutOrStdout(), map[string]any{"split": split, "images": rows})
	}
	t := tabwriter.NewWriter(c.OutOrStdout(), 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "image\tid\tregions\tcaption")
	for _, r := range rows {
		what := r.Caption
		if r.Error != "" {
			what = "left out: " + r.Error
		}
		fmt.Fprintf(t, "%s\t%d\t%d\t%s\n", words.Shown(r.Image), r.ID, r.Regions, words.Shown(what))
	}
	return true, t.Flush()
}
