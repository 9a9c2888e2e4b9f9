package data

import (
	"bytes"
	"encoding/binary"

	"github.com/geoalign/geoalign/data/transform"
)

// orientation returns the value of the EXIF tag Orientation of an image file, 1 to 8 (EXIF 2.32,
// 4.6.4.A), which says how a camera was held. It is 1, upright, where the file has no such tag, and where
// the tag is damaged.
func orientation(b []byte) int {
	if jpeg, ok := bytes.CutPrefix(b, []byte{0xff, 0xd8}); ok {
		return tiffOrientation(exifOfJPEG(jpeg))
	}
	if png, ok := bytes.CutPrefix(b, []byte("\x89PNG\r\n\x1a\n")); ok {
		return tiffOrientation(exifOfPNG(png))
	}
	if riff, ok := bytes.CutPrefix(b, []byte("RIFF")); ok && len(riff) >= 8 && string(riff[4:8]) == "WEBP" {
		return tiffOrientation(exifOfWebP(riff[8:]))
	}
	return 1
}

// exifMark stands before the TIFF structure in JPEG, and of some programs in WebP.
var exifMark = []byte("Exif\x00\x00")

// exifOfJPEG returns the TIFF structure of EXIF among the segments behind the start of the image (EXIF 2.32, 4.7.2), nil where
// there is none.
func exifOfJPEG(b []byte) []byte {
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
			return nil
		}
		if tiff, ok := bytes.CutPrefix(b[4:n], exifMark); ok && marker == app1 {
			return tiff
		}
		b = b[n:]
	}
	return nil
}

// exifOfPNG returns the chunk eXIf among the chunks behind the signature (PNG, third edition, 11.3.4.5), nil where there is none.
func exifOfPNG(b []byte) []byte {
	const frame = 12 // bytes of a chunk that are not its data: size and name before, checksum behind
	for len(b) >= frame {
		n := uint64(binary.BigEndian.Uint32(b))
		if n > uint64(len(b)-frame) {
			return nil
		}
		if string(b[4:8]) == "eXIf" {
			return b[8 : 8+n]
		}
		b = b[frame+n:]
	}
	return nil
}

// exifOfWebP returns the chunk EXIF among the chunks of a file (RFC 9649, 2.7.1.5), nil where there is none.
func exifOfWebP(b []byte) []byte {
	const head = 8 // name and size
	for len(b) >= head {
		n := uint64(binary.LittleEndian.Uint32(b[4:]))
		if n > uint64(len(b)-head) {
			return nil
		}
		if string(b[:4]) == "EXIF" {
			return bytes.TrimPrefix(b[head:head+n], exifMark)
		}
		b = b[min(head+n+n%2, uint64(len(b))):]
	}
	return nil
}

// tiffOrientation looks for the tag in the first directory of a TIFF structure.
func tiffOrientation(b []byte) int {
	const (
		tag         = 0x0112
		short, long = 3, 4 // types of a value
		entry       = 12   // bytes of an entry: tag, type, count, value
	)
	if len(b) < 8 {
		return 1
	}
	var order binary.ByteOrder
	switch string(b[:4]) {
	case "II*\x00":
		order = binary.LittleEndian
	case "MM\x00*":
		order = binary.BigEndian
	default:
		return 1
	}
	at := uint64(order.Uint32(b[4:]))
	if at+2 > uint64(len(b)) {
		return 1
	}
	b = b[at:]
	n := int(order.Uint16(b))
	for b = b[2:]; n > 0 && len(b) >= entry; n, b = n-1, b[entry:] {
		if order.Uint16(b) != tag {
			continue
		}
		value := uint32(0)
		switch order.Uint16(b[2:]) {
		case short:
			value = uint32(order.Uint16(b[8:]))
		case long:
			value = order.Uint32(b[8:])
		}
		if order.Uint32(b[4:]) == 1 && value >= 1 && value <= 8 {
			return int(value)
		}
		return 1
	}
	return 1
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
