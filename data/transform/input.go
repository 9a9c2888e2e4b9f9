package transform

import (
	"fmt"
	"math"
	"sync"

	"github.com/geoalign/geoalign/data/internal/pixel"
)

// Mean and Std are the statistics of CLIP's images, as in ALBEF's code, by which channels R,
// G, B of values in [0, 1] are normalised unless an Input says other.
var (
	Mean = [3]float32{0.48145466, 0.4578275, 0.40821073}
	Std  = [3]float32{0.26862954, 0.26130258, 0.27577711}
)

// Input is what an image tower wants of images beside their size. The zero value is what
// ALBEF's does.
type Input struct {
	Mean, Std [3]float32 // of the channels; Std of zeros: the package's Mean and Std
	// Crop: an image is resized by its shorter side, and its centre is cut out (torchvision's
	// Resize and CenterCrop); else it is resized to a square, whatever its aspect ratio.
	Crop bool
	// Resized is the side that an image is resized to before its centre is cut out, by Crop or as a whole; 0: the side
	// that is shown.
	Resized int
	// Down: where the pixels beside the centre are an odd number, it begins at the one before the middle, as in Hugging
	// Face's processors; else at the even one of the two, as in torchvision's.
	Down bool
	// Bilinear: by Pillow's BILINEAR filter; else by BICUBIC.
	Bilinear bool
}

// square is a whole image resized to a square.
func square(size int) Window { return Window{W: size, H: size, Width: size, Height: size} }

// window is the square of the given side that is shown of an image of w x h pixels.
func (p Input) window(w, h, size int) Window {
	side := max(size, p.Resized)
	to := Window{W: side, H: side, Width: size, Height: size}
	switch {
	case !p.Crop:
	case w < h:
		to.H = int(float64(side) * float64(h) / float64(w))
	default:
		to.W = int(float64(side) * float64(w) / float64(h))
	}
	to.X, to.Y = p.begin(to.W-size), p.begin(to.H-size)
	return to
}

// begin is the first pixel of a centre that n pixels are beside.
func (p Input) begin(n int) int {
	if p.Down {
		return n / 2
	}
	return int(math.RoundToEven(float64(n) / 2))
}

// Seen returns the part of an image of w x h pixels that is shown at the given side, in pixels of the
// image: the left and top edge, width and height.
func (p Input) Seen(w, h, size int) (x, y, width, height float64) {
	to := p.window(w, h, size)
	sx, sy := float64(w)/float64(to.W), float64(h)/float64(to.H)
	return float64(to.X) * sx, float64(to.Y) * sy, float64(size) * sx, float64(size) * sy
}

// statistics returns mean and standard deviation.
func (p Input) statistics() (mean, std [3]float32) {
	if p.Std == [3]float32{} {
		return Mean, Std
	}
	return p.Mean, p.Std
}

// normalizers are those of the statistics in use: [2][3]float32 to *pixel.Normalizer.
var normalizers sync.Map

// Normalize writes (v/255 - mean) / std of every value of m to dst, planar (3, H, W).
func (p Input) Normalize(m *Image, dst []float32) {
	mean, std := p.statistics()
	key := [2][3]float32{mean, std}
	z, ok := normalizers.Load(key)
	if !ok {
		z, _ = normalizers.LoadOrStore(key, pixel.NewNormalizer(mean, std))
	}
	z.(*pixel.Normalizer).Apply(dst, m.Pix)
}

// Denormalize is the inverse of Normalize: the w x h image that a planar
// (3, h, w) tensor shows, rounded and cut to bytes.
func (p Input) Denormalize(src []float32, w, h int) (*Image, error) {
	if w <= 0 || h <= 0 || len(src) != 3*w*h {
		return nil, fmt.Errorf("transform: %d values are not a planar image of %dx%d: want %d", len(src), w, h, 3*w*h)
	}
	mean, std := p.statistics()
	m := NewImage(w, h)
	for c := 0; c < 3; c++ {
		for i, v := range src[c*w*h : (c+1)*w*h] {
			m.Pix[3*i+c] = uint8(min(max((v*std[c]+mean[c])*255+0.5, 0), 255))
		}
	}
	return m, nil
}

// Normalize is that of the zero Input.
func Normalize(m *Image, dst []float32) { Input{}.Normalize(m, dst) }

// Denormalize is that of the zero Input.
func Denormalize(src []float32, w, h int) (*Image, error) { return Input{}.Denormalize(src, w, h) }
