package gallery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/geoalign/geoalign/compute"
	"github.com/geoalign/geoalign/search"
)

// View is the rows of a side as queries of a side are compared with them.
type View struct {
	g      *Gallery
	tensor string
	pool   *table
	metric search.Metric
	side   string // of the rows

	index  *search.Index // nil: all rows are compared
	recall float64       // that searches ask of it
}

// CompareBy makes all later views compare rows by the metric, cosine, inner or l2, in a gallery that names no score, as
// a file of features is. What a model scores is compared as the model does, and refused here.
func (g *Gallery) CompareBy(m search.Metric) error {
	if err := m.Check(); err != nil {
		return err
	}
	if g.Meta.Score != "" {
		return fmt.Errorf("gallery: %s was made for the score %s of its model (got %s): leave the metric out", g.Path,
			g.Meta.Score, m)
	}
	g.by = m
	return nil
}

// View returns the rows of a side for queries of the side from. Pairs of both sides are compared
// by the score of the model where it is a product or a distance, else by the cosine; rows of one
// side by the cosine, or the distance, but images of identities by the score, of which a query is the other side.
func (g *Gallery) View(side, from string) (*View, error) {
	if !slices.Contains(g.sides, side) {
		return nil, fmt.Errorf("gallery: %s has no rows of the side %q: it has %v", g.Path, side, g.sides)
	}
	m := g.Meta
	v := &View{g: g, tensor: side, metric: search.Cosine, side: side}
	same := side == from && !m.Alike
	if same {
		v.tensor = g.own(side)
	}
	switch {
	case g.by != "":
		v.metric = g.by
	case m.Score == "l2":
		v.metric = search.L2
	case m.Product && (!same || v.tensor == side && m.Space != "euclid" && m.Score == "cosine"):
		v.metric = search.Inner // of unit vectors the order of the cosine too, so one index does for both
	}
	v.pool = g.tables[v.tensor]
	g.mu.Lock()
	defer g.mu.Unlock()
	key := v.tensor + "-" + string(v.metric)
	if old := g.views[key]; old != nil {
		return old, nil
	}
	g.views[key] = v
	return v, nil
}

// Rows returns how many rows can be found.
func (v *View) Rows() int {
	if l := v.g.liveOf(v.side); l != nil {
		return l.alive()
	}
	return v.pool.Rows()
}

// Metric is how rows are compared.
func (v *View) Metric() search.Metric { return v.metric }

// Scored says whether rows are compared by the score of the model, if it has one. Sums with
// distances are not searched by; the cosine stands for them.
func (v *View) Scored() bool {
	return v.g.Meta.Score == "" || v.g.Meta.Product || v.metric == search.L2
}

// IndexRows is the number of rows from which an index is used: below it, all rows are compared in
// the time of an answer.
const IndexRows = 100_000

// IndexOptions say how an index is made.
type IndexOptions struct {
	From   int     // rows from which there is one; 0: IndexRows
	Recall float64 // that searches ask of it; 0: 0.95
	// Codes of the rows: an index of others is built again. Empty: those of the index that is there, else bytes.
	Codes search.Codes
	// Progress is told how much of a stage is done; nil: nobody is.
	Progress func(stage string, done, of int)
	// Say is told what else happens; nil: nobody is.
	Say func(format string, args ...any)
}

// indexFile returns where the view's index lies.
func (v *View) indexFile() string {
	return search.Beside(v.g.index + "." + v.tensor + "." + string(v.metric))
}

// indexBase is where the indices of the gallery in a folder lie, without what they are of. Each generation of files has
// indices of its own, so that none is replaced while it is used.
func indexBase(dir string, generation int) string {
	if generation > 1 {
		return filepath.Join(dir, fmt.Sprintf("gallery-%05d", generation))
	}
	return filepath.Join(dir, "gallery")
}

// UseIndex opens the index beside the gallery, or builds and saves it where there is none or it is
// of other rows. It does nothing where the rows are few. It is not for use beside searches.
func (v *View) UseIndex(ctx context.Context, e *compute.Engine, o IndexOptions) error {
	if o.From == 0 {
		o.From = IndexRows
	}
	if o.Say == nil {
		o.Say = func(string, ...any) {}
	}
	if v.recall = cmp.Or(o.Recall, search.DefaultRecall); v.pool.Rows() < max(o.From, 2) || v.index != nil {
		return nil
	}
	path := v.indexFile()
	comparing := func(done, of int) {
		if o.Progress != nil {
			o.Progress("compare rows", done, of)
		}
	}
	x, err := search.Open(ctx, e, path, v.pool, comparing)
	if _, stale := errors.AsType[*search.StaleError](err); err != nil && !stale && !errors.Is(err, search.ErrFormat) &&
		!errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err == nil {
		if has := x.Stats().Codes; o.Codes != "" && o.Codes != has {
			err = errors.Join(fmt.Errorf("%s is an index of %s, and one of %s is asked for", path, has, o.Codes), x.Close())
		}
	}
	if err == nil {
		v.index = x
		return nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		o.Say("%v; that is done now", err)
	}
	if err := v.g.Wait(ctx); err != nil { // no index is made of rows that are damaged
		return err
	}
	x, err = search.Build(ctx, e, v.pool, search.BuildOptions{Metric: v.metric, Codes: o.Codes, Recall: o.Recall,
		Queries: v.samples(), Progress: o.Progress})
	if err != nil {
		return err
	}
	v.index = x
	if err := x.Save(path); err != nil {
		o.Say("the index is not kept: %v", err) // as in a folder that cannot be written to
		return nil
	}
	if mapped, err := search.Open(ctx, e, path, v.pool, comparing); err == nil { // gives the memory back
		v.index = mapped
	}
	return nil
}

// sampleQueries is how many queries of the other side recall is measured with.
const sampleQueries = 500

// samples returns rows of the other side, spread evenly, where they are compared with this view:
// of them recall is the lower. Nil: there are none.
func (v *View) samples() []float32 {
	other := map[string]string{Image: Text, Text: Image}[v.side]
	t := v.g.tables[other]
	if v.tensor != v.side || t == nil || t.Rows() == 0 || t.Width() != v.pool.Width() {
		return nil
	}
	n := min(sampleQueries, t.Rows())
	x := make([]float32, n*t.Width())
	for i := range n {
		if t.Row(i*t.Rows()/n, x[i*t.Width():(i+1)*t.Width()]) != nil {
			return nil
		}
	}
	return x
}

// Indexed says whether searches use an index, and what recall was measured of them.
func (v *View) Indexed() (recall float64, ok bool) {
	if v.index == nil {
		return 1, false
	}
	return v.measured(v.recall), true
}

// Codes says how the index codes rows, empty without one.
func (v *View) Codes() search.Codes {
	if v.index == nil {
		return ""
	}
	return v.index.Stats().Codes
}

// RecallK is of how many neighbours of a query the recall of Indexed was measured, 0 without an index. Of more
// neighbours a search finds a smaller share.
func (v *View) RecallK() int {
	if v.index == nil {
		return 0
	}
	return v.index.Stats().K
}

// measured returns the recall of the least effort that reaches want; 0: that of the build.
func (v *View) measured(want float64) float64 {
	s := v.index.Stats()
	if want == 0 {
		return s.Recall
	}
	for _, p := range s.Curve {
		if p.Recall >= want {
			return p.Recall
		}
	}
	return s.Curve[len(s.Curve)-1].Recall
}

// Options say what to search for.
type Options struct {
	K     int     // hits of a query, at most the rows
	Skip  []int32 // row that each query does not find, negative for none; nil: none
	Exact bool    // compare all rows, whatever index there is
	// Rows are those that may be found, in ascending order, as Gallery.Select gives them; nil: all. They are compared
	// without an index, so that what is found is exact. Fewer than K are fewer hits.
	Rows []int32
}

// Search returns the K rows nearest to each of queries (Q, C). It fails where the gallery is damaged, see Gallery.Wait.
func (v *View) Search(ctx context.Context, e *compute.Engine, queries []float32, o Options) (*search.Hits, error) {
	if err := v.g.Wait(ctx); err != nil {
		return nil, err
	}
	so := search.Options{Metric: v.metric, K: o.K, Skip: o.Skip}
	l := v.g.liveOf(v.side)
	switch {
	case o.Rows != nil && l != nil:
		return v.among(ctx, e, queries, l.pool(v.pool, v.tensor), l.only(o.Rows), so)
	case o.Rows != nil:
		return v.among(ctx, e, queries, v.pool, o.Rows, so)
	case l != nil:
		return v.searchLive(ctx, e, queries, l, o.Exact, so)
	case o.Exact || v.index == nil:
		return search.Exact(ctx, e, v.pool, queries, so)
	}
	so.Recall = v.recall
	return v.index.Search(ctx, e, queries, so)
}

// among searches some rows.
func (v *View) among(ctx context.Context, e *compute.Engine, queries []float32, pool rowsPool, rows []int32,
	o search.Options) (*search.Hits, error) {
	most, skip := len(rows), slices.Clone(o.Skip)
	for i, row := range skip {
		at, there := slices.BinarySearch(rows, row)
		if skip[i] = -1; there {
			skip[i], most = int32(at), len(rows)-1
		}
	}
	o.Skip = skip
	if o.K = min(o.K, most); o.K < 1 {
		return &search.Hits{}, nil
	}
	hits, err := search.Exact(ctx, e, subset{pool, rows}, queries, o)
	if err != nil {
		return nil, err
	}
	for i, at := range hits.Rows {
		hits.Rows[i] = rows[at]
	}
	return hits, nil
}

func (v *View) close() error {
	if v.index == nil {
		return nil
	}
	return v.index.Close()
}
