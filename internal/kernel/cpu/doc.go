// Package cpu says which instruction sets the kernels may use.
package cpu
