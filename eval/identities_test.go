package eval

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
)

// naiveIdentities counts places by their definition: before a right answer stand all candidates
// with a larger score, the wrong ones with an equal score, and the equal right ones that were counted before.
func naiveIdentities(queries, gallery []Item, scores []float32) (r Identities) {
	r.Gallery = len(gallery)
	for i, q := range queries {
		s := scores[i*len(gallery):]
		var places []int
		n := 0
		for j, x := range gallery {
			if q.ignored(x) {
				continue
			}
			n++
			if x.ID != q.ID {
				continue
			}
			place := 1
			for k, y := range gallery {
				switch {
				case q.ignored(y):
				case s[k] > s[j], s[k] == s[j] && y.ID != q.ID, s[k] == s[j] && y.ID == q.ID && k < j:
					place++
				}
			}
			places = append(places, place)
		}
		if places == nil {
			r.Unmatched++
			continue
		}
		r.Queries++
		first, last, ap := n, 0, 0.
		for _, p := range places {
			first, last = min(first, p), max(last, p)
			before := 0
			for _, other := range places {
				if other <= p {
					before++
				}
			}
			ap += float64(before) / float64(p)
		}
		r.MAP += ap / float64(len(places))
		r.MINP += float64(len(places)) / float64(last)
		for k, v := range map[int]*float64{1: &r.R1, 5: &r.R5, 10: &r.R10, 100: &r.R100} {
			if first <= k {
				*v++
			}
		}
		r.ChanceR1 += float64(len(places)) / float64(n)
	}
	for _, v := range []*float64{&r.MAP, &r.MINP, &r.R1, &r.R5, &r.R10, &r.R100, &r.ChanceR1} {
		*v *= 100 / float64(r.Queries)
	}
	return r
}

// sameIdentities compares all but ChanceMAP.
func sameIdentities(t *testing.T, got, want Identities) {
	t.Helper()
	if got.Queries != want.Queries || got.Unmatched != want.Unmatched || got.Gallery != want.Gallery {
		t.Errorf("counts %+v, want %+v", got, want)
	}
	a, b := append(got.Values(), Value{Name: "chance", Value: got.ChanceR1}),
		append(want.Values(), Value{Name: "chance", Value: want.ChanceR1})
	for i := range a {
		if !(math.Abs(a[i].Value-b[i].Value) <= 1e-9) {
			t.Errorf("%s is %g, want %g", a[i].Name, a[i].Value, b[i].Value)
		}
	}
}

// TestIdentities compares random problems, with ties, cameras and queries without a match, with
// the definition, for every size of the blocks.
func TestIdentities(t *testing.T) {
	r := rand.New(rand.NewPCG(71, 1))
	for k := range 200 {
		n, cameras := 2+r.IntN(12), 1+r.IntN(3)
		gallery := make([]Item, n)
		for i := range gallery {
			gallery[i] = Item{Image: i, ID: int64(r.IntN(4)), Camera: int32(r.IntN(cameras+1)) - 1}
		}
		queries := gallery
		if k%2 == 0 { // a part of its own
			queries = make([]Item, 1+r.IntN(6))
			for i := range queries {
				queries[i] = Item{Image: n + i, ID: int64(r.IntN(5)), Camera: int32(r.IntN(cameras+1)) - 1}
			}
		}
		scores := make([]float32, len(queries)*n)
		for i := range scores {
			scores[i] = float32(r.IntN(5)) // ties
		}
		want := naiveIdentities(queries, gallery, scores)
		got, err := MeasureIdentities(queries, gallery, 1+r.IntN(4), Matrix(scores, n))
		if want.Queries == 0 {
			if err == nil || !strings.Contains(err.Error(), "none of the") {
				t.Fatalf("no query has a match, got error %v", err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if sameIdentities(t, got, want); t.Failed() {
			t.Fatalf("problem %d: queries %v, gallery %v, scores %v", k, queries, gallery, scores)
		}
	}
}

// TestIdentitiesRules: an example worked out by hand. The best candidate is of the query's own id and
// camera and is ignored, so are the query itself and, being tied, the right answer of camera 1 comes last.
func TestIdentitiesRules(t *testing.T) {
	gallery := []Item{{0, 7, 0}, {1, 7, 0}, {2, 7, 1}, {3, 8, 0}, {4, 8, 1}, {5, 9, NoCamera}, {6, 7, 2}}
	got := check.Get(MeasureIdentities(gallery[:1], gallery, 1, Matrix([]float32{9, 8, .5, .5, .5, .1, .9}, 7)))(t)
	// Candidates: 6 right, then 3 and 4 wrong, 2 right, 5 wrong.
	want := Identities{MAP: 100 * (1 + 2./4) / 2, MINP: 100 * 2. / 4, R1: 100, R5: 100, R10: 100, R100: 100, Queries: 1,
		Gallery: 7, ChanceR1: 40}
	sameIdentities(t, got, want)
	all := check.Get(MeasureIdentities(gallery, gallery, 3, Matrix(make([]float32, 49), 7)))(t)
	if all.R1 > 0 || all.Unmatched != 1 {
		t.Errorf("equal scores give R@1 %g, want 0; %d unmatched, want 1", all.R1, all.Unmatched)
	}
	check.Fails(MeasureIdentities(gallery, gallery, 1, Matrix([]float32{0, 0, 0, float32(math.NaN()), 0, 0, 0},
		7)))(t, "NaN")
}

// TestChanceAP compares the expectation with the mean over all orders of four candidates.
func TestChanceAP(t *testing.T) {
	for right := 1; right <= 4; right++ {
		sum, orders := 0., 0
		for mask := range 16 { // which places are right, all equally likely
			if n := mask&1 + mask>>1&1 + mask>>2&1 + mask>>3; n != right {
				continue
			}
			found, ap := 0, 0.
			for place := range 4 {
				if mask>>place&1 == 1 {
					found++
					ap += float64(found) / float64(place+1)
				}
			}
			sum += ap / float64(right)
			orders++
		}
		if got, want := chanceAP(right, 4), sum/float64(orders); !(math.Abs(got-want) <= 1e-12) {
			t.Errorf("%d of 4 right: %g, want %g", right, got, want)
		}
	}
}

// TestIdentitiesGolden compares with numpy, from tools/goldens/identities.py.
func TestIdentitiesGolden(t *testing.T) {
	b := check.Get(os.ReadFile("testdata/identities.json"))(t)
	var cases []struct {
		QueryID, GalleryID         []int64
		QueryCamera, GalleryCamera []int32
		Scores                     []float32
		Want                       map[string]float64
		Unmatched                  int
	}
	check.OK(t, json.Unmarshal(b, &cases))
	for _, c := range cases {
		var queries, gallery []Item
		for i, id := range c.GalleryID {
			gallery = append(gallery, Item{i, id, c.GalleryCamera[i]})
		}
		for i, id := range c.QueryID {
			queries = append(queries, Item{len(gallery) + i, id, c.QueryCamera[i]})
		}
		got := check.Get(MeasureIdentities(queries, gallery, 5, Matrix(c.Scores, len(gallery))))(t)
		if got.Unmatched != c.Unmatched {
			t.Errorf("%d unmatched, want %d", got.Unmatched, c.Unmatched)
		}
		for _, v := range got.Values() {
			if !(math.Abs(v.Value-c.Want[v.Name]) <= 1e-9) {
				t.Errorf("%s is %g, numpy has %g", v.Name, v.Value, c.Want[v.Name])
			}
		}
	}
}
