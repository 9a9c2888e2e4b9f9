package jpeg

import (
	"bufio"
	"encoding/binary"
	"image"
	"image/color"
	"io"
)

// most is how much of a file is passed that is no segment before its frame.
const most = 1 << 16

// DecodeConfig reads the size of a file, and how many components it has: grey, color.YCbCrModel for three or
// color.CMYKModel for four. What is not decoded is an error, as for Decode.
func DecodeConfig(in io.Reader) (image.Config, error) {
	r := bufio.NewReader(in)
	at := 0
	next := func() (uint8, error) {
		at++
		b, err := r.ReadByte()
		if err == io.EOF {
			err = ErrCut
		}
		return b, err
	}
	for i := range 2 {
		if b, err := next(); err != nil || b != [2]uint8{0xff, markerSOI}[i] {
			return image.Config{}, damaged(0, "the file does not begin as a JPEG does")
		}
	}
	for passed := 0; ; {
		b, err := next()
		if err != nil {
			return image.Config{}, err
		}
		if b != 0xff {
			if passed++; passed > most {
				return image.Config{}, damaged(at, "no frame is found")
			}
			continue
		}
		for b == 0xff {
			if b, err = next(); err != nil {
				return image.Config{}, err
			}
		}
		switch {
		case b == 0 || b >= markerRST0 && b <= markerRST7:
			continue
		case b < markerSOF0 || b == markerSOI || b == markerEOI || b == markerSOS:
			return image.Config{}, damaged(at-2, "marker %#x before the frame", b)
		}
		var size [2]byte
		if _, err := io.ReadFull(r, size[:]); err != nil {
			return image.Config{}, ErrCut
		}
		n := max(int(binary.BigEndian.Uint16(size[:]))-2, 0)
		if b >= markerRST0 || b == markerDAC || b == markerDHT {
			if _, err := r.Discard(n); err != nil {
				return image.Config{}, ErrCut
			}
			at += 2 + n
			continue
		}
		body := make([]byte, n)
		if _, err := io.ReadFull(r, body); err != nil {
			return image.Config{}, ErrCut
		}
		f, err := frameOf(at-2, b, body)
		if err != nil {
			return image.Config{}, err
		}
		model := map[int]color.Model{1: color.GrayModel, 3: color.YCbCrModel, 4: color.CMYKModel}[f.components]
		return image.Config{Width: f.Width, Height: f.Height, ColorModel: model}, nil
	}
}
