package objectives

import "github.com/geoalign/geoalign/config/section"

// Settings is a loss that is its own section of the configuration, [objective.NAME]. It is built where it is on.
type Settings interface {
	section.Section
	section.Switched
	Loss
}
