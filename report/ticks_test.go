package report

import (
	"html"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
)

// tickLabels are the labels at the left of a chart with their ends.
var tickLabels = regexp.MustCompile(`<text class="tick" text-anchor="end" x="([^"]*)" y="[^"]*">([^<]*)</text>`)

// labelled returns the labels of the vertical axis of a chart, which have room beside it.
func labelled(t *testing.T, svg string) (labels []string) {
	t.Helper()
	for _, m := range tickLabels.FindAllStringSubmatch(svg, -1) {
		labels = append(labels, html.UnescapeString(m[2]))
		if end, err := strconv.ParseFloat(m[1], 64); err != nil || end < textWidth(m[2], letter) {
			t.Errorf("%q ends at %s and begins left of the picture", m[2], m[1])
		}
	}
	return labels
}

// valueOf reads a label.
func valueOf(t *testing.T, label string) float64 {
	t.Helper()
	scale := 1.0
	if s, ok := strings.CutSuffix(label, "k"); ok {
		label, scale = s, 1000
	}
	v := check.Get(strconv.ParseFloat(label, 64))(t)
	return scale * v
}

// Labels say the values of their ticks, whatever the axis: values that are near each other and far from 0 need many digits.
func TestLabelsSayTheirValues(t *testing.T) {
	for _, x := range [][2]float64{
		{0, 1}, {0.5, 0.500003}, {0.07, 0.0700005}, {1e7, 1e7 + 30}, {1e-4, 1e-4 + 3e-10}, {-1.25e-15, -1.05e-15}, {-1e30, -0.9e30}, {1e30, 1e30 + 1e24},
		{1e-30, 3e-30}, {0.99999, 1}, {123456.7, 123456.9}, {12345, 99999}, {-3e-7, 2e-6}, {999.9, 1000.1}, {1e5, 1e5 + 1e-6},
		{4.1, 4.9}, {-4.9, -4.1}, {41, 49}, {4100, 4900}, {0.0041, 0.0049},
	} {
		a := linear(x[0], x[1], 100)
		ticks := a.ticks(4)
		if len(ticks) < 2 {
			t.Fatalf("%g to %g: ticks %v", x[0], x[1], ticks)
		}
		for i, text := range tickTexts(ticks, false) {
			step := ticks[1] - ticks[0]
			if got := valueOf(t, text); !(math.Abs(got-ticks[i]) <= 1e-3*step) {
				t.Errorf("%g to %g: the tick at %v is called %s", x[0], x[1], ticks[i], text)
			}
		}
	}
}

// A constant has an axis around it: its local means differ from it by rounding, which is not a range to be drawn.
func TestConstantCurves(t *testing.T) {
	for _, v := range []float64{0.1, 0.3, 1.1, 2.3, 693.147, 1e-5, 3e-7, -0.7, 0, 1e30} {
		c := mustRead(t, logOf(59, func(int) float64 { return v }))
		svg := string(Data{Curves: c}.smoothed("total", "", "loss", 0).draw())
		labels := labelled(t, svg)
		if len(labels) < 2 || len(labels) > 7 || !slices.Equal(labels, slices.Compact(slices.Clone(labels))) {
			t.Fatalf("%v: labels %q", v, labels)
		}
		if low, high := valueOf(t, labels[0]), valueOf(t, labels[len(labels)-1]); !(low <= v && v <= high && high-low > 0.01*math.Abs(v)) {
			t.Errorf("%v: labels %q", v, labels)
		}
	}
}

// However wide the range, labels do not lie on each other and have room beside the axis.
func TestRoomOfLabels(t *testing.T) {
	for _, x := range []struct{ low, high float64 }{{1e-30, 1e30}, {1e-12, 1e9}, {1e-3, 1e3}, {0.5000001, 0.5000009}, {1e7, 1e7 + 30}} {
		c := mustRead(t, logOf(40, func(i int) float64 { return []float64{x.low, x.high}[i%2] }))
		ch := Data{Curves: c}.smoothed("gradient norm", "", "loss", 0)
		ch.log = spreads(c.get("loss"))
		labels := labelled(t, string(ch.draw()))
		if n := len(labels); n < 2 || float64(n)*letter > chartHeight {
			t.Errorf("%g to %g: %d labels %q", x.low, x.high, n, labels)
		}
	}
}

// Labels of a logarithmic axis have digits of their own, at the bottom too: learning rates need no more than 1e-6.
func TestLogarithmicLabels(t *testing.T) {
	for _, x := range []struct {
		lo, hi float64
		want   string
	}{{1e-6, 1e-2, "1e-6 1e-5 1e-4 0.001 0.01"}, {50, 800, "50 100 200 500"}, {1, 1e6, "1 10 100 1000 10000 100000 1e6"}} {
		c := newCanvas(wideWidth, chartHeight, "")
		f := frame{c: c, left: marginLeft, width: 500, x: axis{lo: x.lo, hi: x.hi, log: true, pixels: 500}}
		f.bottom("lr")
		var got []string
		for _, m := range regexp.MustCompile(`<text class="tick"[^>]*>([^<]*)<`).FindAllStringSubmatch(string(c.done()), -1) {
			got = append(got, m[1])
		}
		if strings.Join(got, " ") != x.want {
			t.Errorf("%g to %g: %q, want %s", x.lo, x.hi, got, x.want)
		}
	}
}
