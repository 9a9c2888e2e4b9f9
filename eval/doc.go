// Package eval computes retrieval metrics from scores. It knows nothing of
// models: scores come as numbers, row by row, and everything is a pure function
// of them.
//
// Letters: N images, T texts, k candidates.
//
//	corr, err := eval.NewCorrespondence(imageIDs, textImage)
//	ranks, err := eval.Rank(corr, 256, func(row, n int, dst []float32) error {
//		// dst is n x T: scores of images row..row+n-1 against all texts
//	})
//	m := ranks.Metrics()
//	fmt.Print(eval.Table([]eval.Result{{Name: "cosine", Metrics: m}}, corr.Chance()))
//
// # Right answers
//
// Images of one id are right answers for each other's texts: the positives of a
// query are all candidates whose image has its id. With an id for every image
// they are an image's own texts and a text's own image.
//
// # Ranks and ties
//
// Ranks inside the package count from 0. The rank of a query is the number of wrong
// candidates before the best of its positives (as ALBEF and VSE++ count the
// captions of an image: the best rank over them).
//
// A candidate whose score equals that of the positive counts as before it. A
// model that gives every pair the same score therefore has R@1 = 0 wherever
// there is a wrong candidate at all; sorting and searching for the positive
// would report whatever the sort does with ties. Positives never
// stand before each other. NaN is an error that names the cell; infinities are
// ordinary scores.
//
// # Metrics
//
// R@k is the percentage of queries with rank < k. Mean and median rank count
// from 1; the median is floor(median of the 0-based ranks) + 1 as in VSE++.
// rsum is the sum of the six recalls, txt_r_mean the mean of the three image to
// text recalls, img_r_mean that of text to image, r_mean the mean of both.
//
// # Questions and captions
//
// [VQAAccuracy], [Bleu] and [Cider] are the official evaluations of VQA and of COCO's captions, with their oddities:
// the tests compare with the scripts, or with the published rules in another language.
//
// # Chunks
//
// The N x T matrix is never held: [Ranker] reads it in two passes of row
// blocks, in any order and of any height. The first pass remembers the score of
// each text with its best right image, the second counts. Both passes must deliver
// the same bits, which is checked at the positives.
package eval
