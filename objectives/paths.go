package objectives

import "strings"

// Paths says how a geodesic is measured and how a gradient passes it.
type Paths struct {
	SameCluster     bool    // the direct angle between points of one cluster
	StraightThrough bool    // the gradient of the cosine
	Entries         int     // centres a point may enter the graph by, at most all: 1 is eq. 3, more are soft_entry
	Softness        float32 // temperature of the minimum over several entries, in the unit of the local metric
	DirectPositives bool    // a positive is never farther than its own angle
	Limit           float32 // length, in the unit of the local metric, at which a path is cut, the score -1
}

// ParsePaths returns the paths of a gradient mode as the configuration names it,
// "strict" or some of same_cluster, straight_through and soft_entry joined by +.
func ParsePaths(gradient string, entries int, softness, limit float64, directPositives bool) Paths {
	p := Paths{Entries: 1, Softness: float32(softness), DirectPositives: directPositives, Limit: float32(limit)}
	for _, mode := range strings.Split(gradient, "+") {
		switch mode {
		case "same_cluster":
			p.SameCluster = true
		case "straight_through":
			p.StraightThrough = true
		case "soft_entry":
			p.Entries = entries
		}
	}
	return p
}
