package report

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/budget/budgettest"
	"github.com/geoalign/geoalign/internal/check"
)

func mustRead(t *testing.T, text string) *Curves {
	t.Helper()
	return check.Get(ReadCurves(strings.NewReader(text)))(t)
}

func TestReadCurves(t *testing.T) {
	c := mustRead(t, `{"step":1,"loss":5,"x":null}
{"step":2,"loss":4,"name":"text"}
noise
{"step":3,"loss":3,"old":7}
{"step":4,"loss":2}

{"step":2,"loss":40,"eval/a/b":1}
{"step":3,"loss":null,"new":9}
{"step":5,"loss":1`)
	if want := []Point{{1, 5}, {2, 40}}; !slices.Equal(c.Values["loss"], want) {
		t.Errorf("loss: %v, want %v: a resumed run replaces what came after", c.Values["loss"], want)
	}
	if names := c.Names(""); !slices.Equal(names, []string{"eval/a/b", "loss", "new"}) {
		t.Errorf("names: %v", names)
	}
	many := mustRead(t, `{"step":1,"eval/r1":1,"eval/r10":1,"eval/r100":1,"eval/r5":1,"loss":1}`)
	if names := many.Names("eval/"); !slices.Equal(names, []string{"eval/r1", "eval/r5", "eval/r10", "eval/r100"}) {
		t.Errorf("names: %v", names)
	}
	if c.Last != 3 || c.Rows != 6 || c.Bad != 2 {
		t.Errorf("last %d, rows %d, bad %d, want 3, 6, 2", c.Last, c.Rows, c.Bad)
	}
}

// A row whose step is null or no whole number is none: it is not a row of step 0, which would replace all that were before.
func TestRowsOfNoStep(t *testing.T) {
	c := mustRead(t, `{"step":1,"loss":5}
{"step":2,"loss":4}
{"step":null,"loss":9}
{"step":1.5,"loss":9}
{"loss":9}
{"step":3,"loss":3}`)
	if want := []Point{{1, 5}, {2, 4}, {3, 3}}; !slices.Equal(c.Values["loss"], want) || c.Rows != 3 || c.Bad != 3 {
		t.Errorf("%v of %d rows, %d others, want %v of 3 and 3", c.Values["loss"], c.Rows, c.Bad, want)
	}
}

func TestThinKeepsPeaks(t *testing.T) {
	var b strings.Builder
	for s := range 12000 {
		v := 1.0
		switch s {
		case 4321:
			v = 1000
		case 8765:
			v = -1000
		}
		fmt.Fprintf(&b, "{\"step\":%d,\"loss\":%g}\n", s, v)
	}
	p := mustRead(t, b.String()).Values["loss"]
	if len(p) > MaxPoints || p[0].Step != 0 || p[len(p)-1].Step != 11999 {
		t.Fatalf("%d points from %v to %v", len(p), p[0], p[len(p)-1])
	}
	if !slices.Contains(p, Point{4321, 1000}) || !slices.Contains(p, Point{8765, -1000}) {
		t.Error("a peak is lost")
	}
	if !slices.IsSortedFunc(p, func(a, b Point) int { return int(a.Step - b.Step) }) {
		t.Error("not in order")
	}
}

func TestSmooth(t *testing.T) {
	var p []Point
	for i := range 50 {
		p = append(p, Point{float64(i), 3})
	}
	for _, q := range Smooth(p, 0.05) {
		if !(math.Abs(q.Value-3) <= 1e-12) {
			t.Fatalf("a constant became %v", q)
		}
	}
}

func FuzzReadCurves(f *testing.F) {
	f.Add("{\"step\":1,\"loss\":2}\n{\"step\":1")
	f.Add("{\"step\":-1}\n{\"step\":1e300,\"a\":1e999}\n[]\n{\"step\":\"x\"}")
	f.Fuzz(func(t *testing.T, text string) {
		defer budgettest.Within(t, len(text))()
		c := check.Get(ReadCurves(strings.NewReader(text)))(t)
		for k, p := range c.Values {
			for i, x := range p {
				if math.IsNaN(x.Value) || math.IsInf(x.Value, 0) || i > 0 && x.Step <= p[i-1].Step {
					t.Fatalf("%q: %v", k, p)
				}
			}
		}
		var b strings.Builder
		check.OK(t, Write(&b, Data{Title: text, Curves: c, Batch: 2}))
		checkPage(t, pictures.FindString(b.String()))
	})
}
