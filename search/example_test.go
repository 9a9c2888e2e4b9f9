package search_test

import (
	"context"
	"fmt"

	"github.com/geoalign/geoalign/compute"
	"github.com/geoalign/geoalign/search"
)

func Example() {
	engine, err := compute.New(compute.Options{Backend: "plain", Threads: 1})
	if err != nil {
		panic(err)
	}
	defer engine.Close()
	rows := []float32{1, 0, 0, 2, 3, 3, -1, 0}
	pool, err := search.Memory(rows, 2)
	if err != nil {
		panic(err)
	}
	// Each of the first two rows asks for its two nearest others.
	hits, err := search.Exact(context.Background(), engine, pool, rows[:4],
		search.Options{Metric: search.Cosine, K: 2, Skip: []int32{0, 1}})
	if err != nil {
		panic(err)
	}
	for q := range 2 {
		found, scores := hits.Of(q)
		fmt.Printf("%v %.3f\n", found, scores)
	}
	// Output:
	// [2 1] [0.707 0.000]
	// [2 0] [0.707 0.000]
}
