package scenes

import "math"

// Outlines live in a square from -1 to 1, y downwards; an object scales it by
// its radius. A distance function returns the signed distance of (u, v) to the
// outline, negative inside.

type point struct{ x, y float64 }

// edge is one side of a polygon from a, with its direction d divided by the
// squared length for the projection of a point.
type edge struct {
	a, d, scaled point
	endY         float64
}

// The proportions of the shapes, chosen so that they stay apart at a radius of
// five pixels and cover comparable areas.
const (
	squareHalf   = 0.84
	crossHalf    = 0.34 // half the width of an arm
	crossReach   = 0.98
	ringInner    = 0.56
	starInner    = 0.46
	diamondHalf  = 0.78
	heartRadius  = 0.52
	heartX       = 0.46
	heartY       = -0.36
	heartTip     = 0.92
	triangleBase = 0.80
	triangleTop  = -0.95
)

var (
	triangle = polygon([]point{{0, triangleTop}, {0.98, triangleBase}, {-0.98, triangleBase}})
	diamond  = polygon([]point{{0, -1}, {diamondHalf, 0}, {0, 1}, {-diamondHalf, 0}})
	cross    = polygon(crossPoints())
	star     = polygon(starPoints())
	heart    = polygon(heartPoints())
)

var shapeDistance = [numShapes]func(u, v float64) float64{
	Circle: func(u, v float64) float64 { return math.Sqrt(u*u+v*v) - 1 },
	Ring: func(u, v float64) float64 {
		const middle, half = (1 + ringInner) / 2, (1 - ringInner) / 2
		return math.Abs(math.Sqrt(u*u+v*v)-middle) - half
	},
	Square: func(u, v float64) float64 {
		du, dv := math.Abs(u)-squareHalf, math.Abs(v)-squareHalf
		if du <= 0 || dv <= 0 {
			return max(du, dv)
		}
		return math.Sqrt(du*du + dv*dv)
	},
	Triangle: triangle.distance,
	Diamond:  diamond.distance,
	Cross:    cross.distance,
	Star:     star.distance,
	// Two discs and the wedge below them; each piece overlaps the others, so the
	// smallest distance has the outline of the union.
	Heart: func(u, v float64) float64 {
		du, dv := math.Abs(u)-heartX, v-heartY
		disc := math.Sqrt(du*du+dv*dv) - heartRadius
		return min(disc, heart.distance(u, v))
	},
}

var shapeExtent = [numShapes]Box{
	Circle:   {-1, -1, 1, 1},
	Ring:     {-1, -1, 1, 1},
	Square:   {-squareHalf, -squareHalf, squareHalf, squareHalf},
	Triangle: triangle.extent(),
	Diamond:  diamond.extent(),
	Cross:    cross.extent(),
	Star:     star.extent(),
	Heart:    {-heartX - heartRadius, heartY - heartRadius, heartX + heartRadius, heartTip},
}

type outline []edge

// polygon prepares the closed polygon through points.
func polygon(points []point) outline {
	o := make(outline, len(points))
	for i, a := range points {
		b := points[(i+1)%len(points)]
		d := point{b.x - a.x, b.y - a.y}
		n := d.x*d.x + d.y*d.y
		o[i] = edge{a: a, d: d, scaled: point{d.x / n, d.y / n}, endY: b.y}
	}
	return o
}

// distance is the least distance to an edge, negative when a ray to the right
// crosses the outline an odd number of times.
func (o outline) distance(u, v float64) float64 {
	least, inside := math.Inf(1), false
	for i := range o {
		e := &o[i]
		x, y := u-e.a.x, v-e.a.y
		t := min(1, max(0, x*e.scaled.x+y*e.scaled.y))
		dx, dy := x-t*e.d.x, y-t*e.d.y
		least = min(least, dx*dx+dy*dy)
		if (e.a.y > v) != (e.endY > v) && x < y*e.d.x/e.d.y {
			inside = !inside
		}
	}
	if inside {
		return -math.Sqrt(least)
	}
	return math.Sqrt(least)
}

func (o outline) extent() Box {
	b := Box{1, 1, -1, -1}
	for _, e := range o {
		b.X0, b.X1 = min(b.X0, e.a.x), max(b.X1, e.a.x)
		b.Y0, b.Y1 = min(b.Y0, e.a.y), max(b.Y1, e.a.y)
	}
	return b
}

func crossPoints() []point {
	const w, r = crossHalf, crossReach
	return []point{
		{-w, -r}, {w, -r}, {w, -w}, {r, -w}, {r, w}, {w, w},
		{w, r}, {-w, r}, {-w, w}, {-r, w}, {-r, -w}, {-w, -w},
	}
}

// starPoints returns the ten corners of a five-pointed star, the first on top.
// It sits a little low so that top and feet are equally far from the centre.
func starPoints() []point {
	const radius = 1.05
	var p []point
	for i := range 10 {
		r := radius
		if i%2 == 1 {
			r *= starInner
		}
		sin, cos := math.Sincos(float64(i) * math.Pi / 5)
		p = append(p, point{r * sin, 0.08 - r*cos})
	}
	return p
}

// heartPoints returns the wedge between the discs' outer tangents and the tip.
// The tangent from the tip to the right disc touches it where the radius is
// perpendicular to the line: at angle asin(r/distance) from the line of centres.
func heartPoints() []point {
	dx, dy := heartX, heartY-heartTip
	d := math.Hypot(dx, dy)
	length := math.Sqrt(d*d - heartRadius*heartRadius)
	angle := math.Atan2(dy, dx) + math.Asin(heartRadius/d)
	t := point{length * math.Cos(angle), heartTip + length*math.Sin(angle)}
	return []point{{0, heartTip}, {-t.x, t.y}, {-heartX, heartY}, {0, heartY}, {heartX, heartY}, t}
}
