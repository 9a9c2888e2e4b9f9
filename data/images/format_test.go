package images

import (
	"bytes"
	"encoding/binary"
	"errors"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// formatFiles are the files that tools/goldens/image_formats.py wrote.
func formatFiles(t testing.TB) map[string][]byte {
	paths, err := filepath.Glob("testdata/formats/*")
	if err != nil {
		t.Fatal(err)
	}
	list := map[string][]byte{}
	for _, path := range paths {
		if filepath.Ext(path) == ".rgb" {
			continue
		}
		if list[filepath.Base(path)], err = os.ReadFile(path); err != nil {
			t.Fatal(err)
		}
	}
	if len(list) < 27 {
		t.Fatalf("%d files", len(list))
	}
	return list
}

// sameAsPillow compares an image with a file of Pillow's pixels.
func sameAsPillow(t *testing.T, name string, b []byte, most int) {
	t.Helper()
	m, err := Decode(b, 0)
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	want, err := os.ReadFile("testdata/formats/" + name + ".rgb")
	if err != nil {
		t.Fatal(err)
	}
	if w, h := int(binary.BigEndian.Uint16(want)), int(binary.BigEndian.Uint16(want[2:])); m.W != w || m.H != h {
		t.Errorf("%s: %dx%d, want %dx%d", name, m.W, m.H, w, h)
		return
	}
	worst := 0
	for i, v := range want[4:] {
		worst = max(worst, int(v)-int(m.Pix[i]), int(m.Pix[i])-int(v))
	}
	if worst > most {
		t.Errorf("%s differs by up to %d, allowed %d", name, worst, most)
	}
}

// TestFormatsLikePillow: formats, first pictures, orientation and missing ends as Pillow reads them.
func TestFormatsLikePillow(t *testing.T) {
	for name, b := range formatFiles(t) {
		most := 0
		if strings.Contains(name, "lossy") {
			most = 3
		}
		sameAsPillow(t, name, b, most)
	}
}

// TestSharedImages: the shared cases are read, and turned.
func TestSharedImages(t *testing.T) {
	for name, size := range map[string][2]int{"anim.webp": {}, "noeoi.jpg": {}, "noeoi_trailer.jpg": {}, "o6_xmp_only.jpg": {}, "o6_magick.png": {}} {
		path := filepath.Join("../../shared/cases/images", name)
		b, err := os.ReadFile(path)
		if err != nil {
			t.Skipf("the shared cases are not there: %v", err)
		}
		if _, err := DecodeFile(path, 0); err != nil {
			t.Error(err)
		}
		if want := map[bool]int{false: 1, true: 6}[strings.HasPrefix(name, "o6")]; orientation(b) != want {
			t.Errorf("%s: orientation %d, want %d (%v)", name, orientation(b), want, size)
		}
	}
}

// TestFormatsNamed: what is known and not read is named, and called neither damaged nor no image.
func TestFormatsNamed(t *testing.T) {
	for head, want := range map[string]string{
		"\x00\x00\x00\x20ftypavif\x00\x00\x00\x00avifmif1": "AVIF", "\x00\x00\x00\x20ftypmif1\x00\x00\x00\x00mif1avifmiaf": "AVIF",
		"\x00\x00\x00\x18ftypheic\x00\x00\x00\x00mif1heic": "HEIC", "\x00\x00\x00\x18ftypmif1\x00\x00\x00\x00mif1heic": "HEIC",
		"\xff\x0a\x00\x00": "JPEG XL", "\x00\x00\x00\x0cJXL \r\n\x87\n": "JPEG XL", "\x00\x00\x00\x0cjP  \r\n\x87\n": "JPEG 2000", "\xff\x4f\xff\x51\x00": "JPEG 2000",
		"8BPS\x00\x01": "Photoshop", "\x00\x00\x01\x00\x01\x00": "icon", "P6\n3 3\n255\n": "netpbm", "qoif\x00": "QOI", "<svg xmlns=": "SVG", "%PDF-1.7": "PDF", "II+\x00\x08": "BigTIFF",
	} {
		m, err := Decode([]byte(head), 0)
		if m != nil || !errors.Is(err, ErrNotSupported) || err.Error() != "data: not supported ("+want+"): convert it to JPEG or PNG" {
			t.Errorf("%q: %v", head, err)
		}
	}
	for name, want := range map[string]string{"a.JPG": "JPEG", "b/c.jfif": "JPEG", "x.tiff": "TIFF", "x.heic": "HEIC", "x.avif": "AVIF", "x.txt": "", "jpg": ""} {
		f, known := FormatOfName(name)
		if f.Name != want || known != (want != "") || IsName(name) != (want != "" && want != "HEIC" && want != "AVIF") {
			t.Errorf("%s: %q, %v", name, f.Name, known)
		}
	}
	tif := formatFiles(t)["grey.tif"]
	for value, want := range map[uint16]string{1: "", 3: "TIFF, compressed as a fax is", 7: "TIFF, tiff: unsupported feature: compression value 7"} {
		at := bytes.Index(tif, []byte{3, 1, 3, 0, 1, 0, 0, 0}) // the tag Compression
		b := bytes.Clone(tif)
		binary.LittleEndian.PutUint16(b[at+8:], value)
		if _, err := Decode(b, 0); (err == nil) != (want == "") || err != nil && (!errors.Is(err, ErrNotSupported) || !strings.Contains(err.Error(), want)) {
			t.Errorf("compression %d: %v", value, err)
		}
	}
	j := jpegFiles(t)["color.jpg"]
	at := bytes.Index(j, []byte{0xff, 0xc0})
	for i, v := range map[int]byte{1: 0xc9, 4: 12} { // arithmetic coding, 12 bits
		b := bytes.Clone(j)
		b[at+i] = v
		if _, err := Decode(b, 0); !errors.Is(err, ErrNotSupported) || !strings.Contains(err.Error(), "JPEG") {
			t.Errorf("a JPEG with %d: %v", v, err)
		}
	}
}

// TestWithoutEndMark: what is whole but for the mark of its end is the whole picture; one block or byte less, or more than the mark lost, is not.
func TestWithoutEndMark(t *testing.T) {
	for name, b := range jpegFiles(t) {
		switch name { // of the others further scans may be missing, or their data is not of their factors
		case "color.jpg", "wide.jpg", "1x1", "turned", "restart.jpg", "cmyk.jpg", "grey.jpg", "sequential420.jpg":
		default:
			continue
		}
		want, err := Decode(b, 0)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, end := range []string{"", "trailer", "\x00\xff\x00", string(make([]byte, 100))} {
			got, err := Decode(append(bytes.Clone(b[:len(b)-2]), end...), 0)
			if err != nil || !bytes.Equal(got.Pix, want.Pix) {
				t.Errorf("%s with %q at its end: %v", name, end, err)
			}
		}
		if _, err := Decode(b[:len(b)-3], 0); err == nil {
			t.Errorf("%s: passes without its last byte", name)
		}
	}
	list := formatFiles(t)
	whole, gif := list["raw_exif.png"], list["plain.gif"]
	data := bytes.Index(whole, []byte("IDAT"))
	for n := range whole {
		m, err := Decode(whole[:n], 0)
		if (err == nil) != (n >= len(whole)-12-4) { // the end mark, and the checksum before it
			t.Errorf("PNG cut to %d of %d: %v", n, len(whole), err)
		}
		if err == nil && (m.W != 9 || data < 0) {
			t.Errorf("PNG cut to %d: not turned", n)
		}
	}
	for n := range gif {
		if _, err := Decode(gif[:n], 0); (err == nil) != (n >= len(gif)-2) {
			t.Errorf("GIF cut to %d of %d: %v", n, len(gif), err)
		}
	}
	late := pngExif(list["no_end.png"], exifWith(binary.BigEndian, 6), false) // behind the header
	if _, err := Decode(late[:len(late)-1], 0); err != nil {
		t.Errorf("PNG without the last byte of the checksum: %v", err)
	}
	for n := 1; n < 20; n++ { // a chunk behind the pixels is cut: the orientation may be lost with it
		b := pngExif(append(list["no_end.png"], pngEnd...), exifWith(binary.BigEndian, 6), true)
		b = b[:len(b)-12-n]
		if _, err := Decode(b, 0); err == nil {
			t.Errorf("PNG whose last chunk lacks %d bytes passes", n)
		}
	}
	webp := list["animated.webp"]
	for n := range webp {
		if _, err := Decode(webp[:n], 0); err == nil {
			t.Errorf("WebP cut to %d of %d passes", n, len(webp))
		}
	}
}

// TestPNGTextsBounded: a text that inflates to more than a megabyte is left out, no more of it is inflated, and of many texts one is.
func TestPNGTextsBounded(t *testing.T) {
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 2, 3))); err != nil {
		t.Fatal(err)
	}
	head, rest := b.Bytes()[:33:33], b.Bytes()[33:]
	for n, want := range map[int]int{maxPNGText: 1, maxPNGText + 1: 0, 64 << 20: 0} {
		text := pngText("zTXt", pngRawExif, "\x00"+string(deflated(make([]byte, n))))
		file := slices.Concat(head, bytes.Repeat(text, 100), rest)
		var texts map[string][]byte
		if took := allocated(func() { texts = pngTexts(file, pngRawExif) }); took > 8<<20 || len(texts) != want || want > 0 && len(texts[pngRawExif]) != n {
			t.Errorf("%d bytes: %d texts, and %d bytes taken", n, len(texts), took)
		}
		if _, err := Decode(file, 0); err != nil {
			t.Error(err)
		}
	}
}
