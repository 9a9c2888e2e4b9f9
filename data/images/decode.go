package images

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/color"
	"io"

	"github.com/geoalign/geoalign/data/transform"
	"github.com/geoalign/geoalign/internal/files"
	"github.com/geoalign/geoalign/internal/names"
)

// DefaultMaxPixels is the pixel limit where none is given: about 50 megapixels.
const DefaultMaxPixels = 50_000_000

// ErrTooLarge is the reason for an image above the pixel limit.
var ErrTooLarge = errors.New("more pixels than allowed")

// Decode decodes a JPEG, PNG, WebP, GIF, BMP or TIFF file, of an animation and of several pages the first picture. The
// size in the header is tested against maxPixels (0: DefaultMaxPixels) and MaxSide, and the memory that decoding takes
// against 7 bytes for each pixel of maxPixels and 16 MiB, before any pixel is decoded. Grey, CMYK, palette and 16-bit
// images become 8-bit RGB; transparent ones are put over white. An image is turned upright as its EXIF tag Orientation
// says, or XMP where there is none. Damaged files are errors, never panics; one that may be sound and is not read is an
// ErrNotSupported.
func Decode(b []byte, maxPixels int) (m *transform.Image, err error) {
	return DecodeTimed(b, maxPixels, nil)
}

func DecodeTimed(b []byte, maxPixels int, w *Stopwatch) (m *transform.Image, err error) {
	// Decoders of foreign formats have panicked on hostile input before; such a
	// file is a bad sample, not the end of a run.
	defer func() {
		if p := recover(); p != nil {
			m, err = nil, fmt.Errorf("data: image decoder failed on damaged input (%v)", p)
		}
	}()
	cfg, f, err := header(bytes.NewReader(b), int64(len(b)), maxPixels)
	if err != nil {
		return nil, err
	}
	turn := orientation(b)
	need := decodeBytes(b, f.Name, cfg, turn > 1)
	if err := checkBytes(cfg, f.Name, need, maxPixels); err != nil {
		return nil, err
	}
	decoding := shared()
	decoding.Take(need)
	defer decoding.Give(need)
	switch f.Name {
	case "JPEG":
		m, err = decodeJPEG(b, cfg, f, w)
	case "WebP":
		m, err = decodeWebP(b, cfg, w)
	default:
		m, err = decodePlain(b, cfg, f, w)
	}
	if err != nil {
		return nil, err
	}
	if turn > 1 {
		decoding.Collect(need)
		m = upright(m, turn)
	}
	w.Lap(StageColour)
	return m, nil
}

// decodePlain decodes an image of a format that Go has a decoder for.
func decodePlain(b []byte, cfg image.Config, f Format, w *Stopwatch) (*transform.Image, error) {
	switch f.Name {
	case "PNG":
		b = endedPNG(b)
	case "GIF":
		b = endedGIF(b)
	case "TIFF":
		if tiffFax(b) {
			return nil, notSupported("TIFF, compressed as a fax is")
		}
	}
	img, err := f.decodeFirst(b)
	if err != nil {
		return nil, err
	}
	if f.Name == "GIF" {
		img = onCanvas(img, cfg)
	}
	if d := img.Bounds(); d.Dx() != cfg.Width || d.Dy() != cfg.Height {
		return nil, fmt.Errorf("data: %s image is %dx%d, its header says %dx%d", f.Name, d.Dx(), d.Dy(), cfg.Width,
			cfg.Height)
	}
	w.Lap(StageDecode)
	return fromImage(img, false), nil
}

// header reads the header of an image of size bytes and tests its pixels against the limit.
func header(r io.Reader, size int64, maxPixels int) (cfg image.Config, f Format, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("data: image decoder failed on a damaged header (%v)", p)
		}
	}()
	in := bufio.NewReader(r)
	head, _ := in.Peek(headBytes) // a shorter file is one that is not known, or cut
	f, known := FormatOf(head)
	switch {
	case !known:
		return cfg, f, fmt.Errorf("data: not a %s image (%d bytes)", FormatsRead, size)
	case !f.Read:
		return cfg, f, notSupported(f.Name)
	}
	cfg, err = f.config(in)
	switch maxPixels = pixelLimit(maxPixels); {
	case err != nil:
		err = f.broken("header of the image is damaged", err)
	case cfg.Width <= 0 || cfg.Height <= 0:
		err = fmt.Errorf("data: %s image without pixels (%dx%d)", f.Name, cfg.Width, cfg.Height)
	case cfg.Width > MaxSide || cfg.Height > MaxSide:
		err = fmt.Errorf("data: %s image of %dx%d: %w: a side may have %d: cut it into pieces or shrink it", f.Name,
			cfg.Width, cfg.Height, ErrTooLarge, MaxSide)
	case int64(cfg.Width)*int64(cfg.Height) > int64(maxPixels):
		err = fmt.Errorf("data: %s image of %dx%d: %w (%d): shrink it or raise data.max_pixels", f.Name, cfg.Width,
			cfg.Height, ErrTooLarge, maxPixels)
	}
	return cfg, f, err
}

// Size returns width and height of a file for Decode, as its header says. A header that Decode refuses is an error.
func Size(b []byte, maxPixels int) (w, h int, err error) {
	cfg, _, err := header(bytes.NewReader(b), int64(len(b)), maxPixels)
	return cfg.Width, cfg.Height, err
}

// pixelLimit is a limit of pixels, or the default for 0.
func pixelLimit(maxPixels int) int {
	if maxPixels <= 0 {
		return DefaultMaxPixels
	}
	return maxPixels
}

// headerFirst is the size in bytes above which the header of a file is read before the
// rest of it.
const headerFirst = 1 << 20

// readImage reads an image file, of a large one the header first.
func readImage(path string, maxPixels int) ([]byte, error) {
	f, size, err := files.Open(path, MaxBytes(maxPixels))
	if err != nil {
		return nil, fmt.Errorf("data: image: %w", err)
	}
	defer f.Close()
	if size > headerFirst {
		if _, _, err := header(bufio.NewReader(f), size, maxPixels); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			return nil, fmt.Errorf("data: image: %w", err)
		}
	}
	b, err := files.Rest(f, size, MaxBytes(maxPixels))
	if err != nil {
		return nil, fmt.Errorf("data: image: %w", err)
	}
	return b, nil
}

// DecodeFile is Decode of a regular file, of at most 7 bytes for each pixel of maxPixels
// and 16 MiB; its errors name the file. Of a large file the header is read first.
func DecodeFile(path string, maxPixels int) (*transform.Image, error) {
	return DecodeFileTimed(path, maxPixels, nil)
}

func DecodeFileTimed(path string, maxPixels int, w *Stopwatch) (*transform.Image, error) {
	b, err := readImage(path, maxPixels)
	w.Lap(StageRead)
	if err != nil {
		return nil, names.OtherForm(err, path)
	}
	m, err := DecodeTimed(b, maxPixels, w)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return m, nil
}

// FromImage converts any image to 8-bit RGB, over white where it is transparent.
func FromImage(img image.Image) (*transform.Image, error) {
	if d := img.Bounds(); d.Dx() <= 0 || d.Dy() <= 0 {
		return nil, fmt.Errorf("data: image without pixels (%dx%d)", d.Dx(), d.Dy())
	}
	return fromImage(img, false), nil
}

// fromImage converts img; video says that its brightness runs from 16 to 235,
// which Go's WebP decoder does not tell.
func fromImage(img image.Image, video bool) *transform.Image {
	switch src := img.(type) {
	case *image.YCbCr:
		return fromYCbCr(src, video)
	case *image.NYCbCrA:
		m := fromYCbCr(&src.YCbCr, video)
		for y := range m.H {
			row := m.Pix[3*m.W*y:]
			for x, a := range src.A[src.AOffset(src.Rect.Min.X, src.Rect.Min.Y+y):][:m.W] {
				for c := 3 * x; c < 3*x+3; c++ {
					row[c] = overWhite(row[c], a)
				}
			}
		}
		return m
	}
	d := img.Bounds()
	m := transform.NewImage(d.Dx(), d.Dy())
	i := 0
	put := func(r, g, b uint8) {
		m.Pix[i], m.Pix[i+1], m.Pix[i+2] = r, g, b
		i += 3
	}
	switch src := img.(type) {
	case *image.Gray:
		for y := d.Min.Y; y < d.Max.Y; y++ {
			for _, v := range src.Pix[src.PixOffset(d.Min.X, y):][:d.Dx()] {
				put(v, v, v)
			}
		}
	case *image.RGBA: // premultiplied
		for y := d.Min.Y; y < d.Max.Y; y++ {
			row := src.Pix[src.PixOffset(d.Min.X, y):][:4*d.Dx()]
			for j := 0; j < len(row); j += 4 {
				p := row[j : j+4 : j+4]
				w := 255 - int(p[3])
				put(cut8(int(p[0])+w), cut8(int(p[1])+w), cut8(int(p[2])+w))
			}
		}
	case *image.NRGBA:
		for y := d.Min.Y; y < d.Max.Y; y++ {
			row := src.Pix[src.PixOffset(d.Min.X, y):][:4*d.Dx()]
			for j := 0; j < len(row); j += 4 {
				p := row[j : j+4 : j+4]
				put(overWhite(p[0], p[3]), overWhite(p[1], p[3]), overWhite(p[2], p[3]))
			}
		}
	case *image.NRGBA64:
		for y := d.Min.Y; y < d.Max.Y; y++ {
			row := src.Pix[src.PixOffset(d.Min.X, y):][:8*d.Dx()]
			for j := 0; j < len(row); j += 8 {
				p := row[j : j+8 : j+8] // the higher byte of each first
				put(overWhite(p[0], p[6]), overWhite(p[2], p[6]), overWhite(p[4], p[6]))
			}
		}
	case *image.Paletted:
		var colours [256][3]uint8 // black where a palette is too short
		for i, c := range src.Palette[:min(len(src.Palette), len(colours))] {
			p := color.NRGBAModel.Convert(c).(color.NRGBA)
			colours[i] = [3]uint8{overWhite(p.R, p.A), overWhite(p.G, p.A), overWhite(p.B, p.A)}
		}
		for y := d.Min.Y; y < d.Max.Y; y++ {
			for _, i := range src.Pix[src.PixOffset(d.Min.X, y):][:d.Dx()] {
				put(colours[i][0], colours[i][1], colours[i][2])
			}
		}
	default:
		at := func(x, y int) (r, g, b, a uint32) { return img.At(x, y).RGBA() }
		if src, ok := img.(image.RGBA64Image); ok { // which makes no value on the heap for each pixel
			at = func(x, y int) (r, g, b, a uint32) { return src.RGBA64At(x, y).RGBA() }
		}
		for y := d.Min.Y; y < d.Max.Y; y++ {
			for x := d.Min.X; x < d.Max.X; x++ {
				r, g, b, a := at(x, y)
				w := 0xffff - a
				put(cut8(int(r+w)>>8), cut8(int(g+w)>>8), cut8(int(b+w)>>8))
			}
		}
	}
	return m
}

// overWhite is the value v of opacity a on white.
func overWhite(v, a uint8) uint8 { return uint8((int(v)*int(a) + 255*(255-int(a)) + 127) / 255) }

func cut8(v int) uint8 { return uint8(min(v, 255)) }
