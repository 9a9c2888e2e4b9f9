// Package chain finds the columns that share an id with a row, in one look at every column.
package chain
