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

// Bounds of the difference of a value. The built-in decoder has another inverse DCT and conversion of colours than
// libjpeg-turbo, each with a rounding of its own, whose steps add up in pictures of strong colours; image/jpeg, which
// reads what is rare, repeats colours of 4:1:1; colours of lossy WebP are converted in another fixed point than
// libwebp's.
const (
	mostBuiltin = 6
	mostTurbo   = 0
	mostWebP    = 3
)

// compareImages compares pictures of every mode, size and encoder with Pillow's pixels of them, with both decoders of
// JPEG where the library is there. What is stored without loss must be equal; of a JPEG what libjpeg-turbo gives too,
// and the rest within the bounds of docs/data.md.
func compareImages(o *options) (*result, error) {
	var cases []imageCase
	if err := o.cases("images.py", &cases, "pillow"); err != nil {
		return nil, err
	}
	r := new(result)
	for _, name := range []string{images.DecoderBuiltin, images.DecoderTurbo} {
		d, _, err := images.UseDecoder(name)
		if err != nil {
			r.note("not compared: %v", err)
			continue
		}
		c := imageCounts{notSupported: map[string]int{}, largest: map[string]int{}}
		for _, x := range cases {
			if name == images.DecoderTurbo && x.Kind != "jpeg" {
				continue
			}
			r.cases++
			if err := c.compare(o.dir, x, name); err != nil {
				r.differ("%s %s %s %s: %v", name, x.Kind, x.Name, x.Settings, err)
			}
		}
		r.note("%s: both refuse %d; of damaged ones %d are refused that Pillow reads (a checksum is wrong, or what ends the pixels is lost), and %d with a byte changed are read that it refuses; %d are read whose last bits Pillow wants a byte more for", d, c.bothRefuse, c.stricter, c.unseen, c.lenient)
		r.note("%s: largest differences of values %v", d, c.largest)
		r.counts(d.String()+": not supported", c.notSupported)
	}
	images.UseDecoder(images.DecoderBuiltin)
	return r, nil
}

// imageCounts is what is worth a note.
type imageCounts struct {
	bothRefuse, stricter, unseen, lenient int
	notSupported, largest                 map[string]int
}

func (n *imageCounts) compare(dir string, c imageCase, decoder string) error {
	path := filepath.Join(dir, c.Name)
	m, err := images.DecodeFile(path, 0)
	switch {
	case errors.Is(err, images.ErrNotSupported):
		if c.Kind == "other" || c.Kind == "tiff" || c.Damage != "" ||
			strings.Contains(c.Settings, `"restart_marker_blocks"`) {
			n.notSupported[strings.TrimPrefix(err.Error(), path+": data: ")]++
			return nil
		}
		return fmt.Errorf("%w, and is a plain file", err)
	case err != nil && c.Error != "" && c.Lenient == "":
		n.bothRefuse++
		return nil
	case err != nil && (c.Damage == "byte" || c.Kind == "png" && c.Damage == "cut" ||
		(c.Kind == "gif" || c.Kind == "webp") && c.Damage == "trailer"):
		n.stricter++
		return nil
	case err != nil:
		return err
	case c.Kind == "other":
		return errors.New("it is read")
	case c.Error != "" && c.Damage == "byte" && c.Kind != "png":
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
	if c.Damage == "byte" && c.Kind != "png" {
		return nil // each makes its own of such data
	}
	most := map[string]int{"exact": 0, "lossy webp": mostWebP, "jpeg": mostBuiltin}[c.Promised]
	if c.Promised == "jpeg" && decoder == images.DecoderTurbo && !strings.Contains(c.Settings, "CMYK") &&
		!strings.Contains(c.Settings, "keep_rgb") {
		most = mostTurbo
	}
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
