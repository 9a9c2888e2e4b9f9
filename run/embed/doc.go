// Package embed encodes a split, or files of any length, to a gallery of features, the patches of images to files of
// regions, and queries for a search of a gallery.
package embed
