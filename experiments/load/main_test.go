package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// TestLoad asks a server that refuses every third request and breaks one: refused ones are asked again, the broken one
// is lost, and texts of any length are read.
func TestLoad(t *testing.T) {
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/info" {
			fmt.Fprint(w, `{"rows": 5}`)
			return
		}
		switch n := asked.Add(1); {
		case n == 20:
			http.Error(w, "broken", http.StatusInternalServerError)
		case n%3 == 0:
			w.WriteHeader(http.StatusServiceUnavailable)
		default:
			fmt.Fprint(w, `{"batch": 2, "hits": [1]}`)
		}
	}))
	defer server.Close()
	texts := filepath.Join(t.TempDir(), "texts.txt")
	if err := os.WriteFile(texts, []byte("one\n\n"+strings.Repeat("long ", 20000)+"\nlast"), 0o644); err != nil {
		t.Fatal(err)
	}
	l := &load{url: server.URL, k: 3}
	if err := l.prepare(texts, 2); err != nil || len(l.texts) != 3 || l.texts[2] != "last" || l.rows != 5 {
		t.Fatalf("%d texts, %d rows, %v", len(l.texts), l.rows, err)
	}
	l.run(30, 2, 0)
	if len(l.took) != 29 || l.lost.Load() != 1 || l.refused.Load() < 10 || l.batches != 2*29 ||
		!strings.Contains(l.example, "500") {
		t.Errorf("%d answers, %d lost, %d refused, batches of %d, %s", len(l.took), l.lost.Load(), l.refused.Load(),
			l.batches, l.example)
	}
}
