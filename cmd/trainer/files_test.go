package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"os"
	"path/filepath"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
)

// entry is one entry of an ALBEF-style list.
type entry struct {
	Image   string `json:"image"`
	Caption any    `json:"caption"` // a text or a list of texts
	ID      string `json:"image_id"`
}

var colours = []struct {
	name string
	c    color.RGBA
}{
	{"red", color.RGBA{220, 30, 30, 255}}, {"green", color.RGBA{30, 200, 40, 255}},
	{"blue", color.RGBA{30, 60, 220, 255}}, {"yellow", color.RGBA{230, 220, 40, 255}},
}

// photoFiles writes n pictures of coloured halves and returns entries for them, each
// with two captions.
func photoFiles(t *testing.T, dir, split string, n int) []entry {
	t.Helper()
	check.OK(t, os.MkdirAll(filepath.Join(dir, split), 0o777))
	var list []entry
	for i := range n {
		left, right := colours[i%4], colours[i/4%4]
		m := image.NewRGBA(image.Rect(0, 0, 40, 30))
		for y := range 30 {
			for x := range 40 {
				c := left.c
				if x >= 20 {
					c = right.c
				}
				m.SetRGBA(x, y, c)
			}
		}
		name := fmt.Sprintf("%s/%03d.png", split, i)
		writeImage(t, filepath.Join(dir, name), m)
		list = append(list, entry{name, []string{
			fmt.Sprintf("%s on the left and %s on the right", left.name, right.name),
			fmt.Sprintf("a %s half beside a %s half, number %d", left.name, right.name, i),
		}, fmt.Sprint(split, i)})
	}
	return list
}

// writeImage writes an image as a PNG file.
func writeImage(t *testing.T, path string, m image.Image) {
	t.Helper()
	var b bytes.Buffer
	check.OK(t, png.Encode(&b, m))
	check.OK(t, os.WriteFile(path, b.Bytes(), 0o666))
}

// writeList writes a list of entries.
func writeList(t *testing.T, path string, list []entry) {
	t.Helper()
	raw := check.Get(json.Marshal(list))(t)
	check.OK(t, os.WriteFile(path, raw, 0o666))
}

// photoData makes a folder with train.json (16 pictures), val.json and test.json
// (10 pictures each) and returns the flags that select it.
func photoData(t *testing.T) (dir string, flags []string) {
	t.Helper()
	dir = t.TempDir()
	for split, n := range map[string]int{"train": 16, "val": 10, "test": 10} {
		writeList(t, filepath.Join(dir, split+".json"), photoFiles(t, dir, split, n))
	}
	return dir, []string{"--set", "data.kind=captions", "--set", "data.root=" + dir, "--set", "data.captions.train_files=train.json",
		"--set", "data.captions.val_files=val.json", "--set", "data.captions.test_files=test.json"}
}

// truncatedJPEG writes the first half of a JPEG.
func truncatedJPEG(t *testing.T, path string) {
	t.Helper()
	m := image.NewRGBA(image.Rect(0, 0, 64, 64))
	for i := range m.Pix {
		m.Pix[i] = uint8(i * i)
	}
	f := check.Get(os.Create(path))(t)
	check.OK(t, jpeg.Encode(f, m, nil))
	size := check.Get(f.Seek(0, 1))(t)
	check.OK(t, f.Truncate(size/2))
	check.OK(t, f.Close())
}
