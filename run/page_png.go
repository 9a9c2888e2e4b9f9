package run

import (
	"bytes"
	"image"
	"image/png"
)

func encodePNG(m image.Image) ([]byte, error) {
	var b bytes.Buffer
	err := png.Encode(&b, m)
	return b.Bytes(), err
}
