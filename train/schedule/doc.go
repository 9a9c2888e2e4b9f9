// Package schedule holds everything of a run that is a pure function of the
// step: learning rate, ramps, when something is due, and how long the run is.
// Nothing here has state, so a resumed run needs the step alone.
//
// Steps count optimiser updates. At functions take the number of updates done
// before (0 for the first); Due takes the number of updates done.
package schedule
