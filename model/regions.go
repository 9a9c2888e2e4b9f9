package model

import (
	"fmt"
	"math/rand/v2"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/compute/feed"
	"github.com/geoalign/geoalign/internal/rng"
	"gorgonia.org/gorgonia"
)

// regions lets the online side see a share of the regions of an image.
func (b *builder) regions() {
	r := b.cfg.Model.Image.Regions
	if !b.cfg.ReadsRegions() {
		return
	}
	if r.Drop > 0 {
		b.s.Student.Regions = func(n, most int) (rows, lengths *gorgonia.Node) {
			return b.leftOut("regions", rng.Regions, n, most, r.Drop)
		}
	}
	if r.Mask > 0 {
		b.s.Student.Masks = func(n, most int) (rows, lengths [2]*gorgonia.Node) {
			for i := range rows {
				name := fmt.Sprintf("%s/%d", rng.Regions, i+1)
				rows[i], lengths[i] = b.leftOut(name, name, n, most, r.Mask)
			}
			return rows, lengths
		}
	}
}

// leftOut are the inputs of dropRegions for a share of the regions of a batch, which a random stream draws.
func (b *builder) leftOut(name, stream string, n, most int, share float64) (rows, lengths *gorgonia.Node) {
	of := b.drawnOf(n)
	draw := func(f *feed.Step, rows, lengths []int32) error {
		counts, err := b.o.Group.GatherInts(nil, f.Batch.Ints(batch.RegionLengths))
		if err != nil {
			return err
		}
		dropRegions(rng.New(b.s.Seed, stream, f.Stream()), counts, rows, lengths, most, share)
		return nil
	}
	rows = b.s.Ints(name+"/rows", func(f *feed.Step, dst []int32) (err error) {
		of.take(dst, n, most, func(all []int32) { err = draw(f, all, make([]int32, n*of.ranks)) })
		return err
	}, n*most)
	return rows, b.s.Ints(name+"/kept", func(f *feed.Step, dst []int32) (err error) {
		of.take(dst, n, 0, func(all []int32) { err = draw(f, make([]int32, n*most*of.ranks), all) })
		return err
	}, n)
}

// dropRegions leaves each region of images with so many out with a probability, but never all of them: it writes to
// rows (n*most) the rows of those that are kept, in their order, and then the others, and to lengths how many are kept.
func dropRegions(r *rand.Rand, of, rows, lengths []int32, most int, drop float64) {
	left := make([]int32, 0, most)
	for i, n := range of {
		own := rows[i*most:][:0]
		left = left[:0]
		for k := range most {
			row := int32(i*most + k)
			if k < int(n) && r.Float64() >= drop {
				own = append(own, row)
			} else {
				left = append(left, row)
			}
		}
		lengths[i] = int32(len(own))
		if len(own) == 0 && n > 0 {
			lengths[i] = 1 // the first
		}
		copy(rows[i*most+len(own):], left)
	}
}
