package classes

import (
	"image"
	"math"
	"math/rand/v2"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/compute/feed"
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/internal/kernel/vector"
	"github.com/geoalign/geoalign/internal/rng"
	"github.com/geoalign/geoalign/objectives"
	"gonum.org/v1/gonum/stat/distuv"
	"gorgonia.org/gorgonia"
)

// Images of a batch are mixed with each other: image i of B with image B-1-i, as timm does. Mixup (Zhang et al. 2018,
// "mixup", section 2) is
//
//	lambda x_i + (1-lambda) x_(B-1-i),  lambda from Beta(Mixup, Mixup)
//
// and CutMix (Yun et al. 2019, section 3.1) puts a box of x_(B-1-i), whose sides are sqrt(1-lambda) times those of the
// image, lambda from Beta(Cutmix, Cutmix), at its place in x_i: what is outside the image is cut off, and lambda is
// then the share that is left of x_i. With both, a batch has one of them, either with probability 1/2. There is one
// lambda and one box for each batch.

// blend is what a batch is mixed by.
type blend struct {
	lambda float64         // share of an image that is its own
	box    image.Rectangle // that is another's; with the zero value all pixels are mixed
}

// draw draws the blend of a batch of images of so many pixels.
func (l *Loss) draw(r *rand.Rand, width, height int) blend {
	cut := l.Cutmix > 0 && (l.Mixup == 0 || r.IntN(2) == 1)
	if !cut {
		return blend{lambda: beta(r, l.Mixup)}
	}
	lambda := beta(r, l.Cutmix)
	side := math.Sqrt(1 - lambda)
	x, y := r.IntN(width), r.IntN(height)
	w, h := int(side*float64(width))/2, int(side*float64(height))/2
	box := image.Rect(x-w, y-h, x+w, y+h).Intersect(image.Rect(0, 0, width, height))
	if box.Empty() {
		return blend{lambda: 1}
	}
	return blend{lambda: 1 - float64(box.Dx()*box.Dy())/float64(width*height), box: box}
}

// beta draws from Beta(a, a). By the quantile it is a number for the smallest a, too, of which both gamma variates are
// 0.
func beta(r *rand.Rand, a float64) float64 {
	return distuv.Beta{Alpha: a, Beta: a}.Quantile(float64((float32(r.Uint32()>>9) + 0.5) / (1 << 23)))
}

// images sets dst to the mixed images src, both (rows, C, height, width), where others gives the one that image i is
// mixed with.
func (b blend) images(dst, src []float32, rows, width, height int, others func(i int) ([]float32, error)) error {
	n := len(src) / rows
	for i := range rows {
		own, to := src[i*n:][:n], dst[i*n:][:n]
		other, err := others(i)
		if err != nil {
			return err
		}
		switch {
		case b.lambda == 1:
			copy(to, own)
		case b.box.Empty():
			vector.Scale(to, float32(b.lambda), own)
			vector.Axpy(to, float32(1-b.lambda), other)
		default:
			copy(to, own)
			for plane := 0; plane < n; plane += width * height {
				for y := b.box.Min.Y; y < b.box.Max.Y; y++ {
					row := plane + y*width
					copy(to[row+b.box.Min.X:row+b.box.Max.X], other[row+b.box.Min.X:row+b.box.Max.X])
				}
			}
		}
	}
	return nil
}

// opposite gives the images that those of src are mixed with: image i of B that at B-1-i. Where this process is one of
// several that is one of the global batch, which another one has at the same place from its end: all exchange those at
// one place at a time.
func (l *Loss) opposite(s *objectives.Step, src []float32) func(i int) ([]float32, error) {
	n, ranks := len(src)/s.Rows, s.Ranks.Size()
	at := func(i int) []float32 { return src[i*n:][:n] }
	if ranks == 1 {
		return func(i int) ([]float32, error) { return at(s.Rows - 1 - i), nil }
	}
	return func(i int) (_ []float32, err error) {
		if l.mixed, err = s.Ranks.Group.Gather(l.mixed[:0], at(s.Rows-1-i)); err != nil {
			return nil, err
		}
		return l.mixed[(ranks-1-s.Ranks.Rank())*n:][:n], nil
	}
}

// Names of the inputs of mixed images.
const (
	mixOwn   = "mix/own share"
	mixOther = "mix/other share"
)

// mix has the image tower read mixed images (rows, C, height, width) instead of the column of the batch.
func (l *Loss) mix(s *objectives.Step) {
	size := section.Of[encoders.ImageOptions](s.Config).Size
	images := batch.Column{Name: batch.Images, Shape: []int{3, size, size}}
	shares := make([]float32, 2)
	s.SharedFloats(mixOwn, shares[:1])
	s.SharedFloats(mixOther, shares[1:])
	s.Read(images)
	s.Floats(images.Name, func(f *feed.Step, dst []float32) error {
		b := l.draw(rng.New(s.Seed, rng.Mix, f.Stream()), size, size)
		shares[0], shares[1] = float32(b.lambda), float32(1-b.lambda)
		src := f.Batch.Floats(images.Name)
		return b.images(dst, src, s.Rows, size, size, l.opposite(s, src))
	}, append([]int{s.Rows}, images.Shape...)...)
}

// otherLabels are those of the images that the images of the batch are mixed with.
func otherLabels(s *objectives.Step) *gorgonia.Node {
	var all []int32
	return s.Ints("mix/labels", func(f *feed.Step, dst []int32) (err error) {
		own := f.Batch.Ints(batch.Labels)
		if s.Ranks.Size() > 1 {
			if all, err = s.Ranks.Group.GatherInts(all[:0], own); err != nil {
				return err
			}
			own = all[(s.Ranks.Size()-1-s.Ranks.Rank())*s.Rows:][:s.Rows]
		}
		for i := range dst {
			dst[i] = own[len(own)-1-i]
		}
		return nil
	}, s.Rows)
}
