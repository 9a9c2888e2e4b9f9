package model

// Batch is the data of one training step.
type Batch struct {
	Images  []float32 // (B, 3, size, size)
	Views   []float32 // (B, 3, size, size) second views of the images; nil with data.views = 1
	Tokens  []int32   // (B, L) ids, padded
	Lengths []int32   // (B) tokens that are no padding
	IDs     []int32   // (B) image ids, for multi-positive targets and the queue

	// For masked language modelling, unless its weight is 0: the tokens with some
	// masked, and M selected places (b*L + l) with their labels, padded with -100.
	Masked     []int32 // (B, L)
	MaskPlaces []int32 // (M)
	MaskLabels []int32 // (M)
}

// Control is what changes a step besides the data.
type Control struct {
	Step     int     // counter of the random streams
	Alpha    float64 // weight of the teacher's soft targets
	Uniform  float64 // share of the uniform distribution in the targets of the contrast
	UseQueue bool    // whether the contrast reads the queue
}

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
