package eval

import (
	"math"
	"testing"

	"github.com/geoalign/geoalign/data"
)

// TestIoU has boxes by hand: the first is vector 8.14, inclusive pixels.
func TestIoU(t *testing.T) {
	for _, c := range []struct {
		a, b data.Rect
		want float64
	}{
		{data.Rect{X: 10, Y: 10, W: 20, H: 20}, data.Rect{X: 20, Y: 20, W: 20, H: 20}, .142857},
		{data.Rect{X: 10, Y: 10, W: 20, H: 20}, data.Rect{X: 10, Y: 10, W: 20, H: 20}, 1},
		{data.Rect{W: 10, H: 10}, data.Rect{X: 20, W: 10, H: 10}, 0},
		{data.Rect{W: 10, H: 10}, data.Rect{X: 9, W: 10, H: 10}, 0},                        // one pixel is none
		{data.Rect{W: 10, H: 10}, data.Rect{X: 8, W: 10, H: 10}, 20. / 180},                // two are
		{data.Rect{W: 10.5, H: 10}, data.Rect{X: 0.5, W: 10, H: 10}, 10. * 10 / (105)},     // fractions
		{data.Rect{}, data.Rect{}, 0},                                                      // nothing
		{data.Rect{X: -5, Y: -5, W: 10, H: 10}, data.Rect{W: 10, H: 10}, 25. / (200 - 25)}, // outside
	} {
		if got := IoU(c.a, c.b); !(math.Abs(got-c.want) <= 1e-6) {
			t.Errorf("IoU(%v, %v) = %v, want %v", c.a, c.b, got, c.want)
		}
		if a, b := IoU(c.a, c.b), IoU(c.b, c.a); a != b {
			t.Errorf("IoU(%v, %v) = %v, the other way %v", c.a, c.b, a, b)
		}
	}
}

// TestHeatMap compares sums over boxes with loops over pixels, and the choice with scores by hand.
func TestHeatMap(t *testing.T) {
	const w, h = 7, 5
	values := make([]float64, w*h)
	for i := range values {
		values[i] = float64(i*i%11) - 3
	}
	m := NewHeatMap(values, h, w, w, h) // of its own size: as it is
	for _, b := range []data.Rect{{X: 1, Y: 1, W: 3, H: 2}, {X: 1.7, Y: 0.2, W: 2.4, H: 3.9},
		{X: -2, Y: -1, W: 4, H: 3}, {X: 5, Y: 3, W: 20, H: 20}, {X: 8, Y: 1, W: 2, H: 2}, {W: 0.5, H: 5}} {
		want := 0.0
		for y := range h {
			for x := range w {
				if x >= int(b.X) && x < int(b.X+b.W) && y >= int(b.Y) && y < int(b.Y+b.H) {
					want += values[y*w+x]
				}
			}
		}
		if got := m.Sum(b); !(math.Abs(got-want) <= 1e-9) {
			t.Errorf("sum over %v: %v, want %v", b, got, want)
		}
		if got := m.Score(b); !(math.Abs(got-want/math.Sqrt(b.W*b.H)) <= 1e-9) {
			t.Errorf("score of %v: %v", b, got)
		}
	}
	bright := NewHeatMap([]float64{0, 0, 0, 8}, 2, 2, 2, 2)
	if x, y, ok := bright.Peak(); x != 1.5 || y != 1.5 || !ok {
		t.Errorf("peak at %v, %v", x, y)
	}
	small, large, dark := data.Rect{X: 1, Y: 1, W: 1, H: 1}, data.Rect{W: 2, H: 2}, data.Rect{W: 1, H: 1}
	if k := bright.Choose([]data.Rect{dark, large, small, small}); k != 2 { // 0, 8/2, 8/1, and the first of equal ones
		t.Errorf("box %d is chosen", k)
	}
	if k := bright.Choose([]data.Rect{dark, {}}); k != -1 {
		t.Errorf("box %d of dark ones is chosen", k)
	}
	if k := bright.Choose(nil); k != -1 {
		t.Errorf("box %d of none is chosen", k)
	}
}

// TestGrounding counts three expressions by hand.
func TestGrounding(t *testing.T) {
	m := NewHeatMap([]float64{0, 0, 0, 0, 0, 9, 9, 0, 0, 9, 9, 0, 0, 0, 0, 0}, 4, 4, 4, 4)
	var g Grounding
	middle, left, all := data.Rect{X: 1, Y: 1, W: 2, H: 2}, data.Rect{W: 2, H: 4}, data.Rect{W: 4, H: 4}
	if r := g.Add("b", m, middle, []data.Rect{left, middle}); r != (Grounded{Box: 1, IoU: 1, Right: true,
		Points: true}) {
		t.Errorf("%+v", r)
	}
	// all has the IoU .5
	if r := g.Add("a", m, left, []data.Rect{middle, all}); r.Right || r.Box != 0 || r.IoU != 0 || !r.Points {
		t.Errorf("%+v", r)
	}
	if r := g.Add("a", m, data.Rect{W: 1, H: 1}, []data.Rect{{W: 1, H: 1}}); r.Right || r.Box != -1 || r.Points {
		t.Errorf("%+v", r)
	}
	// A box with the IoU .5 is right, and the middle of the pixel with the peak, (1.5, 1.5), lies in a target that
	// begins there and not in one that ends there.
	var edges Grounding
	if r := edges.Add("", m, left, []data.Rect{all}); !r.Right || r.IoU != .5 {
		t.Errorf("%+v", r)
	}
	for target, want := range map[data.Rect]bool{{X: 1.5, Y: 1.5, W: 2, H: 2}: true, {X: 1.6, Y: 1, W: 2, H: 2}: false,
		{Y: 1, W: 1.5, H: 2}: false, {X: 1, W: 2, H: 1.5}: false, {X: 1, Y: 1.6, W: 2, H: 2}: false} {
		if r := edges.Add("", m, target, nil); r.Points != want {
			t.Errorf("%v: %+v", target, r)
		}
	}
	if len(g.Kinds) != 2 || g.Kinds[0].Kind != "a" || g.Kinds[0].N != 2 || g.Kinds[1].N != 1 {
		t.Fatalf("%+v", g.Kinds)
	}
	dark := NewHeatMap(make([]float64, 4), 2, 2, 4, 4)
	var none Grounding
	if r := none.Add("", dark, all, []data.Rect{all}); r != (Grounded{Box: -1}) || none.All.Dark != 1 ||
		none.Kinds != nil {
		t.Errorf("%+v of a dark map", r)
	}
	close := func(name string, got, want float64) {
		if !(math.Abs(got-want) <= 1e-9) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	close("accuracy", g.All.Accuracy(), 100./3)
	close("of kind b", g.Kinds[1].Accuracy(), 100)
	close("pointing", g.All.Pointing(), 200./3)
	close("dark", float64(g.All.Dark), 1)
	close("reach", g.All.Reach(), 200./3) // of a box of one pixel no box is right
	close("chance", g.All.Chance(), 100./3*(.5+.5+0))
	close("chance point", g.All.ChancePoint(), 100./3*(4./16+8./16+1./16))
	close("of nothing", Grounding{}.All.Accuracy(), 0)
}

// TestSlidingBoxes: they lie in the picture, and any square from a sixth to two thirds of it has one that is right.
func TestSlidingBoxes(t *testing.T) {
	for _, size := range [][2]float64{{640, 480}, {64, 64}, {100, 400}} {
		w, h := size[0], size[1]
		list := SlidingBoxes(w, h)
		if len(list) < 500 || len(list) > 6000 {
			t.Errorf("%d boxes", len(list))
		}
		for _, b := range list {
			if b.X < 0 || b.Y < 0 || b.X+b.W > w+1e-6 || b.Y+b.H > h+1e-6 {
				t.Fatalf("%v is not in %v", b, size)
			}
		}
		for i := range 200 {
			side := math.Sqrt(w*h) * (1./6 + float64(i%17)/34)
			if side > min(w, h) {
				continue
			}
			target := data.Rect{X: (w - side) * float64(i%13) / 12, Y: (h - side) * float64(i%7) / 6, W: side, H: side}
			best := 0.0
			for _, b := range list {
				best = max(best, IoU(target, b))
			}
			if best < RightIoU {
				t.Errorf("%v has boxes of at most IoU %.2f", target, best)
			}
		}
	}
}
