// Package gallery reads and searches folders of features that the command embed wrote: the one
// file of a split, or the shards of files of any length. It knows no model.
//
//	g, err := gallery.Open("runs/quickstart/embeddings-test")
//	v, err := g.View(gallery.Image, gallery.Text) // images, for queries that are texts
//	err = v.UseIndex(ctx, engine, gallery.IndexOptions{})
//	hits, err := v.Search(ctx, engine, queries, gallery.Options{K: 10})
//	item, err := g.Item(gallery.Image, int(hits.Rows[0]))
//
// OpenWriter opens a gallery of shards to put and delete rows. A change is a record of a log beside the shards; searches
// read both, and a merge writes the shards anew.
//
// Features are mapped into memory where the system can do that, and names are read from their
// files, so that a gallery of millions of rows opens at once and takes little memory.
//
// Shape letters: N rows of a gallery, C channels, Q queries, K hits of a query.
package gallery
