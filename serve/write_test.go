package serve

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/geoalign/geoalign/gallery"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/safetensors"
	"github.com/geoalign/geoalign/search"
)

// answered sends a request that must succeed and decodes the answer.
func answered[T any](t *testing.T, s *server, method, path, body string) (out T) {
	t.Helper()
	code, text := s.do(method, path, body)
	if code != http.StatusOK {
		t.Fatalf("%s %s %.200s: %d %s", method, path, body, code, text)
	}
	check.OK(t, json.Unmarshal([]byte(text), &out))
	return out
}

// TestItems: rows are put, found by what they are of, named by their ids, and deleted.
func TestItems(t *testing.T) {
	dir := makeGallery(t, 30)
	s := newServerOf(t, Options{}, writableOpener, dir)
	vector := string(check.Get(json.Marshal(featuresOf(200)))(t))
	put := answered[putReply](t, s, "PUT", "/v1/items", `{"items": [{"id": "a/b c", "vector": `+vector+`, "payload": {"k": [1, null]}}, {"id": "<b>7.png", "image": "`+base64Of(picture(t, 201, 8))+`"}, {"id": "7", "vector": `+vector+`, "payload": "text"}]}`)
	if put.Put != 3 || put.Replaced != 1 || put.Rows != 32 || !strings.HasSuffix(put.Gallery, "-1") {
		t.Errorf("%+v", put)
	}
	for path, want := range map[string]string{
		"/v1/items/a%2Fb%20c":    `"row":30,"id":"a/b c","name":"a/b c","payload":{"k":[1,null]}`,
		"/v1/items/a/b%20c":      `"row":30,`,
		"/v1/items/7":            `"row":32,"id":"7","name":"7","payload":"text"`, // an id before a number
		"/v1/items/8":            `"row":8,"id":"\u003cb\u003e8.png"`,
		"/v1/items/%3Cb%3E7.png": `"row":31,`,
		"/v1/items/31":           `"row":31,`,
		"/v1/info":               `"rows":32,"dim":4,"score":"cosine","metric":"inner","index":false,"recall":1,"recall_k":0,"writable":true`,
	} {
		if code, text := s.do("GET", path, ""); code != 200 || !strings.Contains(text, want) {
			t.Errorf("%s: %d %s", path, code, text)
		}
	}
	find := func(body string) (ids []string) {
		for _, h := range answered[searchReply](t, s, "POST", "/v1/search", body).Hits {
			ids = append(ids, h.ID)
		}
		return ids
	}
	if ids := find(`{"image": "` + base64Of(picture(t, 201, 8)) + `", "k": 32}`); len(ids) != 32 || !slices.Contains(ids, "<b>7.png") {
		t.Errorf("%v", ids)
	}
	if ids := find(`{"row": 5, "k": 40, "filter": {"id": {"in": ["a/b c", "<b>7.png"]}}}`); len(ids) != 2 {
		t.Errorf("%v", ids)
	}
	with := answered[searchReply](t, s, "POST", "/v1/search", `{"row": 5, "k": 1, "filter": {"id": "7"}, "with_vector": true, "fields": ["k"]}`)
	if h := with.Hits[0]; !slices.Equal(h.Vector, featuresOf(200)) || h.ID != "7" || h.Name != "" {
		t.Errorf("%+v", h)
	}
	gone := answered[deleteReply](t, s, "DELETE", "/v1/items", `{"ids": ["7", "7", "none"]}`)
	if gone.Deleted != 1 || gone.Rows != 31 {
		t.Errorf("%+v", gone)
	}
	for _, path := range []string{"/v1/items/32", "/v1/thumbnails/32", "/v1/items/none", "/v1/items/-1", "/v1/items/033"} {
		if code, text := s.do("GET", path, ""); code != 404 {
			t.Errorf("%s: %d %s", path, code, text)
		}
	}
	if gone := answered[deleteReply](t, s, "DELETE", "/v1/items", `{"filter": {"row": {"lt": 20}}}`); gone.Deleted != 19 || gone.Rows != 12 {
		t.Errorf("%+v", gone)
	}
	if code, text := s.do("POST", "/v1/search", `{"row": 3}`); code != 400 || !strings.Contains(text, "row 3 was deleted") {
		t.Errorf("%d %s", code, text)
	}
	if ids := find(`{"row": 25, "k": 50}`); len(ids) != 11 {
		t.Errorf("%v", ids)
	}
	if gone := answered[deleteReply](t, s, "DELETE", "/v1/items", `{"filter": {"row": {"gte": 0}}}`); gone.Rows != 0 {
		t.Errorf("%+v", gone)
	}
	if ids := find(`{"vector": ` + vector + `}`); len(ids) != 0 {
		t.Errorf("%v in a gallery without rows", ids)
	}
}

// TestItemsRefused: what is no change is refused, and nothing of it is made; a server that changes nothing says so.
func TestItemsRefused(t *testing.T) {
	dir := makeGallery(t, 5)
	s := newServerOf(t, Options{Limits: Limits{Items: 3}}, writableOpener, dir)
	x := `"vector": [1, 2, 3, 4]`
	for body, want := range map[string]string{
		`{}`: "items must be a list of 1 to 3 (got 0)", `{"items": [{"id":"a",` + x + `},{"id":"b",` + x + `},{"id":"c",` + x + `},{"id":"d",` + x + `}]}`: "(got 4)",
		`{"items": [{"id": "a"}]}`:                                 "item 0 has one of text, image and vector (got 0",
		`{"items": [{"id": "a", "text": "b"}]}`:                    "item 0 is of another side",
		`{"items": [{` + x + `}]}`:                                 "item 0: its id has 0 bytes",
		`{"items": [{"id": "a", "vector": [1]}]}`:                  "item 0: vector has 1 numbers, the rows of the gallery have 4",
		`{"items": [{"id": "a", "vector": [0, 0, 0, 0]}]}`:         "item 0: vector has length 0",
		`{"items": [{"id": "a", "image": "x"}]}`:                   "item 0: image must be the base64",
		`{"items": [{"id": "a",` + x + `, "colour": 1}]}`:          `there is no key \"colour\"`,
		`{"items": [{"id": "a",` + x + `, "payload": null}]}`:      `\"payload\" is null`,
		`{"items": [{"id": "a",` + x + `},{"id": "a",` + x + `}]}`: "of an earlier one",
		`{"items": 1}`: "cannot be a", `{"items": [1]}`: "must be an object",
	} {
		if code, text := s.do("PUT", "/v1/items", body); code != 400 || !strings.Contains(text, want) {
			t.Errorf("%s: %d %s", body, code, text)
		}
	}
	for body, want := range map[string]string{`{}`: "one of ids and filter", `{"ids": [], "filter": {"a": 1}}`: "one of ids and filter", `{"ids": []}`: "ids must be a list of 1 to 3", `{"filter": {"a": {"is": 1}}}`: "is not a condition"} {
		if code, text := s.do("DELETE", "/v1/items", body); code != 400 || !strings.Contains(text, want) {
			t.Errorf("%s: %d %s", body, code, text)
		}
	}
	if code, text := s.do("POST", "/v1/items", `{}`); code != 405 || !strings.Contains(text, "use PUT or DELETE here") {
		t.Errorf("%d %s", code, text)
	}
	if code, text := s.do("POST", "admin:/v1/reload", ""); code != 500 || !strings.Contains(text, "is not opened anew") {
		t.Errorf("%d %s", code, text)
	}
	if info := s.Source().Gallery; info.Version() != info.ID {
		t.Error("a change that was refused was made")
	}
	still := newServer(t, makeGallery(t, 5), Options{})
	if code, text := still.do("PUT", "/v1/items", `{"items": [{"id": "a",`+x+`}]}`); code != 403 || !strings.Contains(text, "--writable") {
		t.Errorf("%d %s", code, text)
	}
	second := &server{f: &fake{}, t: t}
	_, err := New(t.Context(), Options{Open: writableOpener(t, dir, second.f, &second.open)})
	check.Error(t, err, "another process writes to")
	open := &server{f: &fake{}, t: t}
	_, err = New(t.Context(), Options{Public: true, Open: writableOpener(t, makeGallery(t, 5), open.f, &open.open)})
	check.Error(t, err, "without a token")
	if n := open.opened(); n > 0 {
		t.Errorf("%d galleries are open", n)
	}
}

// TestMergeWhileServing: searches and changes go on during merges, every row that was put is found at once, and what was
// deleted while it is served loses its address.
func TestMergeWhileServing(t *testing.T) {
	s := newServerOf(t, Options{}, writableOpener, makeGallery(t, 20))
	var wg sync.WaitGroup
	for w := range 3 {
		wg.Go(func() {
			for i := range 20 {
				id := fmt.Sprintf("w%d-%d", w, i%7)
				vector := string(check.Get(json.Marshal(featuresOf(w*60 + i)))(t))
				answered[putReply](t, s, "PUT", "/v1/items", `{"items": [{"id": "`+id+`", "vector": `+vector+`}]}`)
				if _, text := s.do("GET", "/v1/items/"+id, ""); !strings.Contains(text, `"id":"`+id+`"`) {
					t.Errorf("%s is not there after it was put: %s", id, text)
				}
				found := answered[searchReply](t, s, "POST", "/v1/search", `{"vector": `+vector+`, "k": 100, "with_vector": true}`)
				if !slices.ContainsFunc(found.Hits, func(h hit) bool { return h.ID == id && slices.Equal(h.Vector, featuresOf(w*60+i)) }) {
					t.Errorf("%s is not found after it was put", id)
				}
			}
		})
	}
	for range 5 {
		s.reloading.Lock()
		check.OK(t, s.merge(t.Context(), s.Source()))
		s.reloading.Unlock()
	}
	wg.Wait()
	info := answered[struct{ Rows int }](t, s, "GET", "/v1/info", "")
	if info.Rows != 20+3*7 {
		t.Errorf("%d rows", info.Rows)
	}
}

// TestMergeKeepsCodes: the index of merged rows keeps what the one before kept.
func TestMergeKeepsCodes(t *testing.T) {
	dir := makeGallery(t, 50)
	o := OpenOptions{NoModel: true, Index: gallery.IndexOptions{From: 2, Codes: search.Bits}}
	check.OK(t, check.Get(Open(t.Context(), dir, o))(t).Close())
	o = OpenOptions{NoModel: true, Writable: true, Index: gallery.IndexOptions{From: 2}}
	s := newServerOf(t, Options{}, func(testing.TB, string, *fake, *sync.Map) func(context.Context) (*Source, error) {
		return func(ctx context.Context) (*Source, error) { return Open(ctx, dir, o) }
	}, dir)
	answered[putReply](t, s, "PUT", "/v1/items", `{"items": [{"id": "new", "vector": [1, 2, 3, 4]}]}`)
	check.OK(t, s.merge(t.Context(), s.Source()))
	if _, text := s.do("GET", "/v1/info", ""); !strings.Contains(text, `"rows":51`) || !strings.Contains(text, `"index_codes":"bits"`) {
		t.Error(text)
	}
}

// BenchmarkPut: a client puts 250 rows of width 384 at a time in a gallery of 110,000, and another one searches it
// without a pause.
func BenchmarkPut(b *testing.B) {
	const c, n, each = 384, 110_000, 250
	dir, r := b.TempDir(), rand.New(rand.NewPCG(1, 2))
	row := func(dst []float32) error {
		for i := range dst {
			dst[i] = r.Float32() - 0.5
		}
		return nil
	}
	m := gallery.Manifest{Version: 1, Side: gallery.Image, Dim: c, Rows: n, Complete: true,
		Meta: gallery.Meta{Score: "cosine", Product: true, Space: "sphere"}}
	x := safetensors.Lazy{Len: n * c, Fill: row}
	m.Shards = []gallery.Shard{check.Get(gallery.WriteShard(dir, "images-00000", []safetensors.Tensor{
		{Name: gallery.Image, Shape: []int{n, c}, Data: x}}, m.Meta, n, func(i int) any { return gallery.Item{Row: i} }))(b)}
	check.OK(b, m.Write(dir))
	s := newServerOf(b, Options{}, func(testing.TB, string, *fake, *sync.Map) func(context.Context) (*Source, error) {
		return func(ctx context.Context) (*Source, error) {
			return Open(ctx, dir, OpenOptions{NoModel: true, Writable: true, Index: gallery.IndexOptions{From: 1 << 30}})
		}
	}, dir)
	item := func() string {
		v := make([]float32, c)
		check.OK(b, row(v))
		return string(check.Get(json.Marshal(v))(b))
	}
	var requests []string
	for k := range 16 {
		var items []string
		for i := range each {
			items = append(items, fmt.Sprintf(`{"id": "new %d", "vector": %s, "payload": {"k": %d}}`, k*each+i, item(), i))
		}
		requests = append(requests, `{"items": [`+strings.Join(items, ",")+`]}`)
	}
	query := `{"vector": ` + item() + `, "k": 10}`
	ended, took := make(chan struct{}), []float64{}
	var searching sync.WaitGroup
	searching.Go(func() {
		for {
			select {
			case <-ended:
				return
			default:
				start := time.Now()
				if code, text := s.do("POST", "/v1/search", query); code != 200 {
					b.Error(code, text)
				}
				took = append(took, time.Since(start).Seconds())
			}
		}
	})
	for i := 0; b.Loop(); i++ {
		if code, text := s.do("PUT", "/v1/items", requests[i%len(requests)]); code != 200 {
			b.Error(code, text)
		}
	}
	close(ended)
	searching.Wait()
	slices.Sort(took)
	b.ReportMetric(float64(b.N*each)/b.Elapsed().Seconds(), "rows/s")
	b.ReportMetric(took[len(took)/2], "search-s")
}

// requests is how many requests TestMemoryStays sends.
var requests = flag.Int("requests", 3000, "requests of TestMemoryStays")

// TestMemoryStays: puts, deletions and searches, with the merges that they need, leave memory as it is.
func TestMemoryStays(t *testing.T) {
	if testing.Short() {
		t.Skip("thousands of requests")
	}
	s := newServerOf(t, Options{}, writableOpener, makeGallery(t, 50))
	used := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	var first, most uint64
	start, searched := time.Now(), atomic.Int64{}
	for i := range *requests {
		vector := string(check.Get(json.Marshal(featuresOf(i % 256)))(t))
		switch i % 4 {
		case 0, 1:
			var items []string
			for k := range 20 {
				items = append(items, fmt.Sprintf(`{"id": "%d", "vector": %s, "payload": {"n": %d}}`, (i*20+k)%2000, vector, k))
			}
			answered[putReply](t, s, "PUT", "/v1/items", `{"items": [`+strings.Join(items, ",")+`]}`)
		case 2:
			answered[searchReply](t, s, "POST", "/v1/search", `{"vector": `+vector+`, "k": 10, "filter": {"n": {"lt": 5}}}`)
			searched.Add(1)
		case 3:
			answered[deleteReply](t, s, "DELETE", "/v1/items", fmt.Sprintf(`{"ids": ["%d"]}`, i%2000))
		}
		if i%(*requests/10) == *requests/10-1 {
			now := used()
			if most = max(most, now); i > *requests/2 && first == 0 {
				first = most
			}
		}
	}
	last := used()
	t.Logf("%d requests in %v, %.0f rows put a second; %d MB after half, %d MB at the end", *requests, time.Since(start).Round(time.Second),
		float64(*requests/2*20)/time.Since(start).Seconds(), first>>20, last>>20)
	if last > first+16<<20 {
		t.Errorf("%d MB are in use after %d requests, %d MB after half of them", last>>20, *requests, first>>20)
	}
}

// TestPhotoDeletedWhileServed: a picture that is gone has no thumbnail, and its row goes on to be found.
func TestPhotoDeletedWhileServed(t *testing.T) {
	dir := makeGallery(t, 10)
	s := newServer(t, dir, Options{})
	if code, _ := s.do("GET", "/v1/thumbnails/%3Cb%3E5.png", ""); code != 200 {
		t.Errorf("the thumbnail of an id: %d", code)
	}
	check.OK(t, os.Remove(filepath.Join(dir, "<b>6.png")))
	if code, _ := s.do("GET", "/v1/thumbnails/%3Cb%3E6.png", ""); code != 404 {
		t.Errorf("the thumbnail of a picture that is gone: %d", code)
	}
	if code, _ := s.do("GET", "/v1/items/%3Cb%3E6.png", ""); code != 200 {
		t.Errorf("the row of a picture that is gone: %d", code)
	}
}
