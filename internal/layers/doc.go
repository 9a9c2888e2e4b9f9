// Package layers holds the test that imports point downwards: docs/architecture.md draws
// the layers, and this is the same order for a machine.
package layers
