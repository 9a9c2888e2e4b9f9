package main

import (
	"os"
	"path/filepath"

	"github.com/geoalign/geoalign/data/transform"
)

// compareResize compares the bytes of resized pictures, larger and smaller, with those of Pillow's antialiased BICUBIC,
// and of BILINEAR to squares.
func compareResize(o *options) (*result, error) {
	var cases []struct {
		Name     string
		W, H     int
		To       [2]int
		Bilinear bool
	}
	if err := o.cases("resize.py", &cases, "pillow"); err != nil {
		return nil, err
	}
	r := new(result)
	for _, c := range cases {
		r.cases++
		in, err := os.ReadFile(filepath.Join(o.dir, c.Name+".in"))
		if err != nil {
			return nil, err
		}
		want, err := os.ReadFile(filepath.Join(o.dir, c.Name+".out"))
		if err != nil {
			return nil, err
		}
		m, got := &transform.Image{W: c.W, H: c.H, Pix: in}, (*transform.Image)(nil)
		if c.Bilinear {
			dst := make([]float32, 3*c.To[0]*c.To[1])
			if err = (transform.Eval{Size: c.To[0], Input: transform.Input{Bilinear: true}}).Apply(m, nil,
				dst); err == nil {
				got, err = transform.Denormalize(dst, c.To[0], c.To[1])
			}
		} else {
			got, err = transform.Resize(m, c.To[0], c.To[1])
		}
		if err != nil {
			return nil, err
		}
		worst := 0
		for i, v := range want {
			worst = max(worst, int(v)-int(got.Pix[i]), int(got.Pix[i])-int(v))
		}
		if worst > 0 {
			r.differ("%dx%d to %v, bilinear %v: by up to %d", c.W, c.H, c.To, c.Bilinear, worst)
		}
	}
	return r, nil
}
