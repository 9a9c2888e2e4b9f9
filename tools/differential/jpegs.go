package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/geoalign/geoalign/data/images"
)

type jpegCase struct {
	Name, Settings, Damage, Error string

	W, H int
}

// compareJPEG compares JPEG files of every kind, damaged ones among them, with Pillow: all pixels must be equal, and
// what is refused must be what Pillow refuses. A picture that is whole but for the mark of its end is read, of which
// Pillow wants some bytes more.
func compareJPEG(o *options) (*result, error) {
	var cases []jpegCase
	if err := o.cases("jpegs.py", &cases, "pillow"); err != nil {
		return nil, err
	}
	r := new(result)
	counts := map[string]int{}
	for _, c := range cases {
		r.cases++
		what, err := c.compare(o.dir)
		if err != nil {
			r.differ("%s %s %s: %v", c.Name, c.Settings, c.Damage, err)
			continue
		}
		if c.Damage != "" {
			what = "of damaged ones, " + what
		}
		counts[what]++
	}
	r.counts("files", counts)
	return r, nil
}

// compare reads a file and says what came out.
func (c jpegCase) compare(dir string) (what string, err error) {
	path := filepath.Join(dir, c.Name)
	m, err := images.DecodeFile(path, 0)
	switch {
	case errors.Is(err, images.ErrNotSupported) && c.Error == "":
		return "", fmt.Errorf("%w, and Pillow reads it", err)
	case err != nil && c.Error != "":
		return "both refuse", nil
	case err != nil:
		return "", err
	case c.Error != "":
		if c.Damage == "cut" {
			return "read where Pillow wants more bytes", nil
		}
		return "", fmt.Errorf("it is read, and Pillow says %s", c.Error)
	}
	want, err := os.ReadFile(path + ".rgb")
	if err != nil {
		return "", err
	}
	if m.W != c.W || m.H != c.H || len(want) != len(m.Pix) {
		return "", fmt.Errorf("%dx%d pixels, want %dx%d", m.W, m.H, c.W, c.H)
	}
	if !bytes.Equal(want, m.Pix) {
		n, at := 0, -1
		for i, v := range want {
			if v != m.Pix[i] {
				if n++; at < 0 {
					at = i
				}
			}
		}
		return "", fmt.Errorf("%d of %d values differ: %d of pixel %d,%d of %dx%d is %d, want %d", n, len(want), at%3, at/3%c.W, at/3/c.W, c.W, c.H, m.Pix[at], want[at])
	}
	return "equal", nil
}
