package images

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/budget/budgettest"
)

func TestDecodeLikePillow(t *testing.T) {
	// Files and pixels were made by tools/goldens/images.py with Pillow 13.0.0.
	// Lossy formats leave room to the decoder: the tolerance is per value.
	for name, most := range map[string]int{
		"color.png": 0, "grey.png": 0, "palette.png": 0, "palette_transparent.png": 0, "grey16.png": 0, "lossless.webp": 0,
		"alpha.png": 1, "grey_alpha.png": 1, "alpha.webp": 1,
		"color.jpg": 0, "grey.jpg": 0, "progressive.jpg": 0, "cmyk.jpg": 0,
		"subsampled.jpg": 0, "odd.jpg": 0, "wide.jpg": 0, "lossy.webp": 3, "alpha_lossy.webp": 3,
	} {
		path := filepath.Join("testdata/images", name)
		got, err := DecodeFile(path, 0)
		if err != nil {
			t.Error(err)
			continue
		}
		want, err := os.ReadFile(path + ".rgb")
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Pix) != len(want) {
			t.Errorf("%s: %dx%d", name, got.W, got.H)
			continue
		}
		worst := 0
		for i := range want {
			worst = max(worst, int(want[i])-int(got.Pix[i]), int(got.Pix[i])-int(want[i]))
		}
		if worst > most {
			t.Errorf("%s differs by up to %d, allowed %d", name, worst, most)
		}
	}
}

// bomb is a PNG of a few bytes whose header promises w x h pixels.
func bomb(w, h uint32) []byte {
	var b bytes.Buffer
	b.WriteString("\x89PNG\r\n\x1a\n")
	head := append([]byte("IHDR"), make([]byte, 13)...)
	binary.BigEndian.PutUint32(head[4:], w)
	binary.BigEndian.PutUint32(head[8:], h)
	head[12], head[13] = 8, 2
	binary.Write(&b, binary.BigEndian, uint32(13))
	b.Write(head)
	binary.Write(&b, binary.BigEndian, crc32.ChecksumIEEE(head))
	return b.Bytes()
}

func TestDecodeRefuses(t *testing.T) {
	var j, p bytes.Buffer
	img := image.NewRGBA(image.Rect(0, 0, 64, 64))
	for i := range img.Pix {
		img.Pix[i] = uint8(i * 7)
	}
	if err := jpeg.Encode(&j, img, nil); err != nil {
		t.Fatal(err)
	}
	if err := png.Encode(&p, img); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		in   []byte
		want string
	}{
		{"empty", nil, "not a JPEG, PNG, WebP, GIF, BMP or TIFF"},
		{"text", []byte("<html>404 not found</html>"), "not a JPEG, PNG, WebP, GIF, BMP or TIFF"},
		{"truncated JPEG", j.Bytes()[:j.Len()/2], "JPEG image is damaged or cut short"},
		{"truncated PNG", p.Bytes()[:p.Len()/2], "PNG image is damaged or cut short"},
		{"header of a JPEG only", j.Bytes()[:20], "header of the image is damaged"},
		{"bomb", bomb(60000, 60000), "60000x60000: more pixels than allowed"},
		{"no pixels", bomb(0, 5), "header of the image is damaged"},
	} {
		m, err := Decode(c.in, 0)
		if err == nil || m != nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want an error with %q", c.name, err, c.want)
		}
	}
	if _, err := Decode(p.Bytes(), 64*64); err != nil {
		t.Errorf("exactly at the limit: %v", err)
	}
	if _, err := Decode(p.Bytes(), 64*64-1); !errors.Is(err, ErrTooLarge) {
		t.Errorf("above the limit: %v", err)
	}
	if _, err := DecodeFile("testdata/none.jpg", 0); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "none.jpg") {
		t.Errorf("missing file: %v", err)
	}
	path := filepath.Join(t.TempDir(), "half.jpg")
	if err := os.WriteFile(path, j.Bytes()[:j.Len()/2], 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := DecodeFile(path, 0); err == nil || !strings.Contains(err.Error(), "half.jpg") {
		t.Errorf("the error must name the file: %v", err)
	}
}

func TestFromImageOfAPart(t *testing.T) {
	// Sub-images share the pixels of the whole: offsets must count.
	img := image.NewNRGBA(image.Rect(0, 0, 4, 4))
	img.SetNRGBA(2, 1, color.NRGBA{10, 20, 30, 255})
	img.SetNRGBA(3, 1, color.NRGBA{10, 20, 30, 0})
	m, err := FromImage(img.SubImage(image.Rect(2, 1, 4, 2)))
	if err != nil {
		t.Fatal(err)
	}
	if want := []uint8{10, 20, 30, 255, 255, 255}; !bytes.Equal(m.Pix, want) {
		t.Errorf("%v, want %v", m.Pix, want)
	}
	if _, err := FromImage(image.NewRGBA(image.Rect(1, 1, 1, 5))); err == nil {
		t.Error("an image without pixels must fail")
	}
}

func FuzzDecode(f *testing.F) {
	files, err := filepath.Glob("testdata/images/*")
	if err != nil || len(files) == 0 {
		f.Fatal("no seeds", err)
	}
	for _, name := range files {
		if filepath.Ext(name) == ".rgb" {
			continue
		}
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
		if filepath.Ext(name) == ".jpg" {
			f.Add(withExif(b, exifWith(binary.LittleEndian, 6)))
			f.Add(withExif(b, exifWith(binary.BigEndian, 2)))
		}
	}
	f.Add(bomb(1<<31-1, 1<<31-1))
	f.Fuzz(func(t *testing.T, b []byte) {
		defer budgettest.Within(t, len(b))()
		m, err := Decode(b, 1<<16)
		if (m == nil) == (err == nil) {
			t.Fatalf("image %v and error %v", m, err)
		}
		if m != nil && (m.W*m.H > 1<<16 || len(m.Pix) != 3*m.W*m.H || m.W <= 0) {
			t.Fatalf("%dx%d with %d bytes", m.W, m.H, len(m.Pix))
		}
	})
}

// TestTransparentOfAnyKind: one picture has the same pixels with a palette, with 8 and with 16 bits.
func TestTransparentOfAnyKind(t *testing.T) {
	var palette color.Palette
	for i := range 256 {
		palette = append(palette, color.NRGBA{uint8(i), uint8(7 * i), uint8(255 - i), uint8(31 * i)})
	}
	r := image.Rect(0, 0, 16, 16)
	p, n, n64 := image.NewPaletted(r, palette), image.NewNRGBA(r), image.NewNRGBA64(r)
	for i := range 256 {
		x, y, c := i%16, i/16, palette[i].(color.NRGBA)
		p.SetColorIndex(x, y, uint8(i))
		n.SetNRGBA(x, y, c)
		low := uint16(97 * i % 256)
		n64.SetNRGBA64(x, y, color.NRGBA64{uint16(c.R)<<8 | low, uint16(c.G)<<8 | low, uint16(c.B)<<8 | low, uint16(c.A)<<8 | low})
	}
	want, err := FromImage(n)
	if err != nil {
		t.Fatal(err)
	}
	for name, img := range map[string]image.Image{
		"palette": p, "16 bits": n64, "part of a palette": p.SubImage(image.Rect(3, 2, 9, 16)), "part of 16 bits": n64.SubImage(image.Rect(3, 2, 9, 16)),
	} {
		got, err := FromImage(img)
		if err != nil {
			t.Fatal(err)
		}
		at := img.Bounds().Min
		for y := range got.H {
			for x := range got.W {
				g, w := got.Pix[3*(got.W*y+x):][:3], want.Pix[3*(want.W*(y+at.Y)+x+at.X):][:3]
				if !bytes.Equal(g, w) {
					t.Fatalf("%s: pixel %d,%d is %v, want %v", name, x, y, g, w)
				}
			}
		}
	}
	short := image.NewPaletted(image.Rect(0, 0, 2, 1), color.Palette{color.White})
	short.Pix[1] = 9 // no colour
	m, err := FromImage(short)
	if err != nil || !bytes.Equal(m.Pix, []byte{255, 255, 255, 0, 0, 0}) {
		t.Errorf("a palette that is too short: %v %v", m, err)
	}
}
