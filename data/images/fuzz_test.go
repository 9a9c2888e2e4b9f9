package images

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"hash/crc32"
	"image"
	"testing"
)

// deflated is b compressed.
func deflated(b []byte) []byte {
	var out bytes.Buffer
	w := zlib.NewWriter(&out)
	w.Write(b)
	w.Close()
	return out.Bytes()
}

// pngText is a chunk of text.
func pngText(name, keyword, text string) []byte {
	body := append([]byte(name+keyword), 0)
	body = append(body, text...)
	out := binary.BigEndian.AppendUint32(nil, uint32(len(body)-4))
	return binary.BigEndian.AppendUint32(append(out, body...), crc32.ChecksumIEEE(body))
}

// FuzzFormats: no file takes much more memory than its pixels and its bytes, nor has more pixels than are allowed.
func FuzzFormats(f *testing.F) {
	for _, b := range formatFiles(f) {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var err error
		const pixels = 1 << 14
		took := allocated(func() {
			m, err2 := Decode(b, pixels)
			if err = err2; (m == nil) == (err == nil) || m != nil && (m.W*m.H > pixels || len(m.Pix) != 3*m.W*m.H || m.W <= 0) {
				t.Fatalf("image %v and error %v", m, err)
			}
		})
		if took > 16<<20+16*uint64(len(b)) {
			t.Fatalf("%d bytes for a file of %d: %v", took, len(b), err)
		}
	})
}

// FuzzMetadata: the orientation is one of eight, and what is looked at no more than the file or a text of a megabyte.
func FuzzMetadata(f *testing.F) {
	for _, b := range formatFiles(f) {
		f.Add(b)
	}
	f.Add(append([]byte(pngSignature), pngText("iTXt", pngXMP, "\x01\x00\x00\x00"+string(deflated([]byte(`tiff:Orientation="3"`))))...))
	f.Fuzz(func(t *testing.T, b []byte) {
		if o := orientation(b); o < 1 || o > 8 {
			t.Errorf("orientation %d", o)
		}
		exif, xmp := metadata(b)
		if len(exif) > len(b) && len(exif) > maxPNGText || len(xmp) > len(b) && len(xmp) > maxPNGText {
			t.Errorf("%d and %d bytes of a file of %d", len(exif), len(xmp), len(b))
		}
	})
}

// FuzzWebPContainer: the picture that is found lies in its canvas, and its file is no longer than the one that it is of.
func FuzzWebPContainer(f *testing.F) {
	for _, name := range []string{"animated.webp", "animated_lossy_alpha.webp", "placed.webp", "xmp.webp"} {
		f.Add(formatFiles(f)[name])
	}
	canvas := image.Rect(0, 0, 300, 200)
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) < webpHead {
			return
		}
		p, err := pictureOfWebP(b, canvas)
		if err != nil {
			return
		}
		if n := len(p.file()); !p.at.In(canvas) || p.pixels == nil || n > len(b)+webpHead+18+16 {
			t.Errorf("%v in a file of %d bytes of %d", p.at, n, len(b))
		}
	})
}

// FuzzEnds: an end that is put behind a file leaves all before it as it was.
func FuzzEnds(f *testing.F) {
	for _, name := range []string{"no_end.gif", "no_end.png", "cut_end.png"} {
		f.Add(formatFiles(f)[name])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		before := bytes.Clone(b)
		for _, out := range [][]byte{endedGIF(b), endedPNG(b)} {
			if len(out) > len(b)+16 {
				t.Errorf("%d bytes of %d", len(out), len(b))
			}
		}
		if !bytes.Equal(b, before) {
			t.Error("the file was changed")
		}
	})
}
