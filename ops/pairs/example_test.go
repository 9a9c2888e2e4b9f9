package pairs_test

import (
	"fmt"

	"github.com/geoalign/geoalign/internal/exec"
	"github.com/geoalign/geoalign/ops/internal/optest"
	"github.com/geoalign/geoalign/ops/pairs"
	"gorgonia.org/gorgonia"
)

// ExamplePairs_Scores is an interaction of one's own: each word has the softmax of its products with the regions as
// weights, and a pair the mean over the words of the products under these weights. Gradients, blocks and steps for a
// GPU follow from the primitives.
func ExamplePairs_Scores() {
	score := func(images, texts pairs.Side) *gorgonia.Node {
		p := pairs.Pairs{Kind: "soft alignment", Queries: texts, Contexts: images, Transposed: true}
		return p.Scores(func(b *pairs.Block) pairs.Matrix {
			s := b.Products(b.Rows(pairs.Queries, 0), b.Rows(pairs.Contexts, 0)) // (words, regions)
			weights := s.Softmax(pairs.Contexts, 10)
			return s.Dot(weights, pairs.Contexts).Mean(pairs.Queries) // (words, images), then (texts, images)
		})
	}
	inputs := []optest.Input{
		optest.In("images", []int{4, 2}, []float32{1, 0, 0, 1, 1, 0, 1, 0}),            // 2 of 2 regions
		optest.In("texts", []int{6, 2}, []float32{1, 0, 0, 1, 9, 9, 0, 1, 9, 9, 9, 9}), // 2 of 3 words, of which
		optest.I32s("lengths", []int32{2, 1}, 2),                                       // these take part
	}
	_, ns := optest.Nodes(inputs)
	s := score(pairs.Side{Rows: ns[:1], Len: 2}, pairs.Side{Rows: ns[1:2], Lengths: ns[2], Len: 3}) // (images, texts)
	grads, err := gorgonia.Grad(optest.Dot(s, s), ns[0])
	if err != nil {
		panic(err)
	}
	m, err := exec.Compile(s.Graph(), exec.Config{Engine: optest.Engine, Outputs: gorgonia.Nodes{s, grads[0]}})
	if err != nil {
		panic(err)
	}
	for i, x := range inputs {
		if err := m.SetInput(ns[i], x.Data); err != nil {
			panic(err)
		}
	}
	if err := m.RunAll(); err != nil {
		panic(err)
	}
	v, err := m.Value(s)
	fmt.Printf("%.3f %v\n", v.F32, err)
	// Output: [1.000 1.000 0.500 0.000] <nil>
}
