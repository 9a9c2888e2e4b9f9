package images

import (
	"fmt"
	"image"
	"image/color"
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

// UseDecoder chooses what decodes JPEG files from now on in this process, which is the built-in decoder before. The
// name is one of DecoderAuto (or empty), DecoderBuiltin and DecoderTurbo. The strings are what to warn of; a library
// that is asked for by name and cannot be used is an error, which says what to install. Choose before images are read:
// pixels of the decoders differ by a few grey levels.
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

// decodeJPEG decodes a JPEG file with the given header. A picture that is whole is read without the mark of its end,
// which is missing, or has something else in its place, where a transfer or a tool lost it: Pillow reads it too. Each
// decoder takes need bytes at most.
func decodeJPEG(b []byte, cfg image.Config, need int64, w *Stopwatch) (*transform.Image, error) {
	if fast.TooManyScans(b) {
		return nil, fmt.Errorf("data: JPEG image of more than %d scans: write it anew", fast.MostScans)
	}
	m, err := decodeWholeJPEG(b, cfg, need, w)
	if err != nil {
		if ended := endedJPEG(b, cfg); ended != nil {
			if m, err := decodeWholeJPEG(ended, cfg, need, w); err == nil {
				return m, nil
			}
		}
	}
	return m, err
}

// endOfImage is the mark at the end of a JPEG file.
var endOfImage = []byte{0xff, 0xd9}

// endedJPEG returns a JPEG file of one sequential scan with the mark of the end behind it, nil for others: of several
// scans some may be missing. Whether the scan is whole is for the decoder to find out.
func endedJPEG(b []byte, cfg image.Config) []byte {
	d := builtins.Get().(*fast.Decoder)
	defer builtins.Put(d)
	if at := d.End(b, cfg.Width, cfg.Height); at > 0 {
		return append(b[:at:at], endOfImage...)
	}
	if fast.OneScan(b) { // of a kind that the built-in decoder lacks
		return append(b[:len(b):len(b)], endOfImage...)
	}
	return nil
}

// decodeWholeJPEG decodes a file that has all of its marks. The library decodes what it does without a warning; the
// built-in decoder what it has no doubt about; what is left, or damaged, is image/jpeg's to decode or to refuse.
func decodeWholeJPEG(b []byte, cfg image.Config, need int64, w *Stopwatch) (*transform.Image, error) {
	l := turbo.Load()
	if l != nil && (cfg.ColorModel == color.YCbCrModel || cfg.ColorModel == color.GrayModel) {
		m := transform.NewImage(cfg.Width, cfg.Height)
		if l.Decode(m.Pix, b, cfg.Width, cfg.Height) == nil {
			w.Lap(StageDecode)
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
		if img, err = jpegFormat.decodeFirst(b); err != nil {
			if img = d.DecodeBlocks(b, cfg.Width, cfg.Height); img == nil {
				return nil, err
			}
		}
	}
	w.Lap(StageDecode)
	m := fromImage(img, false)
	d.Forget()
	return m, nil
}

// jpegFormat is the format of JPEG files.
var jpegFormat = Formats[0]
