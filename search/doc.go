// Package search finds the rows of a pool of features that are nearest to queries: exactly, by
// comparing all, or by an index that finds most of them in a small part of the time and says how
// many that are.
//
//	pool, err := features.OpenMatrix("image.npy", "")
//	hits, err := search.Exact(ctx, engine, pool, queries, search.Options{Metric: search.Cosine, K: 10})
//
//	index, err := search.Build(ctx, engine, pool, search.BuildOptions{Metric: search.Cosine, Recall: 0.95})
//	err = index.Save(search.Beside("image.npy"))
//
//	index, err := search.Open(ctx, engine, search.Beside("image.npy"), pool, nil)
//	hits, err = index.Search(ctx, engine, queries, search.Options{K: 10})
//	rows, scores := hits.Of(0)
//
// Shape letters: N rows of the pool, D their width, Q queries, K neighbours of a query, C cells
// of an index, W the codes of a row, D rounded up.
//
// # Which to use
//
// Exact reads the pool once for 512 queries, and its time is that of the matrix product. It
// suits thousands of queries of a pool of a million, and whatever must not miss. An index suits a
// server, which gets one query at a time, and neighbours of all rows of a large pool. A pool
// is memory-mapped files or memory; neither search copies it.
//
// # The index
//
// Rows are divided into cells by k-means. A search looks at the cells whose centres are nearest.
// In a cell it scores rows by codes, one byte a number of the difference from the centre, with
// products in whole numbers, and scores the best anew from the rows themselves. So a score is
// always that of the stored rows, and only the set of rows can fall short.
//
// BuildOptions.Codes = Bits keeps a bit a number instead (RaBitQ, Gao and Long 2024): signs in a random rotation, by
// which products are estimated without bias. More rows are scored anew, as many as the build finds to be needed, so the
// rows of the pool are read all over: it is for pools whose codes do not fit into memory otherwise, and memory-mapped
// rows do not count. A row of D numbers takes D/8 + 8 bytes instead of 4 D.
//
// How many rows are found depends on the data. Build measures it: it searches for a sample
// exactly and by the index, with more and more cells, and notes the curve in the index. The
// target of BuildOptions.Recall chooses the cells that a search looks at, Options.Recall those of
// one search. The sample is rows of the pool unless other queries are given: give captions where
// captions will search images.
//
// A graph of neighbours (HNSW) looks at fewer rows, one at a time all over memory. Cells were
// chosen because they are built in a tenth of the time, are read from end to end, serve batches
// from the cache, and give the same bits on any number of threads.
//
// # What is kept
//
// Results depend on the pool, the queries and the options: not on threads, on goroutines that
// search at the same time, or on what else is in a batch. Of equal scores the lower row comes
// first. The same seed builds the same index on one backend.
package search
