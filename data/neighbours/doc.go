// Package neighbours gives training samples of stored features rows that lie near them: for each row
// of a side that is in a pair of training the M nearest rows of the side's pool, paired or not, of
// which K are drawn for a sample.
//
//	lists, err := neighbours.Images(ctx, pairs, neighbours.Config{
//		K: 16, Near: 80, Sampling: geometric.Biased, Anchor: true,
//	}, neighbours.Options{Engine: engine, Cache: dir})
//	stream := pairs.Stream(features.StreamConfig{ImageNeighbours: lists})
//	// batch.ImageNeighbours (K) int32, rows of lists.Pool()
//
// Near is by the cosine of the features as they are stored (GeRA leaves the number M and
// the law of the biased draw open: here M is given, and
// the weights are 1/(1+rank)). The lists are found once, by comparing all rows or, of large pools, by
// an index whose recall is measured, and kept in a file. A draw depends on the seed and the number of
// the sample alone.
//
// Shape letters: A anchors, M rows of a list, K of a sample.
package neighbours
