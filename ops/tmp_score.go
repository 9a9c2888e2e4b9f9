package ops

import "gorgonia.org/gorgonia"

type Distance struct {
	Kind    string
	Spheres int
}

func NegativeDistance(d Distance, f, keys, queue, cols *gorgonia.Node) *gorgonia.Node { panic("tmp") }
func PoolNegativeDistance(d Distance, f *gorgonia.Node, p Pool) *gorgonia.Node         { panic("tmp") }
func MulExp(x, t *gorgonia.Node) *gorgonia.Node                                       { panic("tmp") }
func Combine(w []float32, xs ...*gorgonia.Node) *gorgonia.Node {
	return Blend(w[0], w[1], xs[0], xs[1])
}
func Diagonal(x, w *gorgonia.Node) *gorgonia.Node                       { panic("tmp") }
func BlockDiagonal(x, w *gorgonia.Node, transposed bool) *gorgonia.Node { panic("tmp") }

type NeighbourArgs struct {
	X, Queue, Filled, Noise *gorgonia.Node
	Near, Count             int
	Sampling                string
	Clusters                *NeighbourClusters
}
type NeighbourClusters struct {
	Owner, Own, Paths, Used *gorgonia.Node
	Candidates              int
}
type GeometricArgs struct {
	Anchors, Queue, Neighbours, Weight, Bias *gorgonia.Node
	Tokens, Groups                           int
	Kernel                                   string
	Epsilon                                  float32
	Scale                                    string
}

func Neighbours(a NeighbourArgs) *gorgonia.Node { panic("tmp") }
func Geometric(a GeometricArgs) *gorgonia.Node  { panic("tmp") }
