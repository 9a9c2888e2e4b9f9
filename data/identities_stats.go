package data

// IdentityStats describes a data set by what its images show.
type IdentityStats struct {
	Identities  int       `json:"identities"`
	PerIdentity Quantiles `json:"images_per_identity"`
	Cameras     int       `json:"cameras"`           // that are known
	Queries     int       `json:"queries"`           // images that search
	Gallery     int       `json:"gallery"`           // images that are searched
	Unmatched   int       `json:"unmatched_queries"` // without an image of their identity by another camera in the gallery
}

// NewIdentityStats counts the identities of ds. It opens no image.
func NewIdentityStats(ds Dataset) IdentityStats {
	s, _ := identityStats(ds)
	return s
}

// identityStats tells the queries without a match too.
func identityStats(ds Dataset) (s IdentityStats, unmatched []int) {
	type taken struct {
		id     int64
		camera int32
	}
	seen, _ := ds.(Seen)
	camera := func(i int) int32 {
		if seen == nil {
			return -1
		}
		return seen.Camera(i)
	}
	is := func(i int, other Role) bool { return seen != nil && seen.Role(i) == other }
	all, gallery, by, cameras := map[int64]int{}, map[int64]int{}, map[taken]int{}, map[int32]bool{}
	for i := range ds.Len() {
		id, c := identityOf(ds, i), camera(i)
		all[id]++
		if c >= 0 {
			cameras[c] = true
		}
		if !is(i, Query) {
			s.Gallery++
			gallery[id]++
			by[taken{id, c}]++
		}
	}
	for i := range ds.Len() {
		if is(i, Searched) {
			continue
		}
		s.Queries++
		id, c := identityOf(ds, i), camera(i)
		others := gallery[id]
		switch {
		case c >= 0:
			others -= by[taken{id, c}]
		case !is(i, Query): // itself
			others--
		}
		if others == 0 {
			unmatched = append(unmatched, i)
		}
	}
	var per []int
	for _, n := range all {
		per = append(per, n)
	}
	s.Identities, s.PerIdentity, s.Cameras, s.Unmatched = len(all), NewQuantiles(per), len(cameras), len(unmatched)
	return s, unmatched
}

// identities finds queries of a list with cameras or roles that no image of the gallery answers.
func (c *checker) identities(ds Dataset) {
	seen, ok := ds.(Seen)
	if !ok {
		return
	}
	listed := false
	for i := range ds.Len() {
		listed = listed || seen.Camera(i) >= 0 || seen.Role(i) != Either
	}
	if !listed {
		return
	}
	_, unmatched := identityStats(ds)
	for _, i := range unmatched {
		c.add(UnmatchedQuery, 1, ds.Name(i))
	}
}
