package run

import "github.com/geoalign/geoalign/run/console"

// ArgumentError marks an error of what was asked for, as opposed to one of the work.
type ArgumentError = console.ArgumentError
