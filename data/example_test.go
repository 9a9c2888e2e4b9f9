package data_test

import (
	"context"
	"fmt"
	"slices"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/data"
	"github.com/geoalign/geoalign/data/tokenizer"
	"github.com/geoalign/geoalign/data/transform"
)

func ExampleLoader() {
	ds := &data.Memory{
		Images: []*transform.Image{transform.NewImage(8, 8), transform.NewImage(8, 8)},
		Texts:  [][]string{{"A brown dog."}, {"Two cats!"}},
	}
	tok, err := tokenizer.Learn(slices.Values([]string{"a brown dog", "two cats"}), 40)
	if err != nil {
		fmt.Println(err)
		return
	}
	stream, err := data.NewTrain(ds, data.TrainConfig{
		Seed: 1, Transform: transform.Train{Size: 4}, Text: &data.Texts{Tokenizer: tok, Tokens: 16},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	ld, err := data.NewLoader(stream, data.LoaderConfig{BatchSize: 2, Columns: stream.Columns()})
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
	for _, c := range b.Columns() {
		fmt.Println(c)
	}
	lengths := b.Ints(batch.Lengths)
	slices.Sort(lengths)
	fmt.Println(len(b.Floats(batch.Images)), lengths, ld.Position())
	ld.Recycle(b)
	// Output:
	// images (3, 4, 4) float32
	// images/2 (3, 4, 4) float32
	// ids () int32
	// labels () int32
	// tokens (16) int32
	// lengths () int32
	// 96 [8 10] 2
}
