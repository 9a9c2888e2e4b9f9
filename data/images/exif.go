package images

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"regexp"

	"github.com/geoalign/geoalign/data/transform"
)

// orientation returns the value of the EXIF tag Orientation of an image file, 1 to 8 (EXIF 2.32, 4.6.4.A), which says
// how a camera was held. Where EXIF has no such tag, it is that of XMP (TIFF's namespace). It is 1, upright, where the
// file has neither, and where what it has is damaged: as PIL.ImageOps.exif_transpose turns images.
func orientation(b []byte) int {
	exif, xmp := metadata(b)
	value, found := tiffOrientation(exif)
	if !found {
		value = xmpOrientation(xmp)
	}
	if value < 1 || value > 8 {
		return 1
	}
	return value
}

// metadata returns the TIFF structure of EXIF and the XMP of an image file, nil where there is none.
func metadata(b []byte) (exif, xmp []byte) {
	switch f, _ := FormatOf(b); f.Name {
	case "JPEG":
		return metadataOfJPEG(b[2:])
	case "PNG":
		return metadataOfPNG(b)
	case "WebP":
		for name, data := range riffChunks(b[webpHead:]) {
			switch {
			case name == "EXIF" && exif == nil:
				exif = withoutExifMark(data)
			case name == "XMP " && xmp == nil:
				xmp = data
			}
		}
		return exif, xmp
	case "TIFF":
		return b, tiffXMP(b)
	}
	return nil, nil
}

// exifMark stands before the TIFF structure in JPEG, and of some programs in WebP and PNG, once or twice.
var exifMark = []byte("Exif\x00\x00")

func withoutExifMark(b []byte) []byte {
	return bytes.TrimPrefix(bytes.TrimPrefix(b, exifMark), exifMark)
}

// xmpMark stands before XMP in JPEG.
var xmpMark = []byte("http://ns.adobe.com/xap/1.0/\x00")

// metadataOfJPEG looks among the segments behind the start of the image (EXIF 2.32, 4.7.2; XMP specification, part 3,
// 1.1.3). A program that splits EXIF goes on in the next segment; of XMP the last one counts.
func metadataOfJPEG(b []byte) (exif, xmp []byte) {
	const (
		startOfScan = 0xda
		app1        = 0xe1
	)
	for len(b) >= 4 && b[0] == 0xff {
		marker := b[1]
		if marker == 0xff { // filling
			b = b[1:]
			continue
		}
		n := 2 + int(binary.BigEndian.Uint16(b[2:]))
		if marker == startOfScan || n < 4 || n > len(b) {
			break
		}
		if marker == app1 {
			if part, ok := bytes.CutPrefix(b[4:n], exifMark); ok {
				exif = append(exif[:len(exif):len(exif)], part...)
			} else if part, ok := bytes.CutPrefix(b[4:n], xmpMark); ok {
				xmp = part
			}
		}
		b = b[n:]
	}
	return withoutExifMark(exif), xmp
}

// Keywords of texts in PNG.
const (
	pngRawExif = "Raw profile type exif" // of ImageMagick
	pngXMP     = "XML:com.adobe.xmp"
)

// metadataOfPNG looks for the chunk eXIf (PNG, third edition, 11.3.4.5), for ImageMagick's text of EXIF where there is
// none, and for XMP.
func metadataOfPNG(b []byte) (exif, xmp []byte) {
	for _, c := range pngChunks(b) {
		if c.name == "eXIf" {
			exif = withoutExifMark(c.data)
		}
	}
	texts := pngTexts(b, pngRawExif, pngXMP)
	if exif == nil {
		exif = rawProfile(texts[pngRawExif])
	}
	return exif, texts[pngXMP]
}

// rawProfile returns the bytes of a text of ImageMagick: an empty line, the name, the number of bytes, and the bytes in
// hexadecimal.
func rawProfile(text []byte) []byte {
	for range 3 {
		_, behind, ok := bytes.Cut(text, []byte{'\n'})
		if !ok {
			return nil
		}
		text = behind
	}
	digits := bytes.Join(bytes.Fields(text), nil)
	b := make([]byte, hex.DecodedLen(len(digits)))
	if _, err := hex.Decode(b, digits); err != nil {
		return nil
	}
	return withoutExifMark(b)
}

// xmpPattern finds the orientation in an attribute or an element.
var xmpPattern = regexp.MustCompile(`tiff:Orientation(?:="|>)([0-9])`)

// xmpOrientation is the orientation that XMP says, 1 if it says none.
func xmpOrientation(xmp []byte) int {
	if m := xmpPattern.FindSubmatch(xmp); m != nil {
		return int(m[1][0] - '0')
	}
	return 1
}

// Tags of a TIFF structure.
const (
	tagCompression = 0x0103
	tagOrientation = 0x0112
	tagXMP         = 0x02bc
)

// tiffTag finds a tag in the first directory of a TIFF structure, the last of its kind: its type, how many values it
// has, and where they lie: in the four bytes behind that, or at the offset that these hold.
func tiffTag(b []byte, tag uint16) (kind uint16, count uint32, value []byte, order binary.ByteOrder) {
	const entry = 12 // bytes of an entry: tag, type, count, value
	if len(b) < 8 {
		return
	}
	switch string(b[:4]) {
	case "II*\x00":
		order = binary.LittleEndian
	case "MM\x00*":
		order = binary.BigEndian
	default:
		return
	}
	at := uint64(order.Uint32(b[4:]))
	if at+2 > uint64(len(b)) {
		return
	}
	b = b[at:]
	n := int(order.Uint16(b))
	for b = b[2:]; n > 0 && len(b) >= entry; n, b = n-1, b[entry:] {
		if order.Uint16(b) == tag {
			kind, count, value = order.Uint16(b[2:]), order.Uint32(b[4:]), b[8:entry]
		}
	}
	return kind, count, value, order
}

// tiffOrientation is the tag Orientation of a TIFF structure, and whether there is one.
func tiffOrientation(b []byte) (value int, found bool) {
	const short, long = 3, 4 // types of a value; 5 more with a sign
	kind, count, in, order := tiffTag(b, tagOrientation)
	switch {
	case in == nil:
		return 1, false
	case count != 1:
		return 1, true
	}
	switch kind {
	case short, short + 5:
		return int(order.Uint16(in)), true
	case long, long + 5:
		return int(int32(order.Uint32(in))), true
	}
	return 1, true
}

// tiffFax tells whether the pixels of a TIFF file are compressed by CCITT's groups 3 and 4, of which the library swaps
// black and white where black is zero.
func tiffFax(b []byte) bool {
	_, _, in, order := tiffTag(b, tagCompression)
	return in != nil && order.Uint16(in) >= 2 && order.Uint16(in) <= 4
}

// tiffXMP is the XMP of a TIFF file.
func tiffXMP(b []byte) []byte {
	_, n, in, order := tiffTag(b, tagXMP)
	if in == nil || n <= 4 {
		return nil
	}
	at := uint64(order.Uint32(in))
	if at > uint64(len(b)) || uint64(n) > uint64(len(b))-at {
		return nil
	}
	return b[at : at+uint64(n)]
}

// upright returns m turned and mirrored as an orientation asks for, m itself for 1.
func upright(m *transform.Image, orientation int) *transform.Image {
	if orientation <= 1 || orientation > 8 {
		return m
	}
	w, h := m.W, m.H
	if orientation >= 5 { // lies on its side
		w, h = h, w
	}
	out := transform.NewImage(w, h)
	for y := range h {
		for x := range w {
			u, v := x, y // the pixel of m that comes to x, y
			switch orientation {
			case 2:
				u = m.W - 1 - x
			case 3:
				u, v = m.W-1-x, m.H-1-y
			case 4:
				v = m.H - 1 - y
			case 5:
				u, v = y, x
			case 6:
				u, v = y, m.H-1-x
			case 7:
				u, v = m.W-1-y, m.H-1-x
			case 8:
				u, v = m.W-1-y, x
			}
			copy(out.Pix[3*(w*y+x):][:3], m.Pix[3*(m.W*v+u):][:3])
		}
	}
	return out
}
