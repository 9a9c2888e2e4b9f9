package model

// Part is a named value of a step: a loss part or a measure.
type Part struct {
	Name    string
	Value   float64
	Measure bool // no part of the loss, such as an accuracy
}

// Result is what a training step computed. Gradients are in Params.Grads.
type Result struct {
	Loss  float64
	Parts []Part // reused by the next step
}
