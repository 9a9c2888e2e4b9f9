package images

import (
	"encoding/binary"
	"fmt"
	"image"
	"image/color"
	"sync"

	"github.com/geoalign/geoalign/internal/budget"
	machine "github.com/geoalign/geoalign/internal/memory"
)

// MaxSide is the longest side of an image in pixels, that of JPEG. What is longer is not a picture.
const MaxSide = 65535

// bytesPerPixel is the memory that decoding an image may take for each pixel of the limit: a file of JPEG without
// subsampled colours takes 6 bytes, a PNG of 24 or 32 bits 7. Formats that take more may have fewer pixels.
const bytesPerPixel = 7

// spareBytes is what an image may have beside its pixels.
const spareBytes = 16 << 20

// MaxBytes is the most memory that decoding an image may take, and so the largest size of its file too.
func MaxBytes(maxPixels int) int64 {
	return bytesPerPixel*int64(pixelLimit(maxPixels)) + spareBytes
}

// shared is the memory that all goroutines decode images in: an eighth of the machine's, or what one image of the
// default limit takes.
var shared = sync.OnceValue(func() *budget.Shared {
	one := MaxBytes(64_000_000)
	return budget.NewShared(max(one, machine.Total()/8), one)
})

// checkBytes compares the memory that decoding an image takes with what it may take.
func checkBytes(cfg image.Config, format string, bytes int64, maxPixels int) error {
	err := budget.Check(fmt.Sprintf("%s image of %dx%d", format, cfg.Width, cfg.Height), bytes, MaxBytes(maxPixels),
		"save it as a plain JPEG, shrink it or raise data.max_pixels")
	if err != nil {
		return fmt.Errorf("data: %w: %w", ErrTooLarge, err)
	}
	return nil
}

// decodeBytes returns the memory that decoding a file takes: the file, the pixels as its format has them, and
// as RGB. A turned image is a second one.
func decodeBytes(b []byte, format string, cfg image.Config, turned bool) int64 {
	pixels := int64(cfg.Width) * int64(cfg.Height)
	first := 3 * pixels
	switch format {
	case "PNG":
		first += pngBytes(b, cfg)
	case "JPEG":
		first += jpegBytes(b)
	case "WebP":
		first += webpBytes(b, cfg)
	case "GIF": // the picture, and the canvas that it is put on
		first += 5 * pixels
	case "TIFF": // the picture, and a strip that may be all of it, in memory that grows as it is inflated
		first += 4 * tiffBytes(cfg) * pixels
	default: // BMP
		first += 4 * pixels
	}
	if turned {
		first = max(first, 6*pixels)
	}
	return int64(len(b)) + first
}

// pngBytes is the memory of the pixels that image/png makes of a file.
func pngBytes(b []byte, cfg image.Config) int64 {
	const ( // types of colour (PNG, third edition, 11.2.1)
		grey, rgb, palette = 0, 2, 3
	)
	if len(b) < 29 {
		return 0 // DecodeConfig has refused it
	}
	depth, kind, interlaced := b[24], b[25], b[28] != 0
	size := int64(4)
	switch {
	case kind == palette:
		size = 1
	case kind == grey && !pngHas(b, "tRNS"):
		size = 1
	}
	if depth == 16 {
		size *= 2
	}
	n := size * int64(cfg.Width) * int64(cfg.Height)
	if interlaced {
		n *= 2 // the passes are images of their own
	}
	return n + 4*size*int64(cfg.Width)
}

// pngHas reports whether a chunk stands before the pixels of a file.
func pngHas(b []byte, name string) bool {
	const frame = 12 // bytes of a chunk that are not its data
	for b = b[8:]; len(b) >= frame; {
		n := uint64(binary.BigEndian.Uint32(b))
		switch string(b[4:8]) {
		case name:
			return true
		case "IDAT":
			return false
		}
		if n > uint64(len(b)-frame) {
			return false
		}
		b = b[frame+n:]
	}
	return false
}

// tiffBytes is the memory of a pixel of the picture that x/image/tiff makes of a file.
func tiffBytes(cfg image.Config) int64 {
	switch cfg.ColorModel {
	case color.GrayModel:
		return 1
	case color.Gray16Model:
		return 2
	case color.RGBA64Model, color.NRGBA64Model:
		return 8
	}
	if _, ok := cfg.ColorModel.(color.Palette); ok {
		return 1
	}
	return 4
}

// webpBytes is the memory of the pixels that x/image/webp makes of a file (RFC 9649, 2.5 to 2.7). Sides are those of
// blocks of 16.
func webpBytes(b []byte, cfg image.Config) int64 {
	const (
		lossy    = 2 // 1.5 of a pixel, and what goes with a block
		alpha    = 5 // compressed, it is an image of 4 bytes first
		lossless = 8 // an image, and one that a palette is put into
	)
	pixels := int64((cfg.Width+15)&^15) * int64((cfg.Height+15)&^15)
	switch {
	case cfg.ColorModel == color.NYCbCrAModel:
		return max(lossy+alpha, lossless) * pixels
	case cfg.ColorModel == color.YCbCrModel && !(len(b) >= 16 && string(b[12:16]) == "VP8X"):
		return lossy*pixels + int64(len(b))
	}
	return lossless * pixels
}
