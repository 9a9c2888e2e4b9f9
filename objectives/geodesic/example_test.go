package geodesic_test

import (
	"fmt"
	"log"
	"math"
	"math/rand/v2"

	"github.com/geoalign/geoalign/compute"
	"github.com/geoalign/geoalign/objectives/geodesic"
)

// A ring of points on three quarters of a circle: the way between its ends goes round the
// circle, though they are only 90 degrees apart.
func Example() {
	const n, c = 270, 2
	x := make([]float32, n*c)
	for j := range n {
		at := float64(j) * math.Pi / 180
		x[2*j], x[2*j+1] = float32(math.Cos(at)), float32(math.Sin(at))
	}
	e, err := compute.New(compute.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer e.Close()
	g, err := geodesic.New(n, c, geodesic.Options{Layers: []int{27}, Neighbours: 2})
	if err != nil {
		log.Fatal(err)
	}
	stats, err := g.Build(e, x, rand.New(rand.NewPCG(1, 1)))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%d centres, %d component\n", g.Used, stats.Layers[0].Components)
	degrees := func(radians float32) string { return fmt.Sprintf("%.0f degrees", radians*180/math.Pi) }
	direct := math.Acos(float64(x[0]*x[2*269] + x[1]*x[2*269+1]))
	fmt.Println("direct:", degrees(float32(direct)))
	fmt.Println("along the points: more than 250 degrees:", g.Between(0, 269) > 250*math.Pi/180)

	// A new point replaces the oldest one.
	owner, reach := make([]int32, 1), make([]float32, 1)
	g.Attach(e, []float32{0, -1}, owner, reach)
	g.Insert(0, owner, reach)
	fmt.Println("the new point beside the last one:", degrees(g.BetweenDirect(x, 268, 269)))

	// Distances from a point outside to all points of the pool, and the score of one.
	theta := make([]float32, n)
	g.From(e, []float32{1, 0}, theta)
	fmt.Printf("score of the farthest point: %.1f\n", geodesic.Score(theta[269], geodesic.DefaultLimit))
	// Output:
	// 27 centres, 1 component
	// direct: 91 degrees
	// along the points: more than 250 degrees: true
	// the new point beside the last one: 1 degrees
	// score of the farthest point: 0.4
}
