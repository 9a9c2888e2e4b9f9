package images

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/gif"
	"image/png"
	"io"
	"path"
	"slices"
	"strings"

	"golang.org/x/image/bmp"
	"golang.org/x/image/tiff"
	"golang.org/x/image/webp"

	"github.com/geoalign/geoalign/data/internal/jpeg"
)

// Format is a kind of image file, known by the first bytes of a file or by the end of its name.
type Format struct {
	Name       string   // such as "JPEG"
	Extensions []string // in small letters, with the dot
	Read       bool     // Decode reads it; else it is known, to be named where it is met

	begins func(head []byte) bool
	config func(io.Reader) (image.Config, error)
	decode func(io.Reader) (image.Image, error)
}

// headBytes is how much of a file tells its format.
const headBytes = 64

// Formats are all formats that are known, those that are read first.
var Formats = []Format{
	{"JPEG", []string{".jpg", ".jpeg", ".jpe", ".jfif"}, true, magic("\xff\xd8"), jpeg.DecodeConfig, nil},
	{"PNG", []string{".png", ".apng"}, true, magic("\x89PNG\r\n\x1a\n"), png.DecodeConfig, png.Decode},
	{"WebP", []string{".webp"}, true, magic("RIFF????WEBP"), webp.DecodeConfig, webp.Decode},
	{"GIF", []string{".gif"}, true, magic("GIF87a", "GIF89a"), gif.DecodeConfig, gif.Decode},
	{"BMP", []string{".bmp", ".dib"}, true, magic("BM"), bmp.DecodeConfig, bmp.Decode},
	{"TIFF", []string{".tif", ".tiff"}, true, magic("II*\x00", "MM\x00*"), tiff.DecodeConfig, tiff.Decode},

	{Name: "AVIF", Extensions: []string{".avif", ".avifs"}, begins: brand("avif", "avis")},
	{Name: "HEIC", Extensions: []string{".heic", ".heif", ".hif"}, begins: brand("heic", "heix", "heim", "heis", "hevc", "hevx", "mif1", "msf1")},
	{Name: "JPEG XL", Extensions: []string{".jxl"}, begins: magic("\xff\x0a", "\x00\x00\x00\x0cJXL ")},
	{Name: "JPEG 2000", Extensions: []string{".jp2", ".j2k", ".jpf", ".jpx"}, begins: magic("\x00\x00\x00\x0cjP  ", "\xff\x4f\xff\x51")},
	{Name: "JPEG XR", Extensions: []string{".jxr", ".wdp"}, begins: magic("II\xbc\x01")},
	{Name: "BigTIFF", begins: magic("II+\x00", "MM\x00+")},
	{Name: "Photoshop", Extensions: []string{".psd", ".psb"}, begins: magic("8BPS")},
	{Name: "icon", Extensions: []string{".ico", ".cur"}, begins: magic("\x00\x00\x01\x00", "\x00\x00\x02\x00")},
	{Name: "netpbm", Extensions: []string{".pbm", ".pgm", ".ppm", ".pnm", ".pam"}, begins: magic("P1\n", "P2\n", "P3\n", "P4\n", "P5\n", "P6\n", "P7\n", "P5 ", "P6 ")},
	{Name: "QOI", Extensions: []string{".qoi"}, begins: magic("qoif")},
	{Name: "OpenEXR", Extensions: []string{".exr"}, begins: magic("\x76\x2f\x31\x01")},
	{Name: "Radiance", Extensions: []string{".hdr"}, begins: magic("#?RADIANCE", "#?RGBE")},
	{Name: "SVG", Extensions: []string{".svg", ".svgz"}, begins: magic("<svg")},
	{Name: "PDF", begins: magic("%PDF-")},
	{Name: "Targa", Extensions: []string{".tga"}},
	{Name: "camera raw", Extensions: []string{".dng", ".cr2", ".cr3", ".nef", ".arw", ".orf", ".rw2", ".raf"}, begins: magic("FUJIFILMCCD-RAW", "IIRO", "IIU\x00")},
}

// FormatsRead names the formats that are read, for messages.
const FormatsRead = "JPEG, PNG, WebP, GIF, BMP or TIFF"

// ErrNotSupported is the reason for an image that may be sound, of a format or a kind that is not read.
var ErrNotSupported = errors.New("not supported")

// notSupported is the error of an image that another program may read.
func notSupported(what string) error {
	return fmt.Errorf("data: %w (%s): convert it to JPEG or PNG", ErrNotSupported, what)
}

// magic tells whether a file begins with one of some texts, in which ? stands for any byte.
func magic(list ...string) func([]byte) bool {
	return func(head []byte) bool {
		return slices.ContainsFunc(list, func(s string) bool {
			if len(head) < len(s) {
				return false
			}
			for i := range len(s) {
				if s[i] != '?' && s[i] != head[i] {
					return false
				}
			}
			return true
		})
	}
}

// brand tells whether a file of ISO's base media format is of one of some brands: its own, or one that it is compatible
// with.
func brand(list ...string) func([]byte) bool {
	return func(head []byte) bool {
		if len(head) < 12 || string(head[4:8]) != "ftyp" {
			return false
		}
		for at := 8; at+4 <= len(head); at += 4 {
			if at != 12 && slices.Contains(list, string(head[at:at+4])) {
				return true
			}
		}
		return false
	}
}

// FormatOf tells the format of a file by its first bytes, of which 64 are enough.
func FormatOf(head []byte) (f Format, known bool) {
	for _, f := range Formats {
		if f.begins != nil && f.begins(head[:min(len(head), headBytes)]) {
			return f, true
		}
	}
	return Format{}, false
}

// FormatOfName tells the format of a file by the end of its name.
func FormatOfName(name string) (f Format, known bool) {
	ext := strings.ToLower(path.Ext(name))
	i := slices.IndexFunc(Formats, func(f Format) bool { return slices.Contains(f.Extensions, ext) })
	if i < 0 {
		return f, false
	}
	return Formats[i], true
}

// IsName tells whether a file is an image that is read, by its name.
func IsName(name string) bool {
	f, _ := FormatOfName(name)
	return f.Read
}

// broken is the error of an image that a decoder refuses: for what the decoder lacks, not supported, else damaged.
func (f Format) broken(what string, err error) error {
	for _, lacks := range []bool{
		is[jpeg.Unsupported](err), is[png.UnsupportedError](err), is[tiff.UnsupportedError](err), errors.Is(err,
			bmp.ErrUnsupported),
		f.Name == "GIF" && err != nil && strings.Contains(err.Error(), "frame bounds larger"),
	} {
		if lacks {
			return notSupported(f.Name + ", " + err.Error())
		}
	}
	return fmt.Errorf("data: %s: %w", what, err)
}

func is[E error](err error) bool {
	_, is := errors.AsType[E](err)
	return is
}

// decodeFirst decodes the first picture of a file of a format whose decoder needs no help.
func (f Format) decodeFirst(b []byte) (image.Image, error) {
	img, err := f.decode(bytes.NewReader(b))
	if err != nil {
		return nil, f.broken(f.Name+" image is damaged or cut short", err)
	}
	return img, nil
}
