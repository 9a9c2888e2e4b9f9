package oncuda

// Side is one side of pairs: operands, -1 for those that there are not, and where the places of its tokens' maxima are
// among the auxiliary results.
type Side struct {
	Lengths, Weights int
	First, Len       int
	Places           int
}

// MaxSim are scores by the maxima of products of tokens.
type MaxSim struct {
	Sides    [2]Side
	Operands int
}
