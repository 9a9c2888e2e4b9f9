package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/geoalign/geoalign/data/images"
)

type imageCase struct {
	Name, Kind, Settings, Promised, Damage, Error, Lenient string

	W, H int
}

// mostWebP bounds the difference of a value of a lossy WebP, whose colours are converted in another fixed point than
// libwebp's.
const mostWebP = 3

// compareImages compares pictures of every mode, size and encoder with Pillow's pixels of them. All must be equal but
// those of lossy WebP, which are near.
func compareImages(o *options) (*result, error) {
	var cases []imageCase
	if err := o.cases("images.py", &cases, "pillow"); err != nil {
		return nil, err
	}
	r := new(result)
	c := imageCounts{notSupported: map[string]int{}, largest: map[string]int{}}
	for _, x := range cases {
		r.cases++
		if err := c.compare(o.dir, x); err != nil {
			r.differ("%s %s %s: %v", x.Kind, x.Name, x.Settings, err)
		}
	}
	r.note("both refuse %d; of damaged ones %d are refused that Pillow reads (a checksum is wrong, or what ends the pixels is lost), and %d with a byte changed are read that it refuses; %d are read whose last bits Pillow wants a byte more for", c.bothRefuse, c.stricter, c.unseen, c.lenient)
	r.note("largest differences of values %v", c.largest)
	r.counts("not supported", c.notSupported)
	return r, nil
}

// imageCounts is what is worth a note.
type imageCounts struct {
	bothRefuse, stricter, unseen, lenient int
	notSupported, largest                 map[string]int
}

func (n *imageCounts) compare(dir string, c imageCase) error {
	path := filepath.Join(dir, c.Name)
	m, err := images.DecodeFile(path, 0)
	switch {
	case errors.Is(err, images.ErrNotSupported):
		if c.Kind == "other" || c.Kind == "tiff" || c.Damage != "" {
			n.notSupported[strings.TrimPrefix(err.Error(), path+": data: ")]++
			return nil
		}
		return fmt.Errorf("%w, and is a plain file", err)
	case err != nil && c.Error != "" && c.Lenient == "":
		n.bothRefuse++
		return nil
	case err != nil && (c.Damage == "byte" && c.Kind != "jpeg" || c.Kind == "png" && c.Damage == "cut" ||
		(c.Kind == "gif" || c.Kind == "webp") && c.Damage == "trailer"):
		n.stricter++
		return nil
	case err != nil:
		return err
	case c.Kind == "other":
		return errors.New("it is read")
	case c.Error != "" && c.Damage == "byte" && c.Kind != "png" && c.Kind != "jpeg":
		n.unseen++
		return nil
	case c.Error != "" && c.Lenient == "":
		return fmt.Errorf("it is read, and Pillow says %s", c.Error)
	case c.Lenient != "":
		n.lenient++
	}
	want, err := os.ReadFile(path + ".rgb")
	if err != nil {
		return err
	}
	if m.W != c.W || m.H != c.H || len(want) != len(m.Pix) {
		return fmt.Errorf("%dx%d pixels, want %dx%d", m.W, m.H, c.W, c.H)
	}
	if c.Damage == "byte" && c.Kind != "png" && c.Kind != "jpeg" {
		return nil // each makes its own of such data
	}
	most := map[string]int{"exact": 0, "lossy webp": mostWebP, "jpeg": 0}[c.Promised]
	worst, at := 0, 0
	for i, v := range want {
		if d := max(int(v)-int(m.Pix[i]), int(m.Pix[i])-int(v)); d > worst {
			worst, at = d, i
		}
	}
	n.largest[c.Promised] = max(n.largest[c.Promised], worst)
	if worst > most {
		return fmt.Errorf("value %d of pixel %d,%d is %d, want %d", at%3, at/3%c.W, at/3/c.W, m.Pix[at], want[at])
	}
	return nil
}
