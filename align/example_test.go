package align_test

import (
	"fmt"
	"math/rand/v2"

	"github.com/geoalign/geoalign/align"
	"github.com/geoalign/geoalign/compute"
)

// Texts are images with the columns in another order: 20 pairs are enough to find that out.
func ExampleCCA() {
	engine, err := compute.New(compute.Options{Threads: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer engine.Close()
	random := rand.New(rand.NewPCG(1, 2))
	images, texts := align.Table{D: 3}, align.Table{D: 3}
	for range 20 {
		a, b, c := float32(random.NormFloat64()), float32(random.NormFloat64()), float32(random.NormFloat64())
		images.Data = append(images.Data, a, b, c)
		texts.Data = append(texts.Data, c, a, b)
	}
	pairs := align.Pairs{Image: images, Text: texts}
	m, err := align.CCA{}.Fit(engine, pairs)
	if err != nil {
		fmt.Println(err)
		return
	}
	ranks, err := align.Rank(engine, m, pairs)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("image to text @1:", ranks.Metrics().I2T.R1)
	// Output: image to text @1: 100
}
