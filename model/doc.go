// Package model wires encoders and objectives into whole systems: it owns the
// parameters with their momentum copies and the feature queues, builds one
// computation for each mode and batch shape, and runs it. A graph is always the geodesic
// graph over a queue.
//
// Shape letters: B batch, L tokens of a text, T image tokens (class token first),
// D width, C channels of the shared space, Q queue entries, V vocabulary,
// M rows of the language-modelling loss, D' width of the class tokens of a sample before the
// head.
package model
