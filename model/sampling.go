package model

import (
	"fmt"
	"math/rand/v2"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/compute/feed"
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/internal/rng"
	"gorgonia.org/gorgonia"
)

// sampleShare takes the share of this process of what is drawn for each sample of the global batch.
type sampleShare struct {
	rank, ranks int
	stacks      int // of the batch's samples, each of which every rank has an equal share of
	all         []int32
}

// shareOf is for n samples, the batch or several stacks of it.
func (b *builder) shareOf(n int) *sampleShare {
	return &sampleShare{rank: b.o.Group.Rank(), ranks: b.o.Group.Size(), stacks: max(1, n/b.s.Rows)}
}

// take sets dst, an equal part for each of n samples, to those of what draw gives for n*ranks samples. Its values are
// rows, of which a sample has so many, or with 0 anything.
func (d *sampleShare) take(dst []int32, n, rows int, draw func(all []int32)) {
	if d.ranks == 1 {
		draw(dst)
		return
	}
	if d.all == nil {
		d.all = make([]int32, len(dst)*d.ranks)
	}
	draw(d.all)
	part, own := len(dst)/n, n/d.stacks
	for i := range n {
		at := i/own*own*d.ranks + d.rank*own + i%own
		for k, v := range d.all[at*part:][:part] {
			dst[i*part+k] = v - int32((at-i)*rows)
		}
	}
}

// keepRows writes to dst, for each of n images of so many tokens, the rows of its class
// tokens, which come first, and of kept random patches in their order: n*(classes+kept).
func keepRows(r *rand.Rand, dst []int32, n, tokens, classes, kept int) {
	for i := range n {
		own := dst[i*(classes+kept):][:classes+kept]
		first := int32(i * tokens)
		for k := range classes {
			own[k] = first + int32(k)
		}
		// Selection sampling (Knuth, volume 2, 3.4.2, algorithm S): in order, without memory.
		own = own[classes:classes]
		for p := classes; len(own) < kept; p++ {
			if r.IntN(tokens-p) < kept-len(own) {
				own = append(own, first+int32(p))
			}
		}
	}
}

// regions lets the online side see a share of the regions of an image.
func (b *builder) regions() {
	r := b.cfg.Model.Image.Regions
	if !b.cfg.Has(section.Regions) {
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
	of := b.shareOf(n)
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
