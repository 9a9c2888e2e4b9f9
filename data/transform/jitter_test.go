package transform

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/geoalign/geoalign/internal/allocs"
	"github.com/geoalign/geoalign/internal/filetest"
	"github.com/geoalign/geoalign/internal/rng"
)

// colourOps are the operations with the factors of tools/goldens/jitter.py
// (torchvision 0.29.2 on Pillow 13.0.0). Equality is exact.
var colourOps = map[string]func(m *Image){
	"brightness_0.6":  func(m *Image) { Brightness(m, 0.6) },
	"contrast_0.6":    func(m *Image) { Contrast(m, 0.6) },
	"contrast_1.4":    func(m *Image) { Contrast(m, 1.4) },
	"saturation_0.6":  func(m *Image) { Saturation(m, 0.6) },
	"saturation_0.83": func(m *Image) { Saturation(m, 0.83) },
	"saturation_1.4":  func(m *Image) { Saturation(m, 1.4) },
	"hue_-0.1":        func(m *Image) { Hue(m, -0.1) },
	"hue_0":           func(m *Image) { Hue(m, 0) },
	"hue_0.1":         func(m *Image) { Hue(m, 0.1) },
	"hue_0.5":         func(m *Image) { Hue(m, 0.5) },
	"gray":            Gray,
	"blur_0.1":        func(m *Image) { Blur(m, 0.1) },
	"blur_1":          func(m *Image) { Blur(m, 1) },
	"blur_1.7":        func(m *Image) { Blur(m, 1.7) },
	"blur_2":          func(m *Image) { Blur(m, 2) },
	"blur_5.3":        func(m *Image) { Blur(m, 5.3) },
	"jitter": func(m *Image) {
		j := jitter{order: [4]uint8{3, 0, 2, 1}, brightness: 1.23, contrast: 1.37, saturation: 0.71, turns: -0.07}
		j.apply(m)
	},
}

func TestColourLikeTorchvision(t *testing.T) {
	seen := 0
	for name, f := range colourOps {
		if _, err := os.Stat("testdata/" + name + ".rgb"); err != nil {
			continue // in the cube only
		}
		seen++
		got := photo(t)
		f(got)
		if most, mean := distance(t, got, golden(t, name, 40, 30)); most != 0 {
			t.Errorf("%s differs by up to %d, %.3f in the mean", name, most, mean)
		}
	}
	if seen != 14 {
		t.Errorf("%d goldens, want 14", seen)
	}
	tiny := golden(t, "tiny", 3, 2)
	Blur(tiny, 2)
	if most, _ := distance(t, tiny, golden(t, "tiny_blur_2", 3, 2)); most != 0 {
		t.Errorf("blur of 3x2 pixels differs by up to %d", most)
	}
}

// Every colour there is must come out as from torchvision.
func TestColourOfEveryColour(t *testing.T) {
	if testing.Short() {
		t.Skip("16,777,216 colours")
	}
	b := filetest.Read(t, "testdata/cube.json")
	var want map[string]string
	if err := json.Unmarshal(b, &want); err != nil {
		t.Fatal(err)
	}
	m := NewImage(4096, 4096)
	for name, sum := range want {
		for i := range 1 << 24 {
			m.Pix[3*i], m.Pix[3*i+1], m.Pix[3*i+2] = uint8(i>>16), uint8(i>>8), uint8(i)
		}
		colourOps[name](m)
		if got := sha256.Sum256(m.Pix); hex.EncodeToString(got[:]) != sum {
			t.Errorf("%s: some colour differs", name)
		}
	}
	if len(want) != 8 {
		t.Errorf("%d operations, want 8", len(want))
	}
}

// The blur must be a Gaussian: of a single point, its deviation is sigma.
func TestBlurDeviation(t *testing.T) {
	for _, sigma := range []float64{0.8, 1.3, 1.5, 2, 3, 6} {
		m := NewImage(61, 61)
		for c := range 3 { // a line, so that rounding does not eat the tails
			for y := range 61 {
				m.Pix[3*(61*y+30)+c] = 255
			}
		}
		Blur(m, sigma)
		var sum, squares float64
		for x := range 61 {
			v := float64(m.Pix[3*(61*30+x)])
			sum += v
			squares += v * float64((x-30)*(x-30))
		}
		if got := math.Sqrt(squares / sum); !(math.Abs(got-sigma) <= 0.03*sigma+0.02) {
			t.Errorf("sigma %g: deviation %.3f", sigma, got)
		}
	}
	m := photo(t)
	for _, sigma := range []float64{0, -1, math.NaN(), math.Inf(1), math.Inf(-1)} {
		Blur(m, sigma)
		if most, _ := distance(t, m, photo(t)); most != 0 {
			t.Errorf("sigma %v must change nothing", sigma)
		}
	}
}

// Mirroring before or after makes no difference: the pipeline mirrors while it
// resizes, TCL's code after the colour operations.
func TestColourCommutesWithMirroring(t *testing.T) {
	for name, f := range colourOps {
		a, b := photo(t), photo(t)
		f(a)
		a.FlipH()
		b.FlipH()
		f(b)
		if !slices.Equal(a.Pix, b.Pix) {
			t.Errorf("%s differs when mirrored first", name)
		}
	}
}

func TestColourProbabilities(t *testing.T) {
	const n = 4000
	src := noise(6, 6)
	gray := func(m *Image) bool {
		for i := 0; i < len(m.Pix); i += 3 {
			if m.Pix[i] != m.Pix[i+1] || m.Pix[i] != m.Pix[i+2] {
				return false
			}
		}
		return true
	}
	for _, c := range []struct {
		name string
		t    Train
		p    float64
	}{
		{"jitter", Train{Jitter: 0.8}, 0.8}, {"gray", Train{Gray: 0.2}, 0.2}, {"blur", Train{Blur: 0.5}, 0.5},
		{"jitter always", Train{Jitter: 1}, 1}, {"gray always", Train{Gray: 1}, 1}, {"none", Train{}, 0},
	} {
		changed := 0
		var z blurrer
		for i := range uint64(n) {
			m := src.Clone()
			c.t.colour(rng.New(5, rng.Augment, i), m, &z)
			if slices.Equal(m.Pix, src.Pix) {
				continue
			}
			changed++
			if c.t.Gray > 0 && !gray(m) {
				t.Fatalf("%s: a changed image has colours", c.name)
			}
		}
		// Four deviations of a binomial; a blur of sigma 0.1 can leave all as it was.
		if got := float64(changed) / n; !(math.Abs(got-c.p) <= 4*math.Sqrt(c.p*(1-c.p)/n)+0.03*c.t.Blur) {
			t.Errorf("%s: changed %.3f of the images, want %.2f", c.name, got, c.p)
		}
	}
}

func TestDrawJitter(t *testing.T) {
	orders := map[[4]uint8]int{}
	lo, hi := [4]float64{9, 9, 9, 9}, [4]float64{-9, -9, -9, -9}
	const n = 4800
	for i := range uint64(n) {
		j := drawJitter(rng.New(3, rng.Augment, i))
		orders[j.order]++
		for k, v := range []float64{j.brightness, j.contrast, j.saturation, j.turns} {
			lo[k], hi[k] = min(lo[k], v), max(hi[k], v)
		}
	}
	if len(orders) != 24 {
		t.Errorf("%d orders, want 24", len(orders))
	}
	for o, k := range orders {
		if k < 120 || k > 280 { // 200 -+ 5.8 deviations
			t.Errorf("order %v was drawn %d times of %d, want about 200", o, k, n)
		}
	}
	want := [][2]float64{{0.6, 1.4}, {0.6, 1.4}, {0.6, 1.4}, {-0.1, 0.1}}
	for k, w := range want {
		if span := w[1] - w[0]; lo[k] < w[0] || hi[k] > w[1] || lo[k] > w[0]+0.01*span || hi[k] < w[1]-0.01*span {
			t.Errorf("factor %d from %g to %g, want %v", k, lo[k], hi[k], w)
		}
	}
}

// Probability 0 must leave every sample as it was before these operations existed,
// and a sample must not depend on what the scratch memory held.
func TestColourOffDrawsNothing(t *testing.T) {
	m := noise(50, 40)
	plain := Train{Size: 24, ScaleMin: 0.3, Flip: true, Ops: 2, Level: 7}
	a, b := make([]float32, 3*24*24), make([]float32, 3*24*24)
	for i := range uint64(20) {
		r, s := rng.New(1, rng.Augment, i), rng.New(1, rng.Augment, i)
		if err := plain.Apply(m, r, a); err != nil {
			t.Fatal(err)
		}
		// The pipeline by hand.
		box := RandomCrop(s, m.W, m.H, 0.3, 1)
		var cropped Image
		new(resizer).resize(&cropped, m, box, square(24), s.Float64() < 0.5)
		Normalize(RandAugment(s, &cropped, 2, 7), b)
		if !slices.Equal(a, b) || r.Uint64() != s.Uint64() {
			t.Fatalf("sample %d differs from crop, flip, RandAugment", i)
		}
	}
	full := plain
	full.Jitter, full.Gray, full.Blur = 0.8, 0.2, 0.5
	var first []float32
	for i := range 6 {
		if err := (Train{Size: 10 + 7*i, Blur: 1, Ops: 2, Level: 7}).Apply(m, rng.New(9, rng.Augment, uint64(i)), make([]float32, 3*(10+7*i)*(10+7*i))); err != nil {
			t.Fatal(err)
		}
		if err := full.Apply(m, rng.New(1, rng.Augment, 3), a); err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = slices.Clone(a)
		} else if !slices.Equal(first, a) {
			t.Fatal("a sample depends on the ones before it")
		}
	}
}

func TestPipelineDoesNotAllocatePixels(t *testing.T) {
	m := noise(128, 128)
	dst := make([]float32, 3*96*96)
	if allocs.Race {
		t.Skip("the race detector allocates")
	}
	full := Train{Size: 96, ScaleMin: 0.2, Flip: true, Jitter: 1, Gray: 0.2, Blur: 1}
	i := uint64(0)
	bytes := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			i++
			if err := full.Apply(m, rng.New(1, rng.Augment, i), dst); err != nil {
				b.Fatal(err)
			}
		}
	}).AllocedBytesPerOp()
	if bytes > 4096 {
		t.Errorf("%d bytes a sample", bytes)
	}
}
