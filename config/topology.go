package config

import "github.com/geoalign/geoalign/space"

// Space returns the space that Topology names. Its error says how one is written, or that
// its size is not that of Dim.
func (h Head) Space() (space.Space, error) { return space.Parse(h.Topology, h.Dim) }
