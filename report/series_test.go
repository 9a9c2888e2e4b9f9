package report

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
)

// logOf is a log of rows at steps 10, 20, ...
func logOf(rows int, value func(i int) float64) string {
	var b strings.Builder
	for i := range rows {
		fmt.Fprintf(&b, "{\"step\":%d,\"loss\":%g}\n", 10*(i+1), value(i))
	}
	return b.String()
}

// However long the log, no part of the curve is drawn with fewer points than another one, and every point is a row.
func TestLongLogsKeepTheirBeginning(t *testing.T) {
	value := func(i int) float64 { return 5*math.Exp(-float64(i)/1000) + float64(i*7%11)/100 }
	for _, rows := range []int{999, 1000, 1001, 1999, 2001, 4003, 12000} {
		c := mustRead(t, logOf(rows, value))
		p := c.Values["loss"]
		if len(p) > MaxPoints || p[0].Step != 10 || p[len(p)-1].Step != float64(10*rows) {
			t.Fatalf("%d rows: %d points from %v to %v", rows, len(p), p[0], p[len(p)-1])
		}
		if rows <= MaxPoints && len(p) != rows {
			t.Errorf("%d rows: %d points", rows, len(p))
		}
		var tenths [10]int
		for i, x := range p {
			if x.Value != value(int(x.Step)/10-1) || i > 0 && x.Step <= p[i-1].Step {
				t.Fatalf("%d rows: point %d is %v", rows, i, x)
			}
			tenths[min(9, (int(x.Step)/10-1)*10/rows)]++
		}
		if least, most := slices.Min(tenths[:]), slices.Max(tenths[:]); least < 45 || most > 3*least {
			t.Errorf("%d rows: points by tenths of the run: %v", rows, tenths)
		}
	}
}

// The local mean is that of all rows, also of those that are not drawn: peaks count as often as they are.
func TestLocalMeanOfALongLog(t *testing.T) {
	value := func(i int) float64 {
		if i%40 == 0 {
			return 41
		}
		return 1
	}
	for _, rows := range []int{1500, 5000, 9001} {
		c := mustRead(t, logOf(rows, value))
		for name, p := range map[string][]Point{"run": c.local("loss"), "seeds": (Run{Seeds: []*Curves{c, c}}).over("loss", true).points} {
			if p[0].Step > 0.01*p[len(p)-1].Step || p[len(p)-1].Step < 9.9*float64(rows) {
				t.Errorf("%d rows, %s: from %v to %v", rows, name, p[0], p[len(p)-1])
			}
			for _, x := range p {
				if !(math.Abs(x.Value-2) <= 0.7) {
					t.Fatalf("%d rows, %s: %v, the mean of all rows is 2", rows, name, x)
				}
			}
		}
	}
	// A last share of one row counts as one row.
	const rows = 4001
	end := func(i int) float64 { return map[bool]float64{true: 1001}[i == rows-1] }
	var all []Point
	for i := range rows {
		all = append(all, Point{float64(10 * (i + 1)), end(i)})
	}
	p := mustRead(t, logOf(rows, end)).local("loss")
	if got, want := p[len(p)-1].Value, Smooth(all, smoothing)[rows-1].Value; !(math.Abs(got-want) <= 0.05*want) {
		t.Errorf("the local mean ends with %g, of all rows with %g", got, want)
	}
}

// A long log that goes back, as one of a run that was resumed, has of the rows before what was read, and of those after only
// the new ones.
func TestLongLogThatGoesBack(t *testing.T) {
	for _, at := range []int{1, 2, 3, 777, 2047, 2048, 2049, 4000} { // row that comes again
		first := logOf(4500, func(int) float64 { return 9 })
		again := logOf(6000, func(int) float64 { return 1 })
		lines := strings.SplitAfter(again, "\n")
		c := mustRead(t, first+strings.Join(lines[at-1:], ""))
		p := c.Values["loss"]
		if p[len(p)-1] != (Point{60000, 1}) || len(p) > MaxPoints {
			t.Errorf("row %d: %d points, the last %v", at, len(p), p[len(p)-1])
		}
		for i, x := range p {
			if want := map[bool]float64{true: 9, false: 1}[x.Step < float64(10*at)]; x.Value != want || i > 0 && x.Step <= p[i-1].Step {
				t.Fatalf("row %d: point %d is %v, want the value %g", at, i, x, want)
			}
		}
		last := 0.0
		for _, x := range c.local("loss") {
			if !(x.Step > last && x.Value >= 1-1e-9 && x.Value <= 9+1e-9) {
				t.Fatalf("row %d: local mean %v after step %g", at, x, last)
			}
			last = x.Step
			if far := x.Step - float64(10*at); far < -5000 && x.Value != 9 && !(math.Abs(x.Value-9) <= 1e-9) || far > 5000 && !(math.Abs(x.Value-1) <= 1e-9) {
				t.Fatalf("row %d: local mean %v", at, x)
			}
		}
	}
}
