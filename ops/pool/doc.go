// Package pool has a queue of past features with a batch in it, as columns that rows are
// compared with. Other ops read its columns through Operands and State.
package pool
