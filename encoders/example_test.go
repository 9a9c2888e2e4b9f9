package encoders_test

import (
	"fmt"

	"github.com/geoalign/geoalign/encoders"
	"github.com/geoalign/geoalign/space"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// weights makes every parameter a node of one graph.
type weights struct {
	graph *gorgonia.ExprGraph
	names map[string]*gorgonia.Node
}

func (w weights) Param(name string, _ encoders.Traits, _ encoders.Init, shape ...int) *gorgonia.Node {
	if w.names[name] == nil {
		w.names[name] = gorgonia.NewTensor(w.graph, tensor.Float32, len(shape), gorgonia.WithShape(shape...), gorgonia.WithName(name))
	}
	return w.names[name]
}

// A ViT-Ti/16 on two images, with a projection into a space of 64 channels.
func ExampleViT() {
	w := weights{gorgonia.NewGraph(), map[string]*gorgonia.Node{}}
	images := gorgonia.NewTensor(w.graph, tensor.Float32, 4, gorgonia.WithShape(2, 3, 224, 224), gorgonia.WithName("images"))

	vit := encoders.ViT{ImageOptions: encoders.ImageOptions{Size: 224, Patch: 16, Depth: 12, Width: 192, Heads: 3}}
	scope := encoders.NewScope(w)
	tokens := vit.Forward(scope.In("image"), images)
	features := encoders.Projection{Space: space.Space{Dim: 64}}.Forward(scope.In("image_proj"), tokens, vit.Tokens())

	fmt.Println(vit.Tokens(), "tokens an image,", tokens.Shape(), "in all")
	fmt.Println("features", features.Shape())
	fmt.Println(len(w.names), "parameters, such as image/blocks/11/attn/qkv/weight", w.names["image/blocks/11/attn/qkv/weight"].Shape())
	// Output:
	// 197 tokens an image, (394, 192) in all
	// features (2, 64)
	// 152 parameters, such as image/blocks/11/attn/qkv/weight (576, 192)
}
