// Package geodesic has scores along the geodesic graph over a queue (Mei et al.): distances
// from rows to the centres of the graph, and from there on to the entries of the queue. The
// graph itself is made by package objectives/geodesic.
package geodesic
