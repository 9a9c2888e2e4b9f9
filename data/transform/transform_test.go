package transform

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func random(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }

// noise is an image of random bytes.
func noise(w, h int) *Image {
	r := random(9)
	m := NewImage(w, h)
	for i := range m.Pix {
		m.Pix[i] = uint8(r.Uint32())
	}
	return m
}

func TestRandAugmentStrengths(t *testing.T) {
	// Level 7, that of ALBEF's code.
	for _, c := range []struct {
		name      string
		got, want float64
	}{
		{"enhance", enhanceFactor(0.7), 1.36},
		{"shear", shear(0.7), 0.21},
		{"translate", translate(0.7), 7},
		{"rotate", rotate(0.7), 21},
	} {
		if !(math.Abs(c.got-c.want) <= 1e-12) {
			t.Errorf("%s: %g, want %g", c.name, c.got, c.want)
		}
	}
	var names []string
	for _, o := range operations {
		names = append(names, o.name)
	}
	want := "Identity AutoContrast Equalize Brightness Sharpness ShearX ShearY TranslateX TranslateY Rotate"
	if got := strings.Join(names, " "); got != want {
		t.Errorf("operations %s, want %s", got, want)
	}
}

func TestRandAugmentRate(t *testing.T) {
	// One draw leaves the image alone with probability 1/2 + 1/2 * 1/10. On a
	// full-range noise image AutoContrast does nothing either: 1/2 + 1/10.
	m := noise(24, 24)
	m.Pix[0], m.Pix[1], m.Pix[2], m.Pix[3], m.Pix[4], m.Pix[5] = 0, 0, 0, 255, 255, 255
	before := m.Clone()
	same := 0
	const n = 4000
	r := random(3)
	for range n {
		if slices.Equal(RandAugment(r, m, 1, 7).Pix, m.Pix) {
			same++
		}
	}
	// Five standard deviations of a binomial.
	if p := float64(same) / n; !(math.Abs(p-0.6) <= 5*math.Sqrt(0.6*0.4/n)) {
		t.Errorf("unchanged with probability %.3f, want 0.6", p)
	}
	if !slices.Equal(m.Pix, before.Pix) {
		t.Error("the input was changed")
	}
}

func TestAffineFillAndSigns(t *testing.T) {
	m := NewImage(20, 20)
	set := func(x, y int) { copy(m.Pix[3*(20*y+x):], []uint8{250, 250, 250}) }
	set(10, 10)
	bright := func(m *Image) (x, y int) {
		for i := 0; i < len(m.Pix); i += 3 {
			if m.Pix[i] > 200 {
				return i / 3 % 20, i / 3 / 20
			}
		}
		return -1, -1
	}
	var out Image
	TranslateX(&out, m, 7)
	if x, y := bright(&out); x != 3 || y != 10 {
		t.Errorf("moved left by 7: (%d, %d), want (3, 10)", x, y)
	}
	if out.Pix[3*(5*20+19)] != Fill || out.Pix[3*(5*20+12)] != 0 {
		t.Errorf("fill: %d and %d, want %d and 0", out.Pix[3*(5*20+19)], out.Pix[3*(5*20+12)], Fill)
	}
	TranslateY(&out, m, -7)
	if x, y := bright(&out); x != 10 || y != 17 {
		t.Errorf("moved down by 7: (%d, %d), want (10, 17)", x, y)
	}
	set(15, 10)
	m.Pix[3*(20*10+10)] = 0
	Rotate(&out, m, 90)
	if x, y := bright(&out); x != 10 || y != 5 {
		t.Errorf("turned counter-clockwise: (%d, %d), want (10, 5)", x, y)
	}
}

func TestConstantImagesSurvive(t *testing.T) {
	for _, v := range []uint8{0, 77, 255} {
		m := NewImage(9, 5)
		for i := range m.Pix {
			m.Pix[i] = v
		}
		want := slices.Clone(m.Pix)
		AutoContrast(m)
		Equalize(m)
		var s Image
		Sharpness(&s, m, 1.36)
		z, err := Resize(&s, 7, 13)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(s.Pix, want) || slices.ContainsFunc(z.Pix, func(p uint8) bool { return p != v }) {
			t.Errorf("a constant image of %d changed", v)
		}
	}
}

func TestTinyImages(t *testing.T) {
	r := random(5)
	for _, c := range [][2]int{{1, 1}, {1, 9}, {2, 2}, {300, 1}} {
		m := noise(c[0], c[1])
		dst := make([]float32, 3*8*8)
		for range 50 {
			if err := (Train{Size: 8, ScaleMin: 0.2, Flip: true, Ops: 2, Level: 10}).Apply(m, r, dst); err != nil {
				t.Fatal(err)
			}
			RandAugment(r, m, 3, 7)
		}
	}
}

func TestRandomCrop(t *testing.T) {
	r := random(1)
	const w, h = 500, 375
	var area, x float64
	const n = 5000
	for range n {
		b := RandomCrop(r, w, h, 0.2, 1)
		if b.X < 0 || b.Y < 0 || b.W <= 0 || b.H <= 0 || b.X+b.W > w || b.Y+b.H > h {
			t.Fatalf("%v leaves the image", b)
		}
		share, ratio := float64(b.W*b.H)/(w*h), float64(b.W)/float64(b.H)
		if share < 0.195 || ratio < 0.74 || ratio > 1.35 {
			t.Fatalf("%v: share %.3f, ratio %.3f", b, share, ratio)
		}
		area += share / n
		x += (float64(b.X) + float64(b.W)/2) / w / n
	}
	// The same draws in Python, 100,000 times, keep 0.4951 of the area in the
	// mean (crops that do not fit are drawn again).
	if !(math.Abs(area-0.4951) <= 0.015) || !(math.Abs(x-0.5) <= 0.02) {
		t.Errorf("mean area %.3f, mean centre %.3f", area, x)
	}
	// Nothing fits: the largest centred crop of ratio 3/4 or 4/3.
	if b := RandomCrop(r, 400, 10, 0.9, 1); b != (Rect{193, 0, 13, 10}) {
		t.Errorf("wide: %v, want the middle 13x10", b)
	}
	if b := RandomCrop(r, 12, 400, 0.9, 1); b != (Rect{0, 192, 12, 16}) {
		t.Errorf("tall: %v, want the middle 12x16", b)
	}
}

func TestApply(t *testing.T) {
	m := noise(37, 23)
	train := Train{Size: 16, ScaleMin: 0.3, Flip: true, Ops: 2, Level: 7}
	a, b, c := make([]float32, 768), make([]float32, 768), make([]float32, 768)
	for _, x := range []struct {
		seed uint64
		dst  []float32
	}{{1, a}, {1, b}, {2, c}} {
		if err := train.Apply(m, random(x.seed), x.dst); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(a, b) || slices.Equal(a, c) {
		t.Error("the result must depend on the generator and on it alone")
	}
	// Without any augmentation training equals evaluation.
	if err := (Train{Size: 16, ScaleMin: 1}).Apply(m, random(1), a); err != nil {
		t.Fatal(err)
	}
	if err := (Eval{Size: 16}).Apply(m, nil, b); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(a, b) {
		t.Error("plain training transform differs from evaluation")
	}
	z, err := Resize(m, 16, 16)
	if err != nil {
		t.Fatal(err)
	}
	back, err := Denormalize(b, 16, 16)
	if err != nil || !slices.Equal(back.Pix, z.Pix) {
		t.Errorf("Denormalize does not invert Normalize (%v)", err)
	}
	// (200/255 - mean) / std of each channel in double precision.
	m = &Image{W: 1, H: 1, Pix: []uint8{200, 200, 200}}
	Normalize(m, a[:3])
	for i, want := range []float64{1.127423, 1.249458, 1.363794} {
		if !(math.Abs(float64(a[i])-want) <= 1e-5) {
			t.Errorf("channel %d of 200: %g, want %g", i, a[i], want)
		}
	}
}

func TestFlip(t *testing.T) {
	m := &Image{W: 3, H: 1, Pix: []uint8{1, 2, 3, 4, 5, 6, 7, 8, 9}}
	m.FlipH()
	if want := []uint8{7, 8, 9, 4, 5, 6, 1, 2, 3}; !slices.Equal(m.Pix, want) {
		t.Errorf("%v, want %v", m.Pix, want)
	}
}

func TestErrors(t *testing.T) {
	good := noise(4, 4)
	dst := make([]float32, 12)
	for _, c := range []struct {
		err  error
		want string
	}{
		{Eval{Size: 2}.Apply(nil, nil, dst), "nil"},
		{Eval{Size: 0}.Apply(good, nil, dst), "size must be positive"},
		{Eval{Size: 3}.Apply(good, nil, dst), "27 values (got 12)"},
		{Train{Size: 2}.Apply(&Image{W: 2, H: 2, Pix: make([]uint8, 5)}, random(1), dst), "12 bytes (got 5)"},
		{Train{Size: 2}.Apply(&Image{}, random(1), dst), "0x0"},
	} {
		if c.err == nil || !strings.Contains(c.err.Error(), c.want) {
			t.Errorf("got %v, want an error with %q", c.err, c.want)
		}
	}
	if _, err := Resize(good, 0, 3); err == nil {
		t.Error("resize to nothing must fail")
	}
	if _, err := Denormalize(dst, 3, 3); err == nil {
		t.Error("Denormalize of a wrong length must fail")
	}
}

func BenchmarkTrain128(b *testing.B) {
	m := noise(128, 128)
	dst := make([]float32, 3*128*128)
	r := random(1)
	t := Train{Size: 128, ScaleMin: 0.2, Flip: true, Ops: 2, Level: 7}
	b.ReportAllocs()
	for b.Loop() {
		if err := t.Apply(m, r, dst); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRandAugment128(b *testing.B) {
	m, spare := noise(128, 128), NewImage(128, 128)
	r := random(1)
	b.ReportAllocs()
	for b.Loop() {
		m, spare = randAugment(r, m, spare, 2, 7)
	}
}

func BenchmarkOps128(b *testing.B) {
	for _, o := range operations {
		b.Run(o.name, func(b *testing.B) {
			m, spare := noise(128, 128), NewImage(128, 128)
			for b.Loop() {
				m, spare = o.run(m, spare, 0.7, 1)
			}
		})
	}
}

func BenchmarkShrink(b *testing.B) {
	m := noise(500, 375)
	dst := make([]float32, 3*128*128)
	for b.Loop() {
		if err := (Eval{Size: 128}).Apply(m, nil, dst); err != nil {
			b.Fatal(err)
		}
	}
}

// TestErase: one rectangle of all channels is filled with noise of mean 0 and deviation 1, with the probability and the
// area that there should be.
func TestErase(t *testing.T) {
	const size, runs = 32, 400
	r := rand.New(rand.NewPCG(5, 5))
	var erased, area int
	var sum, squares, values float64
	for range runs {
		x := make([]float32, 3*size*size)
		for i := range x {
			x[i] = 9
		}
		erase(r, 0.5, size, x)
		top, left, bottom, right, n := size, size, -1, -1, 0
		for y := range size {
			for k := range size {
				in := x[y*size+k] != 9
				for c := range 3 {
					if v := x[(c*size+y)*size+k]; (v != 9) != in {
						t.Fatalf("channel %d is erased elsewhere", c)
					} else if in {
						sum, squares, values = sum+float64(v), squares+float64(v)*float64(v), values+1
					}
				}
				if in {
					n, top, left, bottom, right = n+1, min(top, y), min(left, k), max(bottom, y), max(right, k)
				}
			}
		}
		if n == 0 {
			continue
		}
		erased, area = erased+1, area+n
		if n != (bottom-top+1)*(right-left+1) || n < size*size/100 || n > size*size*2/5 {
			t.Errorf("%d of %d places in [%d, %d] x [%d, %d]", n, size*size, top, bottom, left, right)
		}
	}
	if erased < runs*4/10 || erased > runs*6/10 {
		t.Errorf("%d of %d images are erased", erased, runs)
	}
	share := float64(area) / float64(erased*size*size)
	mean, deviation := sum/values, math.Sqrt(squares/values)
	if share < 0.12 || share > 0.2 || math.Abs(mean) > 0.02 || math.Abs(deviation-1) > 0.02 {
		t.Errorf("a share of %v, mean %v, deviation %v", share, mean, deviation)
	}
}
