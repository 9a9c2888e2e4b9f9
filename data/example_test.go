package data_test

import (
	"context"
	"fmt"
	"slices"

	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/tokenizer"
	"github.com/geoalign/geoalign/data/transform"
)

func ExampleLoader() {
	ds := &data.Memory{
		Images: []*transform.Image{transform.NewImage(8, 8), transform.NewImage(8, 8)},
		Texts:  [][]string{{"A brown dog."}, {"Two cats!"}},
	}
	stream, err := data.NewTrain(ds, data.TrainConfig{Seed: 1, Transform: transform.Train{Size: 4}})
	if err != nil {
		fmt.Println(err)
		return
	}
	tok, err := tokenizer.Learn(slices.Values([]string{"a brown dog", "two cats"}), 40)
	if err != nil {
		fmt.Println(err)
		return
	}
	ld, err := data.NewLoader(stream, tok, data.LoaderConfig{BatchSize: 2, Tokens: 16, ImageSize: 4})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer ld.Close()
	ld.Start(0)
	b, err := ld.Next(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	slices.Sort(b.Captions)
	fmt.Println(b.Size, len(b.Images), b.Captions, ld.Position())
	ld.Recycle(b)
	// Output: 2 96 [a brown dog two cats] 2
}
