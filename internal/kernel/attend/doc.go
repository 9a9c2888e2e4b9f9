// Package attend has attention of one head, over a block of queries at a time.
package attend
