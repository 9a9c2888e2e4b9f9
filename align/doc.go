// Package align fits maps that bring the features of two frozen encoders into one space,
// from pairs of rows and without gradient descent. They are the baselines of GeRA (Procrustes
// and ASIF), what a few hundred pairs call for, and a start for heads that are trained.
//
//	pairs := align.Pairs{Image: images, Text: texts} // *features.Matrix, Table, Select(...)
//	m, err := align.CCA{}.Fit(engine, pairs)
//	x, err := m.Apply(engine, align.Image, rows)     // (n, C), unit rows: compare by cosine
//
// The methods:
//
//	Ridge        regression of one side on the other, or both ways at once
//	Procrustes   the orthogonal map between the sides
//	CCA          canonical correlations, shrunk and weighted by the correlations
//	CSA          CCA with the similarity of canonical similarity analysis
//	ASIF         similarities to the pairs themselves, no parameters
//	Wasserstein  Procrustes without pairs: the matching is found as well
//
// CCA at its defaults is the method to begin with. [Choose] compares methods and settings by
// cross-validation, and [Forecast] says how alike two spaces are before anything is fitted.
//
// Rows are centred and brought to unit length for a fit, see [Prepare]. Rows are read block by
// block, twice, so that files larger than memory can be fitted. Products of blocks are
// float32, their sums and what follows (eigenvalues, singular values) float64: directions
// whose variance is below 1e-6 of the largest are rounding noise and are left out.
//
// The fitted map of a linear method is a [Linear], whose sides are one linear layer each.
// Fitted maps are a state.Part, so that a checkpoint can hold them.
//
// Letters: N pairs, n rows, D and E widths of image and text rows, C width of the shared
// space, R rank, A anchors, K neighbours or kept anchors.
package align
