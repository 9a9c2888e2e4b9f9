// Package examples reads the samples of downstream tasks from the files in which they are given out.
package examples
