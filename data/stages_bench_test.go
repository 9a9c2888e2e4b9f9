package data

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/geoalign/geoalign/data/images"
	"github.com/geoalign/geoalign/data/transform"
	"github.com/geoalign/geoalign/internal/filetest"
	"github.com/geoalign/geoalign/internal/rng"
)

// benchJPEGs returns count JPEG files of w x h pixels, quality 90, colour at half
// resolution. They show mosaics of Flickr8k photos where ../../shared has them
// (photo is then true), else a pattern with noise.
func benchJPEGs(b *testing.B, count, w, h int) (files [][]byte, photo bool) {
	b.Helper()
	paths, _ := filepath.Glob(filepath.Join("..", "..", "shared", "data", "flickr8k", "images", "*.jpg"))
	r := rand.New(rand.NewPCG(1, 2))
	for range count {
		m := image.NewNRGBA(image.Rect(0, 0, w, h))
		if len(paths) == 0 {
			for y := range h {
				for x := range w {
					v := uint8((x*x+y*y)>>6 + r.IntN(24))
					m.SetNRGBA(x, y, color.NRGBA{v, uint8(x) + v/2, uint8(y), 255})
				}
			}
		}
		const tile = 128
		for y := 0; len(paths) > 0 && y < h; y += tile {
			for x := 0; x < w; x += tile {
				p, err := images.DecodeFile(paths[r.IntN(len(paths))], 0)
				if err != nil {
					b.Fatal(err)
				}
				for j := range min(tile, h-y, p.H) {
					for i := range min(tile, w-x, p.W) {
						c := p.Pix[3*(j*p.W+i):]
						m.SetNRGBA(x+i, y+j, color.NRGBA{c[0], c[1], c[2], 255})
					}
				}
			}
		}
		var buf bytes.Buffer
		if err := jpeg.Encode(&buf, m, &jpeg.Options{Quality: 90}); err != nil {
			b.Fatal(err)
		}
		files = append(files, buf.Bytes())
	}
	return files, len(paths) > 0
}

// BenchmarkStages is the cost of each stage of a training sample of 256 pixels,
// for pictures of that size and larger ones:
//
//	go test ./data -run none -bench Stages
func BenchmarkStages(b *testing.B) {
	const side = 256
	for _, size := range []image.Point{{256, 256}, {500, 375}} {
		files, photo := benchJPEGs(b, 16, size.X, size.Y)
		name := fmt.Sprintf("noise%dx%d", size.X, size.Y)
		if photo {
			name = fmt.Sprintf("photo%dx%d", size.X, size.Y)
		}
		dir := b.TempDir()
		var paths []string
		var whole []*transform.Image
		var raw []image.Image
		for i, f := range files {
			p := filepath.Join(dir, fmt.Sprint(i))
			filetest.Write(b, p, f)
			paths = append(paths, p)
			m, err := images.Decode(f, 0)
			if err != nil {
				b.Fatal(err)
			}
			y, err := jpeg.Decode(bytes.NewReader(f))
			if err != nil {
				b.Fatal(err)
			}
			whole, raw = append(whole, m), append(raw, y)
		}
		dst := make([]float32, 3*side*side)
		stage := func(stage string, f func(i int) error) {
			b.Run(name+"/"+stage, func(b *testing.B) {
				b.ReportAllocs()
				n := 0
				for b.Loop() {
					if err := f(n % len(files)); err != nil {
						b.Fatal(err)
					}
					n++
				}
			})
		}
		stage("read", func(i int) error { _, err := os.ReadFile(paths[i]); return err })
		stage("jpeg", func(i int) error { _, err := jpeg.Decode(bytes.NewReader(files[i])); return err })
		stage("colour", func(i int) error { _, err := images.FromImage(raw[i]); return err })
		apply := func(t transform.Train) func(i int) error {
			return func(i int) error { return t.Apply(whole[i], rng.New(1, rng.Augment, uint64(i)), dst) }
		}
		stage("crop+resize+normalise", apply(transform.Train{Size: side, ScaleMin: 0.2}))
		stage("crop+resize+flip+randaugment+normalise", apply(transform.Train{Size: side, ScaleMin: 0.2, Flip: true, Ops: 2, Level: 7}))
		square, err := transform.Resize(whole[0], side, side)
		if err != nil {
			b.Fatal(err)
		}
		stage("resize", func(i int) error { _, err := transform.Resize(whole[i], side-1, side-1); return err })
		stage("normalise", func(int) error { transform.Normalize(square, dst); return nil })
		stage("whole", func(i int) error {
			m, err := images.DecodeFile(paths[i], 0)
			if err != nil {
				return err
			}
			return transform.Train{Size: side, ScaleMin: 0.2, Flip: true, Ops: 2, Level: 7}.Apply(m, rng.New(1, rng.Augment, uint64(i)), dst)
		})
	}
}
