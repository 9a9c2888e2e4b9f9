package serve

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/geoalign/geoalign/internal/check"
)

// textServer answers as OpenAI's API does, in the reverse order, with what answer returns; nil: the features of the
// length of a text.
func textServer(t *testing.T, answer *atomic.Pointer[string]) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in struct {
			Input    []string
			Model    string
			Encoding string `json:"encoding_format"`
		}
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil || in.Model != "m" || in.Encoding != "float" ||
			r.Header.Get("Authorization") != "Bearer secret" {
			t.Errorf("%+v %v %v", in, r.Header, err)
		}
		if s := answer.Load(); s != nil {
			if strings.HasPrefix(*s, "!") {
				http.Error(w, *s, http.StatusTooManyRequests)
				return
			}
			fmt.Fprint(w, *s)
			return
		}
		var data []any
		for i := range in.Input {
			i = len(in.Input) - 1 - i
			data = append(data, map[string]any{"index": i, "embedding": featuresOf(len(in.Input[i]))})
		}
		check.OK(t, json.NewEncoder(w).Encode(map[string]any{"data": data}))
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// TestTextServer: texts are encoded by another server, and what it answers wrongly is refused.
func TestTextServer(t *testing.T) {
	var answer atomic.Pointer[string]
	dir, of := makeGallery(t, 20), TextServer{URL: textServer(t, &answer), Model: "m", Key: "secret"}
	open := func(ctx context.Context) (*Source, error) { return Open(ctx, dir, OpenOptions{Texts: of}) }
	server := check.Get(New(t.Context(), Options{Open: open}))(t)
	defer server.Close()
	ask := func(path, body string) (int, string) {
		w, r := httptest.NewRecorder(), httptest.NewRequest("POST", "http://localhost"+path, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		server.Handler().ServeHTTP(w, r)
		return w.Code, w.Body.String()
	}
	for n := 3; n < 9; n++ {
		code, text := ask("/v1/search", fmt.Sprintf(`{"text": %q, "k": 3}`, strings.Repeat("x", n)))
		_, byVector := ask("/v1/search", fmt.Sprintf(`{"vector": %s, "k": 3}`, check.Get(json.Marshal(featuresOf(n)))(t)))
		_, got, _ := strings.Cut(text, `"hits":`)
		if _, want, _ := strings.Cut(byVector, `"hits":`); code != 200 || got == "" || got != want {
			t.Errorf("%d letters: %d %s, by the vector %s", n, code, text, want)
		}
	}
	code, text := ask("/v1/embeddings", `{"input": ["xxx", "xxxxx"]}`)
	want := fmt.Sprintf(`"index":1,"embedding":%s`, check.Get(json.Marshal(featuresOf(5)))(t))
	if code != 200 || !strings.Contains(text, want) {
		t.Errorf("%d %s, want %s", code, text, want)
	}
	for body, want := range map[string]string{`{"text": "  "}`: "the text is empty", `{"text_features": [1]}`: "reads no stored features",
		`{"image": "` + base64Of(picture(t, 1, 8)) + `"}`: "encodes texts alone"} {
		if code, text := ask("/v1/search", body); code != 400 || !strings.Contains(text, want) {
			t.Errorf("%s: %d %s", body, code, text)
		}
	}
	for bad, want := range map[string]string{
		"!busy": "it answers 429 Too Many Requests: !busy", "[]": "cannot be read", `{"data": []}`: "it answers with 0 embeddings of 1 texts",
		`{"data": [{"index": 1, "embedding": [1]}]}`:       "an embedding 1 of 1 texts",
		`{"data": [{"index": 0, "embedding": [1, 2, 3]}]}`: "its embedding has 3 numbers, the rows of the gallery have 4",
	} {
		answer.Store(&bad)
		if code, text := ask("/v1/search", `{"text": "x"}`); code != 500 || strings.Contains(text, "127.0.0.1") {
			t.Errorf("%s: %d %s", bad, code, text)
		}
		_, err := open(t.Context())
		check.Error(t, err, "the text server "+of.URL, want)
	}
	of.URL = "http://127.0.0.1:1/v1/embeddings"
	_, err := open(t.Context())
	check.Error(t, err, "the text server http://127.0.0.1:1/v1/embeddings", "refused")
}
