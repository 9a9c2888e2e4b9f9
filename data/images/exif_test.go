package images

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"image"
	"image/color"
	"image/jpeg"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/data/transform"
	"github.com/geoalign/geoalign/internal/budget/budgettest"
)

// exifWith is the TIFF structure of a file with the tag Orientation, after one other tag.
func exifWith(order binary.AppendByteOrder, value uint16) []byte {
	b := []byte("II*\x00")
	if order.String() == "BigEndian" {
		b = []byte("MM\x00*")
	}
	b = order.AppendUint32(b, 8)
	b = order.AppendUint16(b, 2)                                                                          // entries
	b = order.AppendUint32(order.AppendUint32(order.AppendUint16(order.AppendUint16(b, 0x10f), 2), 2), 0) // maker
	b = order.AppendUint32(order.AppendUint16(order.AppendUint16(b, 0x112), 3), 1)
	return append(order.AppendUint16(b, value), 0, 0)
}

// withExif puts segments of EXIF behind the first two bytes of a JPEG file.
func withExif(file, tiff []byte) []byte {
	app1 := append([]byte("Exif\x00\x00"), tiff...)
	head := binary.BigEndian.AppendUint16([]byte{0xff, 0xd8, 0xff, 0xe0, 0, 4, 'x', 'x', 0xff, 0xff, 0xe1}, uint16(2+len(app1)))
	return slices.Concat(head, app1, file[2:])
}

// quadrants is a JPEG of 48 x 32 pixels with a colour in each quarter: A top left, B top right,
// C bottom right, D bottom left.
func quadrants(t testing.TB) []byte {
	m := image.NewRGBA(image.Rect(0, 0, 48, 32))
	for y := range 32 {
		for x := range 48 {
			c := map[[2]bool]color.RGBA{{false, false}: {220, 20, 20, 255}, {true, false}: {20, 200, 20, 255}, {true, true}: {20, 20, 220, 255}, {false, true}: {230, 230, 230, 255}}[[2]bool{x >= 24, y >= 16}]
			m.SetRGBA(x, y, c)
		}
	}
	var b bytes.Buffer
	if err := jpeg.Encode(&b, m, &jpeg.Options{Quality: 95}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestOrientation: where the quarters are seen, from the top left clockwise, follows from where
// EXIF 2.32 (4.6.4.A, Orientation) says that row 0 and column 0 of the file are.
func TestOrientation(t *testing.T) {
	file := quadrants(t)
	for value, want := range map[uint16]string{
		1: "ABCD",            // row 0 at the top, column 0 on the left
		2: "BADC",            // top, right
		3: "CDAB",            // bottom, right
		4: "DCBA",            // bottom, left
		5: "ADCB",            // row 0 on the left, column 0 at the top
		6: "DABC",            // right, top
		7: "CBAD",            // right, bottom
		8: "BCDA",            // left, bottom
		0: "ABCD", 9: "ABCD", // no such orientation
	} {
		for _, order := range []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian} {
			m, err := Decode(withExif(file, exifWith(order, value)), 0)
			if err != nil {
				t.Fatal(err)
			}
			w, h := 48, 32
			if value >= 5 && value <= 8 {
				w, h = h, w
			}
			if m.W != w || m.H != h {
				t.Errorf("%d: %dx%d, want %dx%d", value, m.W, m.H, w, h)
				continue
			}
			got := ""
			for _, p := range [][2]int{{4, 4}, {w - 5, 4}, {w - 5, h - 5}, {4, h - 5}} {
				c := m.Pix[3*(w*p[1]+p[0]):][:3]
				got += map[[3]bool]string{{true, false, false}: "A", {false, true, false}: "B", {false, false, true}: "C", {true, true, true}: "D"}[[3]bool{c[0] > 128, c[1] > 128, c[2] > 128}]
			}
			if got != want {
				t.Errorf("%d, %v: quarters %s, want %s", value, order, got, want)
			}
		}
	}
}

// pngExif puts a chunk eXIf into a PNG file, behind the header or at the end.
func pngExif(file, tiff []byte, late bool) []byte {
	chunk := binary.BigEndian.AppendUint32(nil, uint32(len(tiff)))
	chunk = append(append(chunk, "eXIf"...), tiff...)
	chunk = binary.BigEndian.AppendUint32(chunk, crc32.ChecksumIEEE(chunk[4:]))
	at := 8 + 25 // signature and header
	if late {
		at = len(file) - 12
	}
	return slices.Concat(file[:at], chunk, file[at:])
}

// webpExif puts a chunk EXIF at the end of a WebP file, behind one of odd size.
func webpExif(file, tiff []byte) []byte {
	body := append(slices.Clone(file[8:]), "XMP \x03\x00\x00\x00abc\x00"...)
	body = append(body, "EXIF"...)
	body = append(binary.LittleEndian.AppendUint32(body, uint32(len(tiff))), tiff...)
	if len(tiff)%2 != 0 {
		body = append(body, 0)
	}
	return append(binary.LittleEndian.AppendUint32([]byte("RIFF"), uint32(len(body))), body...)
}

// TestOrientationOfOtherFormats: PNG and WebP files are turned as JPEG files are, wherever the tag stands, and a tag that is cut
// leaves them as they are stored.
func TestOrientationOfOtherFormats(t *testing.T) {
	read := func(name string) []byte {
		b, err := os.ReadFile(filepath.Join("testdata/images", name))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	pixels := func(b []byte) *transform.Image {
		m, err := Decode(b, 0)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	png, webp := read("color.png"), read("lossless.webp")
	for value := range uint16(10) {
		tag := exifWith(binary.LittleEndian, value)
		for name, f := range map[string]struct{ plain, tagged []byte }{
			"png": {png, pngExif(png, tag, false)}, "png at its end": {png, pngExif(png, tag, true)},
			"webp": {webp, webpExif(webp, tag)}, "webp with a mark": {webp, webpExif(webp, append([]byte("Exif\x00\x00"), tag...))},
		} {
			want, got := upright(pixels(f.plain), int(value)), pixels(f.tagged)
			if got.W != want.W || got.H != want.H || !slices.Equal(got.Pix, want.Pix) {
				t.Errorf("%s, %d: %dx%d, want %dx%d turned so", name, value, got.W, got.H, want.W, want.H)
			}
		}
	}
	tag := exifWith(binary.BigEndian, 6)
	for name, whole := range map[string][]byte{"png": pngExif(png, tag, true), "webp": webpExif(webp, tag)} {
		if got := orientation(whole); got != 6 {
			t.Errorf("%s: got %d, want 6", name, got)
		}
		end := bytes.LastIndex(whole, tag) + len(tag)
		for n := range end - 2 { // the last two bytes are no part of the tag
			if got := orientation(whole[:n]); got != 1 {
				t.Errorf("%s cut to %d bytes: got %d", name, n, got)
			}
		}
	}
}

// Tags that are damaged or not there leave the image as it is stored.
func TestOrientationOfDamagedTags(t *testing.T) {
	whole := exifWith(binary.LittleEndian, 6)
	file := quadrants(t)
	if got := orientation(withExif(file, whole)); got != 6 {
		t.Fatalf("got %d, want 6", got)
	}
	for n := range len(whole) - 2 {
		if got := orientation(withExif(file, whole[:n])); got != 1 {
			t.Errorf("cut to %d bytes: got %d", n, got)
		}
	}
	for name, change := range map[string]func(b []byte){
		"directory beyond the end": func(b []byte) { binary.LittleEndian.PutUint32(b[4:], 1<<31) },
		"no entries":               func(b []byte) { b[8] = 0 },
		"of another type":          func(b []byte) { b[len(b)-10] = 2 },
		"two values":               func(b []byte) { b[len(b)-8] = 2 },
		"no byte order":            func(b []byte) { b[0] = 'X' },
	} {
		b := slices.Clone(whole)
		change(b)
		if got := orientation(withExif(file, b)); got != 1 {
			t.Errorf("%s: got %d", name, got)
		}
	}
	if got := orientation(file); got != 1 {
		t.Errorf("without EXIF: got %d", got)
	}
}

func FuzzOrientation(f *testing.F) {
	f.Add(withExif(quadrants(f), exifWith(binary.BigEndian, 3)))
	f.Add([]byte("\xff\xd8\xff\xe1\x00\x02\xff\xd9"))
	f.Add(pngExif([]byte("\x89PNG\r\n\x1a\n\x00\x00\x00\x0dIHDR4444"+"4444"+"12345"+"crc4"), exifWith(binary.BigEndian, 3), false))
	f.Add(webpExif([]byte("RIFF\x04\x00\x00\x00WEBP"), exifWith(binary.LittleEndian, 8)))
	f.Fuzz(func(t *testing.T, b []byte) {
		defer budgettest.Within(t, len(b))()
		if o := orientation(b); o < 1 || o > 8 {
			t.Errorf("orientation %d", o)
		}
	})
}
