package images

import (
	"image"
	"image/color"
	"image/draw"
)

// onCanvas puts the first picture of a GIF file where it lies on the canvas. What it leaves free is transparent if it
// has a transparent colour, else of its first colour, as Pillow has it.
func onCanvas(img image.Image, cfg image.Config) image.Image {
	p, ok := img.(*image.Paletted)
	canvas := image.Rect(0, 0, cfg.Width, cfg.Height)
	if !ok || p.Rect == canvas || len(p.Palette) == 0 {
		return img
	}
	free := p.Palette[0]
	for _, c := range p.Palette {
		if _, _, _, a := c.RGBA(); a == 0 {
			free = color.Transparent
		}
	}
	out := image.NewNRGBA(canvas)
	draw.Draw(out, canvas, image.NewUniform(free), image.Point{}, draw.Src)
	draw.Draw(out, p.Rect, p, p.Rect.Min, draw.Src)
	return out
}

// endedGIF returns a GIF file that ends behind a block of the data of its first picture with the end of the data and of
// the file, and others as they are. Whether all pixels are there is for the decoder to find out.
func endedGIF(b []byte) []byte {
	const head, descriptor = 13, 10
	if len(b) < head {
		return b
	}
	colours := func(flags byte) int { // bytes of the table of colours
		if flags&0x80 == 0 {
			return 0
		}
		return 3 << (flags&7 + 1)
	}
	at := head + colours(b[10])
	blocks := func() (ended bool) {
		for at < len(b) {
			n := int(b[at])
			if at += 1 + n; n == 0 {
				return true
			}
		}
		return false
	}
	for at+descriptor <= len(b) {
		switch b[at] {
		case '!': // an extension
			if at += 2; !blocks() {
				return b
			}
		case ',':
			if at += descriptor + colours(b[at+9]) + 1; at >= len(b) || blocks() || at != len(b) {
				return b
			}
			return append(b[:at:at], 0, ';')
		default:
			return b
		}
	}
	return b
}
