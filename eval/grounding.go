package eval

import (
	"cmp"
	"slices"

	"github.com/geoalign/geoalign/data"
)

// RightIoU is the overlap with the target from which a box is right.
const RightIoU = 0.5

// IoU returns the overlap of two boxes of pixels over their union, as the tools of RefCOCO count it: a box of width w
// ends at pixel x+w-1, which is part of it, and an overlap of one pixel in width or height is none.
func IoU(a, b data.Rect) float64 {
	w, h := overlap(a.X, a.W, b.X, b.W), overlap(a.Y, a.H, b.Y, b.H)
	if w <= 1 || h <= 1 {
		return 0
	}
	return w * h / (a.W*a.H + b.W*b.H - w*h)
}

// overlap is the number of pixels from a and b on that two lengths share.
func overlap(a, la, b, lb float64) float64 { return min(a+la-1, b+lb-1) - max(a, b) + 1 }

// Grounded is what a heat map says of one expression.
type Grounded struct {
	Box    int     // of the proposals, the chosen one; -1: the map is dark, see HeatMap.Choose
	IoU    float64 // of that box with the target
	Right  bool    // IoU >= 0.5
	Points bool    // the peak of the map lies in the target
}

// GroundedGroup counts expressions of a kind.
type GroundedGroup struct {
	Kind   string
	N      int // expressions
	Right  int // whose box is right
	Dark   int // without a box
	Points int // whose peak lies in the target (the pointing game, Zhang et al. 2016, without a margin)
	Found  int // with a right box among the proposals: no choice is right more often

	boxes, points float64 // sums of what chance gets right
}

// Accuracy is the share of right boxes in percent.
func (g GroundedGroup) Accuracy() float64 { return share(float64(g.Right), g.N) }

// Pointing is the share of peaks in the target in percent.
func (g GroundedGroup) Pointing() float64 { return share(float64(g.Points), g.N) }

// Reach is the share of expressions with a right box among the proposals in percent.
func (g GroundedGroup) Reach() float64 { return share(float64(g.Found), g.N) }

// Chance is Accuracy of a proposal drawn at random, ChancePoint Pointing of a pixel drawn at random: their expected
// values.
func (g GroundedGroup) Chance() float64 { return share(g.boxes, g.N) }

// ChancePoint is described with Chance.
func (g GroundedGroup) ChancePoint() float64 { return share(g.points, g.N) }

func share(sum float64, n int) float64 {
	if n == 0 {
		return 0
	}
	return 100 * sum / float64(n)
}

// Grounding is how well expressions find what they name.
type Grounding struct {
	All   GroundedGroup
	Kinds []GroundedGroup // by name; of none where no expression has a kind
}

// Add counts an expression of a kind, empty for none, whose target and proposals lie in the picture of m.
func (g *Grounding) Add(kind string, m HeatMap, target data.Rect, proposals []data.Rect) Grounded {
	r := Grounded{Box: m.Choose(proposals)}
	if r.Box >= 0 {
		r.IoU = IoU(target, proposals[r.Box])
		r.Right = r.IoU >= RightIoU
	}
	x, y, ok := m.Peak()
	r.Points = ok && x >= target.X && x < target.X+target.W && y >= target.Y && y < target.Y+target.H
	right := 0
	for _, p := range proposals {
		if IoU(target, p) >= RightIoU {
			right++
		}
	}
	count := func(c *GroundedGroup) {
		c.N++
		c.Right += one(r.Right)
		c.Dark += one(r.Box < 0)
		c.Points += one(r.Points)
		c.Found += one(right > 0)
		if len(proposals) > 0 {
			c.boxes += float64(right) / float64(len(proposals))
		}
		c.points += target.W * target.H / float64(m.w*m.h)
	}
	count(&g.All)
	if kind != "" {
		count(g.kind(kind))
	}
	return r
}

// kind returns the counts of a kind.
func (g *Grounding) kind(name string) *GroundedGroup {
	at, ok := slices.BinarySearchFunc(g.Kinds, name,
		func(c GroundedGroup, name string) int { return cmp.Compare(c.Kind, name) })
	if !ok {
		g.Kinds = slices.Insert(g.Kinds, at, GroundedGroup{Kind: name})
	}
	return &g.Kinds[at]
}

func one(b bool) int {
	if b {
		return 1
	}
	return 0
}
