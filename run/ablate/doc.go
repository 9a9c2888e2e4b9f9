// Package ablate trains a matrix of runs with several seeds, one after another, and
// compares them in a table. It goes on where it stopped: runs that are done stay as they
// are. Package eval/ablation has the format of the matrix and the statistics.
package ablate
