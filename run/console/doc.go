// Package console is what a person is told while work goes on: a Reporter of lines, steps and phases, and
// the errors that are about what they asked for.
package console
