package turbojpeg

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
)

// test compares what the library makes of a few pictures with the pictures, and asks that it sees a
// file that is cut short, so that a library with another interface or a defect is not trusted.
func (l *Library) test() error {
	for _, size := range [][2]int{{1, 1}, {33, 18}, {64, 5}} {
		for _, grey := range []bool{false, true} {
			if err := l.testOne(size[0], size[1], grey); err != nil {
				return err
			}
		}
	}
	return nil
}

func (l *Library) testOne(w, h int, grey bool) error {
	file, want := picture(w, h, grey)
	const guard = 0xa5
	got := bytes.Repeat([]byte{guard}, 3*w*h+64)
	if err := l.Decode(got, file, w, h); err != nil {
		return err
	}
	for i, v := range want {
		if d := int(got[i]) - int(v); d < -12 || d > 12 {
			return fmt.Errorf("wrong pixels of a picture of %dx%d", w, h)
		}
	}
	for _, v := range got[3*w*h:] {
		if v != guard {
			return errors.New("writes behind the picture")
		}
	}
	if l.Decode(got, file[:len(file)-3], w, h) == nil {
		return errors.New("a file that is cut short passes")
	}
	return nil
}

// picture returns a file with a gentle slope of colours, and its pixels.
func picture(w, h int, grey bool) (file, rgb []byte) {
	m := image.NewRGBA(image.Rect(0, 0, w, h))
	g := image.NewGray(m.Rect)
	for y := range h {
		for x := range w {
			c := color.RGBA{uint8(60 + 2*x), uint8(80 + 3*y), uint8(170 - x - y), 255}
			if grey {
				c = color.RGBA{c.R, c.R, c.R, 255}
				g.SetGray(x, y, color.Gray{c.R})
			}
			m.SetRGBA(x, y, c)
			rgb = append(rgb, c.R, c.G, c.B)
		}
	}
	var b bytes.Buffer
	var shown image.Image = m
	if grey {
		shown = g
	}
	_ = jpeg.Encode(&b, shown, &jpeg.Options{Quality: 98}) // writing to memory does not fail
	return b.Bytes(), rgb
}
