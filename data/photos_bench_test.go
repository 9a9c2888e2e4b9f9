package data

import (
	"bytes"
	"image/jpeg"
	"os"
	"path/filepath"
	"testing"

	"github.com/geoalign/geoalign/data/images"
	"github.com/geoalign/geoalign/data/transform"
)

// BenchmarkPhotos makes photos of about 500 x 375 pixels into normalised floats of 224 x 224 pixels on one processor:
// decoding, bicubic resize with antialiasing, normalisation, and decodes them alone. The photos are the .jpg files of the
// folder GEOALIGN_PHOTOS, or mosaics of Flickr8k's; bench/peer/decode.py runs it beside Pillow, OpenCV and torchvision.
// "before" is image/jpeg.
//
//	GEOALIGN_PHOTOS=FOLDER go test ./data -run none -bench Photos
func BenchmarkPhotos(b *testing.B) {
	const side = 224
	var files [][]byte
	paths, _ := filepath.Glob(filepath.Join(os.Getenv("GEOALIGN_PHOTOS"), "*.jpg"))
	if os.Getenv("GEOALIGN_PHOTOS") == "" {
		files, _ = benchJPEGs(b, 16, 500, 375)
	} else if len(paths) == 0 {
		b.Fatal("no .jpg files in the folder GEOALIGN_PHOTOS")
	}
	for _, p := range paths {
		f, err := os.ReadFile(p)
		if err != nil {
			b.Fatal(err)
		}
		files = append(files, f)
	}
	dst := make([]float32, 3*side*side)
	run := func(name string, decode func(f []byte) (*transform.Image, error)) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				m, err := decode(files[n%len(files)])
				if err != nil {
					b.Fatal(err)
				}
				if err := (transform.Eval{Size: side}).Apply(m, nil, dst); err != nil {
					b.Fatal(err)
				}
				n++
			}
			b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "images/s")
		})
	}
	own := func(f []byte) (*transform.Image, error) { return images.Decode(f, 0) }
	run("before", func(f []byte) (*transform.Image, error) {
		m, err := jpeg.Decode(bytes.NewReader(f))
		if err != nil {
			return nil, err
		}
		return images.FromImage(m)
	})
	run("own", own)
	b.Run("decode", func(b *testing.B) {
		n := 0
		for b.Loop() {
			if _, err := own(files[n%len(files)]); err != nil {
				b.Fatal(err)
			}
			n++
		}
		b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "images/s")
	})
}
