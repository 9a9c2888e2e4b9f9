package classes

import (
	"errors"
	"image"
	"math"
	"slices"
	"sync"
	"testing"

	"github.com/geoalign/geoalign/compute/parallel/paralleltest"
	"github.com/geoalign/geoalign/internal/rng"
	"github.com/geoalign/geoalign/objectives"
)

// TestMixDraws: lambda of mixup has the mean and variance of Beta(a, a), a box of CutMix covers the share that lambda leaves, with both
// either is drawn half of the time, and the smallest alpha gives numbers.
func TestMixDraws(t *testing.T) {
	const n = 10000
	for _, a := range []float64{1e-3, .2, .8, 1, 4} {
		sum, squares := 0.0, 0.0
		for i := range uint64(n) {
			b := (&Loss{Mixup: a}).draw(rng.New(1, rng.Mix, i), 8, 8)
			if !(b.lambda >= 0 && b.lambda <= 1) || !b.box.Empty() {
				t.Fatalf("alpha %v: %+v", a, b)
			}
			sum, squares = sum+b.lambda, squares+b.lambda*b.lambda
		}
		mean := sum / n
		variance := squares/n - mean*mean
		if want := 1 / (4 * (2*a + 1)); !(math.Abs(mean-.5) <= .015) || !(math.Abs(variance-want) <= .03*want+.001) {
			t.Errorf("alpha %v: mean %.3f, variance %.4f, want 0.5 and %.4f", a, mean, variance, want)
		}
	}
	cut, covered := 0, 0.0
	for i := range uint64(n) {
		b := (&Loss{Mixup: 1, Cutmix: 1}).draw(rng.New(2, rng.Mix, i), 400, 200)
		if b.box.Empty() {
			continue
		}
		cut++
		if !b.box.In(image.Rect(0, 0, 400, 200)) {
			t.Fatalf("the box %v is not in the image", b.box)
		}
		if share := float64(b.box.Dx()*b.box.Dy()) / 80000; !(math.Abs(1-share-b.lambda) <= 1e-9) {
			t.Fatalf("the box %v leaves %v, lambda is %v", b.box, 1-share, b.lambda)
		}
		covered += 1 - b.lambda
	}
	// With u = 1-lambda uniform a box has sides sqrt(u), of which 1 - sqrt(u)/4 lie within the image on average: E u (1-sqrt(u)/4)^2 = 0.321.
	if share := float64(cut) / n; share < .48 || share > .51 || !(math.Abs(covered/float64(cut)-.321) <= .01) {
		t.Errorf("%d of %d are cut, on average by %.3f", cut, n, covered/float64(cut))
	}
}

// TestMixedImages: images are mixed pixel by pixel with those at their places from the end, and nothing is allocated.
func TestMixedImages(t *testing.T) {
	const rows, channels, width, height = 3, 2, 4, 3
	src := make([]float32, rows*channels*width*height)
	for i := range src {
		src[i] = float32(i*i%97) / 7
	}
	dst := make([]float32, len(src))
	others := (&Loss{}).opposite(&objectives.Step{Rows: rows}, src)
	for name, b := range map[string]blend{"mixup": {lambda: .3}, "cutmix": {lambda: 2. / 3, box: image.Rect(1, 1, 3, 3)}, "as they are": {lambda: 1}} {
		if n := testing.AllocsPerRun(3, func() {
			_ = b.images(dst, src, rows, width, height, others)
		}); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
		at := 0
		for i := range rows {
			for c := range channels {
				for y := range height {
					for x := range width {
						own, other := src[at], src[((rows-1-i)*channels+c)*width*height+y*width+x]
						want := own
						switch {
						case name == "mixup":
							want = .3*own + .7*other
						case name == "cutmix" && x >= 1 && x < 3 && y >= 1:
							want = other
						}
						if !(math.Abs(float64(dst[at]-want)) <= 1e-5) {
							t.Fatalf("%s: image %d, channel %d, pixel (%d, %d) is %v, want %v", name, i, c, x, y, dst[at], want)
						}
						at++
					}
				}
			}
		}
	}
}

// TestOpposite: an image of a rank is mixed with the one at the same place from the end of the global batch.
func TestOpposite(t *testing.T) {
	const rows, ranks, width = 3, 2, 2
	errs := make([]error, ranks)
	var wg sync.WaitGroup
	for i, g := range paralleltest.Ranks(ranks) {
		wg.Go(func() {
			src := make([]float32, rows*width)
			for k := range src {
				src[k] = float32(i*rows*width + k)
			}
			others := (&Loss{}).opposite(&objectives.Step{Rows: rows, Ranks: objectives.Ranks{Group: g}}, src)
			for k := range rows {
				x, err := others(k)
				at := float32(ranks*rows-1-(i*rows+k)) * width
				if err == nil && !slices.Equal(x, []float32{at, at + 1}) {
					t.Errorf("image %d of rank %d meets %v, want %v", k, i, x, at)
				}
				errs[i] = errors.Join(errs[i], err)
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}
