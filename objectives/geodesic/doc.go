// Package geodesic measures distances between features along the manifold that a pool of
// them lies on: by way of a hierarchical graph over the pool, as in Mei et al., "GeoMM:
// On Geodesic Perspective for Multi-modal Learning". It depends on no computation graph and
// is useful alone.
//
// Letters: N points of the pool, C channels, K bottom centres, K_l centres of layer l;
// layers run from 1 (top) to n (bottom). All distances are those of the local metric, of
// unit vectors angles in radians, or sums of them; points that no path joins are at +Inf.
//
//	g, err := geodesic.New(65536, 256, geodesic.Options{Layers: []int{16, 256}})
//	stats, err := g.Build(engine, pool, rand.New(rand.NewPCG(1, 1)))
//	g.Attach(engine, batch, owner, reach) // nearest centres of new points
//	g.Insert(oldest, owner, reach)        // overwrite the oldest points
//	g.From(engine, queries, theta)        // eq. 3: distances to every point of the pool
//
// # Local metrics
//
// The paper's points are unit vectors and its local distance is their angle. Options.Space
// takes that of other spaces (metric.go):
//
//	one sphere            d(x, y) = arccos(x . y)
//	product of m spheres  d(x, y) = sqrt(sum_k arccos^2(x_k . y_k))
//	Euclidean rows        d(x, y) = |x - y|
//
// where x_k is the k-th of m equal groups of channels, each a unit vector: the heads of
// clip-mtob, table 1. Reaches, edges and the legs of eq. 2 are these distances; the angles
// below stand for them. Clusters are found by the chord instead, as there k-means has
// centres in closed form: a point belongs to the centre with the largest dot product of
// flat rows, and a centre is the mean of its points, normalised on each sphere. On one sphere
// the nearest by chord is the nearest by distance; on several it need not be. Euclidean
// rows have their nearest centre by |x - y| and means as they are.
//
// # Where the paper's equations are
//
//   - Section 3.3, clustering of the pool: kmeans.go, seed.go, repair.go; layers of clusters
//     (Q1): layers.go.
//   - Neighbour graph of the centres: neighbours.go; shortest paths d_g: floyd.go, dijkstra.go.
//   - Eq. 2, distances over the layers, and eq. 3, points outside the pool: distance.go.
//   - Q3, updates of the pool: insert.go.
//   - Section 3.4, angle normalisation: angle.go.
//   - Theorems 1 and 2, eq. 4 to 6: theorems.go; the figures they are held against: stats.go.
//
// # Layers
//
// The centres of a layer that share a parent are siblings; those of the top layer are all
// siblings. Each set of siblings has a graph of its own: a centre is joined to its nearest
// siblings, in either direction, and an edge weighs the angle between its ends. The paper
// does not say how its two layers are made. Options.Split follows its text: clusters are
// clustered again. The default clusters the pool into K and groups the centres, which
// gives better bottom centres: all distances start there. In both a point belongs to the
// bottom centre nearest to it, which is how points enter later too, and by it to that
// centre's ancestors.
//
// # Reading of eq. 2
//
//	d(x, y)      = d_g(C_s(x), C_s(y)) + d(x, C_s(x)) + d(y, C_s(y))
//	d(x, C_k(x)) = d_g(C_k+1(x), C_k+1(C_k(x))) + d(x, C_k+1(x)) + d(C_k(x), C_k+1(C_k(x)))   s <= k < n
//	d(x, C_n(x)) = angle(x, C_n(x))
//
// C_k(x) is the ancestor of x in layer k, d_g the shortest path between siblings, and s the
// lowest layer at which the ancestors of x and y are siblings or the same centre. The
// second line is printed with d(x, C_k(x)) on both sides, which must be d(x, C_k+1(x)): a
// point climbs to its centre in layer k+1, from there over the siblings to the one that
// the centre C_k(x) itself would belong to, and from that one to C_k(x). The last leg is
// the same distance for C_k(x) taken as a point, whose ancestors are its nearest child, the
// nearest child of that one, and so on down (the first of several that are equally near).
//
// Two points of one cluster are thus joined by way of their centre, and paths between
// clusters of upper layers are long: with three layers many exceed the limit of 4*pi.
// Options.DirectLegs replaces the second line by d(x, C_k+1(x)) + angle(C_k+1(x), C_k(x)),
// and BetweenDirect takes the angle between points of one cluster (the text's "trivial
// metric").
//
// # Where this differs from the paper
//
//   - The cache of the distances of all points to all bottom centres is kept as its factors,
//     Reach (N), Owner (N) and Paths (K, K), which give the same sums: 8 bytes for a point
//     instead of 4*K. Cached computes its rows.
//   - A cluster is not split until it satisfies eq. 1, whose threshold of 16 no angle
//     reaches: Options.Layers says how deep the hierarchy is.
//   - Centres without points are given the farthest points (repair.go).
//   - Cosines are clamped to 1e-6 off -1 and 1 before an angle is taken, on each sphere.
package geodesic
