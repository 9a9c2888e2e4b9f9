package images

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"hash/crc32"
	"image"
	"image/gif"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/image/bmp"
	"golang.org/x/image/tiff"

	"github.com/geoalign/geoalign/data/transform"
	"github.com/geoalign/geoalign/internal/files"
	process "github.com/geoalign/geoalign/internal/memory"
)

var shapes = flag.Int("pictures", 60, "pictures of TestPicturesOfAnyShape")

// shapesEnv has the number of pictures in the process that reads them.
const shapesEnv = "GEOALIGN_TEST_PICTURES"

// mostPicture is the memory in bytes that a process may have that reads pictures.
const mostPicture = 512 << 20

// TestPicturesOfAnyShape: a process that reads pictures of any format and shape one after the other, and makes them
// inputs of a model, takes less than 512 MiB at any time.
func TestPicturesOfAnyShape(t *testing.T) {
	if n, _ := strconv.Atoi(os.Getenv(shapesEnv)); n > 0 {
		readShapes(t, n)
		return
	}
	if process.Peak() == 0 {
		t.Skip("the peak of a process is not known here")
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestPicturesOfAnyShape$", "-test.v")
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d", shapesEnv, *shapes))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, "pictures") {
			t.Log(strings.TrimSpace(line))
		}
	}
}

// readShapes reads n pictures and looks at the peak of the process.
func readShapes(t *testing.T, n int) {
	read, large, wrong := 0, 0, 0
	dst := make([]float32, 3*224*224)
	for i := range n {
		r := rand.New(rand.NewPCG(uint64(i), 46))
		name, b := shape(r)
		m, err := Decode(b, 64_000_000)
		if err == nil {
			err = errors.Join(transform.Train{Size: 224, ScaleMin: 0.2}.Apply(m, r, dst),
				transform.Eval{Size: 224, Input: transform.Input{Crop: true}}.Apply(m, nil, dst))
		}
		switch {
		case err == nil:
			read++
		case errors.Is(err, ErrTooLarge):
			large++
		default:
			wrong++
			t.Errorf("%s: %v", name, err)
		}
	}
	peak := process.Peak()
	t.Logf("%d pictures: %d read, %d too large, %d wrong; the process took %.0f MiB at most", n, read, large, wrong, process.MB(peak))
	if peak > mostPicture {
		t.Errorf("the process took %.0f MiB", process.MB(peak))
	}
	if n >= 40 && (read < n/4 || large < n/40) {
		t.Error("the pictures are not of all kinds")
	}
}

// shape is a picture of any format and size of up to 100,000,000 pixels, and what it is.
func shape(r *rand.Rand) (name string, b []byte) {
	upTo := func(n float64) int { return int(math.Exp(r.Float64() * math.Log(n))) }
	pixels := upTo(1e8)
	w := max(1, min(upTo(float64(pixels)), pixels))
	h := max(1, pixels/w)
	if r.IntN(4) == 0 { // a square one, more often a large one
		w = 1000 + r.IntN(9000)
		h = w
	}
	if r.IntN(2) == 0 {
		w, h = h, w
	}
	side := func(most int) { w, h = min(w, most), min(h, most) }
	switch kind := r.IntN(8); kind {
	case 0, 1:
		side(65535)
		name, b = "progressive JPEG", blankJPEG(w, h, 0xc2, r.IntN(3))
	case 2, 3:
		side(65535)
		name, b = "JPEG", blankJPEG(w, h, 0xc0, r.IntN(3))
	case 4:
		side(16384)
		name, b = "WebP", blankWebP(w, h)
	default:
		types := [][2]byte{{1, 0}, {8, 0}, {16, 0}, {8, 2}, {16, 2}, {1, 3}, {8, 3}, {8, 4}, {16, 4}, {8, 6}, {16, 6}}
		k := types[r.IntN(len(types))]
		interlaced := byte(r.IntN(4) / 3)
		name, b = fmt.Sprintf("PNG of type %d, %d bits, interlaced %d", k[1], k[0], interlaced), blankPNG(w, h, k[0], k[1], interlaced)
	}
	return fmt.Sprintf("%s of %dx%d", name, w, h), b
}

// chunk is a chunk of a PNG.
func chunk(name string, body []byte) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(len(body)))
	b = append(append(b, name...), body...)
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b[4:]))
}

// blankPNG is a black PNG, whose pixels are left out where it is larger than any that is read.
func blankPNG(w, h int, depth, kind, interlaced byte) []byte {
	head := binary.BigEndian.AppendUint32(nil, uint32(w))
	head = append(binary.BigEndian.AppendUint32(head, uint32(h)), depth, kind, 0, 0, interlaced)
	b := append([]byte("\x89PNG\r\n\x1a\n"), chunk("IHDR", head)...)
	if kind == 3 {
		b = append(b, chunk("PLTE", []byte{0, 0, 0})...)
	}
	if w > 200_000 || h > 200_000 || w*h > 64_000_000 {
		return append(b, chunk("IDAT", nil)...)
	}
	channels := map[byte]int{0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[kind]
	rows := func(w, h int) int64 {
		if w == 0 || h == 0 {
			return 0
		}
		return int64(h) * int64(1+(w*channels*int(depth)+7)/8)
	}
	n := rows(w, h)
	if interlaced == 1 { // Adam7: first column and row of a pass, and the steps
		n = 0
		for _, p := range [][4]int{{0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8}, {2, 0, 4, 4}, {0, 2, 2, 4}, {1, 0, 2, 2}, {0, 1, 1, 2}} {
			n += rows((w-p[0]+p[2]-1)/p[2], (h-p[1]+p[3]-1)/p[3])
		}
	}
	var z bytes.Buffer
	f, _ := zlib.NewWriterLevel(&z, zlib.BestSpeed)
	io.CopyN(f, zeros{}, n)
	f.Close()
	return append(append(b, chunk("IDAT", z.Bytes())...), chunk("IEND", nil)...)
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

// blankJPEG is a grey JPEG, with subsampled colours or without, whose frame has the given marker. Every block is one bit, a mean that does not change,
// and in a sequential file another one, the end of the block.
func blankJPEG(w, h int, frame byte, colours int) []byte {
	segment := func(b []byte, marker byte, body []byte) []byte {
		return append(binary.BigEndian.AppendUint16(append(b, 0xff, marker), uint16(2+len(body))), body...)
	}
	b := segment([]byte{0xff, 0xd8}, 0xdb, append([]byte{0}, bytes.Repeat([]byte{1}, 64)...))
	head := binary.BigEndian.AppendUint16([]byte{8}, uint16(h))
	head = binary.BigEndian.AppendUint16(head, uint16(w))
	factor := []byte{0x11, 0x11, 0x22}[colours]
	unit, blocks := 8, 1
	if colours == 0 {
		head = append(head, 1, 1, factor, 0)
	} else {
		head = append(head, 3, 1, factor, 0, 2, 0x11, 0, 3, 0x11, 0)
		unit, blocks = 8*int(factor&15), int(factor&15)*int(factor&15)+2
	}
	b = segment(b, frame, head)
	bits := 2
	for _, class := range []byte{0x00, 0x10} {
		b = segment(b, 0xc4, append(append([]byte{class, 1}, make([]byte, 15)...), 0)) // one code, 0, of the value 0
	}
	scan := []byte{byte(1 + 2*min(colours, 1)), 1, 0}
	if colours > 0 {
		scan = append(scan, 2, 0, 3, 0)
	}
	if frame == 0xc2 {
		scan, bits = append(scan, 0, 0, 0), 1
	} else {
		scan = append(scan, 0, 63, 0)
	}
	b = segment(b, 0xda, scan)
	n := bits * blocks * ((w + unit - 1) / unit) * ((h + unit - 1) / unit)
	b = append(b, make([]byte, n/8)...)
	if n%8 > 0 {
		b = append(b, 0xff>>(n%8))
	}
	return append(b, 0xff, 0xd9)
}

// blankWebP is a lossless WebP of one colour: codes of one symbol take no bits.
func blankWebP(w, h int) []byte {
	var bits, n uint64
	body := []byte{0x2f}
	put := func(v uint64, size int) {
		bits |= v << n
		for n += uint64(size); n >= 8; n -= 8 {
			body = append(body, byte(bits))
			bits >>= 8
		}
	}
	put(uint64(w-1), 14)
	put(uint64(h-1), 14)
	put(0, 1+3+1+1+1) // no alpha, version, no transform, no cache, one group of codes
	for range 5 {
		put(1, 1)   // a simple code
		put(0, 1+1) // of one symbol, of one bit
		put(0, 1)   // 0
	}
	put(0, 8)
	b := append([]byte("RIFF\x00\x00\x00\x00WEBPVP8L"), binary.LittleEndian.AppendUint32(nil, uint32(len(body)))...)
	b = append(b, body...)
	if len(body)%2 == 1 {
		b = append(b, 0)
	}
	binary.LittleEndian.PutUint32(b[4:], uint32(len(b)-8))
	return b
}

// TestThin: a side has a limit of its own, and the case of a picture that took all memory is a large one.
func TestThin(t *testing.T) {
	for _, c := range []struct{ w, h int }{{MaxSide, 1}, {1, MaxSide}} {
		if m, err := Decode(blankPNG(c.w, c.h, 1, 0, 0), 0); err != nil || m.W != c.w || m.H != c.h {
			t.Errorf("%dx%d: %v", c.w, c.h, err)
		}
		if _, err := Decode(blankPNG(c.w+c.w/MaxSide, c.h+c.h/MaxSide, 1, 0, 0), 0); !errors.Is(err, ErrTooLarge) || !strings.Contains(err.Error(), "a side may have 65535") {
			t.Errorf("longer than %dx%d: %v", c.w, c.h, err)
		}
	}
	b, err := files.Read("../../shared/cases/images/thin_w.png", 0)
	if err != nil {
		t.Skip("no shared cases:", err)
	}
	if _, err := Decode(b, 64_000_000); !errors.Is(err, ErrTooLarge) {
		t.Errorf("thin_w.png: %v", err)
	}
}

// TestDecodeBytes: the memory that a file takes is known from its headers: what the decoder allocates is no more, and not much less.
func TestDecodeBytes(t *testing.T) {
	const w, h = 1500, 1100
	cases := map[string][]byte{"webp": blankWebP(w, h)}
	grey, deep := image.NewGray(image.Rect(0, 0, w, h)), image.NewRGBA64(image.Rect(0, 0, w, h))
	for name, write := range map[string]func(io.Writer) error{
		"gif":     func(to io.Writer) error { return gif.Encode(to, grey, nil) },
		"bmp":     func(to io.Writer) error { return bmp.Encode(to, deep) },
		"tiff":    func(to io.Writer) error { return tiff.Encode(to, grey, nil) },
		"tiff 16": func(to io.Writer) error { return tiff.Encode(to, deep, &tiff.Options{Compression: tiff.Deflate}) },
	} {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			t.Fatal(err)
		}
		cases[name] = b.Bytes()
	}
	for colours := range 3 {
		cases[fmt.Sprint("baseline ", colours)] = blankJPEG(w, h, 0xc0, colours)
		cases[fmt.Sprint("progressive ", colours)] = blankJPEG(w, h, 0xc2, colours)
	}
	for _, k := range [][2]byte{{1, 0}, {8, 0}, {16, 0}, {8, 2}, {16, 2}, {8, 3}, {8, 4}, {16, 4}, {8, 6}, {16, 6}} {
		for interlaced := range byte(2) {
			cases[fmt.Sprint("png ", k, interlaced)] = blankPNG(w, h, k[0], k[1], interlaced)
		}
	}
	for name, b := range cases {
		cfg, f, err := header(bytes.NewReader(b), int64(len(b)), 0)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		need := decodeBytes(b, f.Name, cfg, false)
		took := allocated(func() {
			if _, err := Decode(b, 0); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
		if f.Name == "JPEG" {
			took += uint64(len(b)) // the decoder may have had memory before
		}
		if have := need + 1<<20; int64(took) > have {
			t.Errorf("%s: %d bytes were said, and %d taken", name, need, took)
		}
		if f.Name != "JPEG" && int64(took) < need/3 {
			t.Errorf("%s: %d bytes were said, and %d taken", name, need, took)
		}
		// At a limit of half of it the picture is too large.
		if err := checkBytes(cfg, f.Name, MaxBytes(1000)+1, 1000); !errors.Is(err, ErrTooLarge) {
			t.Error(err)
		}
	}
}
