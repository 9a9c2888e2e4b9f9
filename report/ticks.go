package report

import (
	"math"
	"strconv"
	"strings"
)

// axis maps values to a length in pixels.
type axis struct {
	lo, hi float64
	log    bool
	pixels float64
}

// at returns the place of v, 0 at the low end.
func (a axis) at(v float64) float64 {
	lo, hi := a.lo, a.hi
	if a.log {
		lo, hi, v = math.Log(lo), math.Log(hi), math.Log(v)
	}
	return (v - lo) / (hi - lo) * a.pixels
}

// ticks returns round values within the axis, about n of them and two at least.
func (a axis) ticks(n int) []float64 {
	if a.log {
		if t := logTicks(a.lo, a.hi); len(t) >= 2 {
			return everyNth(t, (len(t)+mostLogTicks-1)/mostLogTicks)
		}
	}
	t := a.every(roundStep((a.hi - a.lo) / float64(n)))
	if len(t) < 2 { // one says nothing of the scale; steps of at most 5/12 of it have two within
		t = a.every(roundStep((a.hi - a.lo) / 6))
	}
	return t
}

// every returns the multiples of step within the axis.
func (a axis) every(step float64) (t []float64) {
	for i := math.Ceil(a.lo/step - 1e-9); i*step <= a.hi+1e-9*step && len(t) < 50; i++ {
		v := i * step
		if v == 0 {
			v = 0 // no minus
		}
		t = append(t, v)
	}
	return t
}

// mostLogTicks is how many labels have room beside a logarithmic axis.
const mostLogTicks = 12

// everyNth returns each n-th of a list, from its first on.
func everyNth(list []float64, n int) (some []float64) {
	for i := 0; i < len(list); i += n {
		some = append(some, list[i])
	}
	return some
}

// logTicks are powers of ten, and with few of them also their doubles and fives.
func logTicks(lo, hi float64) (t []float64) {
	parts := []float64{1}
	if hi/lo < 1e3 {
		parts = []float64{1, 2, 5}
	}
	for e := math.Floor(math.Log10(lo)); e <= math.Log10(hi); e++ {
		for _, p := range parts {
			if v := p * math.Pow(10, e); v >= lo*(1-1e-9) && v <= hi*(1+1e-9) {
				t = append(t, v)
			}
		}
	}
	return t
}

// roundStep returns the smallest of 1, 2 and 5 times a power of ten that is not below x.
func roundStep(x float64) float64 {
	if !(x > 0) || math.IsInf(x, 0) {
		return 1
	}
	p := math.Pow(10, math.Floor(math.Log10(x)))
	for _, m := range []float64{1, 2, 5} {
		if m*p >= x*(1-1e-9) {
			return m * p
		}
	}
	return 10 * p
}

// alike says whether lo and hi differ by nothing but rounding, as the local means of a constant do.
func alike(lo, hi float64) bool {
	return !(hi-lo > 1e-12*max(math.Abs(lo), math.Abs(hi)))
}

// linear returns an axis for values from lo to hi with some room at both ends. Where all
// values are above 0 and small beside their spread, it begins at 0.
func linear(lo, hi, pixels float64) axis {
	if alike(lo, hi) {
		d := math.Abs(lo) * 0.1
		lo, hi = lo-d, hi+d
		if d == 0 {
			lo, hi = 0, 1
		}
	}
	room := 0.05 * (hi - lo)
	low := lo - room
	if lo >= 0 && lo < 0.35*hi {
		low = 0
	}
	return axis{lo: low, hi: hi + room, pixels: pixels}
}

// tickTexts writes the values of two or more ticks, all in one way. Those of a logarithmic axis need
// digits of their own.
func tickTexts(ticks []float64, log bool) []string {
	out := make([]string, len(ticks))
	largest, step := 0.0, 1.0
	for _, v := range ticks {
		largest = max(largest, math.Abs(v))
	}
	if len(ticks) > 1 {
		step = ticks[1] - ticks[0]
	}
	for i, v := range ticks {
		switch {
		case v == 0:
			out[i] = "0"
		case log:
			out[i] = trimZeros(short(roundTo(v, 3)))
		case largest >= 1e6 || largest < 1e-3:
			out[i] = exponent(roundTo(v, digitsTo(v, step)))
		case largest >= 1e4 && step >= 500:
			out[i] = strconv.FormatFloat(roundTo(v/1000, 6), 'f', -1, 64) + "k"
		default:
			digits := 0
			if step < 1 {
				digits = int(math.Ceil(-math.Log10(step) - 1e-9))
			}
			out[i] = strconv.FormatFloat(v, 'f', digits, 64)
		}
	}
	return out
}

// digitsTo is the number of digits of v down to that of step, a round one: 3 of 1.05 with 0.05.
func digitsTo(v, step float64) int {
	const above = 1e-9 // 1000 has a logarithm of 2.9999999999999996
	return max(1, 1+int(math.Floor(math.Log10(math.Abs(v))+above)-math.Floor(math.Log10(math.Abs(step))+above)))
}

// exponent writes 2e-05 as 2e-5.
func exponent(v float64) string {
	return strings.NewReplacer("e-0", "e-", "e+0", "e", "e+", "e").Replace(strconv.FormatFloat(v, 'e', -1, 64))
}

// short writes a number for people with about four digits.
func short(v float64) string {
	a := math.Abs(v)
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return "-"
	case v == 0:
		return "0"
	case a >= 1e6 || a < 1e-3:
		return exponent(roundTo(v, 3))
	case a >= 1000:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case a >= 100:
		return strconv.FormatFloat(v, 'f', 1, 64)
	case a >= 1:
		return trimZeros(strconv.FormatFloat(v, 'f', 3, 64))
	}
	return strconv.FormatFloat(roundTo(v, 3), 'g', -1, 64)
}

// trimZeros drops trailing zeros behind the point.
func trimZeros(s string) string {
	if !strings.Contains(s, ".") {
		return s
	}
	return strings.TrimRight(strings.TrimRight(s, "0"), ".")
}

// roundTo keeps n digits.
func roundTo(v float64, n int) float64 {
	r, err := strconv.ParseFloat(strconv.FormatFloat(v, 'e', n-1, 64), 64)
	if err != nil {
		return v
	}
	return r
}
