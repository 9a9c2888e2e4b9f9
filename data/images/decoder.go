package images

import (
	"image"
	"strings"
	"sync"

	"github.com/geoalign/geoalign/data/internal/jpeg"
	"github.com/geoalign/geoalign/data/transform"
)

// Pixels says whose the pixels of JPEG files are, which runs and galleries note.
const Pixels = "libjpeg-turbo"

// SamePixels tells whether what an earlier version noted are Pixels: it had another built-in decoder too.
func SamePixels(noted string) bool {
	for one := range strings.SplitSeq(noted, ", ") {
		if one != Pixels && !strings.HasPrefix(one, "turbojpeg") {
			return false
		}
	}
	return true
}

// jpegs are decoders with their memory, for a goroutine at a time.
var jpegs = sync.Pool{New: func() any { return new(jpeg.Decoder) }}

// jpegBytes is the memory of a file beside its pixels.
func jpegBytes(b []byte) int64 {
	d := jpegs.Get().(*jpeg.Decoder)
	defer jpegs.Put(d)
	return d.Bytes(b)
}

// decodeJPEG decodes a JPEG file with the given header.
func decodeJPEG(b []byte, cfg image.Config, f Format, w *Stopwatch) (*transform.Image, error) {
	d := jpegs.Get().(*jpeg.Decoder)
	defer jpegs.Put(d)
	m := transform.NewImage(cfg.Width, cfg.Height)
	err := d.Decode(m.Pix, b, cfg.Width, cfg.Height)
	d.Forget()
	if err != nil {
		return nil, f.broken("JPEG image is damaged or cut short", err)
	}
	w.Lap(StageDecode)
	return m, nil
}
