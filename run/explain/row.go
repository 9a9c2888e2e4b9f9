package explain

import (
	"context"
	"fmt"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/data/source"
	"github.com/geoalign/geoalign/explain"
	"github.com/geoalign/geoalign/internal/words"
	"github.com/geoalign/geoalign/run"
	"github.com/geoalign/geoalign/run/console"
)

// openPairs opens a split (empty: eval.split) whose pairs are to be explained.
func openPairs(ctx context.Context, t *run.Trained, split string,
	progress func(phase string, done, total int)) (*run.Split, error) {
	if err := source.CheckSplit(t.Config.Source(), t.SplitName(split)); err != nil {
		return nil, &console.ArgumentError{Err: err}
	}
	set, err := t.Unranked(ctx, split, progress)
	if err != nil {
		return nil, err
	}
	if set.Eval == nil {
		return nil, console.Argument("data.kind %q has no images and texts to explain", t.Config.Data.Kind)
	}
	return set, nil
}

// openRow opens the split of the row that is asked for, and decodes the picture of the image. A model of
// regions needs none.
func openRow(ctx context.Context, t *run.Trained, o Options, out *Explanation) (*run.Split, error) {
	set, err := openPairs(ctx, t, o.Split, nil)
	if err != nil {
		return nil, err
	}
	if *o.Row >= set.Len() {
		return nil, console.Argument("--row must be below %d: the split %s has %s (got %d)", set.Len(),
			t.SplitName(o.Split), words.Count(set.Len(), "image"), *o.Row)
	}
	out.Split, out.Row, out.Name = t.SplitName(o.Split), *o.Row, set.Eval.ImageName(*o.Row)
	regions := t.Config.Has(section.Regions)
	if _, ok := batch.Find(set.Images().Columns(), batch.Images); !ok && regions {
		out.Notes = append(out.Notes, "There is no picture of the image: name the folder of pictures in data.regions.pictures to see one.")
		return set, nil
	}
	if out.image, err = set.Eval.Image(*o.Row); err != nil && regions {
		out.Notes, err = append(out.Notes, fmt.Sprintf("The picture of the image is left out: %v.", err)), nil
	}
	return set, err
}

// setRow makes a row of a split the image of the pair, with what is drawn of it.
func (x *Explainer) setRow(set *run.Split, out *Explanation) error {
	if !x.t.Config.Has(section.Regions) {
		return x.setImage(out.image, batch.Images)
	}
	if err := x.setRegions(set, out.Row); err != nil {
		return err
	}
	out.Regions = int(x.b.Ints(batch.RegionLengths)[0])
	boxes, ok := batch.Find(set.Images().Columns(), batch.RegionBoxes)
	if !ok {
		return nil
	}
	b := batch.New(1, boxes)
	if err := set.Images().Fill(out.Row, b.Row(0)); err != nil {
		return err
	}
	v := b.Floats(batch.RegionBoxes)
	for i := range out.Regions {
		out.Boxes = append(out.Boxes, explain.Box{float64(v[4*i]), float64(v[4*i+1]), float64(v[4*i+2]),
			float64(v[4*i+3])})
	}
	return nil
}

// setRegions makes the regions of a row of a split those of the pair.
func (x *Explainer) setRegions(set *run.Split, row int) error {
	return set.Images().Fill(row, x.b.Row(0))
}

// SetRow makes the image of a row of a split, and a text, the pair to explain.
func (x *Explainer) SetRow(set *run.Split, row int, text string) error {
	clean, _, err := x.seenText(text)
	if err != nil {
		return err
	}
	x.setText(clean)
	return x.fill(set, row)
}

// fill makes the image of a row of a split that of the pair.
func (x *Explainer) fill(set *run.Split, row int) error {
	if x.t.Config.Has(section.Regions) {
		return x.setRegions(set, row)
	}
	m, err := set.Eval.Image(row)
	if err != nil {
		return err
	}
	return x.setImage(m, batch.Images)
}
