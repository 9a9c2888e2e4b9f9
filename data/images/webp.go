package images

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"image"

	"golang.org/x/image/webp"

	"github.com/geoalign/geoalign/data/transform"
)

// riffChunks gives names and data of the chunks of RFC 9649 that are whole (section 2.3).
func riffChunks(b []byte) func(yield func(name string, data []byte) bool) {
	return func(yield func(string, []byte) bool) {
		const head = 8 // name and size
		for len(b) >= head {
			n := uint64(binary.LittleEndian.Uint32(b[4:]))
			if n > uint64(len(b)-head) || !yield(string(b[:4]), b[head:head+n]) {
				return
			}
			b = b[min(head+n+n%2, uint64(len(b))):]
		}
	}
}

// webpHead is what stands before the chunks of a WebP file: RIFF, a size, WEBP.
const webpHead = 12

// webpPicture is the first picture of a WebP file.
type webpPicture struct {
	alpha, pixels []byte // chunks ALPH (nil: none) and the one called kind
	kind          string // VP8 or VP8L
	at            image.Rectangle
	opaque        bool // what it leaves free of its canvas is black, not transparent
	still         bool // it is its canvas
}

// pictureOfWebP finds the first picture. The canvas of a still one is its own.
func pictureOfWebP(b []byte, canvas image.Rectangle) (p webpPicture, err error) {
	p = webpPicture{at: canvas, still: true, opaque: true}
	if n := uint64(binary.LittleEndian.Uint32(b[4:])) + 8; n > uint64(len(b)) {
		return p, fmt.Errorf("it says that it has %d bytes and has %d", n, len(b))
	} else if n >= webpHead {
		b = b[:n]
	}
	for name, data := range riffChunks(b[webpHead:]) {
		switch name {
		case "VP8X": // section 2.7.1
			const animation, alpha = 1 << 1, 1 << 4
			if len(data) < 10 {
				return p, errors.New("its header is short")
			}
			p.still, p.opaque = data[0]&animation == 0, data[0]&alpha == 0
		case "ANMF":
			if p.still {
				continue
			}
			const head = 16 // place and size, in three bytes each, time and flags
			if len(data) < head {
				return p, errors.New("its first frame is short")
			}
			three := func(i int) int { return int(data[i]) | int(data[i+1])<<8 | int(data[i+2])<<16 }
			x, y := 2*three(0), 2*three(3)
			if p.at = image.Rect(x, y, x+three(6)+1, y+three(9)+1); !p.at.In(canvas) {
				return p, fmt.Errorf("its first frame %v lies beyond its canvas %v", p.at, canvas)
			}
			for name, data := range riffChunks(data[head:]) {
				if p.take(name, data) {
					return p, nil
				}
			}
			return p, errors.New("its first frame has no picture")
		default:
			if p.still && p.take(name, data) {
				return p, nil
			}
		}
	}
	return p, errors.New("it has no picture that is whole")
}

// take takes a chunk of the picture, and tells whether it is the last.
func (p *webpPicture) take(name string, data []byte) bool {
	switch name {
	case "ALPH":
		if p.alpha == nil {
			p.alpha = data
		}
	case "VP8 ", "VP8L":
		p.kind, p.pixels = name, data
		if name == "VP8L" { // has its own
			p.alpha = nil
		}
		return true
	}
	return false
}

// file is the picture as a file of its own, with nothing else in it.
func (p *webpPicture) file() []byte {
	b := make([]byte, 0, webpHead+18+16+len(p.alpha)+len(p.pixels))
	b = append(b, "RIFF\x00\x00\x00\x00WEBP"...)
	chunk := func(name string, data []byte) {
		b = append(binary.LittleEndian.AppendUint32(append(b, name...), uint32(len(data))), data...)
		if len(data)%2 != 0 {
			b = append(b, 0)
		}
	}
	if p.alpha != nil {
		w, h := p.at.Dx()-1, p.at.Dy()-1
		chunk("VP8X", []byte{1 << 4, 0, 0, 0, byte(w), byte(w >> 8), byte(w >> 16), byte(h), byte(h >> 8),
			byte(h >> 16)})
		chunk("ALPH", p.alpha)
	}
	chunk(p.kind, p.pixels)
	binary.LittleEndian.PutUint32(b[4:], uint32(len(b)-8))
	return b
}

// decodeWebP decodes the first picture of a WebP file with the given header, on its canvas.
func decodeWebP(b []byte, cfg image.Config, w *Stopwatch) (*transform.Image, error) {
	canvas := image.Rect(0, 0, cfg.Width, cfg.Height)
	fail := func(err error) (*transform.Image, error) {
		return nil, fmt.Errorf("data: WebP image is damaged or cut short: %w", err)
	}
	p, err := pictureOfWebP(b, canvas)
	if err != nil {
		return fail(err)
	}
	file := p.file()
	// The picture may say another size than its file does: no memory is taken for it.
	if c, err := webp.DecodeConfig(bytes.NewReader(file)); err != nil {
		return fail(err)
	} else if c.Width != p.at.Dx() || c.Height != p.at.Dy() {
		return nil, fmt.Errorf("data: WebP image is %dx%d, its header says %dx%d", c.Width, c.Height, p.at.Dx(),
			p.at.Dy())
	}
	if p.kind == "VP8L" && len(p.pixels) < 5 {
		return fail(errors.New("it has no pixels"))
	}
	img, err := webp.Decode(bytes.NewReader(file))
	if err != nil {
		return fail(err)
	}
	w.Lap(StageDecode)
	m := fromImage(img, true)
	if p.at == canvas {
		return m, nil
	}
	out := transform.NewImage(cfg.Width, cfg.Height)
	if !p.opaque {
		for i := range out.Pix {
			out.Pix[i] = 255
		}
	}
	for y := range m.H {
		copy(out.Pix[3*(cfg.Width*(p.at.Min.Y+y)+p.at.Min.X):], m.Pix[3*m.W*y:3*m.W*(y+1)])
	}
	return out, nil
}
