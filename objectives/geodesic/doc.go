// Package geodesic measures distances between unit vectors along the manifold that a pool
// of them lies on: a hierarchical graph over the pool, as in Mei et al., "GeoMM: On
// Geodesic Perspective for Multi-modal Learning". It depends on no computation graph and
// is useful alone.
//
// Letters: N points of the pool, C channels, K bottom centres, K_l centres of layer l,
// layers 1 (top) to n (bottom).
package geodesic
