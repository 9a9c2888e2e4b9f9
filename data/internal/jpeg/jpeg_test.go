package jpeg

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"image"
	"image/color"
	"image/jpeg"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/geoalign/geoalign/internal/budget/budgettest"
)

// files are the JPEG files that tools/goldens/jpeg.py wrote, by name.
func files(t testing.TB) map[string][]byte {
	paths, err := filepath.Glob("testdata/*.jpg")
	if err != nil || len(paths) < 20 {
		t.Fatalf("%d files (%v)", len(paths), err)
	}
	list := map[string][]byte{}
	for _, p := range paths {
		b, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		list[strings.TrimSuffix(filepath.Base(p), ".jpg")] = b
	}
	return list
}

// decode reads the size of a file and decodes it.
func decode(d *Decoder, b []byte) ([]uint8, error) {
	cfg, err := DecodeConfig(bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	if d.Bytes(b) > 2<<20 || cfg.Width*cfg.Height > 1<<18 {
		return nil, errors.New("too large for a test")
	}
	dst := make([]uint8, 3*cfg.Width*cfg.Height)
	return dst, d.Decode(dst, b, cfg.Width, cfg.Height)
}

// TestPixelsOfPillow: files and damaged ones have the pixels that Pillow reads of them, or are refused by both. Where
// Pillow wants bytes behind the last block, as of a file without its end, a picture that is whole is read.
func TestPixelsOfPillow(t *testing.T) {
	text, err := os.ReadFile("testdata/pixels.txt")
	if err != nil {
		t.Fatal(err)
	}
	var d Decoder
	list := files(t)
	lines, refused := 0, 0
	for line := range strings.Lines(string(text)) {
		var name, changes, want string
		var cut int
		if _, err := fmt.Sscan(line, &name, &cut, &changes, &want); err != nil {
			t.Fatal(err)
		}
		b := bytes.Clone(list[name])[:cut]
		for change := range strings.SplitSeq(changes, ",") {
			var at int
			var v uint8
			if n, _ := fmt.Sscanf(change, "%d=%d", &at, &v); n == 2 {
				b[at] = v
			}
		}
		got := "refused"
		pixels, err := decode(&d, b)
		if err == nil {
			got = fmt.Sprintf("%08x", crc32.ChecksumIEEE(pixels))
		} else if !errors.Is(err, ErrCut) && !errors.As(err, new(Unsupported)) && !strings.HasPrefix(err.Error(), "jpeg: byte ") {
			t.Errorf("%s: %v", name, err)
		}
		lines++
		if got == "refused" {
			refused++
		}
		if got != want {
			t.Errorf("%s of %d bytes with %s: got %s (%v), want %s", name, cut, changes, got, err, want)
		}
	}
	if lines < 300 || refused < lines/5 || refused > lines/2 {
		t.Errorf("%d of %d lines are refused", refused, lines)
	}
}

// TestWithoutEnd: a picture that is whole is read without the mark of its end where one scan has all of it; one byte
// less is not whole, and of several scans some may be missing.
func TestWithoutEnd(t *testing.T) {
	var d Decoder
	for name, b := range files(t) {
		end := bytes.LastIndex(b, []byte{0xff, 0xd9})
		if strings.Contains(name, "progressive") || strings.Contains(name, "scans") || name == "flat" {
			if _, err := decode(&d, b[:end]); !errors.Is(err, ErrCut) {
				t.Errorf("%s without its end: %v", name, err)
			}
			continue
		}
		if strings.HasPrefix(name, "restart_") || name == "swapped" || name == "no_end" || name == "ycck420" || name == "sequential411" || name == "sequential440" { // their data is not of their factors
			continue
		}
		want, err := decode(&d, b)
		if err != nil {
			t.Fatal(err)
		}
		for _, behind := range []string{"", "trailer", "\x00\xff\x00", "\xff", string(make([]byte, 100))} {
			if got, err := decode(&d, append(bytes.Clone(b[:end]), behind...)); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s with %q at its end: %v", name, behind, err)
			}
		}
		if _, err := decode(&d, b[:end-1]); !errors.Is(err, ErrCut) {
			t.Errorf("%s without its last byte: %v", name, err)
		}
	}
}

// TestRefused: what is not decoded is called so, and what is wrong has its place.
func TestRefused(t *testing.T) {
	b := files(t)["sequential420"]
	at := bytes.Index(b, []byte{0xff, 0xc0})
	for _, c := range []struct {
		at   int
		v    byte
		want string
	}{
		{1, 0xc9, "jpeg: not supported: arithmetic coding"},
		{1, 0xc3, "jpeg: not supported: lossless coding"},
		{1, 0xc5, "jpeg: not supported: hierarchical coding"},
		{4, 12, "jpeg: not supported: 12 bits a sample"},
		{9, 2, "jpeg: not supported: 2 components"},
		{11, 0x32, "jpeg: not supported: sampling factors 2x"}, // see below
		{11, 0x52, fmt.Sprintf("jpeg: byte %d: sampling factors 5x2, want 1 to 4: get the file anew", at)},
		{3, 8, fmt.Sprintf("jpeg: byte %d: the header of the frame has 6 bytes, want 15: get the file anew", at)},
		{12, 9, "jpeg: byte "},
	} {
		f := bytes.Clone(b)
		f[at+c.at] = c.v
		if c.v == 0x32 {
			f[at+14] = 0x21
		}
		var d Decoder
		if _, err := decode(&d, f); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("byte %d of the frame is %#x: %v, want %s", c.at, c.v, err, c.want)
		}
	}
}

// photo is a picture with edges, slopes and noise.
func photo(r *rand.Rand, w, h int) image.Image {
	m := image.NewRGBA(image.Rect(0, 0, w, h))
	a, b := r.IntN(9), 1+r.IntN(60)
	for y := range h {
		for x := range w {
			v := a*x + y + r.IntN(b)
			if x/7%2 == y/5%2 {
				v = 255 - v
			}
			m.SetRGBA(x, y, color.RGBA{uint8(v), uint8(2*v + x), uint8(y - v), 255})
		}
	}
	return m
}

func encoded(m image.Image, quality int) []byte {
	var b bytes.Buffer
	if err := jpeg.Encode(&b, m, &jpeg.Options{Quality: quality}); err != nil {
		panic(err)
	}
	return b.Bytes()
}

// TestNearImageJPEG: the brightness of files of any size is that of image/jpeg, but for the rounding of the transform.
func TestNearImageJPEG(t *testing.T) {
	var d Decoder
	r := rand.New(rand.NewPCG(1, 2))
	for range 100 {
		w, h, q := 1+r.IntN(70), 1+r.IntN(50), 20+r.IntN(81)
		g := image.NewGray(image.Rect(0, 0, w, h))
		m := photo(r, w, h)
		for y := range h {
			for x := range w {
				g.Set(x, y, m.At(x, y))
			}
		}
		b := encoded(g, q)
		want, err := jpeg.Decode(bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		got, err := decode(&d, b)
		if err != nil {
			t.Fatal(err)
		}
		for y := range h {
			for x := range w {
				if diff := int(got[3*(y*w+x)]) - int(want.(*image.Gray).GrayAt(x, y).Y); diff < -2 || diff > 2 {
					t.Fatalf("%dx%d at quality %d: pixel %d,%d differs by %d", w, h, q, x, y, diff)
				}
			}
		}
	}
}

func TestNothingAllocated(t *testing.T) {
	list := files(t)
	var d Decoder
	dst := make([]uint8, 3*61*43)
	for _, name := range []string{"sequential420", "progressive422"} {
		if n := testing.AllocsPerRun(20, func() {
			if err := d.Decode(dst, list[name], 61, 43); err != nil {
				t.Fatal(err)
			}
		}); n > 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

// TestTooManyScans: a file of many small scans ends soon.
func TestTooManyScans(t *testing.T) {
	b := files(t)["progressive420"]
	at := bytes.LastIndex(b, []byte{0xff, 0xda})
	last := b[at : len(b)-2]
	for _, c := range []struct {
		more int
		want bool
	}{{MostScans - 20, false}, {MostScans, true}} {
		bomb := append(append(bytes.Clone(b[:at]), bytes.Repeat(last, c.more)...), 0xff, 0xd9)
		var d Decoder
		if _, err := decode(&d, bomb); (err != nil && strings.Contains(err.Error(), "more than 500 scans")) != c.want {
			t.Errorf("%d scans more: %v", c.more, err)
		}
	}
}

// TestBytes: the memory that decoding is said to take is what it takes.
func TestBytes(t *testing.T) {
	for name, b := range files(t) {
		cfg, err := DecodeConfig(bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		dst := make([]uint8, 3*cfg.Width*cfg.Height)
		var said int64
		took := uint64(math.MaxUint64)
		for range 3 { // the least: the runtime and other tests of the process allocate too, now and then
			var d Decoder
			said = d.Bytes(b)
			took = min(took, budgettest.Allocated(func() {
				if err := d.Decode(dst, b, cfg.Width, cfg.Height); err != nil && name != "swapped" {
					t.Fatal(err)
				}
			}))
		}
		if name == "swapped" { // refused, as its scan names components out of their order
			continue
		}
		if int64(took) > said+said/8+4096 || said == 0 {
			t.Errorf("%s: %d bytes, and %d were said", name, took, said)
		}
	}
}

// FuzzDecode: no input takes long or much memory, and what a decoder has seen before changes nothing.
func FuzzDecode(f *testing.F) {
	for _, b := range files(f) {
		f.Add(b)
	}
	f.Add(encoded(photo(rand.New(rand.NewPCG(5, 6)), 20, 20), 50))
	var used Decoder
	f.Fuzz(func(t *testing.T, b []byte) {
		defer budgettest.Within(t, len(b))()
		start := time.Now()
		var fresh Decoder
		got, err := decode(&used, b)
		want, err2 := decode(&fresh, b)
		if (err == nil) != (err2 == nil) || err == nil && !bytes.Equal(got, want) {
			t.Fatalf("%v and %v, or other pixels", err, err2)
		}
		if took := time.Since(start); took > 10*time.Second {
			t.Fatalf("took %v", took)
		}
	})
}
