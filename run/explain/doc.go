// Package explain says what a score of a trained model rests on, of one pair, of a statement about two pictures or
// on average over a split, and writes pages and JSON of it.
package explain
