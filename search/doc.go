// Package search finds the rows of a pool of features that are nearest to queries.
//
//	hits, err := search.Exact(ctx, engine, pool, queries, search.Options{Metric: search.Cosine, K: 10})
package search
