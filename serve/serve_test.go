package serve

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image/jpeg"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/geoalign/geoalign/internal/check"
)

// Every way to ask finds the row that it is of.
func TestSearch(t *testing.T) {
	s := newServer(t, makeGallery(t, 100), Options{})
	vector := check.Get(json.Marshal(featuresOf(37)))(t)
	// The cosine of rows and the product are of one order only for unit rows: a gallery compares
	// rows by what its model says, so a row is asked for by its neighbours.
	if rows := s.find(`{"row": 5, "k": 100}`); len(rows) != 99 || strings.Contains(fmt.Sprint(rows), " 5 ") {
		t.Errorf("row 5 finds %v", rows)
	}
	if rows := s.find(`{"vector": ` + string(vector) + `}`); len(rows) != 10 {
		t.Errorf("a vector finds %v", rows)
	}
	same := s.find(`{"vector": ` + string(vector) + `, "k": 3}`)
	if image := s.find(`{"image": "` + base64Of(picture(t, 37, 8)) + `", "k": 3, "exact": true}`); fmt.Sprint(image) != fmt.Sprint(same) {
		t.Errorf("an image finds %v, its vector %v", image, same)
	}
	if image := s.find(`{"image": "data:image/png;base64,` + base64Of(picture(t, 37, 8)) + `", "k": 3}`); fmt.Sprint(image) != fmt.Sprint(same) {
		t.Errorf("a data URL finds %v", image)
	}
	if rows := s.find(`{"text": "a red circle", "k": 7}`); len(rows) != 7 {
		t.Errorf("a text finds %v", rows)
	}
	// Features are mapped as they are compared with the rows: those of texts as the other side.
	if rows := s.find(`{"text_features": [7, 37, 1], "k": 3, "exact": true}`); fmt.Sprint(rows) != fmt.Sprint(same) {
		t.Errorf("features of a text find %v, their vector %v", rows, same)
	}
	if rows, image := s.find(`{"image_features": [37, 7, 1], "k": 3}`), s.find(`{"image": "`+base64Of(picture(t, 37, 8))+`", "k": 3}`); fmt.Sprint(rows) != fmt.Sprint(image) {
		t.Errorf("features of an image find %v, the image %v", rows, image)
	}
	for path, want := range map[string]string{
		"/v1/info":    `"rows":100,"dim":4,"score":"cosine","metric":"inner","index":false,"recall":1,"recall_k":0,"text_queries":true,"image_queries":true,"thumbnails":true,"text_features":3,"image_features":3,"limits"`,
		"/v1/items/7": `"row":7,"id":"\u003cb\u003e7.png","name":"\u003cb\u003e7.png","thumbnail":"/v1/thumbnails/7"`,
		"/healthz":    "ok", "/readyz": "ready", "admin:/healthz": "ok", "admin:/readyz": "ready", "admin:/metrics": `geoalign_requests_total{route="search",code="200"} 9`,
		"/": "<!doctype html>", "/app.js": "use strict", "/style.css": "color-scheme",
	} {
		if code, text := s.do("GET", path, ""); code != 200 || !strings.Contains(text, want) {
			t.Errorf("%s: %d %s", path, code, text)
		}
	}
}

// TestFilters: a filter chooses the rows that are compared, and offset, min_score and fields what is shown of them.
func TestFilters(t *testing.T) {
	s := newServer(t, makeGallery(t, 100), Options{})
	var all, some searchReply
	ask := func(body string, into *searchReply) {
		t.Helper()
		*into = searchReply{}
		code, text := s.do("POST", "/v1/search", body)
		if code != 200 {
			t.Fatalf("%s: %d %s", body, code, text)
		}
		check.OK(t, json.Unmarshal([]byte(text), into))
	}
	rows := func(hits []hit, chosen func(h hit) bool) (list []int) {
		for _, h := range hits {
			if chosen(h) {
				list = append(list, h.Row)
			}
		}
		return list
	}
	any := func(hit) bool { return true }
	ask(`{"row": 5, "k": 100}`, &all)
	ask(`{"row": 5, "k": 20, "filter": {"row": {"gte": 40, "lt": 52}}}`, &some)
	if want := rows(all.Hits, func(h hit) bool { return h.Row >= 40 && h.Row < 52 }); len(want) != 12 || !slices.Equal(rows(some.Hits, any), want) || *some.Rows != 12 {
		t.Errorf("%v of %v", some, want)
	}
	ask(`{"row": 5, "k": 4, "offset": 3, "filter": {"name": {"contains": "B>1"}}}`, &some)
	if want := rows(all.Hits, func(h hit) bool { return strings.HasPrefix(h.Name, "<b>1") }); !slices.Equal(rows(some.Hits, any), want[3:7]) {
		t.Errorf("%v of %v", some.Hits, want)
	}
	ask(`{"row": 5, "filter": {"name": "none"}}`, &some)
	if len(some.Hits) != 0 || *some.Rows != 0 {
		t.Errorf("%+v", some)
	}
	least := all.Hits[6].Score
	ask(fmt.Sprintf(`{"row": 5, "k": 50, "min_score": %v}`, least), &some)
	if want := rows(all.Hits, func(h hit) bool { return h.Score >= least }); len(want) < 7 || !slices.Equal(rows(some.Hits, any), want[:min(50, len(want))]) {
		t.Errorf("%v of %v", some.Hits, want)
	}
	ask(`{"row": 5, "k": 1, "fields": ["name", "none"]}`, &some)
	if h := some.Hits[0]; h.Name != "" || len(h.Fields) != 1 || h.Fields["name"] != all.Hits[0].Name {
		t.Errorf("%+v", h)
	}
	for body, want := range map[string]string{
		`{"row": 5, "filter": 1}`:                  "filter: want an object",
		`{"row": 5, "filter": {"a": {"like": 1}}}`: "is not a condition",
		`{"row": 5, "offset": -1}`:                 "offset must be at least 0, and with k at most 100 (got -1 and 10)",
		`{"row": 5, "offset": 91}`:                 "offset must be at least 0",
		`{"row": 5, "fields": "name"}`:             "cannot be a string",
	} {
		if code, text := s.do("POST", "/v1/search", body); code != 400 || !strings.Contains(text, want) {
			t.Errorf("%s: %d %s", body, code, text)
		}
	}
}

// What is wrong with a request is said, and is the client's fault.
func TestRefusals(t *testing.T) {
	s := newServer(t, makeGallery(t, 30), Options{Limits: Limits{Body: 100_000, Text: 50, K: 20, Pixels: 100}})
	for body, want := range map[string]string{
		``:                                 "400 the request is not JSON",
		`{"text": "a"`:                     "400 the request is not JSON",
		`{"text": "a"} {}`:                 "400 the request is not JSON",
		`[]`:                               "400 the request must be an object",
		`null`:                             "400 the request must be an object",
		`{}`:                               "400 a search has one of text, image, vector, row, text_features and image_features (got 0",
		`{"text": "a", "row": 1}`:          "400 a search has one of text, image, vector, row, text_features and image_features (got 2",
		`{"text": "a", "text": "b"}`:       `400 the request: key \"text\" is there twice`,
		`{"Text": "a"}`:                    `400 there is no key \"Text\"`,
		`{"text": "a", "path": "/x"}`:      `400 there is no key \"path\"`,
		`{"text": null, "row": 1}`:         `400 key \"text\" is null`,
		`{"text": 1}`:                      `400 key \"text\" cannot be a number`,
		`{"text": "!!"}`:                   "400 nothing of the text",
		"{\"text\": \"a\xff\"}":            "400 the request: byte 0xff",
		`{"text": "` + long(51) + `"}`:     "400 text has 51 bytes, at most 50",
		`{"row": 30}`:                      "400 row must be 0 to 29 (got 30)",
		`{"row": -1}`:                      "400 row must be 0 to 29 (got -1)",
		`{"row": 1.5}`:                     `400 key \"row\" cannot be a number 1.5`,
		`{"row": 1, "k": 0}`:               "400 k must be 1 to 20 (got 0)",
		`{"row": 1, "k": 21}`:              "400 k must be 1 to 20 (got 21)",
		`{"vector": [1, 2]}`:               "400 vector has 2 numbers, the rows of the gallery have 4",
		`{"vector": [0, 0, 0, 0]}`:         "400 vector has length 0: scale",
		`{"vector": [1e300, 0, 0, 0]}`:     "400 vector has length",
		`{"text_features": [1, 2]}`:        "400 text_features has 2 numbers, the features that the model reads have 3",
		`{"image_features": []}`:           "400 image_features has 0 numbers",
		`{"text_features": [0, 0, 0]}`:     "400 text_features has length 0: scale",
		`{"text_features": [1, 2, 1e400]}`: `400 key \"text_features\" cannot be a number`,
		`{"vector": [1, 2, null, 4]}`:      `400 key \"vector\" cannot be a list with null`,
		`{"text_features": [null, 2, 3]}`:  `400 key \"text_features\" cannot be a list with null`,
		`{"image_features": [1, 2, null]}`: `400 key \"image_features\" cannot be a list with null`,
		`{"image_features": [1, 2, "3"]}`:  `400 key \"image_features\" cannot be a string`,
		`{"image_features": [1, 2, 3], "text_features": [1,2,3]}`: "400 a search has one of",
		`{"image": "?"}`: "400 image must be the base64",
		`{"image": "` + base64Of([]byte("no image")) + `"}`:       "400 data: not a JPEG, PNG, WebP, GIF, BMP or TIFF",
		`{"image": "` + base64Of(picture(t, 1, 11)) + `"}`:        "400 data: PNG image of 11x11",
		`{"text": "` + long(200_000) + `"}`:                       "413 a request has at most 100000 bytes",
		`{"vector": [` + strings.Repeat("[", 20_000):              "400 the request is not JSON",
		`{"image": "` + base64Of(picture(t, 1, 300)[:400]) + `"}`: "400 data: ",
		`{"row": 1, "exact": "yes"}`:                              `400 key \"exact\" cannot be a string`,
		`{"row": 99999999999999999999999999}`:                     `400 key \"row\" cannot be a number`,
	} {
		code, text := s.do("POST", "/v1/search", body)
		if got := fmt.Sprintf("%d %s", code, strings.TrimPrefix(text, `{"error":"`)); !strings.HasPrefix(got, want) {
			t.Errorf("%.80q: got %s, want %s", body, got, want)
		}
	}
	for _, x := range []struct {
		method, path string
		code         int
		header       []string
	}{
		{"GET", "/v1/search", 405, nil},
		{"POST", "/v1/search", 415, []string{"Content-Type", "text/plain"}},
		{"POST", "/v1/info", 405, nil},
		{"GET", "/x", 404, nil},
		{"GET", "/page/index.html", 404, nil},
		{"GET", "/v1/items/30", 404, nil},
		{"GET", "/v1/items/+1", 404, nil},
		{"GET", "/v1/items/0x1", 404, nil},
		{"GET", "/v1/thumbnails/-1", 404, nil},
		{"GET", "/v1/thumbnails/%2e%2e%2fx.jsonl", 404, nil},
		{"GET", "/v1/thumbnails/x.jsonl", 404, nil},
		{"GET", "/v1/thumbnails/3", 404, nil}, // no image
		{"GET", "/v1/thumbnails/4", 404, nil}, // not there
		{"GET", "/v1/info", 403, []string{"Host", "evil.example"}},
		{"GET", "/v1/info", 403, []string{"Host", "localhost.evil.example"}},
		{"GET", "/v1/info", 200, []string{"Host", "LocalHost.:80"}},
		{"GET", "/v1/info", 403, []string{"Host", "127.0.0.1.evil.example:80"}},
		{"GET", "/v1/info", 200, []string{"Host", "[::1]:80"}},
		{"POST", "/v1/search", 403, []string{"Origin", "http://evil.example"}},
		{"POST", "/v1/search", 403, []string{"Sec-Fetch-Site", "cross-site"}},
		{"POST", "/v1/search", 415, []string{"Content-Encoding", "gzip"}},
		{"POST", "/v1/search", 415, []string{"Content-Encoding", "br"}},
		{"POST", "/v1/search", 400, []string{"Content-Encoding", "identity"}},
		{"POST", "/v1/reload", 403, nil},
		{"GET", "/v1/reload", 403, nil},
		{"GET", "/metrics", 403, nil},
		{"POST", "admin:/v1/reload", 403, []string{"Sec-Fetch-Site", "cross-site"}},
		{"POST", "admin:/v1/reload", 403, []string{"Host", "evil.example"}},
		{"GET", "admin:/v1/reload", 405, nil},
		{"POST", "admin:/v1/search", 404, nil},
		{"GET", "admin:/", 404, nil},
	} {
		code, text := s.do(x.method, x.path, "{}", x.header...)
		if code != x.code || strings.Contains(text, "secret") || strings.Contains(text, "/tmp") {
			t.Errorf("%s %s %v: %d %s, want %d", x.method, x.path, x.header, code, text, x.code)
		}
	}
}

func long(n int) string { return strings.Repeat("a", n) }

// All answers have headers that let the page load from here alone, and none opens the server to
// pages of others.
func TestHeaders(t *testing.T) {
	s := newServer(t, makeGallery(t, 10), Options{})
	for _, path := range []string{"/", "/v1/info", "/x", "/v1/thumbnails/1"} {
		a := check.Get(http.Get(s.url + path))(t)
		a.Body.Close()
		h := a.Header
		if !strings.Contains(h.Get("Content-Security-Policy"), "default-src 'none'") || h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: %v", path, h)
		}
	}
	for path, p := range pages {
		b, err := pageFiles.ReadFile(p.file)
		if err != nil || strings.Contains(string(b), "://") || strings.Contains(string(b), "innerHTML") || strings.Contains(string(b), " style=") {
			t.Errorf("%s loads from elsewhere, or takes text for HTML: %v", path, err)
		}
	}
}

// A thumbnail is small, kept, and asked for again only where it has changed.
func TestThumbnails(t *testing.T) {
	s := newServer(t, makeGallery(t, 20), Options{})
	for range 2 {
		a := check.Get(http.Get(s.url + "/v1/thumbnails/2"))(t)
		m, err := jpeg.Decode(a.Body)
		a.Body.Close()
		if err != nil || m.Bounds().Dx() != thumbnailSide || a.Header.Get("ETag") == "" {
			t.Fatalf("%v: %v", a.Header, err)
		}
		if code, _ := s.do("GET", "/v1/thumbnails/2", "", "If-None-Match", a.Header.Get("ETag")); code != 304 {
			t.Errorf("code %d", code)
		}
	}
	kept := thumbnails{most: 100}
	for i := range 50 {
		kept.put(i, make([]byte, 10))
		kept.get(0)
	}
	if kept.bytes > 100 || len(kept.of) != 10 || kept.get(0) == nil || kept.get(49) == nil || kept.get(1) != nil {
		t.Errorf("%d bytes of %d are kept", kept.bytes, len(kept.of))
	}
}

// until waits for a condition.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("after a minute still not: %s", what)
		}
	}
}

// What comes while a batch computes is computed together.
func TestQueriesGather(t *testing.T) {
	s := newServer(t, makeGallery(t, 50), Options{Limits: Limits{Batch: 8}})
	s.f.block = make(chan struct{})
	var all sync.WaitGroup
	ask := func() {
		all.Go(func() { s.find(`{"text": "a", "k": 2}`) })
	}
	started := func() int { s.f.mu.Lock(); defer s.f.mu.Unlock(); return len(s.f.batches) }
	ask()
	until(t, "the first is encoded", func() bool { return started() == 1 })
	for range 11 {
		ask()
	}
	until(t, "the others wait", func() bool { return len(s.batcher.queue) == 11 })
	close(s.f.block)
	all.Wait()
	if got := fmt.Sprint(s.f.batches); got != "[1 8 3]" {
		t.Errorf("batches of %s", got)
	}
}

// Requests beyond the limits are refused at once, and those within are answered.
func TestTooManyRequests(t *testing.T) {
	s := newServer(t, makeGallery(t, 50), Options{Limits: Limits{Requests: 5, PerClient: 4}})
	s.f.block = make(chan struct{})
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() { s.find(`{"text": "a"}`) })
	}
	until(t, "four are in progress", func() bool { s.gate.mu.Lock(); defer s.gate.mu.Unlock(); return s.gate.all == 4 })
	if code, text := s.do("POST", "/v1/search", `{"row": 1}`); code != 429 || !strings.Contains(text, "this client") {
		t.Errorf("%d %s", code, text)
	}
	s.gate.enter("another")
	if code, text := s.do("GET", "/v1/info", ""); code != 503 || !strings.Contains(text, "the server has too many") {
		t.Errorf("%d %s", code, text)
	}
	if code, _ := s.do("GET", "/healthz", ""); code != 200 {
		t.Errorf("a busy server looks dead: %d", code)
	}
	s.gate.leave("another")
	close(s.f.block)
	all.Wait()
	if code, _ := s.do("POST", "/v1/search", `{"row": 1}`); code != 200 {
		t.Errorf("afterwards: %d", code)
	}
	if len(s.gate.of) != 0 || s.gate.all != 0 {
		t.Errorf("in progress: %v", s.gate.of)
	}
}

// However many large images come while a batch is encoded, few are held decoded; small ones are all taken. All places are given
// back: of those answered, refused, damaged and of a client who left.
func TestLargeImagesAreFew(t *testing.T) {
	s := newServer(t, makeGallery(t, 50), Options{Limits: Limits{Bodies: 2, Answer: 2 * time.Minute}})
	body := func(b []byte) string { return `{"image": "` + base64Of(b) + `", "k": 1}` }
	large, small := body(picture(t, 7, 1100)), body(picture(t, 7, 10))
	damaged := picture(t, 7, 1100)
	for range 3 { // more than there are places
		if code, text := s.do("POST", "/v1/search", body(damaged[:len(damaged)/2])); code != 400 {
			t.Fatalf("damaged: %d %s", code, text)
		}
	}
	s.f.block = make(chan struct{})
	unblock := sync.OnceFunc(func() { close(s.f.block) })
	t.Cleanup(unblock)
	var all sync.WaitGroup
	started := func() int { s.f.mu.Lock(); defer s.f.mu.Unlock(); return len(s.f.batches) }
	all.Go(func() { s.find(`{"text": "a"}`) })
	until(t, "a text is encoded", func() bool { return started() == 1 })
	ctx, leave := context.WithCancel(t.Context())
	all.Go(func() { // who leaves, and whose image waits on
		r, err := http.NewRequestWithContext(ctx, "POST", s.url+"/v1/search", strings.NewReader(large))
		if err != nil {
			t.Error(err)
			return
		}
		r.Header.Set("Content-Type", "application/json")
		if a, err := http.DefaultClient.Do(r); err == nil {
			t.Errorf("answered: %d", a.StatusCode)
			a.Body.Close()
		}
	})
	until(t, "an image waits", func() bool { return len(s.batcher.queue) == 1 })
	leave()
	var codes [600]atomic.Int32
	for range 4 {
		all.Go(func() {
			code, _ := s.do("POST", "/v1/search", large)
			codes[code].Add(1)
		})
		all.Go(func() { s.find(small) })
	}
	until(t, "three large images are refused", func() bool { return codes[503].Load() == 3 })
	until(t, "two large and four small images wait", func() bool { return len(s.batcher.queue) == 6 })
	unblock()
	all.Wait()
	if codes[200].Load() != 1 || codes[503].Load() != 3 {
		t.Errorf("%d answered, %d refused", codes[200].Load(), codes[503].Load())
	}
	until(t, "all places are given back", func() bool { return len(s.batcher.images) == 0 })
}

// An answer that takes too long is given up, and a panic is one failed batch.
func TestFailuresOfTheEncoder(t *testing.T) {
	s := newServer(t, makeGallery(t, 50), Options{Limits: Limits{Answer: 50 * time.Millisecond}})
	s.f.block = make(chan struct{})
	if code, text := s.do("POST", "/v1/search", `{"text": "a"}`); code != 503 || !strings.Contains(text, "no answer within") {
		t.Errorf("%d %s", code, text)
	}
	close(s.f.block)
	p := newServer(t, makeGallery(t, 50), Options{})
	p.f.panics = true
	if code, text := p.do("POST", "/v1/search", `{"text": "a"}`); code != 500 || strings.Contains(text, "encoder") {
		t.Errorf("%d %s", code, text)
	}
	if rows := p.find(`{"row": 1}`); len(rows) != 10 {
		t.Errorf("after a panic: %v", rows)
	}
}

// Galleries are replaced under load without a lost request, and those of before are closed.
func TestReloadLosesNone(t *testing.T) {
	dir := makeGallery(t, 60)
	s := newServer(t, dir, Options{})
	stop := make(chan struct{})
	var all sync.WaitGroup
	var answered atomic.Int64
	for i := range 6 {
		all.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				body := []string{`{"text": "a", "k": 3}`, `{"row": 7, "k": 3}`}[i%2]
				if rows := s.find(body); len(rows) != 3 {
					t.Errorf("found %v", rows)
				}
				answered.Add(1)
			}
		})
	}
	for i := range 30 {
		n := answered.Load()
		until(t, "requests are answered between reloads", func() bool { return answered.Load() > n+3 })
		if i%2 == 0 {
			if code, text := s.do("POST", "admin:/v1/reload", ""); code != 200 || !strings.Contains(text, `"rows":60`) {
				t.Errorf("%d %s", code, text)
			}
		} else if err := s.Reload(t.Context()); err != nil {
			t.Error(err)
		}
	}
	close(stop)
	all.Wait()
	until(t, "one gallery is open", func() bool { return s.opened() == 1 })
	// A reload that fails changes nothing.
	m := check.Get(readFile(dir, "index.json"))(t)
	writeFile(t, dir, "index.json", strings.Replace(m, `"rows": 60`, `"rows": 61`, 1))
	if code, text := s.do("POST", "admin:/v1/reload", ""); code != 500 || !strings.Contains(text, "stays") {
		t.Errorf("%d %s", code, text)
	}
	if rows := s.find(`{"row": 7, "k": 3}`); len(rows) != 3 {
		t.Errorf("after a reload that failed: %v", rows)
	}
}

// Serve answers what is in progress when it is asked to stop, and then ends.
func TestDrain(t *testing.T) {
	f := &fake{block: make(chan struct{})}
	var open sync.Map
	s := check.Get(New(t.Context(), Options{Open: opener(t, makeGallery(t, 20), f, &open)}))(t)
	addr, cancel, ended := listen(t, s)
	code := make(chan int, 1)
	go func() {
		a, err := http.Post("http://"+addr+"/v1/search", "application/json", strings.NewReader(`{"text": "a"}`))
		if err != nil {
			t.Error(err)
			code <- 0
			return
		}
		io.Copy(io.Discard, a.Body)
		a.Body.Close()
		code <- a.StatusCode
	}()
	until(t, "a request is in progress", func() bool { f.mu.Lock(); defer f.mu.Unlock(); return len(f.batches) == 1 })
	cancel()
	until(t, "the server stops", s.stopping.Load)
	rec := httptest.NewRecorder()
	r := httptest.NewRequest("GET", "/readyz", nil)
	r.Host = "localhost"
	s.Handler().ServeHTTP(rec, r)
	if rec.Code != 503 {
		t.Errorf("a server that stops is ready: %d", rec.Code)
	}
	close(f.block)
	if c := <-code; c != 200 {
		t.Errorf("the request in progress got %d", c)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if _, err := net.Dial("tcp", addr); err == nil {
		t.Error("it still listens")
	}
}

// Clients that send or read slowly are cut off, and connections beyond the limit wait.
func TestSlowClients(t *testing.T) {
	var open sync.Map
	s, err := New(t.Context(), Options{Open: opener(t, makeGallery(t, 20), &fake{}, &open), Limits: Limits{Read: 100 * time.Millisecond, Conns: 3}})
	if err != nil {
		t.Fatal(err)
	}
	addr, cancel, ended := listen(t, s)
	for _, begin := range []string{"", "GET /v1/info HTTP/1.1\r\nHost: localhost\r\n", "POST /v1/search HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"} {
		for range 3 { // as many as have room
			c := check.Get(net.Dial("tcp", addr))(t)
			check.Get(io.WriteString(c, begin))(t)
			t.Cleanup(func() { c.Close() })
			go func() { // reads until it is cut off
				b, err := io.ReadAll(bufio.NewReader(c))
				if err == nil && strings.Contains(string(b), "200 OK") {
					t.Errorf("a slow client got %s", b)
				}
			}()
		}
	}
	a, err := http.Get("http://" + addr + "/v1/info") // in turn, when the others are cut off
	if err != nil {
		t.Fatal(err)
	}
	a.Body.Close()
	if a.StatusCode != 200 {
		t.Errorf("after slow clients: %d", a.StatusCode)
	}
	cancel()
	if err := <-ended; err != nil && !errors.Is(err, http.ErrServerClosed) {
		t.Error(err)
	}
}

// A reload that ends after the server has ended changes nothing, and what it opened is closed.
func TestReloadOfAServerThatEnds(t *testing.T) {
	s := &server{f: &fake{}, t: t}
	open := opener(t, makeGallery(t, 20), s.f, &s.open)
	s.Server = check.Get(New(t.Context(), Options{Open: func(ctx context.Context) (*Source, error) {
		src, err := open(ctx)
		if s.Server != nil {
			err = errors.Join(err, s.Close()) // while the gallery is opened anew
		}
		return src, err
	}}))(t)
	if err := s.Reload(t.Context()); !errors.Is(err, errStopping) {
		t.Errorf("a reload of a server that has ended: %v", err)
	}
	s.open.Range(func(any, any) bool { t.Error("a gallery stays open"); return false })
}

// TestFigures are the numbers of /metrics: sums since the start, and searches by time, each bucket with those below it.
func TestFigures(t *testing.T) {
	m := newMetrics()
	for _, took := range []time.Duration{time.Millisecond, 3 * time.Millisecond, 4 * time.Millisecond, 20 * time.Second} {
		m.begin()
		m.end(routeSearch, 200, took)
	}
	m.begin()
	m.end(routeSearch, 400, time.Second) // no search that was answered
	m.begin()
	m.begin()
	m.end("info", 200, time.Second)
	m.batch(2)
	m.batch(3)
	m.encode(time.Second)
	m.encode(500 * time.Millisecond)
	m.search(2 * time.Second)
	m.refuse("queue")
	m.reload("done")
	m.reload("done")
	var b strings.Builder
	m.write(&b, 7, 5)
	for _, want := range []string{
		`geoalign_requests_total{route="info",code="200"} 1`, `geoalign_requests_total{route="search",code="200"} 4`, `geoalign_requests_total{route="search",code="400"} 1`,
		`geoalign_refused_total{reason="queue"} 1`, `geoalign_reloads_total{result="done"} 2`,
		`geoalign_search_duration_seconds_bucket{le="0.001"} 1`, `geoalign_search_duration_seconds_bucket{le="0.0025"} 1`, `geoalign_search_duration_seconds_bucket{le="0.005"} 3`,
		`geoalign_search_duration_seconds_bucket{le="10"} 3`, `geoalign_search_duration_seconds_bucket{le="+Inf"} 4`,
		"geoalign_search_duration_seconds_sum 20.008", "geoalign_search_duration_seconds_count 4", "geoalign_batches_total 2", "geoalign_batched_queries_total 5",
		"geoalign_encode_seconds_total 1.5", "geoalign_find_seconds_total 2", "geoalign_requests_in_flight 1", "geoalign_queries_waiting 5", "geoalign_gallery_rows 7",
	} {
		if !strings.Contains(b.String(), "\n"+want+"\n") {
			t.Errorf("no %s in\n%s", want, b.String())
		}
	}
}

// TestQueriesGiveBackTheirGallery: one that nobody waits for any more, and one that finds no room in the queue, do not keep the gallery
// of before a reload open.
func TestQueriesGiveBackTheirGallery(t *testing.T) {
	left, cancel := context.WithCancel(t.Context())
	cancel()
	x := &snapshot{users: 1}
	b := &batcher{queue: make(chan *query), current: &current{}, metrics: newMetrics()}
	if err := b.put(&query{ctx: t.Context(), on: x}); !errors.Is(err, errBusy) || x.users != 1 {
		t.Errorf("no room: %v, %d users", err, x.users)
	}
	q := &query{ctx: left, on: x, answer: make(chan answer, 1)}
	b.compute([]*query{q})
	if a := <-q.answer; !errors.Is(a.err, context.Canceled) || x.users != 0 || b.metrics.batches != 0 {
		t.Errorf("left: %v, %d users, %d batches", a.err, x.users, b.metrics.batches)
	}
}

// TestFewerHitsThanUsual: a server that gives few hits gives as many to who asks for no number.
func TestFewerHitsThanUsual(t *testing.T) {
	s := newServer(t, makeGallery(t, 20), Options{Limits: Limits{K: 3}})
	if rows := s.find(`{"text": "a"}`); len(rows) != 3 {
		t.Errorf("found %v", rows)
	}
}
