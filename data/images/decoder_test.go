package images

import (
	"bytes"
	"encoding/binary"
	"errors"
	"image"
	"image/color"
	"image/jpeg"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// jpegFiles are the JPEG files of the tests by name.
func jpegFiles(t testing.TB) map[string][]byte {
	files := map[string][]byte{}
	for _, pattern := range []string{"testdata/images/*.jpg", "../internal/jpeg/testdata/*.jpg"} {
		paths, err := filepath.Glob(pattern)
		if err != nil || len(paths) == 0 {
			t.Fatalf("no files %s (%v)", pattern, err)
		}
		for _, p := range paths {
			b, err := os.ReadFile(p)
			if err != nil {
				t.Fatal(err)
			}
			files[filepath.Base(p)] = b
		}
	}
	var dot bytes.Buffer
	m := image.NewRGBA(image.Rect(0, 0, 1, 1))
	m.Set(0, 0, color.RGBA{200, 100, 50, 255})
	if err := jpeg.Encode(&dot, m, nil); err != nil {
		t.Fatal(err)
	}
	files["1x1"] = dot.Bytes()
	files["turned"] = withExif(files["sequential420.jpg"], exifWith(binary.LittleEndian, 6))
	return files
}

// TestDamagedJPEG: a file that is cut or has codes that are none is a bad sample.
func TestDamagedJPEG(t *testing.T) {
	for name, b := range jpegFiles(t) {
		for _, n := range []int{3, len(b) / 4, len(b) / 2} {
			if _, err := Decode(b[:n], 0); err == nil || errors.Is(err, ErrNotSupported) || !strings.Contains(err.Error(), "damaged") {
				t.Errorf("%s cut to %d of %d: %v", name, n, len(b), err)
			}
		}
		c := bytes.Clone(b)
		if at := bytes.Index(c, []byte{0xff, 0xc4}); at > 0 { // a table of too many codes
			c[at+5] = 0xff
			if _, err := Decode(c, 0); err == nil || !strings.Contains(err.Error(), "a table of") {
				t.Errorf("%s with a bad table: %v", name, err)
			}
		}
	}
	if _, err := Decode(jpegFiles(t)["color.jpg"], 20); !errors.Is(err, ErrTooLarge) {
		t.Errorf("above the limit: %v", err)
	}
}

func TestProgressiveBomb(t *testing.T) {
	b := jpegFiles(t)["progressive420.jpg"]
	at := bytes.LastIndex(b, []byte{0xff, 0xda})
	bomb := append(append(bytes.Clone(b[:at]), bytes.Repeat(b[at:len(b)-2], 600)...), 0xff, 0xd9)
	if _, err := Decode(bomb, 0); err == nil || !strings.Contains(err.Error(), "more than 500 scans") {
		t.Errorf("got %v", err)
	}
}

// TestSamePixels: what earlier versions noted of runs and galleries.
func TestSamePixels(t *testing.T) {
	for noted, want := range map[string]bool{Pixels: true, "turbojpeg 3": true, "turbojpeg 2, " + Pixels: true, "builtin": false, "turbojpeg 2, builtin": false} {
		if SamePixels(noted) != want {
			t.Errorf("%q: %v", noted, !want)
		}
	}
}
