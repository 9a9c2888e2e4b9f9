package tasks

import "github.com/geoalign/geoalign/config/section"

// Loss is the section of the loss of a downstream task, [objective.NAME], which is trained alone over fusion layers.
type Loss interface {
	section.Section
	section.Switched
	// Trains says whether it is on, and trains the model for a task.
	Trains() bool
}

// TwoPictures is a Loss that can read two pictures of a text.
type TwoPictures interface{ ReadsTwo() bool }
