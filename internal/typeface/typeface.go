// Package typeface is the one typeface of pictures with text, which is compiled in.
package typeface

import (
	"fmt"
	"sync"

	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/opentype"
)

var parsed = sync.OnceValues(func() (*opentype.Font, error) { return opentype.Parse(goregular.TTF) })

// New returns a face of a size in pixels, for one goroutine. An error would be a broken build.
func New(size float64) (font.Face, error) {
	f, err := parsed()
	if err != nil {
		return nil, fmt.Errorf("typeface: built-in font: %w", err)
	}
	return opentype.NewFace(f, &opentype.FaceOptions{Size: size, DPI: 72, Hinting: font.HintingFull})
}
