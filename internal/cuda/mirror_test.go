package cuda_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	must "github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/cuda"
	"github.com/geoalign/geoalign/internal/cuda/cudatest"
	"github.com/geoalign/geoalign/internal/exec"
	"gorgonia.org/tensor"
)

// spansOfTest lie in a slice of 6000 values: a span of a multiple of 64 words, an empty one, one that another follows at once,
// and values of no span before, between and behind.
var spansOfTest = []cuda.Span{{Lo: 3, Hi: 131}, {Lo: 131, Hi: 131}, {Lo: 140, Hi: 4141}, {Lo: 4141, Hi: 4142}, {Lo: 4142, Hi: 5000}}

func newMirror(t *testing.T, d *cuda.Device, shadow bool) ([]float32, *cuda.Mirror) {
	t.Helper()
	host := make([]float32, 6000)
	fill(host, 1)
	m, err := d.Mirror(host, spansOfTest, shadow)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return host, m
}

// fill gives each place a value of its own, which bfloat16 rounds up or down.
func fill(x []float32, scale float32) {
	for i := range x {
		x[i] = scale * (float32(i) + 1.001)
	}
}

var copies = cuda.Source{Name: "copies", Text: `
extern "C" __global__ void floats(float *y, const float *x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i];
}

extern "C" __global__ void halves(float *y, const bf16 *x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = to_float(x[i]);
}`}

// there returns what lies at a place of the device.
func there(t *testing.T, d *cuda.Device, kernel string, at cuda.Pointer, n int) []float32 {
	t.Helper()
	m, err := d.Alloc(n)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Free()
	b := m.Buffer(0, exec.Spec{Shape: tensor.Shape{n}}).(*cuda.Buffer)
	err = d.Kernel(&copies, kernel).Launch(cuda.Grid{X: cuda.Blocks(n, 256), Threads: 256}, b.Pointer(), at, n)
	if err := errors.Join(err, b.Fetch()); err != nil {
		t.Fatal(err)
	}
	return slices.Clone(b.Host().F32)
}

// layout is what the memory of a mirror should hold: each span at a multiple of 64 words, zeros behind it.
func layout(value func(i int) float32) (words []float32) {
	for _, s := range spansOfTest {
		for i := s.Lo; i < s.Hi; i++ {
			words = append(words, value(i))
		}
		for len(words)%64 != 0 {
			words = append(words, 0)
		}
	}
	return words
}

func rounded(x float32) float32 {
	b := math.Float32bits(x)
	return math.Float32frombits((b + 0x7fff + b>>16&1) &^ 0xffff)
}

// check compares the memory of a mirror and its shadow with what they should hold.
func check(t *testing.T, what string, d *cuda.Device, m *cuda.Mirror, value func(i int) float32) {
	t.Helper()
	at, shadow := m.At()
	if want := layout(value); !slices.Equal(there(t, d, "floats", at, m.Words()), want) {
		t.Errorf("%s: other values on the device", what)
	}
	if shadow == 0 {
		return
	}
	if want := layout(func(i int) float32 { return rounded(value(i)) }); !slices.Equal(there(t, d, "halves", shadow, m.Words()), want) {
		t.Errorf("%s: the shadow has other values", what)
	}
}

func TestMirrorStoresAndFetches(t *testing.T) {
	d := cudatest.Open(t)
	for _, shadow := range []bool{false, true} {
		before, _ := d.Allocated()
		host, m := newMirror(t, d, shadow)
		check(t, "before Store", d, m, func(int) float32 { return 0 })
		if err := m.Store(); err != nil {
			t.Fatal(err)
		}
		first := slices.Clone(host)
		check(t, "Store", d, m, func(i int) float32 { return first[i] })

		fill(host, -3)
		if err := m.StoreSpan(100, 200); err != nil { // the end of a span, none, and the begin of another
			t.Fatal(err)
		}
		value := func(i int) float32 {
			if i >= 100 && i < 200 {
				return host[i]
			}
			return first[i]
		}
		check(t, "StoreSpan", d, m, value)

		want := slices.Clone(host)
		for i := range want {
			if _, ok := m.SpanOf(i); ok && i >= 4000 && i < 4142 {
				want[i] = value(i)
			}
		}
		if err := m.FetchSpan(4000, 4142); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(host, want) {
			t.Error("FetchSpan: other values on the host")
		}
		for i := range want {
			if _, ok := m.SpanOf(i); ok {
				want[i] = value(i)
			}
		}
		if err := m.Fetch(); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(host, want) {
			t.Error("Fetch: other values on the host")
		}
		for _, none := range [][2]int{{0, 3}, {131, 140}, {5000, 6000}, {200, 200}} {
			if err := errors.Join(m.StoreSpan(none[0], none[1]), m.FetchSpan(none[0], none[1])); err != nil {
				t.Errorf("from %d to %d, which is in no span: %v", none[0], none[1], err)
			}
		}
		check(t, "Fetch", d, m, value)
		if bytes, _ := d.Allocated(); bytes <= before {
			t.Errorf("%d bytes are taken, %d before", bytes, before)
		}
	}
}

func TestMirrorPlaces(t *testing.T) {
	d := cudatest.Open(t)
	host, m := newMirror(t, d, false)
	for i := range host {
		want := -1
		for k, s := range spansOfTest {
			if s.Lo <= i && i < s.Hi {
				want = k
			}
		}
		switch s, ok := m.SpanOf(i); {
		case ok != (want >= 0) || ok && s != spansOfTest[want]:
			t.Fatalf("value %d: span %v, %t", i, s, ok)
		case ok && (i == s.Lo && m.Place(i)%64 != 0 || m.Place(i)-m.Place(s.Lo) != i-s.Lo):
			t.Fatalf("value %d lies at word %d", i, m.Place(i))
		}
	}
	if i, ok := m.Index(host[7:9]); !ok || i != 7 {
		t.Errorf("a part from 7: %d, %t", i, ok)
	}
	for _, part := range [][]float32{nil, make([]float32, 4), host[6000:]} {
		if _, ok := m.Index(part); ok {
			t.Errorf("a part of %d values is found, which is none", len(part))
		}
	}
	if len(m.Host()) != len(host) || !slices.Equal(m.Spans(), spansOfTest) {
		t.Errorf("host of %d values, spans %v", len(m.Host()), m.Spans())
	}
}

// A slice of one span's values has memory that stands for it, whose buffers are the mirror's own and whose view is the host's.
func TestMirrored(t *testing.T) {
	d := cudatest.Open(t)
	host, m := newMirror(t, d, true)
	at, shadow := m.At()
	for _, s := range []cuda.Span{{Lo: 3, Hi: 131}, {Lo: 5, Hi: 9}, {Lo: 140, Hi: 4141}, {Lo: 4000, Hi: 4141}, {Lo: 4141, Hi: 4142}, {Lo: 4999, Hi: 5000}} {
		part := host[s.Lo:s.Hi]
		memory, ok := d.Mirrored(part)
		if !ok {
			t.Errorf("%v: there is no memory", s)
			continue
		}
		b := memory.Buffer(0, exec.Spec{Shape: tensor.Shape{len(part)}}).(*cuda.Buffer)
		if word := m.Place(s.Lo); b.Pointer() != at+cuda.Pointer(4*word) || b.Shadow() != shadow+cuda.Pointer(2*word) || &b.Host().F32[0] != &part[0] {
			t.Errorf("%v: the buffer lies elsewhere", s)
		}
		if err := memory.Free(); err != nil {
			t.Errorf("%v: %v", s, err)
		}
	}
	for _, s := range []cuda.Span{{Lo: 0, Hi: 3}, {Lo: 0, Hi: 10}, {Lo: 130, Hi: 132}, {Lo: 131, Hi: 135}, {Lo: 4140, Hi: 4142}, {Lo: 4141, Hi: 4143}, {Lo: 4999, Hi: 5001}, {Lo: 20, Hi: 20}} {
		if _, ok := d.Mirrored(host[s.Lo:s.Hi]); ok {
			t.Errorf("%v: there is memory for what is not of one span", s)
		}
	}
	if _, ok := d.Mirrored(make([]float32, 3)); ok {
		t.Error("there is memory for a slice of no mirror")
	}
	other, err := d.Mirror(host, spansOfTest[:1], false)
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Close(); err != nil {
		t.Error(err)
	}
	if _, ok := d.Mirrored(host[3:5]); !ok {
		t.Error("Close of another mirror took this one")
	}
}

func TestMirrorsAddAndCopy(t *testing.T) {
	d := cudatest.Open(t)
	a, x := newMirror(t, d, true)
	b, y := newMirror(t, d, false)
	fill(b, 0.37)
	first, second := slices.Clone(a), slices.Clone(b)
	if err := errors.Join(x.Store(), y.Store(), x.Add(y)); err != nil {
		t.Fatal(err)
	}
	check(t, "sum", d, x, func(i int) float32 { return first[i] + second[i] })
	check(t, "what was added", d, y, func(i int) float32 { return second[i] })
	if err := x.Copy(y); err != nil {
		t.Fatal(err)
	}
	check(t, "copy", d, x, func(i int) float32 { return second[i] })
	if !slices.Equal(a, first) {
		t.Error("the host's values changed")
	}
	z, err := d.Mirror(b, spansOfTest[1:], false)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	for _, err := range []error{x.Add(z), x.Copy(z)} {
		if err == nil || !strings.Contains(err.Error(), "other spans") {
			t.Errorf("mirrors of other spans: got %v", err)
		}
	}
}

// What work on the device writes comes to the host when it is read there, span by span, and what the host writes goes to the device
// with the next work.
func TestMirrorFollowsBothSides(t *testing.T) {
	d := cudatest.Open(t)
	host, m := newMirror(t, d, true)
	first := slices.Clone(host)
	other, source := newMirror(t, d, false)
	fill(other, 7)
	if err := errors.Join(m.Store(), source.Store(), m.Copy(source)); err != nil {
		t.Fatal(err)
	}
	m.Read(4141, 4142)
	if host[4141] != other[4141] || host[4140] != first[4140] || host[4142] != first[4142] {
		t.Errorf("of a read span: %v, %v beside it, %v behind", host[4141], host[4140], host[4142])
	}
	host[4141] = 5 // not told: a second read leaves it
	m.Read(0, 6000)
	if host[4141] != 5 || host[3] != other[3] || host[4999] != other[4999] || host[0] != first[0] {
		t.Errorf("read: %v, %v, %v, %v", host[4141], host[3], host[4999], host[0])
	}
	m.Edit(140, 150)
	host[140], host[150] = -1, -2
	d.Touch(host, 4999, 5000)
	host[4999] = -3
	if err := d.Refresh(); err != nil {
		t.Fatal(err)
	}
	check(t, "after edits", d, m, func(i int) float32 {
		switch i {
		case 140:
			return -1
		case 4999:
			return -3
		}
		return other[i]
	})
	var none *cuda.Device
	none.Touch(host, 0, 1)
}

func TestMirrorErrors(t *testing.T) {
	d := cudatest.Open(t)
	before, _ := d.Allocated()
	for _, spans := range [][]cuda.Span{{{Lo: -1, Hi: 3}}, {{Lo: 0, Hi: 11}}, {{Lo: 4, Hi: 3}}, {{Lo: 0, Hi: 4}, {Lo: 3, Hi: 5}}} {
		if _, err := d.Mirror(make([]float32, 10), spans, true); err == nil || !strings.Contains(err.Error(), "a mirror of 10 values has no span") {
			t.Errorf("%v: got %v", spans, err)
		}
	}
	if after, _ := d.Allocated(); after != before {
		t.Errorf("errors leave %d bytes on the device", after-before)
	}
	m, err := d.Mirror(nil, nil, true)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(m.Store(), m.Fetch(), m.Copy(m), m.Add(m), m.Close()); err != nil {
		t.Errorf("of no values: %v", err)
	}
}

// TestPin: pages are pinned until the mirror is closed, shown by the driver, which pins none twice, and values go both
// ways.
func TestPin(t *testing.T) {
	cudatest.Open(t)
	d := must.Get(cuda.Open(cuda.Options{}))(t)
	defer d.Close()
	const n = 1 << 19
	host := make([]float32, n)
	fill(host, 1)
	want := slices.Clone(host)
	memory := must.Get(d.Alloc(n))(t)
	defer memory.Free()
	free := func(from int) bool { // whether the driver pins a part of the slice, each time another one
		part := host[from : from+n/2]
		b := memory.Buffer(0, exec.Spec{Shape: tensor.Shape{len(part)}})
		return must.Get(d.Borrow(b, exec.Array{Shape: tensor.Shape{len(part)}, F32: part}))(t)
	}
	m := must.Get(d.Mirror(host, []cuda.Span{{Lo: 0, Hi: n}}, false))(t)
	m.Pin()
	m.Pin()
	if free(0) {
		t.Error("nothing is pinned")
	}
	must.OK(t, m.Store())
	must.OK(t, d.Sync())
	clear(host)
	must.OK(t, m.Fetch())
	if !slices.Equal(host, want) {
		t.Error("values are others after they went both ways")
	}
	must.OK(t, m.Close())
	if !free(4096) {
		t.Error("still pinned behind Close")
	}
}
