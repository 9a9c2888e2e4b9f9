package data

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"sync"
	"sync/atomic"

	fast "github.com/geoalign/geoalign/data/internal/jpeg"
	"github.com/geoalign/geoalign/data/internal/turbojpeg"
	"github.com/geoalign/geoalign/data/transform"
)

// Names of the decoders of JPEG files.
const (
	DecoderAuto    = "auto"      // libjpeg-turbo where it can be used, else the built-in one
	DecoderBuiltin = "builtin"   // package jpeg below, which gives the pixels of image/jpeg
	DecoderTurbo   = "turbojpeg" // libjpeg-turbo, the pixels of Pillow
)

// Decoder says what decodes JPEG files.
type Decoder struct {
	Name    string `json:"name"` // DecoderBuiltin or DecoderTurbo
	Version string `json:"version,omitempty"`
	File    string `json:"file,omitempty"` // the library as the loader found it
}

// String is the decoder as a run's environment has it: what its pixels depend on.
func (d Decoder) String() string {
	if d.Version == "" {
		return d.Name
	}
	return d.Name + " " + d.Version
}

// turbo is the library in use, nil for the built-in decoder.
var turbo atomic.Pointer[turbojpeg.Library]

// UseDecoder chooses what decodes JPEG files from now on in this process, which is the built-in decoder before. The name
// is one of DecoderAuto (or empty), DecoderBuiltin and DecoderTurbo. The strings are what to warn of; a library that is
// asked for by name and cannot be used is an error, which says what to install. Choose before images are read: pixels of the decoders differ
// by a few grey levels.
func UseDecoder(name string) (Decoder, []string, error) {
	switch name {
	case DecoderBuiltin:
		turbo.Store(nil)
		return JPEGDecoder(), nil, nil
	case DecoderAuto, "", DecoderTurbo:
	default:
		return Decoder{}, nil, fmt.Errorf("data: unknown decoder %q: choose auto, builtin or turbojpeg", name)
	}
	l, warnings, err := turbojpeg.Find()
	if err != nil && name == DecoderTurbo {
		return Decoder{}, nil, fmt.Errorf("data: decoder %q cannot be used (%w): %s", name, err, turbojpeg.Install)
	}
	turbo.Store(l)
	return JPEGDecoder(), warnings, nil
}

// JPEGDecoder is the decoder in use.
func JPEGDecoder() Decoder {
	if l := turbo.Load(); l != nil {
		return Decoder{DecoderTurbo, l.Version, l.File}
	}
	return Decoder{Name: DecoderBuiltin}
}

// FindDecoder says what DecoderTurbo would be, what to warn of, and why there is none and what to do.
func FindDecoder() (d Decoder, warnings []string, err error) {
	l, warnings, err := turbojpeg.Find()
	if err != nil {
		return Decoder{}, warnings, fmt.Errorf("%w: %s", err, turbojpeg.Install)
	}
	return Decoder{DecoderTurbo, l.Version, l.File}, warnings, nil
}

// builtins are decoders with their memory, for a goroutine at a time.
var builtins = sync.Pool{New: func() any { return new(fast.Decoder) }}

// decodeJPEG decodes a JPEG file with the given header. The library decodes what it does without a warning; the built-in
// decoder what it has no doubt about; what is left, or damaged, is image/jpeg's to decode or to refuse. Each takes need
// bytes at most.
func decodeJPEG(b []byte, cfg image.Config, need int64, w *Stopwatch) (*transform.Image, error) {
	if fast.TooManyScans(b) {
		return nil, fmt.Errorf("data: jpeg image of more than %d scans: write it anew", fast.MostScans)
	}
	l := turbo.Load()
	if l != nil && (cfg.ColorModel == color.YCbCrModel || cfg.ColorModel == color.GrayModel) {
		m := transform.NewImage(cfg.Width, cfg.Height)
		if l.Decode(m.Pix, b, cfg.Width, cfg.Height) == nil {
			w.lap(StageDecode)
			return m, nil
		}
		shared().Collect(need)
	}
	d := builtins.Get().(*fast.Decoder)
	defer builtins.Put(d)
	img := d.Decode(b, cfg.Width, cfg.Height)
	if img == nil {
		d.Forget()
		shared().Collect(need)
		var err error
		if img, err = jpeg.Decode(bytes.NewReader(b)); err != nil {
			return nil, fmt.Errorf("data: jpeg image is damaged or cut short: %w", err)
		}
	}
	w.lap(StageDecode)
	m := fromImage(img, false)
	d.Forget()
	return m, nil
}
