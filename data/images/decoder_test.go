package images

import (
	"bytes"
	"encoding/binary"
	"image"
	"image/color"
	"image/jpeg"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/data/internal/turbojpeg"
	"github.com/geoalign/geoalign/data/transform"
)

// turboDecoder chooses libjpeg-turbo for a test where the machine has it.
func turboDecoder(t testing.TB) {
	if _, _, err := UseDecoder(DecoderTurbo); err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { UseDecoder(DecoderBuiltin) })
}

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

// difference is the largest difference of two images of one size, and the mean.
func difference(t *testing.T, a, b *transform.Image) (most int, mean float64) {
	t.Helper()
	if a.W != b.W || a.H != b.H {
		t.Fatalf("%dx%d and %dx%d", a.W, a.H, b.W, b.H)
	}
	sum := 0
	for i, v := range a.Pix {
		d := max(int(v)-int(b.Pix[i]), int(b.Pix[i])-int(v))
		most, sum = max(most, d), sum+d
	}
	return most, float64(sum) / float64(len(a.Pix))
}

// The built-in decoder gives what image/jpeg and FromImage give, bit by bit.
func TestBuiltinIsImageJPEG(t *testing.T) {
	for name, b := range jpegFiles(t) {
		got, err := Decode(b, 0)
		img, plain := jpeg.Decode(bytes.NewReader(b))
		if name == "progressive_restart.jpg" { // image/jpeg counts its restart markers otherwise than the standard
			if err != nil {
				t.Error(err)
			}
			continue
		}
		if (err == nil) != (plain == nil) {
			t.Errorf("%s: got %v, image/jpeg says %v", name, err, plain)
		}
		if err != nil || plain != nil {
			continue
		}
		want, err := FromImage(img)
		if err != nil {
			t.Fatal(err)
		}
		if most, _ := difference(t, got, upright(want, orientation(b))); most > 0 {
			t.Errorf("%s differs by up to %d", name, most)
		}
	}
}

// The decoders differ by a few grey levels, and turn pictures alike. What the library does not decode to RGB, CMYK, is the same.
func TestTurboIsNearBuiltin(t *testing.T) {
	files := jpegFiles(t)
	want := map[string]*transform.Image{}
	for name, b := range files {
		want[name], _ = Decode(b, 0)
	}
	turboDecoder(t)
	for name, b := range files {
		got, err := Decode(b, 0)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if want[name] == nil {
			t.Errorf("%s passes with the library alone", name)
			continue
		}
		most, mean := difference(t, got, want[name])
		if most > 6 || mean > 1 || name == "cmyk.jpg" && most > 0 {
			t.Errorf("%s differs by up to %d, %.2f on average", name, most, mean)
		}
	}
}

// Pixels of the library are those of Pillow, which stands on it too.
func TestTurboLikePillow(t *testing.T) {
	turboDecoder(t)
	for _, name := range []string{"color", "grey", "progressive", "subsampled", "odd", "wide"} {
		path := filepath.Join("testdata/images", name+".jpg")
		got, err := DecodeFile(path, 0)
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(path + ".rgb")
		if err != nil {
			t.Fatal(err)
		}
		if most, _ := difference(t, got, &transform.Image{W: got.W, H: got.H, Pix: want}); most > 1 {
			t.Errorf("%s differs from Pillow by up to %d", name, most)
		}
	}
}

// A damaged file is a bad sample with either decoder: the library only decides on what it does not warn of.
func TestDamagedWithBothDecoders(t *testing.T) {
	files := jpegFiles(t)
	cut := map[string][]byte{}
	for name, b := range files {
		if name == "progressive_restart.jpg" {
			continue
		}
		for _, n := range []int{3, len(b) / 4, len(b) / 2, len(b) - 40, len(b) - 3} {
			cut[name+" cut at "+string(rune('a'+len(cut)%26))] = b[:n]
		}
		c := bytes.Clone(b)
		at := bytes.Index(c, []byte{0xff, 0xc4})
		c[at+5] = 0xff // a Huffman table of too many codes
		cut[name+" with a bad table"] = c
	}
	type result struct{ err error }
	builtin := map[string]result{}
	for name, b := range cut {
		_, err := Decode(b, 0)
		builtin[name] = result{err}
		if err == nil {
			t.Errorf("%s passes", name)
		}
	}
	turboDecoder(t)
	for name, b := range cut {
		if _, err := Decode(b, 0); err == nil || err.Error() != builtin[name].err.Error() {
			t.Errorf("%s: %v, with the built-in decoder %v", name, err, builtin[name].err)
		}
	}
	if _, err := Decode(files["color.jpg"], 20); err == nil || !strings.Contains(err.Error(), "more pixels than allowed") {
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

func TestUseDecoder(t *testing.T) {
	t.Cleanup(func() { UseDecoder(DecoderBuiltin) })
	if _, _, err := UseDecoder("libpng"); err == nil || !strings.Contains(err.Error(), `"libpng": choose auto, builtin or turbojpeg`) {
		t.Errorf("got %v", err)
	}
	// A file that is not a library is named, and auto goes on without it.
	file := filepath.Join(t.TempDir(), "libturbojpeg.so")
	if err := os.WriteFile(file, []byte("text"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GEOALIGN_JPEG", file)
	_, warnings, err := UseDecoder(DecoderAuto)
	if err != nil {
		t.Error(err)
	}
	if len(warnings) > 0 && !strings.Contains(warnings[0], file) {
		t.Errorf("warnings %q", warnings)
	}
	if d, _, err := UseDecoder(DecoderTurbo); err == nil {
		t.Logf("another library was found: %v", d)
	} else if !strings.Contains(err.Error(), "apt-get install libturbojpeg0") {
		t.Errorf("got %v", err)
	}
	if d, _, err := UseDecoder(DecoderBuiltin); err != nil || d.String() != "builtin" || JPEGDecoder().File != "" {
		t.Errorf("got %v, %v", d, err)
	}
}

// TestDecoderSays: what pixels depend on, as a cache on disk and a run's environment have it.
func TestDecoderSays(t *testing.T) {
	before := JPEGDecoder().String()
	turbo.Store(&turbojpeg.Library{Version: "2"})
	t.Cleanup(func() { UseDecoder(DecoderBuiltin) })
	if s := JPEGDecoder().String(); s == before || !strings.HasSuffix(s, " 2") {
		t.Errorf("the decoders are %q and %q", before, s)
	}
}
