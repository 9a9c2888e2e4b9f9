package serve

import (
	"cmp"
	"context"
	"encoding/json"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/geoalign/geoalign/data/features"
	"github.com/geoalign/geoalign/data/transform"
	"github.com/geoalign/geoalign/gallery"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/search"
)

// together sends requests that wait while another one is encoded, so that they are one batch, and returns their answers.
func (s *server) together(t *testing.T, bodies ...string) (codes []int, texts []string) {
	t.Helper()
	s.f.block = make(chan struct{})
	codes, texts = make([]int, len(bodies)), make([]string, len(bodies))
	var all sync.WaitGroup
	all.Go(func() { s.find(`{"text": "first", "k": 1}`) })
	until(t, "the first is encoded", func() bool { return len(s.started()) == 1 })
	for i, body := range bodies {
		all.Go(func() { codes[i], texts[i] = s.do("POST", "/v1/search", body) })
	}
	until(t, "the others wait", func() bool { return len(s.batcher.queue) == len(bodies) })
	close(s.f.block)
	all.Wait()
	return codes, texts
}

// started are the sizes of the batches that the encoder was asked for.
func (s *server) started() []int {
	s.f.mu.Lock()
	defer s.f.mu.Unlock()
	return slices.Clone(s.f.batches)
}

// TestQueriesOfSeveralKindsTogether: queries that wait together get what each of them asks for, whatever the others do.
func TestQueriesOfSeveralKindsTogether(t *testing.T) {
	dir := makeGallery(t, 60)
	m := check.Get(gallery.ReadManifest(dir))(t)
	m.Space = "euclid" // rows are compared with rows in another way than with texts
	check.OK(t, m.Write(dir))
	s := newServer(t, dir, Options{})
	cases := []struct {
		body  string
		by    int  // row that the features of the query are of
		skip  int  // row that is not to be found
		inner bool // compared by the product, else by the cosine
		k     int
	}{
		{`{"text_features": [0, 5, 0], "k": 2}`, 5, -1, true, 2},
		{`{"text_features": [0, 6, 0], "k": 7}`, 6, -1, true, 7},
		{`{"row": 9, "k": 7}`, 9, 9, false, 7},
		{`{"text_features": [0, 8, 0], "k": 7, "exact": true}`, 8, -1, true, 7},
		{`{"image_features": [37, 7, 1], "k": 7}`, 37, -1, false, 7},
		{`{"row": 11, "k": 60}`, 11, 11, false, 59},
	}
	var bodies []string
	for _, c := range cases {
		bodies = append(bodies, c.body)
	}
	codes, texts := s.together(t, bodies...)
	for i, c := range cases {
		var want []float64
		for row := range 60 {
			if row != c.skip {
				want = append(want, compared(featuresOf(c.by), featuresOf(row), c.inner))
			}
		}
		slices.SortFunc(want, func(a, b float64) int { return cmp.Compare(b, a) })
		var a searchReply
		if err := json.Unmarshal([]byte(texts[i]), &a); err != nil || codes[i] != 200 || a.Batch != len(cases) || len(a.Hits) != c.k {
			t.Errorf("%s: %d %s", c.body, codes[i], texts[i])
			continue
		}
		for k, h := range a.Hits {
			if score := compared(featuresOf(c.by), featuresOf(h.Row), c.inner); h.Row == c.skip || !(math.Abs(float64(h.Score)-want[k]) <= 1e-6) || !(math.Abs(score-want[k]) <= 1e-6) {
				t.Errorf("%s: hit %d is row %d with score %v, want %v", c.body, k, h.Row, h.Score, want[k])
			}
		}
	}
}

// compared is the product of two rows, or their cosine.
func compared(x, y []float32, inner bool) float64 {
	var xy, xx, yy float64
	for i := range x {
		xy, xx, yy = xy+float64(x[i])*float64(y[i]), xx+float64(x[i])*float64(x[i]), yy+float64(y[i])*float64(y[i])
	}
	if inner {
		return xy
	}
	return xy / math.Sqrt(xx*yy)
}

// TestExactQueriesBesideOthers: a query that asks for all rows to be compared gets that beside one that does not.
func TestExactQueriesBesideOthers(t *testing.T) {
	r, x := rand.New(rand.NewPCG(1, 2)), make([]float32, 2000*16)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	path := filepath.Join(t.TempDir(), "x.npy")
	check.OK(t, features.WriteArray(path, []int{16}, func(emit func([]float32) error) error {
		for row := range slices.Chunk(x, 16) {
			if err := emit(row); err != nil {
				return err
			}
		}
		return nil
	}))
	src := check.Get(Open(t.Context(), path, OpenOptions{Index: gallery.IndexOptions{From: 2, Recall: 0.3}}))(t)
	defer src.Close()
	on := check.Get(newSnapshot(src))(t)
	ask := func(exact ...bool) (rows [][]int32) {
		var queries []*query
		for _, e := range exact {
			queries = append(queries, &query{on: on, view: on.own, row: -1, vector: x[16:32], k: 20, exact: e, answer: make(chan answer, 1)})
		}
		(&batcher{}).search(t.Context(), queries, len(queries))
		for _, q := range queries {
			a := <-q.answer
			if a.err != nil {
				t.Fatal(a.err)
			}
			rows = append(rows, a.rows)
		}
		return rows
	}
	all, near := ask(true)[0], ask(false)[0]
	if slices.Equal(all, near) {
		t.Fatal("the index finds what a comparison with all rows finds: ask it for less")
	}
	if got := ask(false, true); !slices.Equal(got[0], near) || !slices.Equal(got[1], all) {
		t.Errorf("together %v, alone %v and %v", got, near, all)
	}
}

// TestRecallSaysOfHowMany: an answer by an index names the recall that was measured and the number of neighbours that it was measured with.
func TestRecallSaysOfHowMany(t *testing.T) {
	path := makeGallery(t, 100)
	open := func(ctx context.Context) (*Source, error) {
		return Open(ctx, path, OpenOptions{NoModel: true, Index: gallery.IndexOptions{From: 2, Codes: search.Bits}})
	}
	s := check.Get(New(t.Context(), Options{Open: open}))(t)
	defer s.Close()
	for path, body := range map[string]string{"/v1/info": "", "/v1/search": `{"vector": [1, 2, 3, 4]}`} {
		method := http.MethodPost
		if body == "" {
			method = http.MethodGet
		}
		w := httptest.NewRecorder()
		r := httptest.NewRequest(method, "http://localhost"+path, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		s.Handler().ServeHTTP(w, r)
		if got := w.Body.String(); w.Code != http.StatusOK || !strings.Contains(got, `"index":true`) || !strings.Contains(got, `"recall_k":10`) {
			t.Errorf("%s: %d %s", path, w.Code, got)
		} else if body == "" && !strings.Contains(got, `"index_codes":"bits"`) {
			t.Errorf("%s: %s", path, got)
		}
	}
}

// TestOneOfABatchIsToBlame: a query that cannot be searched for fails alone.
func TestOneOfABatchIsToBlame(t *testing.T) {
	s := newServer(t, makeGallery(t, 60), Options{})
	codes, texts := s.together(t, `{"text": "a", "k": 3}`, `{"text": "not finite", "k": 3}`, `{"text": "b", "k": 3}`)
	if !slices.Equal(codes, []int{200, 500, 200}) || strings.Count(texts[0], `"row"`) != 3 || strings.Count(texts[2], `"row"`) != 3 {
		t.Errorf("%v %q", codes, texts)
	}
}

// TestFeaturesOfTheSide: what is compared with rows of its own side is as the encoder gives it for that, what is compared with the other side
// as it gives it for that one.
func TestFeaturesOfTheSide(t *testing.T) {
	b := &batcher{metrics: newMetrics()}
	for _, side := range []string{gallery.Image, gallery.Text} {
		on := &snapshot{Source: &Source{Side: side, Encoder: &fake{}}}
		m := transform.NewImage(1, 1)
		m.Pix[0] = 7
		queries := []*query{
			{on: on, row: -1, image: m},
			{on: on, row: -1, side: gallery.Image, stored: []float32{21, 22, 0}},
			{on: on, row: -1, side: gallery.Text, stored: []float32{31, 32, 0}},
		}
		want := map[string][]int{gallery.Image: {7, 21, 32}, gallery.Text: {8, 22, 31}}[side]
		if ready := b.encode(t.Context(), queries); len(ready) != len(queries) {
			t.Fatalf("%d of %d queries have vectors", len(ready), len(queries))
		}
		for i, q := range queries {
			if !slices.Equal(q.vector, featuresOf(want[i])) {
				t.Errorf("query %d of rows of the side %s: %v, want %v", i, side, q.vector, featuresOf(want[i]))
			}
		}
	}
}

// TestMilliseconds are those that the client waited, less its way.
func TestMilliseconds(t *testing.T) {
	s := newServer(t, makeGallery(t, 20), Options{})
	s.f.block = make(chan struct{})
	text, start := make(chan string, 1), time.Now()
	go func() {
		_, b := s.do("POST", "/v1/search", `{"text": "a"}`)
		text <- b
	}()
	until(t, "it is encoded", func() bool { return len(s.started()) == 1 })
	time.Sleep(30 * time.Millisecond)
	close(s.f.block)
	var a searchReply
	check.OK(t, json.Unmarshal([]byte(<-text), &a))
	if took := 1e3 * time.Since(start).Seconds(); !(a.Millis >= 30 && a.Millis <= took+0.01) {
		t.Errorf("%v of %v milliseconds", a.Millis, took)
	}
}
